//! A graph for Mermaid, which many viewers of Markdown draw.

use super::{FILLS, caption, cut_short, label, lines_of, parent_of};
use crate::domain::graph::answer::Graph;

/// The most room for a line in a box, in pixels, and the size of its letters.
const LINE_WIDTH: usize = 360;
const FONT: usize = 10;

/// Writes a graph as a Mermaid flow chart, from left to right. The caption is a
/// box of its own.
pub fn mermaid(graph: &Graph) -> String {
    let mut caption = quoted(&caption(graph));
    if let Some(cut) = cut_short(graph) {
        caption.extend(["<br/>", &quoted(&cut)]);
    }
    let mut text = vec!["flowchart LR\n".to_owned()];
    for (depth, fill) in FILLS.iter().enumerate() {
        text.push(format!("  classDef d{depth} fill:{fill},stroke:#555,color:#111\n"));
    }
    text.push(format!(
        "  classDef note fill:#fff,stroke-dasharray:3\n  caption[\"{caption}\"]:::note\n"
    ));
    for (number, node) in graph.nodes.iter().enumerate() {
        let (path, heading) = lines_of(node);
        let mut lines = quoted(&label::fitting(&path, LINE_WIDTH, FONT));
        if let Some(heading) = heading {
            lines.extend(["<br/>", &quoted(&label::fitting(&heading, LINE_WIDTH, FONT))]);
        }
        let class = usize::try_from(node.depth).unwrap_or(usize::MAX).min(FILLS.len() - 1);
        text.push(format!("  n{number}[\"{lines}\"]:::d{class}\n"));
    }
    for (number, node) in graph.nodes.iter().enumerate() {
        if let Some(parent) = parent_of(graph, number) {
            text.push(format!("  n{parent} -->|{:.2}| n{number}\n", node.score));
        }
    }
    text.concat()
}

/// Text as it stands between quotes. Whatever could mean something to Mermaid,
/// to Markdown or to HTML stands as the number of its character.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        let means_itself = !character.is_ascii()
            || character.is_ascii_alphanumeric()
            || matches!(character, ' ' | '/' | '.' | ',' | ':' | '-');
        if means_itself {
            quoted.push(character);
        } else {
            quoted.extend(["#", &u32::from(character).to_string(), ";"]);
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::graph::drawing::testing::{hostile, sample};

    // GRAPH-B07 GRAPH-73 GRAPH-74
    #[test]
    fn a_flow_chart_has_a_box_for_each_node_and_the_caption() {
        let text = mermaid(&sample());
        assert!(text.starts_with("flowchart LR\n"));
        for line in [
            "  n0[\"notes/a.md<br/>#35;Seed\"]:::d0",
            "  n4[\"notes/c.md\"]:::d2",
            "  n0 -->|0.88| n2",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(text.contains("truncated: seed#95;chunks #40;limit 2#41;"), "{text}");
        assert_eq!(text.matches("-->").count(), 3);
    }

    // GRAPH-B07
    #[test]
    fn hostile_titles_are_nothing_but_text() {
        let graph = hostile();
        for line in mermaid(&graph).lines().filter(|line| line.contains("[\"")) {
            let label = line.split('"').nth(1).unwrap();
            assert_eq!(line.matches('"').count(), 2, "{line}");
            let label = label.replace("<br/>", "");
            let plain = |c: char| c.is_alphanumeric() || !c.is_ascii() || " /.,:-#;".contains(c);
            assert!(label.chars().all(plain), "{line}");
        }
    }
}
