//! A graph as text and as pictures. All list the nodes of one walk; what cut it
//! short is always said, so that no picture is taken for the whole.

mod label;

mod dot;
mod graphml;
mod mermaid;
mod svg;
mod text;

#[cfg(test)]
mod testing;

pub use dot::dot;
pub use graphml::graphml;
pub use mermaid::mermaid;
pub use svg::{Layout, svg};
pub use text::text;

use crate::domain::graph::answer::{Graph, Node};

/// What a box is filled with, by depth; deeper ones have the last colour.
const FILLS: [&str; 4] = ["#cfe3ff", "#d9f2d9", "#fff1c9", "#f6d9e6"];

fn fill(depth: u32) -> &'static str {
    let last = FILLS.len() - 1;
    FILLS[usize::try_from(depth).map_or(last, |depth| depth.min(last))]
}

/// The path of a node and its heading, as one line each.
fn lines_of(node: &Node) -> (String, Option<String>) {
    let heading = node.heading.as_ref().map(|heading| format!("#{}", label::one_line(heading)));
    (label::one_line(&node.path), heading)
}

/// What a graph is of, in a line.
fn caption(graph: &Graph) -> String {
    format!(
        "{}: {} nodes, depth {}, {} scans",
        label::one_line(&graph.start_path),
        graph.nodes.len(),
        graph.stats.max_depth_reached,
        graph.stats.knn_queries
    )
}

/// What cut a graph short, in a line; nothing if nothing did.
fn cut_short(graph: &Graph) -> Option<String> {
    let reasons: Vec<String> = graph
        .truncation
        .iter()
        .map(|cut| format!("{} (limit {})", cut.reason.as_str(), cut.limit))
        .collect();
    (!reasons.is_empty()).then(|| format!("truncated: {}", reasons.join(", ")))
}

/// The parent of a node, if it is there: one that came before it.
fn parent_of(graph: &Graph, node: usize) -> Option<usize> {
    graph.nodes[node].parent.filter(|&parent| parent < node)
}
