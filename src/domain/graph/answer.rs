//! What a walk has found.

use crate::domain::chunk::{ChunkId, LineRange};
use crate::domain::graph::truncation::Truncation;

/// The most characters of a chunk that a node shows.
const SNIPPET_CHARS: usize = 200;

/// The graph around one document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Where the walk began, as it was asked for.
    pub start_path: String,
    /// The bounds that cut the walk short, each at most once; empty if nothing
    /// was lost.
    pub truncation: Vec<Truncation>,
    /// The nodes in the order in which they were found. A node's number is its
    /// place here, and that of its parent is lower.
    pub nodes: Vec<Node>,
    /// What the walk took.
    pub stats: GraphStats,
    /// Remarks that a caller should see.
    pub warnings: Vec<String>,
}

impl Graph {
    /// Whether something was lost.
    pub fn is_truncated(&self) -> bool {
        !self.truncation.is_empty()
    }
}

/// A chunk in a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The number of the node from which this one was found; none for a seed.
    pub parent: Option<usize>,
    /// Hops from the start; 0 for a seed.
    pub depth: u32,
    /// The chunk. Its number lasts until its document is indexed again.
    pub chunk: ChunkId,
    /// The similarity to the parent, from 0 to 1; 1 for a seed.
    pub score: f32,
    /// The document's key.
    pub path: String,
    /// The section's title.
    pub heading: Option<String>,
    /// The document's title.
    pub title: Option<String>,
    /// The document's topic.
    pub topic: Option<String>,
    /// The beginning of the chunk.
    pub snippet: String,
    /// Where the chunk lies in a source file.
    pub lines: Option<LineRange>,
    /// The grammar's word for the definition that the chunk is.
    pub symbol_kind: Option<String>,
    /// The address under which a client can open the document.
    pub uri: Option<String>,
}

/// What a walk took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphStats {
    /// The greatest number of hops at which a node was found.
    pub max_depth_reached: u32,
    /// The nodes that were expanded, each by a question for its neighbours.
    pub knn_queries: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The chunks of the start document that the walk began with.
    pub seeds_used: u64,
}

/// The beginning of a text: its first 200 characters, and `…` if there are more.
///
/// ```
/// use grooveseek::domain::graph::snippet;
///
/// assert_eq!(snippet("short"), "short");
/// assert_eq!(snippet(&"語".repeat(201)), "語".repeat(200) + "…");
/// ```
pub fn snippet(text: &str) -> String {
    match text.char_indices().nth(SNIPPET_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
