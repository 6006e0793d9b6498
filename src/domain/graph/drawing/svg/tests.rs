//! Pictures, read back as XML.

use std::collections::BTreeMap;

use roxmltree::{Document, Node as Element};

use super::*;
use crate::domain::graph::drawing::testing::{hostile, node, sample};
use crate::domain::graph::truncation::Truncation;

const LAYOUTS: [Layout; 2] = [Layout::Layered, Layout::Radial];

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

fn number(element: Element<'_, '_>, name: &str) -> f64 {
    element.attribute(name).unwrap().parse().unwrap()
}

fn all<'a>(document: &'a Document<'_>, name: &str) -> Vec<Element<'a, 'a>> {
    document.descendants().filter(|element| element.has_tag_name(name)).collect()
}

fn texts(document: &Document<'_>) -> Vec<String> {
    let texts = all(document, "text");
    texts.iter().map(|text| text.text().unwrap_or_default().to_owned()).collect()
}

/// The boxes of the layered layout without the ground: x, y, width, height.
fn boxes(document: &Document<'_>) -> Vec<[f64; 4]> {
    let boxes = all(document, "rect").into_iter().skip(1);
    boxes.map(|it| ["x", "y", "width", "height"].map(|name| number(it, name))).collect()
}

// GRAPH-72
#[test]
fn a_column_is_a_depth_and_a_parent_is_in_the_middle_of_its_children() {
    let text = svg(&sample(), Layout::Layered);
    let document = Document::parse(&text).unwrap();
    let boxes = boxes(&document);
    assert_eq!(boxes.len(), 5);
    let (x, y) = (|node: usize| boxes[node][0], |node: usize| boxes[node][1]);
    assert!((x(0) - x(1)).abs() < 0.1 && (x(2) - x(3)).abs() < 0.1);
    assert!(x(0) < x(2) && x(2) < x(4));
    // The leaves are 4, 3 and 1, from the top.
    assert!(y(4) < y(3) && y(3) < y(1));
    assert!((y(2) - y(4)).abs() < 0.1, "an only child is beside its parent");
    assert!((y(0) - f64::midpoint(y(2), y(3))).abs() <= 1.0);
}

// GRAPH-72
#[test]
fn edges_come_before_boxes_and_each_has_its_score() {
    let text = svg(&sample(), Layout::Layered);
    let last_edge = text.rfind("<path").unwrap();
    let first_box = text.find("<g>").unwrap();
    assert!(last_edge < first_box);
    assert_eq!(text.matches("<path").count(), 3);
    for score in ["0.88", "0.60", "0.50"] {
        assert!(text.contains(&format!(">{score}</text>")), "{score}");
    }
}

// GRAPH-72 GRAPH-73
#[test]
fn the_caption_and_what_was_lost_lie_inside_the_canvas() {
    let mut graph = sample();
    graph.start_path = "long/".repeat(100) + "a.md";
    graph.truncation.push(Truncation::time_budget(u64::from(u32::MAX)));
    for layout in LAYOUTS {
        let text = svg(&graph, layout);
        let document = Document::parse(&text).unwrap();
        let width = number(document.root_element(), "width");
        let head: Vec<_> = all(&document, "text").into_iter().take(2).collect();
        assert!(head[0].text().unwrap().starts_with("long/long/"));
        let lost = head[1].text().unwrap();
        assert!(lost.contains("seed_chunks (limit 2), node_budget (limit 5)"), "{lost}");
        assert!(lost.ends_with("time_budget (limit 4294967295)"), "{lost}");
        for line in head {
            let end = number(line, "x") + real(label::tenths(line.text().unwrap())) * 1.2;
            assert!(end <= width, "{end} {width}");
        }
        graph.truncation.truncate(3);
    }
    graph.truncation.clear();
    assert!(LAYOUTS.iter().all(|&layout| !svg(&graph, layout).contains("truncated")));
}

// GRAPH-72 GRAPH-B07
#[test]
fn hostile_titles_give_valid_xml_and_nothing_else_than_text() {
    let graph = hostile();
    for layout in LAYOUTS {
        let text = svg(&graph, layout);
        let document = Document::parse(&text).unwrap();
        let known = ["svg", "rect", "text", "g", "title", "path", "circle"];
        for element in document.descendants().filter(Element::is_element) {
            assert!(known.contains(&element.tag_name().name()), "{element:?}");
            assert!(element.attributes().all(|it| !it.name().starts_with("on")), "{element:?}");
        }
        assert_eq!(all(&document, "title").len(), graph.nodes.len());
        for text in texts(&document) {
            assert!(
                !text.contains(|c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c))
            );
        }
    }
}

// GRAPH-72
#[test]
fn nothing_comes_from_elsewhere() {
    for layout in LAYOUTS {
        let text = svg(&sample(), layout);
        for word in ["href", "url(", "<style", "<script", "<image", "@import", "font-face"] {
            assert!(!text.contains(word), "{word}");
        }
        assert_eq!(text.matches("http").count(), 1, "the name space alone");
    }
}

// GRAPH-72
#[test]
fn a_label_is_cut_to_fit_its_box() {
    let mut graph = sample();
    graph.nodes[0].path = "p".repeat(500);
    graph.nodes[0].heading = Some("見出し".repeat(100));
    let text = svg(&graph, Layout::Layered);
    let document = Document::parse(&text).unwrap();
    let width = boxes(&document)[0][2];
    let labels: Vec<String> = texts(&document).into_iter().filter(|it| it.ends_with('…')).collect();
    assert_eq!(labels.len(), 2, "{labels:?}");
    for label in labels {
        assert!(real(label::tenths(&label)) * 1.2 < width, "{label}");
    }
}

// GRAPH-72
#[test]
fn a_node_whose_parent_is_missing_is_a_root() {
    let mut graph = sample();
    for (at, parent) in [(2, 99), (3, 3), (4, usize::MAX)] {
        graph.nodes[at].parent = Some(parent);
    }
    for layout in LAYOUTS {
        let text = svg(&graph, layout);
        assert!(!text.contains("<path"));
        let document = Document::parse(&text).unwrap();
        assert_eq!(all(&document, "title").len(), 5);
    }
}

// GRAPH-72
#[test]
fn a_graph_without_nodes_is_a_caption() {
    for layout in LAYOUTS {
        let text = svg(&Graph { start_path: "a.md".into(), ..Graph::default() }, layout);
        let document = Document::parse(&text).unwrap();
        assert_eq!(texts(&document), ["a.md: 0 nodes, depth 0, 0 scans"]);
    }
}

// GRAPH-72 GRAPH-73
#[test]
fn a_depth_that_no_walk_reaches_is_drawn_all_the_same() {
    let mut graph = sample();
    graph.nodes[4].depth = u32::MAX;
    for layout in LAYOUTS {
        let text = svg(&graph, layout);
        let document = Document::parse(&text).unwrap();
        assert!(number(document.root_element(), "width") < 10_000.0);
    }
}

/// As many nodes as there may be: one seed, twenty children, and theirs.
fn wide() -> Graph {
    let mut nodes = vec![node(0, None, 0, 1.0, "a.md")];
    for number in 1..2000 {
        let (parent, depth) = if number <= 20 { (0, 1) } else { (1 + number % 20, 2) };
        nodes.push(node(number, Some(parent), depth, 0.5, "folder/document.md"));
    }
    Graph { start_path: "a.md".into(), nodes, ..Graph::default() }
}

// GRAPH-B07
#[test]
fn a_wide_graph_is_about_square_when_it_is_laid_out_in_rings() {
    let size = |layout| {
        let text = svg(&wide(), layout);
        let document = Document::parse(&text).unwrap();
        ["width", "height"].map(|name| number(document.root_element(), name))
    };
    let [width, height] = size(Layout::Layered);
    assert!(height > 50.0 * width);
    let [width, height] = size(Layout::Radial);
    assert!(width / height > 0.9 && width < 15_000.0, "{width} {height}");
}

/// The middle of each node in the radial layout.
fn circles(document: &Document<'_>) -> Vec<(f64, f64)> {
    let circles = all(document, "circle");
    circles.iter().map(|&circle| (number(circle, "cx"), number(circle, "cy"))).collect()
}

// GRAPH-B07
#[test]
fn in_rings_nodes_of_one_depth_are_equally_far_from_the_middle_and_no_labels_meet() {
    for graph in [wide(), sample()] {
        let text = svg(&graph, Layout::Radial);
        let document = Document::parse(&text).unwrap();
        let circles = circles(&document);
        let middle = number(document.root_element(), "width") / 2.0;
        let radius = |(x, y): (f64, f64)| (x - middle).hypot(y - middle - real(HEAD));
        let mut by_depth: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (number, node) in graph.nodes.iter().enumerate() {
            by_depth.entry(node.depth).or_default().push(number);
        }
        let mut below = -1.0;
        for nodes in by_depth.values() {
            let first = radius(circles[nodes[0]]);
            assert!(first > below + 60.0 || below < 0.0, "{first} {below}");
            below = first;
            for &number in nodes {
                assert!((radius(circles[number]) - first).abs() < 1.0);
            }
            // Neighbours on a ring are further apart than a label is high.
            let angle = |(x, y): (f64, f64)| (y - middle - real(HEAD)).atan2(x - middle);
            let mut ring: Vec<(f64, f64)> = nodes.iter().map(|&number| circles[number]).collect();
            ring.sort_by(|&a, &b| angle(a).total_cmp(&angle(b)));
            for pair in ring.windows(2) {
                let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
                assert!((x - to_x).hypot(y - to_y) > real(FONT));
            }
        }
    }
}
