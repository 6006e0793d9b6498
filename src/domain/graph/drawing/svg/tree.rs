//! The nodes of a graph as trees, in the order in which they were found.

use crate::domain::graph::answer::Graph;
use crate::domain::graph::drawing::parent_of;

/// The trees. A node whose parent is not there is a root.
pub(super) struct Trees {
    /// Of each node, by its number.
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

impl Trees {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut children = vec![Vec::new(); graph.nodes.len()];
        let mut roots = Vec::new();
        for node in 0..graph.nodes.len() {
            match parent_of(graph, node) {
                Some(parent) => children[parent].push(node),
                None => roots.push(node),
            }
        }
        Self { children, roots }
    }

    pub(super) fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// Twice the place of each node across the direction of growth: leaves lie
    /// at 0, 2, 4 and so on, a parent in the middle between its first and its
    /// last child.
    ///
    /// - Returns also how many leaves there are.
    pub(super) fn places(&self) -> (Vec<usize>, usize) {
        let mut places = vec![0; self.children.len()];
        let mut leaves = 0;
        let mut stack: Vec<usize> = self.roots.iter().rev().copied().collect();
        while let Some(node) = stack.pop() {
            if self.children[node].is_empty() {
                places[node] = 2 * leaves;
                leaves += 1;
            }
            stack.extend(self.children[node].iter().rev());
        }
        // Children come after their parents, so from the end on they are known.
        for (node, children) in self.children.iter().enumerate().rev() {
            if let (Some(&first), Some(&last)) = (children.first(), children.last()) {
                places[node] = usize::midpoint(places[first], places[last]);
            }
        }
        (places, leaves)
    }
}
