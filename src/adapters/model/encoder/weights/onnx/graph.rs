//! The parts of an ONNX file that weights are read from.

use std::ops::Range;

use crate::adapters::model::encoder::weights::onnx::wire::{Damage, Field, Fields, Value};

/// The most nodes and the most initial values of a graph, and the most names
/// that go into or come out of all nodes together.
const MOST_PARTS: usize = 1 << 17;

/// The most sides of a tensor.
const MOST_SIDES: usize = 8;

/// The numbers by which the format knows fields of its messages.
mod field {
    pub(super) const MODEL_GRAPH: u64 = 7;
    pub(super) const GRAPH_NODE: u64 = 1;
    pub(super) const GRAPH_INITIALIZER: u64 = 5;
    pub(super) const NODE_INPUT: u64 = 1;
    pub(super) const NODE_OUTPUT: u64 = 2;
    pub(super) const NODE_NAME: u64 = 3;
    pub(super) const NODE_OPERATOR: u64 = 4;
    pub(super) const NODE_ATTRIBUTE: u64 = 5;
    pub(super) const NODE_DOMAIN: u64 = 7;
    pub(super) const ATTRIBUTE_NAME: u64 = 1;
    pub(super) const ATTRIBUTE_INTEGER: u64 = 3;
    pub(super) const ATTRIBUTE_TENSOR: u64 = 5;
    pub(super) const ATTRIBUTE_INTEGERS: u64 = 8;
    pub(super) const TENSOR_SIDES: u64 = 1;
    pub(super) const TENSOR_KIND: u64 = 2;
    pub(super) const TENSOR_FLOATS: u64 = 4;
    pub(super) const TENSOR_INTEGERS: u64 = 5;
    pub(super) const TENSOR_NAME: u64 = 8;
    pub(super) const TENSOR_RAW: u64 = 9;
    pub(super) const TENSOR_EXTERNAL: u64 = 13;
    pub(super) const TENSOR_LOCATION: u64 = 14;
    pub(super) const ENTRY_KEY: u64 = 1;
    pub(super) const ENTRY_VALUE: u64 = 2;
}

/// A graph of operators, and the numbers that it starts with.
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) initializers: Vec<Constant<'a>>,
}

/// An operator with what goes in and comes out, by name.
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) operator: &'a str,
    pub(super) domain: &'a str,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    /// Whether `Gemm` turns its second matrix.
    pub(super) turns_second: bool,
    /// The order of sides that `Transpose` makes, if it says one.
    pub(super) order: Option<Vec<u64>>,
    /// What `Constant` gives.
    pub(super) value: Option<Constant<'a>>,
}

/// A tensor in the file or beside it.
#[derive(Clone, Debug, Default)]
pub(super) struct Constant<'a> {
    pub(super) name: &'a str,
    pub(super) sides: Vec<u64>,
    /// The format's number for what the tensor holds.
    pub(super) kind: u64,
    pub(super) data: Data<'a>,
}

/// Where the numbers of a tensor are.
#[derive(Clone, Debug, Default)]
pub(super) enum Data<'a> {
    #[default]
    Nowhere,
    /// In the file, as they are.
    Raw(Range<usize>),
    /// In the file, 32-bit numbers as they are.
    Floats(Range<usize>),
    /// In the file, each as a whole number of its own length.
    Integers(Range<usize>),
    /// In the file in several pieces.
    Pieces,
    /// In another file.
    External(External<'a>),
}

/// A place in another file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct External<'a> {
    pub(super) location: &'a str,
    pub(super) offset: u64,
    pub(super) length: Option<u64>,
}

/// Reads the graph of a model.
pub(super) fn read(file: &[u8]) -> Result<Graph<'_>, Damage> {
    let mut found = None;
    for field in Fields::of(file, 0..file.len()) {
        if let Field { number: field::MODEL_GRAPH, value: Value::Bytes(place) } = field? {
            if found.is_some() {
                return Err(Damage { what: "a second graph", at: place.start });
            }
            found = Some(place);
        }
    }
    let place = found.ok_or(Damage { what: "no graph", at: 0 })?;
    let reader = Reader { file };
    let mut graph = Graph::default();
    let mut names = 0;
    for field in Fields::of(file, place) {
        let Field { number, value: Value::Bytes(place) } = field? else { continue };
        let at = place.start;
        match number {
            field::GRAPH_NODE => graph.nodes.push(reader.node(place, &mut names)?),
            field::GRAPH_INITIALIZER => graph.initializers.push(reader.constant(place)?),
            _ => {}
        }
        if graph.nodes.len().max(graph.initializers.len()) > MOST_PARTS {
            return Err(Damage { what: "a graph of too many parts", at });
        }
    }
    Ok(graph)
}

struct Reader<'a> {
    file: &'a [u8],
}

impl<'a> Reader<'a> {
    fn text(&self, place: Range<usize>) -> Result<&'a str, Damage> {
        let at = place.start;
        let bytes = self.file.get(place).unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| Damage { what: "a name that is not UTF-8", at })
    }

    /// - `names`: how many names all nodes have so far.
    fn node(&self, place: Range<usize>, names: &mut usize) -> Result<Node<'a>, Damage> {
        let mut node = Node::default();
        for field in Fields::of(self.file, place) {
            let Field { number, value: Value::Bytes(place) } = field? else { continue };
            match number {
                field::NODE_INPUT | field::NODE_OUTPUT => {
                    *names += 1;
                    if *names > MOST_PARTS {
                        return Err(Damage { what: "a graph of too many names", at: place.start });
                    }
                    let side = &mut node.inputs;
                    let side = if number == field::NODE_INPUT { side } else { &mut node.outputs };
                    side.push(self.text(place)?);
                }
                field::NODE_NAME => node.name = self.text(place)?,
                field::NODE_OPERATOR => node.operator = self.text(place)?,
                field::NODE_DOMAIN => node.domain = self.text(place)?,
                field::NODE_ATTRIBUTE => self.attribute(place, &mut node)?,
                _ => {}
            }
        }
        Ok(node)
    }

    /// Reads an attribute if it is one of those that tell about weights.
    fn attribute(&self, place: Range<usize>, node: &mut Node<'a>) -> Result<(), Damage> {
        let (mut name, mut integer, mut tensor) = ("", 0, None);
        let mut order = Vec::new();
        for field in Fields::of(self.file, place) {
            match field? {
                Field { number: field::ATTRIBUTE_NAME, value: Value::Bytes(place) } => {
                    name = self.text(place)?;
                }
                Field { number: field::ATTRIBUTE_INTEGER, value: Value::Number(number) } => {
                    integer = number;
                }
                Field { number: field::ATTRIBUTE_TENSOR, value: Value::Bytes(place) } => {
                    tensor = Some(place);
                }
                Field { number: field::ATTRIBUTE_INTEGERS, value } => {
                    self.sides(value, &mut order)?;
                }
                _ => {}
            }
        }
        match name {
            "transB" => node.turns_second = integer != 0,
            "perm" => node.order = Some(order),
            "value" => node.value = tensor.map(|place| self.constant(place)).transpose()?,
            _ => {}
        }
        Ok(())
    }

    /// Adds whole numbers, of which a field has one or a list. What is too long
    /// to be the sides of a tensor is cut off, one number behind the limit.
    fn sides(&self, value: Value, sides: &mut Vec<u64>) -> Result<(), Damage> {
        let mut list = match value {
            Value::Number(number) => {
                sides.push(number);
                sides.truncate(MOST_SIDES + 1);
                return Ok(());
            }
            Value::Bytes(place) => Fields::of(self.file, place),
            Value::Fixed => return Ok(()),
        };
        while !list.is_empty() && sides.len() <= MOST_SIDES {
            sides.push(list.number()?);
        }
        Ok(())
    }

    fn constant(&self, place: Range<usize>) -> Result<Constant<'a>, Damage> {
        let at = place.start;
        let mut constant = Constant::default();
        let (mut external, mut is_external) = (External::default(), false);
        for field in Fields::of(self.file, place) {
            let Field { number, value } = field?;
            match (number, value) {
                (field::TENSOR_SIDES, value) => self.sides(value, &mut constant.sides)?,
                (field::TENSOR_KIND, Value::Number(kind)) => constant.kind = kind,
                (field::TENSOR_NAME, Value::Bytes(place)) => constant.name = self.text(place)?,
                (field::TENSOR_RAW, Value::Bytes(place)) => {
                    join(&mut constant.data, Data::Raw(place));
                }
                (field::TENSOR_FLOATS, Value::Bytes(place)) => {
                    join(&mut constant.data, Data::Floats(place));
                }
                (field::TENSOR_INTEGERS, Value::Bytes(place)) => {
                    join(&mut constant.data, Data::Integers(place));
                }
                // A list need not be packed; ours would then be no range.
                (field::TENSOR_FLOATS | field::TENSOR_INTEGERS, _) => constant.data = Data::Pieces,
                (field::TENSOR_EXTERNAL, Value::Bytes(place)) => {
                    self.entry(place, &mut external)?;
                }
                (field::TENSOR_LOCATION, Value::Number(location)) => is_external = location == 1,
                _ => {}
            }
        }
        if constant.sides.len() > MOST_SIDES {
            return Err(Damage { what: "a tensor of too many sides", at });
        }
        if is_external {
            constant.data = Data::External(external);
        }
        Ok(constant)
    }

    /// Reads one of the entries that say where numbers in another file are.
    fn entry(&self, place: Range<usize>, external: &mut External<'a>) -> Result<(), Damage> {
        let at = place.start;
        let (mut key, mut value) = ("", "");
        for field in Fields::of(self.file, place) {
            match field? {
                Field { number: field::ENTRY_KEY, value: Value::Bytes(place) } => {
                    key = self.text(place)?;
                }
                Field { number: field::ENTRY_VALUE, value: Value::Bytes(place) } => {
                    value = self.text(place)?;
                }
                _ => {}
            }
        }
        let number = || value.parse().map_err(|_| Damage { what: "a place that is no number", at });
        match key {
            "location" => external.location = value,
            "offset" => external.offset = number()?,
            "length" => external.length = Some(number()?),
            _ => {}
        }
        Ok(())
    }
}

/// A tensor has its numbers in one place; an empty list is none.
fn join<'a>(data: &mut Data<'a>, more: Data<'a>) {
    let is_empty = |data: &Data<'_>| match data {
        Data::Nowhere => true,
        Data::Raw(place) | Data::Floats(place) | Data::Integers(place) => place.is_empty(),
        Data::Pieces | Data::External(_) => false,
    };
    if is_empty(data) {
        *data = more;
    } else if !is_empty(&more) {
        *data = Data::Pieces;
    }
}
