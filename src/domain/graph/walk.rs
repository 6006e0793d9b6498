//! The walk: which node is expanded next, and what is made of its neighbours.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::domain::chunk::ChunkId;
use crate::domain::document::DocumentPath;
use crate::domain::graph::request::{Bounds, Order};

/// How many times as many neighbours are asked for where so many did not do.
const DEEPER: usize = 4;

/// A walk under way. It asks for the neighbours of several nodes at once and
/// makes of them what a walk would that asks for one node after the other.
///
/// [`wanted`](Self::wanted) goes as far as it can and tells whose neighbours it
/// needs next; [`supply`](Self::supply) hands them over. A node whose
/// neighbours have mostly been found before is asked for again, with more of
/// them: it is done once it has found as many as it may, the next one is not
/// similar enough, or there is no other.
#[derive(Debug)]
pub struct Walk {
    bounds: Bounds,
    links: Vec<Link>,
    seeds: usize,
    /// The nodes that are still to be expanded, the next one first.
    frontier: BTreeSet<(Reverse<u32>, usize)>,
    current: Option<Current>,
    /// What nodes have been told.
    known: HashMap<usize, Known>,
    visited: HashSet<ChunkId>,
    used: BTreeSet<DocumentPath>,
    expanded: u64,
    has_dropped: bool,
}

/// A node of a walk; its number is its place among all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The chunk.
    pub chunk: ChunkId,
    /// The node from which it was found; none for a seed.
    pub parent: Option<usize>,
    /// Hops from the start.
    pub depth: u32,
    /// The similarity to the parent; 1 for a seed.
    pub score: f32,
}

/// A chunk near a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// The chunk.
    pub chunk: ChunkId,
    /// How similar it is, from 0 to 1.
    pub similarity: f32,
    /// Its document; needed only where a document is found once at most.
    pub path: Option<DocumentPath>,
}

/// Whose neighbours a walk needs to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The nodes, at least one. All but the first may be answered later.
    pub nodes: Vec<usize>,
    /// How many neighbours of each, at least one.
    pub depth: usize,
}

/// What a walk has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Walked {
    /// The nodes in the order in which they were found.
    pub links: Vec<Link>,
    /// How many nodes were expanded.
    pub expanded: u64,
    /// Whether the bound on nodes has cost a node, or the look beyond one.
    pub has_dropped: bool,
}

/// The node that is being expanded.
#[derive(Debug)]
struct Current {
    node: usize,
    /// How many nodes it has found; none before it is told of neighbours.
    added: Option<usize>,
}

#[derive(Debug)]
struct Known {
    neighbours: Vec<Neighbour>,
    /// How many had been asked for.
    depth: usize,
}

impl Known {
    /// Whether the corpus has no more.
    fn is_all(&self) -> bool {
        self.neighbours.len() < self.depth
    }
}

impl Walk {
    /// A walk without a seed.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            links: Vec::new(),
            seeds: 0,
            frontier: BTreeSet::new(),
            current: None,
            known: HashMap::new(),
            visited: HashSet::new(),
            used: BTreeSet::new(),
            expanded: 0,
            has_dropped: false,
        }
    }

    /// Adds a seed, if there is room for it.
    ///
    /// - `has_vector`: whether it can be expanded.
    /// - Returns whether there was room.
    pub fn seed(&mut self, chunk: ChunkId, has_vector: bool) -> bool {
        if self.is_full() {
            self.has_dropped = true;
            return false;
        }
        self.visited.insert(chunk);
        self.add(Link { chunk, parent: None, depth: 0, score: 1.0 }, has_vector);
        self.seeds = self.links.len();
        true
    }

    /// Marks a chunk as found without making a node of it.
    pub fn visit(&mut self, chunk: ChunkId) {
        self.visited.insert(chunk);
    }

    /// The nodes so far, by their numbers.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The documents that must not be found again. Neighbours in them need not
    /// be supplied.
    pub fn used(&self) -> &BTreeSet<DocumentPath> {
        &self.used
    }

    /// Goes as far as what is known allows.
    ///
    /// - Returns whose neighbours are needed to go on; none at the walk's end.
    ///   Neighbours of chunks that the walk must never find are not to be
    ///   among them.
    pub fn wanted(&mut self) -> Option<Wanted> {
        loop {
            if self.current.is_none() {
                self.current = Some(self.take_next()?);
            }
            let node = self.current.as_ref()?.node;
            let Some(known) = self.known.remove(&node) else {
                let unknown = |node: &usize| !self.known.contains_key(node);
                let nodes = self.with_company(node, unknown);
                return Some(Wanted { nodes, depth: 2 * self.bounds.fan_out });
            };
            if self.expand(&known) {
                self.current = None;
                continue;
            }
            return Some(self.deeper(node, known.depth));
        }
    }

    /// Hands over the neighbours of a node.
    ///
    /// - `wanted`: what was asked for.
    /// - `neighbours`: the most similar first; fewer than were asked for only if
    ///   there are no others.
    pub fn supply(&mut self, wanted: &Wanted, node: usize, neighbours: Vec<Neighbour>) {
        self.known.insert(node, Known { neighbours, depth: wanted.depth });
    }

    /// What the walk has come to.
    pub fn end(self) -> Walked {
        let Self { links, expanded, has_dropped, .. } = self;
        Walked { links, expanded, has_dropped }
    }

    fn is_full(&self) -> bool {
        self.links.len() >= self.bounds.max_nodes
    }

    fn add(&mut self, link: Link, has_vector: bool) {
        let node = self.links.len();
        self.links.push(link);
        if has_vector && link.depth < self.bounds.depth && self.bounds.fan_out > 0 {
            let rank = match self.bounds.order {
                Order::BreadthFirst => 0,
                // Numbers that are not negative are ordered as their bits are.
                Order::BestFirst => link.score.max(0.0).to_bits(),
            };
            self.frontier.insert((Reverse(rank), node));
        }
    }

    /// The node that is expanded next, unless there is room for none.
    fn take_next(&mut self) -> Option<Current> {
        if self.is_full() {
            self.has_dropped |= !self.frontier.is_empty();
            self.frontier.clear();
        }
        let (_, node) = self.frontier.pop_first()?;
        Some(Current { node, added: None })
    }

    /// Makes nodes of the neighbours of the current one.
    ///
    /// - Returns whether that is all that can be made of it.
    fn expand(&mut self, known: &Known) -> bool {
        let Some(Current { node, added }) = self.current.take() else { return true };
        self.expanded += u64::from(added.is_none());
        let mut added = added.unwrap_or(0);
        let depth = self.links[node].depth + 1;
        let mut is_done = false;
        for neighbour in &known.neighbours {
            if added == self.bounds.fan_out {
                break;
            }
            if !self.is_new(neighbour) {
                continue;
            }
            // Those that follow are no more similar.
            if neighbour.similarity < self.bounds.min_similarity {
                is_done = true;
                break;
            }
            if self.is_full() {
                self.has_dropped = true;
                is_done = true;
                break;
            }
            self.visited.insert(neighbour.chunk);
            if self.bounds.dedup_by_path {
                self.used.extend(neighbour.path.clone());
            }
            let (chunk, score) = (neighbour.chunk, neighbour.similarity);
            self.add(Link { chunk, parent: Some(node), depth, score }, true);
            added += 1;
        }
        is_done |= added == self.bounds.fan_out || known.is_all();
        self.current = Some(Current { node, added: Some(added) });
        is_done
    }

    fn is_new(&self, neighbour: &Neighbour) -> bool {
        !self.visited.contains(&neighbour.chunk)
            && neighbour.path.as_ref().is_none_or(|path| !self.used.contains(path))
    }

    /// Asks for more neighbours of a node, and of others that will need more.
    ///
    /// - `depth`: how many it has been told of.
    fn deeper(&self, node: usize, depth: usize) -> Wanted {
        let mut nodes = self.with_company(node, |other| self.is_starved(*other));
        // Of so many, enough will be new to the last of them, too.
        let found = self.links.len() - self.seeds;
        let enough = found + nodes.len() * self.bounds.fan_out;
        let depth = (depth * DEEPER).min(enough).max(1);
        let knows_less = |other: &usize| self.known.get(other).is_none_or(|it| it.depth < depth);
        nodes.retain(|other| *other == node || knows_less(other));
        Wanted { nodes, depth }
    }

    /// Whether what a node has been told will not do, as far as can be said now.
    fn is_starved(&self, node: usize) -> bool {
        self.known.get(&node).is_some_and(|known| {
            let new = known.neighbours.iter().filter(|neighbour| self.is_new(neighbour)).count();
            let last = known.neighbours.last();
            let may_go_on = last.is_none_or(|last| last.similarity >= self.bounds.min_similarity);
            !known.is_all() && may_go_on && new < self.bounds.fan_out
        })
    }

    /// A node, and others that are asked for with it: of those that will be
    /// expanded, however much each of them finds, the ones that need it.
    fn with_company(&self, node: usize, needs: impl Fn(&usize) -> bool) -> Vec<usize> {
        let room = self.bounds.max_nodes.saturating_sub(self.links.len());
        let expansions = room.div_ceil(self.bounds.fan_out.max(1)).max(1);
        let company = self.frontier.iter().map(|(_, other)| *other).take(expansions - 1);
        std::iter::once(node).chain(company.filter(needs)).collect()
    }
}
