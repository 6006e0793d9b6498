//! The walk against one that asks for one node after the other.

use std::collections::{HashSet, VecDeque};

use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::domain::graph::request::GraphRequest;

/// Chunks on a circle: the similarity of two is the cosine of the angle between
/// them, and each belongs to a document.
#[derive(Clone, Debug)]
struct World {
    /// In degrees; the seeds come first.
    places: Vec<u16>,
    documents: Vec<u8>,
    seeds: usize,
    /// Of a seed.
    has_vector: Vec<bool>,
}

impl World {
    fn similarity(&self, a: usize, b: usize) -> f32 {
        let angle = f32::from(self.places[a]) - f32::from(self.places[b]);
        angle.to_radians().cos().clamp(0.0, 1.0)
    }

    fn path(&self, chunk: usize) -> DocumentPath {
        DocumentPath::new(format!("{}.md", self.documents[chunk])).unwrap()
    }

    /// All that may ever be found, nearest first, equals in order of number.
    fn ranking(&self, from: usize) -> Vec<usize> {
        let mut others: Vec<usize> = (self.seeds..self.places.len()).collect();
        others.sort_by(|&a, &b| {
            self.similarity(from, b).total_cmp(&self.similarity(from, a)).then(a.cmp(&b))
        });
        others
    }
}

fn id(chunk: usize) -> ChunkId {
    ChunkId(i64::try_from(chunk).unwrap())
}

fn number(chunk: ChunkId) -> usize {
    usize::try_from(chunk.0).unwrap()
}

fn seeded(world: &World, bounds: &Bounds) -> Walk {
    let mut walk = Walk::new(bounds.clone());
    for seed in 0..world.seeds {
        if !walk.seed(id(seed), world.has_vector[seed]) {
            break;
        }
    }
    walk
}

/// How the walk was answered.
#[derive(Default)]
struct Passes {
    count: usize,
    nodes: usize,
    deepest: usize,
}

/// Answers a walk until it ends.
fn walked(world: &World, bounds: &Bounds) -> (Walked, Passes) {
    let mut walk = seeded(world, bounds);
    let mut passes = Passes::default();
    while let Some(wanted) = walk.wanted() {
        passes.count += 1;
        passes.nodes += wanted.nodes.len();
        passes.deepest = passes.deepest.max(wanted.depth);
        assert!(wanted.depth > 0 && passes.count <= 10_000, "it asks without an end");
        let used = walk.used().clone();
        for &node in &wanted.nodes {
            let from = number(walk.links()[node].chunk);
            let neighbours = world
                .ranking(from)
                .into_iter()
                .filter(|&chunk| !used.contains(&world.path(chunk)))
                .take(wanted.depth)
                .map(|chunk| Neighbour {
                    chunk: id(chunk),
                    similarity: world.similarity(from, chunk),
                    path: bounds.dedup_by_path.then(|| world.path(chunk)),
                })
                .collect();
            walk.supply(&wanted, node, neighbours);
        }
    }
    (walk.end(), passes)
}

/// The rules, one after the other, with every neighbour at hand.
fn plain(world: &World, bounds: &Bounds) -> Walked {
    let mut links: Vec<Link> = Vec::new();
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut visited = HashSet::new();
    let mut used = HashSet::new();
    let (mut expanded, mut has_dropped) = (0, false);
    for seed in 0..world.seeds {
        if links.len() >= bounds.max_nodes {
            has_dropped = true;
            break;
        }
        visited.insert(seed);
        if world.has_vector[seed] {
            queue.push_back(links.len());
        }
        links.push(Link { chunk: id(seed), parent: None, depth: 0, score: 1.0 });
    }
    while !queue.is_empty() {
        let mut place = 0;
        if bounds.order == Order::BestFirst {
            for other in 1..queue.len() {
                if links[queue[other]].score > links[queue[place]].score {
                    place = other;
                }
            }
        }
        let node = queue.remove(place).unwrap();
        if links[node].depth >= bounds.depth || bounds.fan_out == 0 {
            continue;
        }
        if links.len() >= bounds.max_nodes {
            has_dropped = true;
            continue;
        }
        expanded += 1;
        let from = number(links[node].chunk);
        let mut added = 0;
        for chunk in world.ranking(from) {
            if added == bounds.fan_out {
                break;
            }
            let similarity = world.similarity(from, chunk);
            let is_used = bounds.dedup_by_path && used.contains(&world.path(chunk));
            if visited.contains(&chunk) || is_used || similarity < bounds.min_similarity {
                continue;
            }
            if links.len() >= bounds.max_nodes {
                has_dropped = true;
                break;
            }
            visited.insert(chunk);
            used.insert(world.path(chunk));
            queue.push_back(links.len());
            let depth = links[node].depth + 1;
            links.push(Link { chunk: id(chunk), parent: Some(node), depth, score: similarity });
            added += 1;
        }
    }
    Walked { links, expanded, has_dropped }
}

fn worlds() -> impl Strategy<Value = World> {
    let chunk = (0_u16..360, 0_u8..30, prop::bool::weighted(0.9));
    (prop::collection::vec(chunk, 1..120), 1_usize..20, any::<bool>()).prop_map(
        |(chunks, seeds, crowded)| World {
            // In a crowd, many have the same neighbours, and ties are common.
            places: chunks.iter().map(|it| if crowded { it.0 % 12 } else { it.0 }).collect(),
            documents: chunks.iter().map(|it| if crowded { it.1 % 4 } else { it.1 }).collect(),
            seeds: seeds.min(chunks.len()),
            has_vector: chunks.iter().map(|it| it.2).collect(),
        },
    )
}

fn all_bounds() -> impl Strategy<Value = Bounds> {
    (0_u32..4, 0_u32..8, 0.0_f64..1.0, any::<bool>(), 0_u32..130, any::<bool>()).prop_map(
        |(depth, fan_out, min_similarity, dedup_by_path, max_nodes, best)| {
            let request = GraphRequest {
                depth: Some(depth),
                fan_out: Some(fan_out),
                min_similarity: Some(min_similarity),
                dedup_by_path,
                max_nodes: Some(max_nodes),
                order: best.then(|| "best-first".into()),
                ..GraphRequest::default()
            };
            request.check(0.0).unwrap().bounds
        },
    )
}

proptest! {
    // GRAPH-22 GRAPH-30 GRAPH-31 GRAPH-32 GRAPH-33 GRAPH-38 GRAPH-40 GRAPH-43 GRAPH-B02 GRAPH-B05
    #[test]
    fn the_walk_is_that_of_one_node_after_the_other(world in worlds(), bounds in all_bounds()) {
        let (walked, passes) = walked(&world, &bounds);
        prop_assert_eq!(&walked, &plain(&world, &bounds));
        // Nobody is asked for more than makes sure that enough are new.
        prop_assert!(passes.deepest <= (2 * bounds.fan_out).max(bounds.fan_out + bounds.max_nodes));
    }

    // GRAPH-35 GRAPH-37
    #[test]
    fn no_node_is_expanded_twice_and_no_chunk_found_twice(
        world in worlds(),
        bounds in all_bounds(),
    ) {
        let (walked, _) = walked(&world, &bounds);
        let nodes = walked.links.len();
        prop_assert!(usize::try_from(walked.expanded).unwrap() <= nodes);
        prop_assert!(nodes <= bounds.max_nodes);
        let chunks: HashSet<ChunkId> = walked.links.iter().map(|link| link.chunk).collect();
        prop_assert_eq!(chunks.len(), nodes);
        if bounds.dedup_by_path {
            let found = walked.links.iter().filter(|link| link.parent.is_some());
            let paths: Vec<_> = found.map(|link| world.path(number(link.chunk))).collect();
            let distinct: HashSet<_> = paths.iter().cloned().collect();
            prop_assert_eq!(distinct.len(), paths.len());
        }
        for (number, link) in walked.links.iter().enumerate() {
            prop_assert!(link.parent.is_none_or(|parent| parent < number));
            let above = link.parent.map_or(0, |parent| walked.links[parent].depth + 1);
            prop_assert_eq!(link.depth, above);
        }
    }
}

/// Seeds that are all alike, before so many others a degree apart.
fn row(seeds: usize, others: u16) -> World {
    let places: Vec<u16> = std::iter::repeat_n(0, seeds).chain(1..=others).collect();
    let documents = places.iter().map(|&place| u8::try_from(place % 250).unwrap()).collect();
    World { documents, has_vector: vec![true; places.len()], places, seeds }
}

fn bounds(request: &GraphRequest) -> Bounds {
    request.check(0.0).unwrap().bounds
}

// GRAPH-B02
#[test]
fn a_node_whose_neighbours_are_known_already_looks_further() {
    let world = row(4, 60);
    let request = GraphRequest { depth: Some(1), ..GraphRequest::default() };
    let (walked, _) = walked(&world, &bounds(&request));
    // The first seed takes the five nearest; each other finds five more, though
    // the ten nearest of all four are the same.
    let from = |seed| walked.links.iter().filter(|link| link.parent == Some(seed)).count();
    assert_eq!([0, 1, 2, 3].map(from), [5; 4]);
    assert!(!walked.has_dropped);
}

// GRAPH-32
#[test]
fn the_nodes_of_one_depth_are_asked_for_together() {
    let world = row(10, 100);
    let request = GraphRequest { depth: Some(1), fan_out: Some(3), ..GraphRequest::default() };
    let mut walk = seeded(&world, &bounds(&request));
    let wanted = walk.wanted().unwrap();
    assert_eq!(wanted.nodes, (0..10).collect::<Vec<_>>());
    assert_eq!(wanted.depth, 6);
    let (walked, passes) = walked(&world, &bounds(&request));
    assert_eq!(walked.expanded, 10);
    assert!(passes.count <= 5, "{} passes", passes.count);
}

// GRAPH-31 GRAPH-43
#[test]
fn only_as_many_are_asked_for_as_there_is_room_to_expand() {
    let world = row(10, 100);
    let of = |max_nodes| {
        let request = GraphRequest { max_nodes: Some(max_nodes), ..GraphRequest::default() };
        seeded(&world, &bounds(&request)).wanted().map(|wanted| wanted.nodes.len())
    };
    assert_eq!(
        [of(10), of(11), of(15), of(16), of(1000)].map(|it| it.unwrap_or(0)),
        [0, 1, 1, 2, 10]
    );
}

// GRAPH-40 GRAPH-43
#[test]
fn a_budget_that_is_used_up_exactly_has_cost_nothing() {
    let world = row(1, 4);
    let of = |max_nodes, depth| {
        let request = GraphRequest {
            depth: Some(depth),
            max_nodes: Some(max_nodes),
            ..GraphRequest::default()
        };
        walked(&world, &bounds(&request)).0
    };
    assert_eq!((of(5, 1).links.len(), of(5, 1).has_dropped), (5, false));
    assert_eq!((of(4, 1).links.len(), of(4, 1).has_dropped), (4, true));
    // What lies beyond the last nodes was not looked at.
    assert!(of(5, 2).has_dropped);
    assert!(!of(6, 2).has_dropped);
}

// GRAPH-B05
#[test]
fn best_first_follows_the_closest_ties_before_the_others() {
    // From the seed at 0 degrees a chain of close steps leads away; the seed at
    // 100 and what follows it have distant neighbours only.
    let places = vec![0, 100, 2, 4, 6, 8, 140, 200];
    let world = World {
        documents: vec![0; places.len()],
        has_vector: vec![true; places.len()],
        places,
        seeds: 2,
    };
    let found = |order: &str| {
        let request = GraphRequest {
            depth: Some(3),
            fan_out: Some(1),
            max_nodes: Some(6),
            order: Some(order.into()),
            ..GraphRequest::default()
        };
        let (walked, _) = walked(&world, &bounds(&request));
        walked.links[2..].iter().map(|link| (number(link.chunk), link.depth)).collect::<Vec<_>>()
    };
    assert_eq!(found("breadth-first"), [(2, 1), (6, 1), (3, 2), (7, 2)]);
    assert_eq!(found("best-first"), [(2, 1), (6, 1), (3, 2), (4, 3)]);
}
