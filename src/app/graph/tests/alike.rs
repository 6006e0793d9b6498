//! Every store gives the same graph, which is that of the rules one after the
//! other.

use std::collections::{HashMap, HashSet, VecDeque};

use super::*;
use crate::domain::graph::Order;

/// Draws numbers from a seed.
struct Draw(u64);

impl Draw {
    /// The next of `SplitMix64`, below a bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn few(&mut self, bound: u8) -> f32 {
        f32::from(u8::try_from(self.below(bound.into())).unwrap())
    }

    /// Coarse numbers, so that many are equally near.
    fn vector(&mut self) -> Embedding {
        let values = (0..6).map(|_| self.few(5) - 1.5).collect();
        Embedding::normalised(values).unwrap()
    }

    fn corpus(&mut self) -> Vec<Change> {
        let documents = 2 + self.below(25);
        (0..documents)
            .map(|number| {
                let chunks = (0..=self.below(12)).map(|place| {
                    let has_vector = self.below(10) > 0;
                    let embedding = has_vector.then(|| self.vector());
                    let quality = self.few(11) / 10.0;
                    NewChunk { quality, ..chunk(&format!("{number}.{place}"), embedding) }
                });
                let key = format!("{}/{}/{number}.md", number % 3, number % 2);
                put(&key, chunks.collect())
            })
            .collect()
    }

    fn request(&mut self) -> GraphRequest {
        let small = |bound: u64, draw: &mut Self| Some(u32::try_from(draw.below(bound)).unwrap());
        let strategy = if self.below(3) == 0 { "centroid" } else { "all-chunks" };
        GraphRequest {
            start: "0/0/0.md".into(),
            depth: small(4, self),
            fan_out: small(8, self),
            min_similarity: Some(f64::from(self.few(10)) / 10.0),
            seed_strategy: Some(strategy.into()),
            dedup_by_path: self.below(2) == 0,
            category: (self.below(4) == 0).then(|| "1".into()),
            topic: (self.below(4) == 0).then(|| "1".into()),
            exclude_paths: (0..self.below(4))
                .map(|it| format!("{}/{}/{it}.md", it % 3, it % 2))
                .collect(),
            max_nodes: small(120, self),
            max_seed_chunks: small(14, self),
            order: (self.below(3) == 0).then(|| "best_first".into()),
            ..GraphRequest::default()
        }
    }
}

/// A node as the rules make it: parent, depth, chunk, score.
type Plain = (Option<usize>, u32, ChunkId, f32);

/// The first of the greatest.
fn best(scores: &[f32]) -> usize {
    (1..scores.len()).fold(0, |best, next| if scores[next] > scores[best] { next } else { best })
}

/// The rules, one node after the other, from full rankings.
async fn plain(explorer: &Explorer, request: &GraphRequest) -> (Vec<Plain>, u64, bool) {
    let CheckedGraph { bounds, filter, .. } = request.check(explorer.min_quality).unwrap();
    let snapshot = explorer.store.snapshot().await.unwrap();
    let restriction = Restriction { filter, excluded: Vec::new() };
    let mut chunks = snapshot.chunks_of(&path(&request.start)).await.unwrap();
    chunks.truncate(bounds.max_seed_chunks);
    let ids: Vec<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
    let vectors = snapshot.embeddings(&ids).await.unwrap();

    let mut nodes: Vec<Plain> = Vec::new();
    let mut queue: VecDeque<(usize, Embedding, u32)> = VecDeque::new();
    let mut visited: HashSet<ChunkId> = HashSet::new();
    let mut used: HashSet<DocumentPath> = HashSet::new();
    let (mut expanded, mut has_dropped) = (0, false);
    let seeds: Vec<(ChunkId, Option<Embedding>)> = match bounds.seeds {
        SeedStrategy::AllChunks => ids.iter().copied().zip(vectors).collect(),
        SeedStrategy::Centroid => {
            visited.extend(&ids);
            let mean = Embedding::mean(vectors.iter().flatten().map(|vector| (vector, 1)));
            vec![(ids[0], mean)]
        }
    };
    for (chunk, vector) in seeds {
        if nodes.len() >= bounds.max_nodes {
            has_dropped = true;
            break;
        }
        visited.insert(chunk);
        if let Some(vector) = vector {
            queue.push_back((nodes.len(), vector, 0));
        }
        nodes.push((None, 0, chunk, 1.0));
    }
    while !queue.is_empty() {
        let scores: Vec<f32> = queue.iter().map(|entry| nodes[entry.0].3).collect();
        let next = if bounds.order == Order::BestFirst { best(&scores) } else { 0 };
        let (node, vector, depth) = queue.remove(next).unwrap();
        if depth >= bounds.depth || bounds.fan_out == 0 {
            continue;
        }
        if nodes.len() >= bounds.max_nodes {
            has_dropped = true;
            continue;
        }
        expanded += 1;
        let ranking = snapshot.nearest(&vector, 4096, &restriction).await.unwrap();
        let ids: Vec<ChunkId> = ranking.iter().map(|candidate| candidate.chunk).collect();
        let rows = snapshot.chunks(&ids).await.unwrap();
        let paths: HashMap<ChunkId, DocumentPath> =
            rows.iter().map(|row| (row.id, row.document.path.clone())).collect();
        let mut added = 0;
        for candidate in ranking {
            if added == bounds.fan_out {
                break;
            }
            let (chunk, score) = (candidate.chunk, similarity(candidate.score, 1.0));
            let path = &paths[&chunk];
            let is_barred = path.as_str() == request.start
                || request.exclude_paths.iter().any(|it| it == path.as_str())
                || bounds.dedup_by_path && used.contains(path);
            if visited.contains(&chunk) || is_barred || score < bounds.min_similarity {
                continue;
            }
            if nodes.len() >= bounds.max_nodes {
                has_dropped = true;
                break;
            }
            visited.insert(chunk);
            used.insert(path.clone());
            let vector = snapshot.embeddings(&[chunk]).await.unwrap().remove(0).unwrap();
            queue.push_back((nodes.len(), vector, depth + 1));
            nodes.push((Some(node), depth + 1, chunk, score));
            added += 1;
        }
    }
    (nodes, expanded, has_dropped)
}

// GRAPH-23 GRAPH-25 GRAPH-30 GRAPH-31 GRAPH-32 GRAPH-33 GRAPH-37 GRAPH-38 GRAPH-40 GRAPH-43
// GRAPH-B02 GRAPH-B05 GRAPH-08
#[tokio::test]
async fn every_store_gives_the_graph_of_one_node_after_the_other() {
    let found = AtomicUsize::new(0);
    for seed in 0..12 {
        let mut draw = Draw(seed);
        let corpus = draw.corpus();
        let memory = explorer(corpus.clone()).await;
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open_or_create(&folder.path().join(".groove.db")).await.unwrap();
        store.apply(corpus).await.unwrap();
        let sqlite = Explorer { store: Arc::new(store), min_quality: 0.3 };
        for _ in 0..25 {
            let request = draw.request();
            let expected = plain(&memory, &request).await;
            for explorer in [&memory, &sqlite] {
                let graph = graph(explorer, &request).await;
                let nodes: Vec<Plain> = graph
                    .nodes
                    .iter()
                    .map(|node| (node.parent, node.depth, node.chunk, node.score))
                    .collect();
                let has_dropped =
                    graph.truncation.iter().any(|cut| cut.reason == Reason::NodeBudget);
                let actual = (nodes, graph.stats.knn_queries, has_dropped);
                assert_eq!(actual, expected, "seed {seed}: {request:?}");
                found.fetch_add(actual.0.len(), Ordering::Relaxed);
            }
        }
    }
    assert!(found.into_inner() > 5000);
}
