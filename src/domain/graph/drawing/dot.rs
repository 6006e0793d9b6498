//! A graph for Graphviz.

use super::{caption, cut_short, fill, label, lines_of, parent_of};
use crate::domain::graph::answer::Graph;

/// The most room for a line in a box, in pixels, and the size of its letters.
const LINE_WIDTH: usize = 720;
const FONT: usize = 10;

/// Writes a graph in the language of Graphviz: a box for each node, from left to
/// right, and an arrow for each hop with its score.
pub fn dot(graph: &Graph) -> String {
    let mut caption = quoted(&caption(graph));
    if let Some(cut) = cut_short(graph) {
        caption.extend(["\\n", &quoted(&cut)]);
    }
    let mut text = vec![format!(
        "digraph connections {{\n  rankdir=LR;\n  charset=\"UTF-8\";\n  label=\"{caption}\";\n  \
         labelloc=t;\n  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize={FONT}];\n  \
         edge [fontname=\"sans-serif\", fontsize=9];\n"
    )];
    for (number, node) in graph.nodes.iter().enumerate() {
        let (path, heading) = lines_of(node);
        let mut lines = quoted(&label::fitting(&path, LINE_WIDTH, FONT));
        if let Some(heading) = heading {
            lines.extend(["\\n", &quoted(&label::fitting(&heading, LINE_WIDTH, FONT))]);
        }
        let fill = fill(node.depth);
        text.push(format!("  n{number} [label=\"{lines}\", fillcolor=\"{fill}\"];\n"));
    }
    for (number, node) in graph.nodes.iter().enumerate() {
        if let Some(parent) = parent_of(graph, number) {
            let score = node.score;
            text.push(format!("  n{parent} -> n{number} [label=\"{score:.2}\"];\n"));
        }
    }
    text.push("}\n".to_owned());
    text.concat()
}

/// Text as it stands between quotes. An ampersand would begin the name of a
/// character.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::graph::drawing::testing::{hostile, sample};

    // GRAPH-71 GRAPH-73
    #[test]
    fn a_node_is_a_box_and_a_hop_is_an_arrow_with_its_score() {
        let text = dot(&sample());
        for line in [
            "digraph connections {",
            "  rankdir=LR;",
            "  label=\"notes/a.md: 5 nodes, depth 2, 3 scans\\ntruncated: seed_chunks (limit 2), \
             node_budget (limit 5)\";",
            "  n0 [label=\"notes/a.md\\n#Seed\", fillcolor=\"#cfe3ff\"];",
            "  n1 [label=\"notes/a.md\", fillcolor=\"#cfe3ff\"];",
            "  n0 -> n2 [label=\"0.88\"];",
            "  n2 -> n4 [label=\"0.50\"];",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert_eq!(text.matches(" -> ").count(), 3);
    }

    // GRAPH-73
    #[test]
    fn a_whole_graph_says_nothing_of_truncation() {
        let mut graph = sample();
        graph.truncation.clear();
        assert!(!dot(&graph).contains("truncated"));
    }

    // GRAPH-73
    #[test]
    fn deeper_than_the_colours_go_is_the_last_one() {
        assert_eq!(fill(3), fill(4));
        assert_eq!(fill(3), fill(u32::MAX));
        assert_ne!(fill(2), fill(3));
    }

    /// Reads the strings between quotes, which must be all closed on their line.
    fn strings(text: &str) -> Vec<String> {
        let mut strings = Vec::new();
        for line in text.lines() {
            let mut characters = line.chars();
            while let Some(character) = characters.next() {
                if character != '"' {
                    continue;
                }
                let mut string = String::new();
                loop {
                    match characters.next() {
                        Some('\\') => match characters.next() {
                            Some('n') => string.push('\n'),
                            Some(escaped @ ('\\' | '"')) => string.push(escaped),
                            other => panic!("{other:?} is escaped in {line}"),
                        },
                        Some('"') => break,
                        Some(other) => string.push(other),
                        None => panic!("a string is never closed: {line}"),
                    }
                }
                strings.push(string);
            }
        }
        strings
    }

    // GRAPH-71
    #[test]
    fn hostile_titles_stay_inside_their_labels() {
        let graph = hostile();
        let text = dot(&graph);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        let strings = strings(&text);
        for node in &graph.nodes {
            let (path, heading) = lines_of(node);
            let shown: Vec<String> = std::iter::once(path)
                .chain(heading)
                .map(|line| label::fitting(&line, LINE_WIDTH, FONT).replace('&', "&amp;"))
                .collect();
            assert!(strings.contains(&shown.join("\n")), "{shown:?}");
        }
    }
}
