//! A column for each depth.

use super::tree::Trees;
use super::{FONT, HEAD, MARGIN, Picture, tooltip};
use crate::domain::graph::answer::{Graph, Node};
use crate::domain::graph::drawing::{fill, label, lines_of, parent_of};

const BOX_WIDTH: usize = 260;
const BOX_HEIGHT: usize = 40;
/// Room between two columns, for edges and scores.
const GAP: usize = 90;
/// From one leaf to the next.
const PITCH: usize = BOX_HEIGHT + 14;
/// Room inside a box, left and right of its text.
const PADDING: usize = 6;

pub(super) fn draw(graph: &Graph) -> Picture {
    let (places, leaves) = Trees::of(graph).places();
    // The depth of a node is a number of hops, and a walk takes few; a graph of
    // another origin must not make a picture of any width.
    let most = graph.nodes.len();
    let column = |node: &Node| usize::try_from(node.depth).unwrap_or(most).min(most);
    let left = |node: usize| MARGIN + column(&graph.nodes[node]) * (BOX_WIDTH + GAP);
    let middle = |node: usize| MARGIN + HEAD + places[node] * PITCH / 2 + BOX_HEIGHT / 2;

    let mut picture = Picture {
        width: graph.nodes.iter().map(|node| column(node) + 1).max().unwrap_or(0)
            * (BOX_WIDTH + GAP)
            + 2 * MARGIN,
        height: HEAD + leaves * PITCH + 2 * MARGIN,
        edges: Vec::new(),
        nodes: Vec::new(),
    };
    for (number, node) in graph.nodes.iter().enumerate() {
        let (x, y) = (left(number), middle(number));
        picture.nodes.push(boxed(node, x, y));
        let Some(parent) = parent_of(graph, number) else { continue };
        let (from_x, from_y) = (left(parent) + BOX_WIDTH, middle(parent));
        let bend = usize::midpoint(from_x, x);
        picture.edges.push(format!(
            "<path d=\"M{from_x} {from_y} C{bend} {from_y} {bend} {y} {x} {y}\" fill=\"none\" \
             stroke=\"#888888\"/>\n"
        ));
        let (score_x, score_y) = (x - 4, y - 4);
        picture.edges.push(format!(
            "<text x=\"{score_x}\" y=\"{score_y}\" font-size=\"10\" fill=\"#444444\" \
             stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\" text-anchor=\"end\">{:.2}</text>\n",
            node.score
        ));
    }
    picture
}

fn boxed(node: &Node, x: usize, middle: usize) -> String {
    let top = middle - BOX_HEIGHT / 2;
    let fill = fill(node.depth);
    let mut text = vec![format!(
        "<g>{}<rect x=\"{x}\" y=\"{top}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"4\" \
         fill=\"{fill}\" stroke=\"#555555\"/>",
        tooltip(node)
    )];
    let mut line = |y: usize, words: &str| {
        let words = label::xml(&label::fitting(words, BOX_WIDTH - 2 * PADDING, FONT));
        let x = x + PADDING;
        text.push(format!("<text x=\"{x}\" y=\"{y}\" fill=\"#111111\">{words}</text>"));
    };
    match lines_of(node) {
        (path, Some(heading)) => {
            line(middle - 4, &path);
            line(middle + FONT, &heading);
        }
        (path, None) => line(middle + 4, &path),
    }
    text.push("</g>\n".to_owned());
    text.concat()
}
