//! A graph as lines of text.

use super::{label, lines_of};
use crate::domain::graph::answer::{Graph, Node};

/// Writes a graph as text: the start, a line of counts, one for each bound that
/// cut the walk short and each remark, then every node with the beginning of its
/// text.
pub fn text(graph: &Graph) -> String {
    let stats = &graph.stats;
    let mut text = format!(
        "Connections of {}\nnodes={} max_depth={} knn_queries={} duration_ms={} seeds_used={} \
         truncated={}\n",
        label::one_line(&graph.start_path),
        graph.nodes.len(),
        stats.max_depth_reached,
        stats.knn_queries,
        stats.duration_ms,
        stats.seeds_used,
        graph.is_truncated()
    );
    for cut in &graph.truncation {
        let (reason, limit) = (cut.reason.as_str(), cut.limit.to_string());
        text.extend(["! ", reason, " limit=", &limit, ": ", &cut.detail, "\n"]);
    }
    for warning in &graph.warnings {
        text.extend(["note: ", &label::one_line(warning), "\n"]);
    }
    for (number, node) in graph.nodes.iter().enumerate() {
        text.push_str(&described(number, node));
    }
    text
}

fn described(number: usize, node: &Node) -> String {
    let parent = node.parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
    let (path, heading) = lines_of(node);
    let heading = heading.unwrap_or_default();
    let mut text = format!(
        "\n[{number}] depth={} parent={parent} score={:.3} {path}{heading}\n",
        node.depth, node.score
    );
    if let Some(title) = &node.title {
        text.extend(["    ", &label::one_line(title), "\n"]);
    }
    for line in label::lines(&node.snippet).lines().filter(|line| !line.trim().is_empty()) {
        text.extend(["    ", line.trim_end(), "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::graph::drawing::testing::{hostile, sample};

    // GRAPH-70
    #[test]
    fn a_graph_is_a_title_a_line_of_counts_what_was_lost_and_its_nodes() {
        let mut graph = sample();
        graph.nodes.truncate(3);
        let lines: Vec<String> = text(&graph).lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "Connections of notes/a.md");
        assert_eq!(
            lines[1],
            "nodes=3 max_depth=2 knn_queries=3 duration_ms=7 seeds_used=2 truncated=true"
        );
        assert!(lines[2].starts_with("! seed_chunks limit=2: "), "{}", lines[2]);
        assert!(lines[3].starts_with("! node_budget limit=5: "), "{}", lines[3]);
        assert_eq!(lines[4], "note: a remark");
        assert_eq!(lines[5], "");
        assert_eq!(lines[6], "[0] depth=0 parent=- score=1.000 notes/a.md#Seed");
        assert_eq!(lines[7..10], ["    Title of a", "    text of 0", ""]);
        assert_eq!(lines[10], "[1] depth=0 parent=- score=1.000 notes/a.md");
        assert_eq!(lines[11..13], ["    text of 1", ""]);
        assert_eq!(lines[13], "[2] depth=1 parent=0 score=0.877 notes/b.md#Found");
    }

    // GRAPH-70
    #[test]
    fn nothing_in_a_document_forges_a_line_or_speaks_to_the_terminal() {
        let text = text(&hostile());
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        let nodes = text.lines().filter(|line| line.starts_with('[')).count();
        assert_eq!(nodes, hostile().nodes.len());
        assert_eq!(text.lines().filter(|line| line.starts_with('!')).count(), 0);
    }
}
