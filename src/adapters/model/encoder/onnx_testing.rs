//! Writes toys as exporters write ONNX files: the weights and the nodes that
//! use them.

use std::path::{Path, PathBuf};

use crate::adapters::model::encoder::testing::{Toy, to_brain, to_half};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a habit of exporters")]
pub(crate) struct Style {
    /// Whether nodes have the modules of the model as their names.
    pub(crate) scopes: bool,
    /// Whether matrices keep their names and are turned in the graph.
    pub(crate) turned: bool,
    /// Whether weights are the values of nodes instead of the graph's own.
    pub(crate) nodes: bool,
    /// Whether normalisations are one operator.
    pub(crate) whole_norms: bool,
    /// Whether biases and normalisations have lost their names.
    pub(crate) nameless: bool,
    /// How numbers are kept.
    pub(crate) numbers: Kept,
}

/// How numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Raw,
    Floats,
    RawHalves,
    Halves,
    Brains,
    External,
}

impl Style {
    /// As exporters of today write it.
    pub(crate) const USUAL: Self = Self {
        scopes: true,
        turned: false,
        nodes: false,
        whole_norms: true,
        nameless: false,
        numbers: Kept::Raw,
    };
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

pub(crate) fn number(field: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(field << 3, &mut bytes);
    varint(value, &mut bytes);
    bytes
}

pub(crate) fn bytes(field: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(field << 3 | 2, &mut bytes);
    varint(value.as_ref().len() as u64, &mut bytes);
    bytes.extend(value.as_ref());
    bytes
}

/// A node.
pub(crate) fn node(operator: &str, name: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut node: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input)).collect();
    node.extend(bytes(2, output));
    node.extend(bytes(3, name));
    node.extend(bytes(4, operator));
    node
}

/// A tensor of 32-bit numbers as they are.
pub(crate) fn raw_tensor(name: &str, sides: &[usize], numbers: &[f32]) -> Vec<u8> {
    let mut tensor: Vec<u8> = sides.iter().flat_map(|&side| number(1, side as u64)).collect();
    tensor.extend(number(2, 1));
    tensor.extend(bytes(8, name));
    let raw: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    tensor.extend(bytes(9, raw));
    tensor
}

/// A model of nodes and tensors.
pub(crate) fn model(nodes: &[Vec<u8>], tensors: &[Vec<u8>]) -> Vec<u8> {
    let mut graph: Vec<u8> = nodes.iter().flat_map(|node| bytes(1, node)).collect();
    graph.extend(bytes(2, "main_graph"));
    graph.extend(tensors.iter().flat_map(|tensor| bytes(5, tensor)));
    [number(1, 8), bytes(2, "test"), bytes(7, graph)].concat()
}

/// The place of a toy's ONNX file.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("onnx/model.onnx")
}

/// Writes the weights of a toy as `onnx/model.onnx`.
pub(crate) fn write(toy: &Toy, style: Style, folder: &Path) {
    let mut file = File { style, nodes: Vec::new(), tensors: Vec::new(), data: Vec::new() };
    for name in toy.tensors.keys() {
        file.weight(toy, name);
    }
    let target = path(folder);
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    std::fs::write(&target, model(&file.nodes, &file.tensors)).unwrap();
    if style.numbers == Kept::External {
        std::fs::write(target.with_file_name("model.onnx_data"), &file.data).unwrap();
    }
}

struct File {
    style: Style,
    nodes: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
}

impl File {
    /// Writes a tensor, and the node that uses it.
    fn weight(&mut self, toy: &Toy, name: &str) {
        let (sides, numbers) = &toy.tensors[name];
        let (module, kind) = name.rsplit_once('.').unwrap();
        let place = |operator: &str| {
            let path = module.replace('.', "/").replace("layer/", "layer.");
            if self.style.scopes { format!("/{path}/{operator}") } else { String::new() }
        };
        let anonymous = format!("onnx::{}_{}", name.len(), self.nodes.len());
        let (product, out) = (format!("{module}_product"), format!("{module}_out"));
        let input = "hidden";
        if module.ends_with("LayerNorm") {
            let own = if self.style.nameless { &anonymous } else { name };
            match (self.style.whole_norms, kind) {
                (true, "weight") => {
                    let bias = format!("{module}.bias");
                    let bias = if self.style.nameless { format!("{anonymous}b") } else { bias };
                    let node = node("LayerNormalization", &place("LN"), &[input, own, &bias], &out);
                    self.nodes.push(node);
                    self.tensor(own, sides, numbers);
                    let (sides, numbers) = &toy.tensors[&format!("{module}.bias")];
                    self.tensor(&bias, sides, numbers);
                }
                (true, _) => {}
                (false, "weight") => {
                    self.nodes.push(node("Mul", &place("Mul"), &[input, own], &product));
                    self.tensor(own, sides, numbers);
                }
                (false, _) => {
                    self.nodes.push(node("Add", &place("Add_1"), &[&product, own], &out));
                    self.tensor(own, sides, numbers);
                }
            }
        } else if module.ends_with("_embeddings") {
            self.nodes.push(node("Gather", &place("Gather"), &[name, "ids"], &out));
            self.tensor(name, sides, numbers);
        } else if kind == "bias" {
            let own = if self.style.nameless { &anonymous } else { name };
            self.nodes.push(node("Add", &place("Add"), &[own, &product], &out));
            self.tensor(own, sides, numbers);
        } else if self.style.turned {
            let turned = format!("{anonymous}t");
            let order = [bytes(1, "perm"), bytes(8, [1, 0])].concat();
            let mut node_of_turn = node("Transpose", &place("Transpose"), &[name], &turned);
            node_of_turn.extend(bytes(5, order));
            self.nodes.push(node_of_turn);
            self.nodes.push(node("MatMul", &place("MatMul"), &[input, &turned], &product));
            self.tensor(name, sides, numbers);
        } else {
            self.nodes.push(node("MatMul", &place("MatMul"), &[input, &anonymous], &product));
            let turned: Vec<f32> = (0..sides[1])
                .flat_map(|column| (0..sides[0]).map(move |row| numbers[row * sides[1] + column]))
                .collect();
            self.tensor(&anonymous, &[sides[1], sides[0]], &turned);
        }
    }

    fn tensor(&mut self, name: &str, sides: &[usize], numbers: &[f32]) {
        let packed: Vec<u8> = sides
            .iter()
            .flat_map(|&side| {
                let mut bytes = Vec::new();
                varint(side as u64, &mut bytes);
                bytes
            })
            .collect();
        let mut tensor = bytes(1, packed);
        let all: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let halves = |bits: fn(f32) -> u16| -> Vec<u8> {
            numbers.iter().flat_map(|&number| bits(number).to_le_bytes()).collect()
        };
        let (kind, rest) = match self.style.numbers {
            Kept::Raw => (1, bytes(9, all)),
            Kept::Floats => (1, bytes(4, all)),
            Kept::RawHalves => (10, bytes(9, halves(to_half))),
            Kept::Brains => (16, bytes(9, halves(to_brain))),
            Kept::Halves => {
                let mut list = Vec::new();
                for &number in numbers {
                    varint(to_half(number).into(), &mut list);
                }
                (10, bytes(5, list))
            }
            Kept::External => {
                let entry =
                    |key: &str, value: &str| bytes(13, [bytes(1, key), bytes(2, value)].concat());
                let (offset, length) = (self.data.len().to_string(), all.len().to_string());
                self.data.extend(all);
                let place = [
                    entry("location", "model.onnx_data"),
                    entry("offset", &offset),
                    entry("length", &length),
                    number(14, 1),
                ];
                (1, place.concat())
            }
        };
        tensor.extend(number(2, kind));
        if self.style.nodes {
            let value = [bytes(1, "value"), bytes(5, [&tensor[..], &rest].concat())].concat();
            let mut constant = node("Constant", "", &[], name);
            constant.extend(bytes(5, value));
            self.nodes.push(constant);
        } else {
            tensor.extend(bytes(8, name));
            tensor.extend(rest);
            self.tensors.push(tensor);
        }
    }
}
