//! The JSON of a connection graph.

use serde::Serialize;
use serde_json::Value;

use super::{shortest, value_of};
use crate::domain::graph::{Graph, Node, Truncation};

/// A connection graph.
///
/// `parent_id`, `heading`, `title` and `topic` are null where there is none;
/// other members that do not apply are left out. A score is written as the
/// shortest decimal that reads back as the same 32-bit number.
pub fn graph(graph: &Graph) -> Value {
    value_of(&GraphShape {
        start_path: &graph.start_path,
        truncated: graph.is_truncated(),
        truncation: graph.truncation.iter().map(TruncationShape::from).collect(),
        nodes: graph.nodes.iter().enumerate().map(NodeShape::from).collect(),
        stats: StatsShape {
            total_nodes: graph.nodes.len(),
            max_depth_reached: graph.stats.max_depth_reached,
            knn_queries: graph.stats.knn_queries,
            duration_ms: graph.stats.duration_ms,
            seeds_used: graph.stats.seeds_used,
        },
        warnings: &graph.warnings,
    })
}

#[derive(Serialize)]
struct GraphShape<'a> {
    start_path: &'a str,
    truncated: bool,
    truncation: Vec<TruncationShape<'a>>,
    nodes: Vec<NodeShape<'a>>,
    stats: StatsShape,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct TruncationShape<'a> {
    reason: &'static str,
    limit: u64,
    detail: &'a str,
}

impl<'a> From<&'a Truncation> for TruncationShape<'a> {
    fn from(truncation: &'a Truncation) -> Self {
        let Truncation { reason, limit, detail } = truncation;
        Self { reason: reason.as_str(), limit: *limit, detail }
    }
}

#[derive(Serialize)]
struct NodeShape<'a> {
    node_id: usize,
    parent_id: Option<usize>,
    depth: u32,
    chunk_id: i64,
    #[serde(serialize_with = "shortest")]
    score: f32,
    path: &'a str,
    heading: Option<&'a str>,
    title: Option<&'a str>,
    topic: Option<&'a str>,
    snippet: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol_kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
}

impl<'a> From<(usize, &'a Node)> for NodeShape<'a> {
    fn from((number, node): (usize, &'a Node)) -> Self {
        Self {
            node_id: number,
            parent_id: node.parent,
            depth: node.depth,
            chunk_id: node.chunk.0,
            score: node.score,
            path: &node.path,
            heading: node.heading.as_deref(),
            title: node.title.as_deref(),
            topic: node.topic.as_deref(),
            snippet: &node.snippet,
            start_line: node.lines.map(|lines| lines.start),
            end_line: node.lines.map(|lines| lines.end),
            symbol_kind: node.symbol_kind.as_deref(),
            uri: node.uri.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct StatsShape {
    total_nodes: usize,
    max_depth_reached: u32,
    knn_queries: u64,
    duration_ms: u64,
    seeds_used: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::chunk::{ChunkId, LineRange};
    use crate::domain::graph::{GraphStats, Reason};

    fn seed() -> Node {
        Node {
            parent: None,
            depth: 0,
            chunk: ChunkId(7),
            score: 1.0,
            path: "a.md".into(),
            heading: None,
            title: None,
            topic: None,
            snippet: "text".into(),
            lines: None,
            symbol_kind: None,
            uri: None,
        }
    }

    // GRAPH-50 GRAPH-51 GRAPH-52 GRAPH-53 GRAPH-62 GRAPH-63 GRAPH-64 GRAPH-65 GRAPH-66
    #[test]
    fn an_empty_graph_has_the_members_that_are_always_there_and_no_other() {
        let empty = Graph { start_path: "a.md".into(), ..Graph::default() };
        assert_eq!(
            graph(&empty),
            json!({
                "start_path": "a.md",
                "truncated": false,
                "truncation": [],
                "nodes": [],
                "stats": {
                    "total_nodes": 0,
                    "max_depth_reached": 0,
                    "knn_queries": 0,
                    "duration_ms": 0,
                    "seeds_used": 0,
                },
            })
        );
    }

    // GRAPH-40 GRAPH-41 GRAPH-51 GRAPH-52 GRAPH-54 GRAPH-55 GRAPH-56 GRAPH-57 GRAPH-58 GRAPH-59
    // GRAPH-60 GRAPH-61 GRAPH-62 GRAPH-63 GRAPH-64 GRAPH-65 GRAPH-66 GRAPH-68 GRAPH-B06
    #[test]
    fn a_node_has_all_its_members_and_those_that_do_not_apply_only_if_they_are_stable() {
        let found = Node {
            parent: Some(0),
            depth: 1,
            chunk: ChunkId(9),
            score: 0.1,
            path: "b.rs".into(),
            heading: Some("H".into()),
            title: Some("T".into()),
            topic: Some("mcp".into()),
            snippet: "more…".into(),
            lines: Some(LineRange { start: 3, end: 5 }),
            symbol_kind: Some("function".into()),
            uri: Some("kb://doc/b.rs".into()),
        };
        let full = Graph {
            start_path: "a.md".into(),
            truncation: vec![Truncation {
                reason: Reason::NodeBudget,
                limit: 2,
                detail: "why".into(),
            }],
            nodes: vec![seed(), found],
            stats: GraphStats {
                max_depth_reached: 1,
                knn_queries: 3,
                duration_ms: 4,
                seeds_used: 1,
            },
            warnings: vec!["odd".into()],
        };
        assert_eq!(
            graph(&full),
            json!({
                "start_path": "a.md",
                "truncated": true,
                "truncation": [{ "reason": "node_budget", "limit": 2, "detail": "why" }],
                "nodes": [
                    {
                        "node_id": 0,
                        "parent_id": null,
                        "depth": 0,
                        "chunk_id": 7,
                        "score": 1.0,
                        "path": "a.md",
                        "heading": null,
                        "title": null,
                        "topic": null,
                        "snippet": "text",
                    },
                    {
                        "node_id": 1,
                        "parent_id": 0,
                        "depth": 1,
                        "chunk_id": 9,
                        "score": 0.1,
                        "path": "b.rs",
                        "heading": "H",
                        "title": "T",
                        "topic": "mcp",
                        "snippet": "more…",
                        "start_line": 3,
                        "end_line": 5,
                        "symbol_kind": "function",
                        "uri": "kb://doc/b.rs",
                    },
                ],
                "stats": {
                    "total_nodes": 2,
                    "max_depth_reached": 1,
                    "knn_queries": 3,
                    "duration_ms": 4,
                    "seeds_used": 1,
                },
                "warnings": ["odd"],
            })
        );
    }
}
