//! Which tensor of a graph is which weight of the model.
//!
//! An exporter keeps the names of biases, normalisations and tables, but turns
//! most matrices on their side and leaves them without a name. The graph says
//! whose they are: by the bias that is added to the product, or by the name of
//! the node, which has the modules of the model as a path.

use std::collections::{BTreeMap, HashMap};

use crate::adapters::model::encoder::weights::Layout;
use crate::adapters::model::encoder::weights::names::plain;
use crate::adapters::model::encoder::weights::onnx::graph::{Constant, Graph, Node};

/// Operators between a weight and its use that are followed; more than an
/// exporter ever puts there, and an end to circles.
const MOST_STEPS: usize = 8;

/// A weight of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched<'a, 'g> {
    pub(super) constant: &'g Constant<'a>,
    pub(super) layout: Layout,
}

/// Why a graph cannot be read for its weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is made in a way that only a runtime understands.
    Unsupported(String),
    /// It contradicts itself.
    Malformed(String),
}

/// Finds the weights of a model.
///
/// - Returns tensors by the plain names of weights.
pub(super) fn find<'a, 'g>(
    graph: &'g Graph<'a>,
) -> Result<BTreeMap<String, Matched<'a, 'g>>, Refusal> {
    check_operators(&graph.nodes)?;
    let mut matching = Matching::new(graph);
    matching.take_named()?;
    for node in &graph.nodes {
        match node.operator {
            "MatMul" | "Gemm" => matching.take_product(node)?,
            "Identity" => matching.take_copy(node),
            _ => {}
        }
    }
    for node in &graph.nodes {
        matching.take_by_place(node);
    }
    Ok(matching.found)
}

/// Refuses graphs whose weights are compressed or joined.
fn check_operators(nodes: &[Node<'_>]) -> Result<(), Refusal> {
    let quantised = |operator: &str| {
        operator.starts_with("QLinear")
            || operator.ends_with("Integer")
            || operator.to_ascii_lowercase().contains("quantize")
            || operator.starts_with("QAttention")
            || operator.starts_with("QGemm")
            || operator.starts_with("QEmbed")
            || operator == "MatMulNBits"
            || operator == "MatMulBnb4"
    };
    if let Some(node) = nodes.iter().find(|node| quantised(node.operator)) {
        let operator = node.operator;
        return Err(Refusal::Unsupported(format!(
            "its weights are quantised (operator {operator:?}), which takes ONNX Runtime"
        )));
    }
    if let Some(node) = nodes.iter().find(|node| !["", "ai.onnx"].contains(&node.domain)) {
        let (operator, domain) = (node.operator, node.domain);
        return Err(Refusal::Unsupported(format!(
            "it is optimised for a runtime (operator {operator:?} of {domain:?}), which takes \
             ONNX Runtime"
        )));
    }
    Ok(())
}

struct Matching<'a, 'g> {
    constants: HashMap<&'a str, &'g Constant<'a>>,
    producers: HashMap<&'a str, &'g Node<'a>>,
    /// The biases and other addends of what a name stands for.
    sums: HashMap<&'a str, Vec<&'g Node<'a>>>,
    found: BTreeMap<String, Matched<'a, 'g>>,
}

/// A constant as an operator gets it.
struct Operand<'a, 'g> {
    constant: &'g Constant<'a>,
    /// The plain name of the weight, if one is on the way to it.
    name: Option<String>,
    turned: bool,
}

impl<'a, 'g> Matching<'a, 'g> {
    fn new(graph: &'g Graph<'a>) -> Self {
        let mut constants: HashMap<&'a str, &'g Constant<'a>> =
            graph.initializers.iter().map(|constant| (constant.name, constant)).collect();
        let (mut producers, mut sums) = (HashMap::new(), HashMap::<_, Vec<_>>::new());
        for node in &graph.nodes {
            for output in &node.outputs {
                producers.insert(*output, node);
            }
            if node.operator == "Add" {
                for input in &node.inputs {
                    sums.entry(*input).or_default().push(node);
                }
            }
            if let (Some(value), [output]) = (&node.value, &node.outputs[..])
                && node.operator == "Constant"
            {
                constants.insert(output, value);
            }
        }
        Self { constants, producers, sums, found: BTreeMap::new() }
    }

    /// Takes the tensors that have the name of a weight. Of a matrix it is not
    /// yet known which way it lies.
    fn take_named(&mut self) -> Result<(), Refusal> {
        let mut names: Vec<_> = self.constants.iter().map(|(name, it)| (*name, *it)).collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        for (name, constant) in names {
            let Some(plain) = plain(name) else { continue };
            let is_matrix = constant.sides.len() > 1 && !plain.starts_with("embeddings.");
            let layout = if is_matrix { Layout::Unknown } else { Layout::AsIs };
            let key = plain.clone();
            if self.found.insert(plain, Matched { constant, layout }).is_some() {
                return Err(Refusal::Malformed(format!("it has two tensors {key}")));
            }
        }
        Ok(())
    }

    /// Takes the matrix and the bias of a linear layer.
    fn take_product(&mut self, node: &'g Node<'a>) -> Result<(), Refusal> {
        let Some(operand) = node.inputs.get(1).and_then(|input| self.operand(input)) else {
            return Ok(());
        };
        let is_gemm = node.operator == "Gemm";
        let bias = if is_gemm {
            node.inputs.get(2).and_then(|input| self.operand(input))
        } else {
            node.outputs.first().and_then(|output| self.addend(output))
        };
        let is = |kind: &'static str| move |name: &String| name.ends_with(kind);
        let bias_name = bias.as_ref().and_then(|bias| bias.name.clone()).filter(is(".bias"));
        let own = operand.name.as_deref().and_then(|name| name.strip_suffix(".weight"));
        let module = own
            .map(str::to_owned)
            .or_else(|| module_of(node))
            .or_else(|| Some(bias_name?.strip_suffix(".bias")?.to_owned()));
        let Some(module) = module else { return Ok(()) };
        let turns = operand.turned != (is_gemm && node.turns_second);
        let layout = if turns { Layout::AsIs } else { Layout::Transposed };
        self.take_matrix(
            format!("{module}.weight"),
            Matched { constant: operand.constant, layout },
        )?;
        if let Some(bias) = bias.filter(|bias| bias.constant.sides.len() == 1) {
            let matched = Matched { constant: bias.constant, layout: Layout::AsIs };
            self.found.entry(format!("{module}.bias")).or_insert(matched);
        }
        Ok(())
    }

    fn take_matrix(&mut self, name: String, matched: Matched<'a, 'g>) -> Result<(), Refusal> {
        let Some(known) = self.found.get_mut(&name) else {
            self.found.insert(name, matched);
            return Ok(());
        };
        if !std::ptr::eq(known.constant, matched.constant) {
            return Err(Refusal::Malformed(format!("it has two tensors for {name}")));
        }
        if known.layout != Layout::Unknown && known.layout != matched.layout {
            return Err(Refusal::Malformed(format!("it uses {name} in two ways")));
        }
        known.layout = matched.layout;
        Ok(())
    }

    /// Takes a weight that shares its numbers with another: the exporter keeps
    /// one of them, and gives out a copy of it under the name of the other.
    fn take_copy(&mut self, node: &'g Node<'a>) {
        let Some(name) = node.outputs.first().and_then(|output| plain(output)) else { return };
        let Some(operand) = node.inputs.first().and_then(|input| self.operand(input)) else {
            return;
        };
        if operand.constant.sides.len() == 1 || name.starts_with("embeddings.") {
            let matched = Matched { constant: operand.constant, layout: Layout::AsIs };
            self.found.entry(name).or_insert(matched);
        }
    }

    /// Takes what has no name but is used in a place that has one: the numbers
    /// of a normalisation, and tables.
    fn take_by_place(&mut self, node: &'g Node<'a>) {
        let Some(module) = module_of(node) else { return };
        let is_norm = module.ends_with("LayerNorm");
        let parts: &[(usize, &str)] = match node.operator {
            "LayerNormalization" => &[(1, "weight"), (2, "bias")],
            "Mul" if is_norm => &[(0, "weight"), (1, "weight")],
            "Add" if is_norm => &[(0, "bias"), (1, "bias")],
            "Gather" if module.ends_with("_embeddings") => &[(0, "weight")],
            _ => return,
        };
        for (place, kind) in parts {
            let Some(operand) = node.inputs.get(*place).and_then(|input| self.operand(input))
            else {
                continue;
            };
            let sides = if node.operator == "Gather" { 2 } else { 1 };
            if operand.constant.sides.len() == sides && !operand.turned {
                let matched = Matched { constant: operand.constant, layout: Layout::AsIs };
                self.found.entry(format!("{module}.{kind}")).or_insert(matched);
            }
        }
    }

    /// The constant that a name stands for, through operators that do not
    /// change its numbers.
    fn operand(&self, name: &'a str) -> Option<Operand<'a, 'g>> {
        let (mut at, mut turned, mut known) = (name, false, None);
        for _ in 0..MOST_STEPS {
            known = known.or_else(|| plain(at));
            if let Some(constant) = self.constants.get(at) {
                return Some(Operand { constant, name: known, turned });
            }
            let node = self.producers.get(at)?;
            match node.operator {
                "Identity" | "Cast" => {}
                "Transpose" if node.order.as_deref().is_none_or(|order| order == [1, 0]) => {
                    turned = !turned;
                }
                _ => return None,
            }
            at = node.inputs.first()?;
        }
        None
    }

    /// The constant that is added to what a name stands for.
    fn addend(&self, name: &str) -> Option<Operand<'a, 'g>> {
        let sums = self.sums.get(name)?;
        let others = sums
            .iter()
            .take(MOST_STEPS)
            .flat_map(|sum| &sum.inputs)
            .filter(|input| **input != name);
        others.into_iter().find_map(|other| self.operand(other))
    }
}

/// The module of a model that a node belongs to, by the path that is its name:
/// `/encoder/layer.0/attention/self/query/MatMul`.
fn module_of(node: &Node<'_>) -> Option<String> {
    let (path, _) = node.name.strip_prefix('/')?.rsplit_once('/')?;
    let module = plain(&format!("{}.", path.replace('/', ".")))?;
    Some(module.trim_end_matches('.').to_owned())
}
