//! A graph for programs that analyse graphs.

use super::{label, parent_of};
use crate::domain::graph::answer::{Graph, Node};

/// What is kept, and of which type: of the graph, of nodes, of hops.
const KEYS: [(&str, &str, &str); 14] = [
    ("start_path", "graph", "string"),
    ("truncated", "graph", "boolean"),
    ("truncation", "graph", "string"),
    ("path", "node", "string"),
    ("heading", "node", "string"),
    ("title", "node", "string"),
    ("topic", "node", "string"),
    ("snippet", "node", "string"),
    ("chunk_id", "node", "long"),
    ("depth", "node", "int"),
    ("score", "node", "float"),
    ("start_line", "node", "int"),
    ("end_line", "node", "int"),
    ("weight", "edge", "float"),
];

/// Writes a graph as `GraphML`, with the members of a node in the JSON as data.
///
/// # Source
///
/// Brandes, Eiglsperger, Herman, Himsolt and Marshall, "`GraphML` Progress
/// Report: Structural Layer Proposal", GD 2001.
pub fn graphml(graph: &Graph) -> String {
    let mut text = vec![
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
            .to_owned(),
    ];
    for (name, of, kind) in KEYS {
        text.push(format!(
            "  <key id=\"{name}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>\n"
        ));
    }
    text.push("  <graph id=\"connections\" edgedefault=\"directed\">\n".to_owned());
    let reasons: Vec<String> = graph
        .truncation
        .iter()
        .map(|cut| format!("{} limit={}: {}", cut.reason.as_str(), cut.limit, cut.detail))
        .collect();
    put(&mut text, 4, "start_path", &graph.start_path);
    put(&mut text, 4, "truncated", &graph.is_truncated().to_string());
    put(&mut text, 4, "truncation", &reasons.join("\n"));
    for (number, node) in graph.nodes.iter().enumerate() {
        text.push(format!("    <node id=\"n{number}\">\n"));
        put_node(&mut text, node);
        text.push("    </node>\n".to_owned());
    }
    for (number, node) in graph.nodes.iter().enumerate() {
        if let Some(parent) = parent_of(graph, number) {
            text.push(format!("    <edge source=\"n{parent}\" target=\"n{number}\">\n"));
            put(&mut text, 6, "weight", &node.score.to_string());
            text.push("    </edge>\n".to_owned());
        }
    }
    text.push("  </graph>\n</graphml>\n".to_owned());
    text.concat()
}

fn put_node(text: &mut Vec<String>, node: &Node) {
    put(text, 6, "path", &node.path);
    for (name, value) in
        [("heading", &node.heading), ("title", &node.title), ("topic", &node.topic)]
    {
        if let Some(value) = value {
            put(text, 6, name, value);
        }
    }
    put(text, 6, "snippet", &node.snippet);
    put(text, 6, "chunk_id", &node.chunk.0.to_string());
    put(text, 6, "depth", &node.depth.to_string());
    put(text, 6, "score", &node.score.to_string());
    if let Some(lines) = node.lines {
        put(text, 6, "start_line", &lines.start.to_string());
        put(text, 6, "end_line", &lines.end.to_string());
    }
}

fn put(text: &mut Vec<String>, indent: usize, key: &str, value: &str) {
    let (margin, value) = (" ".repeat(indent), label::xml(value));
    text.push(format!("{margin}<data key=\"{key}\">{value}</data>\n"));
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use roxmltree::{Document, Node as Element};

    use super::*;
    use crate::domain::graph::drawing::testing::{hostile, sample};

    fn data(of: Element<'_, '_>) -> BTreeMap<String, String> {
        of.children()
            .filter(|child| child.has_tag_name("data"))
            .map(|child| {
                let key = child.attribute("key").unwrap().to_owned();
                (key, child.text().unwrap_or_default().to_owned())
            })
            .collect()
    }

    // GRAPH-B07 GRAPH-73 GRAPH-74
    #[test]
    fn every_node_and_hop_is_there_with_its_data() {
        let graph = sample();
        let text = graphml(&graph);
        let document = Document::parse(&text).unwrap();
        let of = |name: &str| -> Vec<_> {
            document.descendants().filter(|element| element.has_tag_name(name)).collect()
        };
        let about = data(of("graph")[0]);
        assert_eq!(about["start_path"], "notes/a.md");
        assert_eq!(about["truncated"], "true");
        assert!(about["truncation"].contains("node_budget limit=5"));
        let (nodes, edges) = (of("node"), of("edge"));
        assert_eq!((nodes.len(), edges.len()), (5, 3));
        let found = data(nodes[2]);
        assert_eq!((found["path"].as_str(), found["heading"].as_str()), ("notes/b.md", "Found"));
        assert_eq!((found["depth"].as_str(), found["score"].as_str()), ("1", "0.87654"));
        assert_eq!(edges[0].attribute("source"), Some("n0"));
        assert_eq!(edges[0].attribute("target"), Some("n2"));
        assert_eq!(data(edges[0])["weight"], "0.87654");
        // Nothing is used that was not declared.
        let declared: BTreeSet<_> = of("key").iter().map(|key| key.attribute("id")).collect();
        assert!(of("data").iter().all(|data| declared.contains(&data.attribute("key"))));
    }

    // GRAPH-B07
    #[test]
    fn hostile_texts_come_back_as_they_were_but_for_what_xml_cannot_hold() {
        let graph = hostile();
        let text = graphml(&graph);
        let document = Document::parse(&text).unwrap();
        let nodes = document.descendants().filter(|element| element.has_tag_name("node"));
        for (element, node) in nodes.zip(&graph.nodes) {
            let cannot = |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{fffe}';
            let expected = node.heading.as_ref().unwrap().replace(cannot, " ");
            assert_eq!(data(element)["heading"], expected);
        }
    }
}
