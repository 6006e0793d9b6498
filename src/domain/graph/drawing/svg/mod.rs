//! A graph as a picture that needs nothing else.

mod layered;
mod radial;
mod tree;

#[cfg(test)]
mod tests;

use super::{caption, cut_short, label};
use crate::domain::graph::answer::{Graph, Node};

/// How a picture is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A column for each depth, from left to right.
    #[default]
    Layered,
    /// A ring for each depth, around the middle: a graph with many nodes stays
    /// about as wide as it is high.
    Radial,
}

/// The size of letters, in pixels.
const FONT: usize = 12;
/// Room around everything.
const MARGIN: usize = 16;
/// Room for the caption and the line about truncation.
const HEAD: usize = 52;
/// The least width, so that the line about truncation fits.
const LEAST_WIDTH: usize = 760;

/// Draws a graph as SVG, with no font, style, script or image from elsewhere.
/// Labels are cut to fit; the whole text is shown when one points at a node.
pub fn svg(graph: &Graph, layout: Layout) -> String {
    let picture = match layout {
        Layout::Layered => layered::draw(graph),
        Layout::Radial => radial::draw(graph),
    };
    let width = picture.width.max(LEAST_WIDTH);
    let height = picture.height;
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"{FONT}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let line = |y: usize, fill: &str, words: &str| {
        let words = label::xml(&label::fitting(words, width - 2 * MARGIN, FONT));
        format!("<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{fill}\">{words}</text>\n")
    };
    text.push_str(&line(MARGIN + FONT, "#111111", &caption(graph)));
    if let Some(cut) = cut_short(graph) {
        text.push_str(&line(MARGIN + 2 * FONT + 6, "#a00000", &cut));
    }
    text.extend(picture.edges);
    text.extend(picture.nodes);
    text.push_str("</svg>\n");
    text
}

/// What a layout has drawn; edges lie behind nodes.
struct Picture {
    width: usize,
    height: usize,
    edges: Vec<String>,
    nodes: Vec<String>,
}

/// What is shown when one points at a node.
fn tooltip(node: &Node) -> String {
    let mut words = node.path.clone();
    if let Some(heading) = &node.heading {
        words.extend(["#", heading]);
    }
    format!("<title>{}</title>", label::xml(&label::one_line(&words)))
}
