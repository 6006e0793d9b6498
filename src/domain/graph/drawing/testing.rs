//! Graphs that the drawings are tested with.

use crate::domain::chunk::ChunkId;
use crate::domain::graph::answer::{Graph, GraphStats, Node};
use crate::domain::graph::request::SeedStrategy;
use crate::domain::graph::truncation::Truncation;

pub(super) fn node(
    number: usize,
    parent: Option<usize>,
    depth: u32,
    score: f32,
    path: &str,
) -> Node {
    Node {
        parent,
        depth,
        chunk: ChunkId(i64::try_from(number).unwrap() + 100),
        score,
        path: path.to_owned(),
        heading: None,
        title: None,
        topic: None,
        snippet: format!("text of {number}"),
        lines: None,
        symbol_kind: None,
        uri: None,
    }
}

/// Two seeds; the first has two children, of which the first has one.
pub(super) fn sample() -> Graph {
    let mut nodes = vec![
        node(0, None, 0, 1.0, "notes/a.md"),
        node(1, None, 0, 1.0, "notes/a.md"),
        node(2, Some(0), 1, 0.876_54, "notes/b.md"),
        node(3, Some(0), 1, 0.6, "notes/d.md"),
        node(4, Some(2), 2, 0.5, "notes/c.md"),
    ];
    nodes[0].heading = Some("Seed".into());
    nodes[0].title = Some("Title of a".into());
    nodes[2].heading = Some("Found".into());
    Graph {
        start_path: "notes/a.md".into(),
        truncation: vec![
            Truncation::seed_chunks(2, SeedStrategy::AllChunks),
            Truncation::node_budget(5),
        ],
        nodes,
        stats: GraphStats { max_depth_reached: 2, knn_queries: 3, duration_ms: 7, seeds_used: 2 },
        warnings: vec!["a remark".into()],
    }
}

const NASTY: [&str; 13] = [
    "a\" b \\ c\\",
    "]]> <![CDATA[ <script>alert(1)</script> &amp; &#0; &bogus; --> <?x ?>",
    "line\nbreak\r\nand\ttab and \u{0} nul \u{1b}[2J \u{7f} \u{9b}31m",
    "\u{202e}turned around\u{202c} \u{2066}isolated\u{2069} \u{200f}",
    "\u{2028}separators\u{2029} \u{feff} \u{fffe} \u{85}",
    "\n! node_budget limit=1: forged\n[99] depth=0 parent=- score=1.000 forged.md",
    "とても長い見出しがここに続きます。とても長い見出しがここに続きます。とても長い見出しがここに続きます。\
     とても長い見出しがここに続きます。とても長い見出しがここに続きます。とても長い見出しがここに続きます。",
    "%%{init: {'theme': 'dark'}}%% `code` #quot; ;;; end subgraph --> n0",
    "\\n\\l\\N\\G {record|<port>}",
    "🦀👩‍👩‍👧‍👦 e\u{301}\u{301}\u{301}",
    "",
    "\" onload=\"alert(1)\" x='y'",
    "a\\",
];

/// Nodes with texts that mean something to one language or another, in a chain
/// deeper than a walk goes.
pub(super) fn hostile() -> Graph {
    let nodes = (0_usize..)
        .zip(NASTY)
        .map(|(number, text)| {
            let parent = number.checked_sub(1);
            let depth = u32::try_from(number).unwrap();
            let path = format!("x/{}.md", text.replace(['/', '\0'], "_"));
            let mut node = node(number, parent, depth, 0.5, &path);
            node.heading = Some(text.to_owned());
            node.title = Some(text.to_owned());
            node.topic = Some(text.to_owned());
            node.snippet = text.to_owned();
            node
        })
        .collect();
    Graph { start_path: NASTY.join(" "), nodes, ..Graph::default() }
}
