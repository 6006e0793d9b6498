//! A ring for each depth.
//!
//! Every leaf has a sector of its own, as wide on the innermost ring as a label
//! is high, and labels run outwards from their nodes and end before the next
//! ring. So no two of them meet, however many there are.

use std::f64::consts::{PI, TAU};

use super::tree::Trees;
use super::{FONT, HEAD, MARGIN, Picture, tooltip};
use crate::domain::graph::answer::{Graph, Node};
use crate::domain::graph::drawing::{fill, label, lines_of, parent_of};

/// From one ring to the next.
const STEP: usize = 300;
/// From a node to its label, and from the end of a label to the score of what
/// lies on the next ring.
const SPACE: usize = 10;
/// Room for a score before the node that it belongs to.
const SCORE: usize = 36;
/// How much of a ring a label needs.
const LABEL_HEIGHT: usize = FONT + 4;

/// The rings of a graph.
struct Rings {
    /// Radius of the ring of seeds.
    first: f64,
    /// The node that lies in the middle.
    centre: Option<usize>,
    middle_x: f64,
    middle_y: f64,
    most: usize,
}

impl Rings {
    fn radius(&self, number: usize, node: &Node) -> f64 {
        if self.centre == Some(number) {
            return 0.0;
        }
        let depth = usize::try_from(node.depth).unwrap_or(self.most).min(self.most);
        self.first + real(depth * STEP)
    }
}

pub(super) fn draw(graph: &Graph) -> Picture {
    let trees = Trees::of(graph);
    let (places, leaves) = trees.places();
    let most = graph.nodes.len();
    let deepest = graph.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
    let deepest = usize::try_from(deepest).unwrap_or(most).min(most);
    // A single seed lies in the middle; then the next ring is the innermost with
    // more than one node on it.
    let needed = leaves * LABEL_HEIGHT * 10 / 62;
    let (first, centre) = match *trees.roots() {
        [only] => (needed.saturating_sub(STEP), Some(only)),
        _ => (needed.max(STEP / 4), None),
    };
    let extent = 2 * (first + (deepest + 1) * STEP + MARGIN);
    let rings = Rings {
        first: real(first),
        centre,
        middle_x: real(extent / 2),
        middle_y: real(HEAD + extent / 2),
        most,
    };
    let angle = |node: usize| TAU * real(places[node]) / real(2 * leaves.max(1));
    let at = |node: usize, further: f64| {
        let radius = rings.radius(node, &graph.nodes[node]) + further;
        let (sine, cosine) = angle(node).sin_cos();
        (rings.middle_x + radius * cosine, rings.middle_y + radius * sine)
    };

    let mut picture =
        Picture { width: extent, height: HEAD + extent, edges: Vec::new(), nodes: Vec::new() };
    for (number, node) in graph.nodes.iter().enumerate() {
        let (x, y) = at(number, 0.0);
        if let Some(parent) = parent_of(graph, number) {
            let (from_x, from_y) = at(parent, 0.0);
            picture.edges.push(format!(
                "<path d=\"M{from_x:.1} {from_y:.1} L{x:.1} {y:.1}\" stroke=\"#bbbbbb\"/>\n"
            ));
            let score = format!("{:.2}", node.score);
            let at = at(number, -real(SPACE));
            picture.nodes.push(along(angle(number), at, Towards::Middle, 10, &score));
        }
        let fill = fill(node.depth);
        picture.nodes.push(format!(
            "<g>{}<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{fill}\" \
             stroke=\"#555555\"/>",
            tooltip(node)
        ));
        let (path, heading) = lines_of(node);
        let words = path + &heading.unwrap_or_default();
        let words = label::fitting(&words, STEP - 2 * SPACE - SCORE, FONT);
        let at = at(number, real(SPACE));
        picture.nodes.push(along(angle(number), at, Towards::Outside, FONT, &words));
        picture.nodes.push("</g>\n".to_owned());
    }
    picture
}

/// Where a text runs to from its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Towards {
    Middle,
    Outside,
}

/// A text along a ray, never upside down, on a ground of its own.
fn along(angle: f64, (x, y): (f64, f64), towards: Towards, font: usize, words: &str) -> String {
    let is_left = angle > PI / 2.0 && angle < PI * 1.5;
    let turned = if is_left { angle.to_degrees() - 180.0 } else { angle.to_degrees() };
    let anchor = if is_left == (towards == Towards::Outside) { "end" } else { "start" };
    let words = label::xml(words);
    format!(
        "<text transform=\"translate({x:.1} {y:.1}) rotate({turned:.2})\" dy=\"4\" \
         font-size=\"{font}\" text-anchor=\"{anchor}\" fill=\"#111111\" stroke=\"#ffffff\" \
         stroke-width=\"3\" paint-order=\"stroke\">{words}</text>"
    )
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
