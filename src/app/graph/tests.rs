mod alike;
mod watched;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::*;
use crate::adapters::store::memory::MemoryStore;
use crate::adapters::store::sqlite::SqliteStore;
use crate::app::graph::tests::watched::Watched;
use crate::app::testing::Bench;
use crate::domain::chunk::Chunk;
use crate::domain::document::ContentHash;
use crate::domain::graph::Reason;
use crate::ports::chunk_store::{Change, Document, NewChunk};

fn path(text: &str) -> DocumentPath {
    DocumentPath::new(text).unwrap()
}

fn document(key: &str) -> Document {
    let path = path(key);
    Document {
        title: Some(format!("Title of {key}")),
        topic: path.topic().map(str::to_owned),
        category: path.category().map(str::to_owned),
        path,
        depth: None,
        tags: Vec::new(),
        date: None,
        fields: BTreeMap::new(),
        hash: ContentHash::from_text(key),
        recipe: None,
        size_bytes: None,
        indexed_at: "2026-04-16T10:00:00Z".into(),
    }
}

/// A vector in a plane, so many degrees from the axis.
fn towards(degrees: f32) -> Embedding {
    let (sine, cosine) = degrees.to_radians().sin_cos();
    Embedding::normalised(vec![cosine, sine]).unwrap()
}

fn chunk(content: &str, embedding: Option<Embedding>) -> NewChunk {
    let chunk = Chunk { content: content.to_owned(), ..Chunk::default() };
    NewChunk { chunk, quality: 1.0, embedding }
}

fn near(degrees: f32) -> NewChunk {
    chunk(&format!("at {degrees}"), Some(towards(degrees)))
}

fn put(key: &str, chunks: Vec<NewChunk>) -> Change {
    Change::Put { document: document(key), chunks }
}

async fn explorer(changes: Vec<Change>) -> Explorer {
    let store = MemoryStore::new();
    store.apply(changes).await.unwrap();
    Explorer { store: Arc::new(store), min_quality: 0.3 }
}

fn from(start: &str) -> GraphRequest {
    GraphRequest { start: start.to_owned(), ..GraphRequest::default() }
}

async fn graph(explorer: &Explorer, request: &GraphRequest) -> Graph {
    explorer.explore(request).await.unwrap()
}

async fn refusal(explorer: &Explorer, request: &GraphRequest) -> String {
    match explorer.explore(request).await {
        Err(AppError::Invalid(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn reasons(graph: &Graph) -> Vec<(Reason, u64)> {
    graph.truncation.iter().map(|cut| (cut.reason, cut.limit)).collect()
}

/// The snippets of what was found.
fn found(graph: &Graph) -> Vec<&str> {
    let found = graph.nodes.iter().filter(|node| node.parent.is_some());
    found.map(|node| node.snippet.as_str()).collect()
}

/// A document of so many chunks, before a hundred others of four chunks each.
#[expect(clippy::cast_precision_loss, reason = "there are some hundred")]
async fn crowd(chunks: usize) -> Explorer {
    let mut changes = vec![put("a.md", (0..chunks).map(|it| near(it as f32 * 0.5)).collect())];
    for number in 0..100 {
        let chunks = (0..4).map(|it| near(number as f32 * 0.7 + it as f32 * 0.1));
        changes.push(put(&format!("others/{number:03}.md"), chunks.collect()));
    }
    explorer(changes).await
}

// GRAPH-69 GRAPH-02 GRAPH-03 GRAPH-40
#[tokio::test]
async fn no_hops_and_no_fan_are_the_seeds_alone_and_lose_nothing() {
    let explorer = crowd(32).await;
    for request in [
        GraphRequest { fan_out: Some(0), ..from("a.md") },
        GraphRequest { depth: Some(0), ..from("a.md") },
        GraphRequest { depth: Some(0), max_nodes: Some(32), ..from("a.md") },
    ] {
        let graph = graph(&explorer, &request).await;
        assert_eq!(graph.nodes.len(), 32);
        assert_eq!((graph.stats.knn_queries, graph.stats.seeds_used), (0, 32));
        assert_eq!(graph.stats.max_depth_reached, 0);
        assert!(!graph.is_truncated());
    }
}

// GRAPH-69 GRAPH-09 GRAPH-26 GRAPH-43
#[tokio::test]
async fn a_graph_of_no_nodes_is_empty_and_says_that_there_was_no_room() {
    let explorer = crowd(3).await;
    for strategy in ["all-chunks", "centroid"] {
        let request = GraphRequest {
            max_nodes: Some(0),
            seed_strategy: Some(strategy.into()),
            ..from("a.md")
        };
        let graph = graph(&explorer, &request).await;
        assert!(graph.nodes.is_empty());
        assert_eq!(reasons(&graph), [(Reason::NodeBudget, 0)]);
        assert_eq!((graph.stats.seeds_used, graph.stats.knn_queries), (0, 0));
    }
}

// GRAPH-69 GRAPH-22 GRAPH-26 GRAPH-43
#[tokio::test]
async fn seeds_that_fill_the_graph_leave_no_room_for_others() {
    let graph = graph(&crowd(32).await, &GraphRequest { max_nodes: Some(8), ..from("a.md") }).await;
    assert_eq!((graph.nodes.len(), graph.stats.seeds_used), (8, 8));
    assert_eq!(reasons(&graph), [(Reason::NodeBudget, 8)]);
    assert_eq!(graph.stats.knn_queries, 0);
}

// GRAPH-69 GRAPH-20 GRAPH-22 GRAPH-41 GRAPH-42 GRAPH-35
#[tokio::test]
async fn a_long_document_loses_seeds_and_nodes_and_says_both() {
    let graph = graph(&crowd(160).await, &from("a.md")).await;
    assert_eq!((graph.nodes.len(), graph.stats.seeds_used), (100, 32));
    assert_eq!(reasons(&graph), [(Reason::SeedChunks, 32), (Reason::NodeBudget, 100)]);
    assert!(graph.stats.knn_queries <= 100);
    let seeds: Vec<&str> = graph.nodes[..32].iter().map(|node| node.snippet.as_str()).collect();
    let expected: Vec<String> =
        (0..32_u8).map(|it| format!("at {}", f32::from(it) * 0.5)).collect();
    assert_eq!(seeds, expected, "in the order of the document");
    for node in &graph.nodes[..32] {
        assert_eq!((node.parent, node.depth, node.score.to_bits()), (None, 0, 1.0_f32.to_bits()));
    }
}

// GRAPH-20 GRAPH-40 GRAPH-42
#[tokio::test]
async fn a_document_of_just_as_many_chunks_as_may_be_read_loses_none() {
    let explorer = crowd(5).await;
    let of = |most| GraphRequest { max_seed_chunks: Some(most), depth: Some(0), ..from("a.md") };
    assert!(!graph(&explorer, &of(5)).await.is_truncated());
    let cut = graph(&explorer, &of(4)).await;
    assert_eq!(reasons(&cut), [(Reason::SeedChunks, 4)]);
    assert_eq!(cut.nodes.len(), 4);
}

// GRAPH-20 GRAPH-38
#[tokio::test]
async fn no_more_is_read_of_the_start_than_is_used_and_one_probe() {
    let inner = crowd(1000).await;
    let watched = Arc::new(Watched::new(Arc::clone(&inner.store)));
    let explorer = Explorer { store: Arc::clone(&watched) as Arc<_>, min_quality: 0.3 };
    let request = GraphRequest { max_seed_chunks: Some(7), ..from("a.md") };
    let first = graph(&explorer, &request).await;
    assert_eq!(watched.seen.read.load(Ordering::Relaxed), 8);
    assert_eq!(watched.seen.snapshots.load(Ordering::Relaxed), 1);
    let second = graph(&explorer, &request).await;
    assert_eq!((first.nodes, first.truncation), (second.nodes, second.truncation));
}

// GRAPH-21 CLI-32
#[tokio::test]
async fn a_start_that_is_not_in_the_index_is_refused_with_what_is_near() {
    let explorer = crowd(1).await;
    for start in ["./a.md", "A.md", "a.md/", "other/../a.md", "b.md"] {
        let told = refusal(&explorer, &from(start)).await;
        assert!(told.contains("is not in the index") && told.contains("groove index"), "{told}");
        assert!(start == "b.md" || start.contains("..") || told.contains("did you mean \"a.md\""));
    }
    let empty = explorer_of_nothing();
    assert!(refusal(&empty, &from("a.md")).await.contains("no documents yet"));
}

fn explorer_of_nothing() -> Explorer {
    Explorer { store: Arc::new(MemoryStore::new()), min_quality: 0.3 }
}

// GRAPH-08 GRAPH-05
#[tokio::test]
async fn a_request_that_is_not_valid_is_refused_before_the_index_is_read() {
    let watched = Arc::new(Watched::new(Arc::new(MemoryStore::new())));
    let explorer = Explorer { store: Arc::clone(&watched) as Arc<_>, min_quality: 0.3 };
    let too_long = GraphRequest { exclude_paths: vec!["x".repeat(1025)], ..from("a.md") };
    assert!(refusal(&explorer, &too_long).await.contains("exclude_paths"));
    let other = GraphRequest { seed_strategy: Some("both".into()), ..from("a.md") };
    assert!(refusal(&explorer, &other).await.contains("all_chunks"));
    assert_eq!(watched.seen.snapshots.load(Ordering::Relaxed), 0);
    assert!(check(&too_long).is_err() && check(&other).is_err() && check(&from("")).is_ok());
}

// GRAPH-23 GRAPH-26 GRAPH-25
#[tokio::test]
async fn the_centroid_is_one_node_that_looks_from_the_middle() {
    let explorer = explorer(vec![
        put("a.md", vec![near(0.0), near(40.0), near(170.0)]),
        put("b.md", vec![near(21.0), near(90.0)]),
    ])
    .await;
    let request = GraphRequest {
        seed_strategy: Some("centroid".into()),
        max_seed_chunks: Some(2),
        depth: Some(1),
        ..from("a.md")
    };
    let graph = graph(&explorer, &request).await;
    assert_eq!(graph.nodes[0].snippet, "at 0");
    assert_eq!((graph.nodes[0].parent, graph.nodes[0].depth), (None, 0));
    assert_eq!(found(&graph), ["at 21", "at 90"]);
    // The mean of 0 and 40 degrees is at 20; the third chunk has no part in it.
    for (node, degrees) in [(1, 1.0_f32), (2, 70.0)] {
        let expected = degrees.to_radians().cos();
        assert!((graph.nodes[node].score - expected).abs() < 1e-5, "{:?}", graph.nodes[node]);
    }
    assert_eq!(graph.stats.seeds_used, 2);
    assert_eq!(reasons(&graph), [(Reason::SeedChunks, 2)]);
    assert!(graph.truncation[0].detail.contains("mean covers only"));
}

// GRAPH-23 GRAPH-34
#[tokio::test]
async fn vectors_that_cancel_out_leave_a_mean_of_zero_from_which_all_is_half_similar() {
    let explorer = explorer(vec![
        put("b.md", vec![near(90.0), near(200.0)]),
        put("a.md", vec![near(0.0), near(180.0)]),
    ])
    .await;
    let opposite = Embedding::from_stored(vec![-1.0, 0.0]);
    let chunks = vec![near(0.0), chunk("opposite", Some(opposite))];
    explorer.store.apply(vec![put("a.md", chunks)]).await.unwrap();
    let request =
        GraphRequest { seed_strategy: Some("centroid".into()), depth: Some(1), ..from("a.md") };
    let graph = graph(&explorer, &request).await;
    assert_eq!(found(&graph), ["at 90", "at 200"]);
    assert!(graph.nodes[1..].iter().all(|node| (node.score - 0.5).abs() < f32::EPSILON));
}

// GRAPH-34 GRAPH-58 GRAPH-61 GRAPH-B06
#[tokio::test]
async fn a_node_carries_its_chunk_and_how_similar_it_is() {
    let mut code = chunk(&"ü".repeat(300), Some(towards(60.0)));
    code.chunk.heading = Some("walk".into());
    code.chunk.symbol_kind = Some("function".into());
    code.chunk.lines = Some(crate::domain::chunk::LineRange { start: 3, end: 9 });
    let explorer = explorer(vec![put("a.md", vec![near(0.0)]), put("x/y/b.rs", vec![code])]).await;
    let graph = graph(&explorer, &from("a.md")).await;
    let [_, node] = &graph.nodes[..] else { panic!("{:?}", graph.nodes) };
    assert!((node.score - 0.5).abs() < 1e-6);
    assert_eq!((node.path.as_str(), node.heading.as_deref()), ("x/y/b.rs", Some("walk")));
    assert_eq!(node.title.as_deref(), Some("Title of x/y/b.rs"));
    assert_eq!(node.topic.as_deref(), Some("y"));
    assert_eq!(node.symbol_kind.as_deref(), Some("function"));
    assert_eq!(node.lines.map(|lines| (lines.start, lines.end)), Some((3, 9)));
    assert_eq!(node.snippet, "ü".repeat(200) + "…");
    assert_eq!(graph.start_path, "a.md");
    assert_eq!(graph.stats.max_depth_reached, 1);
}

// GRAPH-04 GRAPH-33
#[tokio::test]
async fn what_is_not_similar_enough_is_not_found() {
    let explorer =
        explorer(vec![put("a.md", vec![near(0.0)]), put("b.md", vec![near(59.0), near(61.0)])])
            .await;
    let request = GraphRequest { min_similarity: Some(0.5), depth: Some(1), ..from("a.md") };
    assert_eq!(found(&graph(&explorer, &request).await), ["at 59"]);
}

// GRAPH-24 GRAPH-07 GRAPH-13 QUA-16
#[tokio::test]
async fn filters_hold_for_what_is_found_and_not_for_the_start() {
    let thin = |degrees| NewChunk { quality: 0.1, ..near(degrees) };
    let explorer = explorer(vec![
        put("c/t/a.md", vec![thin(0.0)]),
        put("d/t/b.md", vec![near(10.0), thin(5.0)]),
        put("d/u/c.md", vec![near(20.0)]),
    ])
    .await;
    let of = |request: GraphRequest| GraphRequest { start: "c/t/a.md".into(), ..request };
    let none = GraphRequest::default;
    for (request, expected) in [
        (none(), &["at 10", "at 20"][..]),
        (GraphRequest { category: Some("d".into()), ..none() }, &["at 10", "at 20"]),
        (GraphRequest { topic: Some("u".into()), ..none() }, &["at 20"]),
        (GraphRequest { include_low_quality: true, ..none() }, &["at 5", "at 10", "at 20"]),
        (GraphRequest { min_quality: Some(0.05), ..none() }, &["at 5", "at 10", "at 20"]),
        (GraphRequest { exclude_paths: vec!["d/t/b.md".into()], ..none() }, &["at 20"]),
        (GraphRequest { exclude_globs: vec!["*/u/*".into()], ..none() }, &["at 10"]),
    ] {
        let graph = graph(&explorer, &of(request.clone())).await;
        assert_eq!(graph.nodes[0].path, "c/t/a.md");
        assert_eq!(found(&graph), expected, "{request:?}");
    }
}

// GRAPH-06 GRAPH-37
#[tokio::test]
async fn a_document_is_found_once_if_that_is_asked_for() {
    let explorer = explorer(vec![
        put("a.md", vec![near(0.0)]),
        put("b.md", (1..30_u8).map(|it| near(f32::from(it))).collect()),
        put("c.md", vec![near(50.0), near(51.0)]),
    ])
    .await;
    let request = GraphRequest { dedup_by_path: true, ..from("a.md") };
    assert_eq!(found(&graph(&explorer, &request).await), ["at 1", "at 50"]);
    let all = graph(&explorer, &from("a.md")).await;
    assert_eq!(all.nodes.iter().filter(|node| node.path == "b.md").count(), 29);
}

// GRAPH-B02
#[tokio::test]
async fn what_is_near_and_cannot_be_found_does_not_starve_the_walk() {
    // Far more than a walk asks for at first are nearer than the two that may
    // be found: of the start, of excluded documents, of thin quality.
    let many = |shift: f32| (0..60_u8).map(move |it| near(f32::from(it) * 0.01 + shift));
    let thin = many(0.2).map(|chunk| NewChunk { quality: 0.0, ..chunk });
    let explorer = explorer(vec![
        put("a.md", many(0.0).collect()),
        put("b.md", many(0.1).collect()),
        put("thin.md", thin.collect()),
        put("c.md", vec![near(30.0), near(31.0)]),
    ])
    .await;
    let request = GraphRequest {
        exclude_paths: vec!["b.md".into()],
        max_seed_chunks: Some(1),
        fan_out: Some(2),
        depth: Some(1),
        ..from("a.md")
    };
    assert_eq!(found(&graph(&explorer, &request).await), ["at 30", "at 31"]);
}

// GRAPH-14 GRAPH-36
#[tokio::test]
async fn no_model_takes_part() {
    let bench = Bench::new(&[
        ("a.md", "The tunnel needs a port which hotel networks often block for guests.\n"),
        ("b.md", "The tunnel needs a port which hotel networks seldom block for guests.\n"),
    ]);
    bench.run().await;
    *bench.counting.broken.lock().unwrap() = true;
    bench.counting.loads.store(0, Ordering::Relaxed);
    let mut restarted = bench;
    restarted.restart();
    let graph = graph(&restarted.searcher().explorer(), &from("a.md")).await;
    assert_eq!(graph.nodes.len(), 2);
    assert_eq!(restarted.counting.loads.load(Ordering::Relaxed), 0);
}

// GRAPH-22 GRAPH-33
#[tokio::test]
async fn seeds_whose_vectors_are_still_to_come_are_nodes_and_nothing_is_looked_for_from_them() {
    let explorer = explorer(vec![
        put("a.md", vec![chunk("pending", None), near(0.0)]),
        put("b.md", vec![near(10.0)]),
        put("none.md", vec![chunk("pending", None), chunk("too", None)]),
    ])
    .await;
    for (strategy, seeds) in [("all-chunks", 2), ("centroid", 1)] {
        let request = GraphRequest { seed_strategy: Some(strategy.into()), ..from("a.md") };
        let graph = graph(&explorer, &request).await;
        assert_eq!(graph.nodes[0].snippet, "pending");
        assert_eq!(found(&graph), ["at 10"]);
        assert_eq!(graph.stats.seeds_used, seeds);
        assert!(graph.warnings[0].contains("1 of the 2 chunk(s)"), "{:?}", graph.warnings);
        assert!(!graph.is_truncated());
    }
    for (strategy, nodes) in [("all-chunks", 2), ("centroid", 1)] {
        let request = GraphRequest { seed_strategy: Some(strategy.into()), ..from("none.md") };
        let graph = graph(&explorer, &request).await;
        assert_eq!((graph.nodes.len(), graph.stats.knn_queries), (nodes, 0));
        assert!(graph.warnings[0].starts_with("no chunk of the start document has a vector"));
        assert!(!graph.is_truncated());
    }
}

// SRCH-B11 GRAPH-B01
#[tokio::test]
async fn fields_can_be_asked_for_once_they_are_recorded() {
    let explorer = crowd(1).await;
    let fields = BTreeMap::from([("status".to_owned(), vec!["open".to_owned()])]);
    let request = GraphRequest { fields_not: fields, ..from("a.md") };
    assert!(refusal(&explorer, &request).await.contains("groove index"));
    let declared = Change::Declare(Some(["status".to_owned()].into()));
    explorer.store.apply(vec![declared]).await.unwrap();
    assert!(!found(&graph(&explorer, &request).await).is_empty());
}

// GRAPH-B04
#[tokio::test]
async fn a_walk_that_is_out_of_time_returns_what_it_has_and_says_so() {
    let explorer = crowd(3).await;
    let request = GraphRequest { time_budget_ms: Some(20), ..from("a.md") };
    // Every look at the clock takes 15 ms.
    let clock = AtomicU64::new(0);
    let elapsed = || Duration::from_millis(clock.fetch_add(15, Ordering::Relaxed));
    let late = explorer.explore_timed(&request, &elapsed).await.unwrap();
    let whole = graph(&explorer, &from("a.md")).await;
    assert_eq!(reasons(&late), [(Reason::TimeBudget, 20)]);
    assert!(late.nodes.len() > 3 && late.nodes.len() < whole.nodes.len());
    assert_eq!(late.nodes[..], whole.nodes[..late.nodes.len()]);

    let none = GraphRequest { time_budget_ms: Some(0), ..from("a.md") };
    let seeds = graph(&explorer, &none).await;
    assert_eq!((seeds.nodes.len(), seeds.stats.knn_queries), (3, 0));
    assert_eq!(reasons(&seeds), [(Reason::TimeBudget, 0)]);
    let enough = GraphRequest { time_budget_ms: Some(u32::MAX), ..from("a.md") };
    assert_eq!(graph(&explorer, &enough).await.nodes, whole.nodes);
}

// GRAPH-B04
#[tokio::test]
async fn time_that_is_up_when_nothing_is_left_to_do_has_cost_nothing() {
    let explorer = crowd(3).await;
    let request = GraphRequest { time_budget_ms: Some(0), depth: Some(0), ..from("a.md") };
    assert!(!graph(&explorer, &request).await.is_truncated());
}

// GRAPH-B04 MCP-B12
#[tokio::test]
async fn a_walk_that_is_dropped_makes_no_further_pass() {
    let inner = crowd(3).await;
    let watched = Arc::new(Watched::new(Arc::clone(&inner.store)));
    let explorer = Explorer { store: Arc::clone(&watched) as Arc<_>, min_quality: 0.3 };
    let passes = || watched.seen.passes.load(Ordering::Relaxed);
    graph(&explorer, &from("a.md")).await;
    let whole = passes();
    assert!(whole >= 2, "{whole}");
    {
        let request = from("a.md");
        let mut walk = Box::pin(explorer.explore(&request));
        // It yields once in each pass.
        assert!(futures::poll!(&mut walk).is_pending());
    }
    assert_eq!(passes(), whole + 1);
    tokio::task::yield_now().await;
    assert_eq!(passes(), whole + 1);
}

// GRAPH-B03 GRAPH-38
#[tokio::test]
async fn what_is_written_meanwhile_is_not_seen() {
    let inner = crowd(3).await;
    let expected = graph(&inner, &from("a.md")).await;
    let watched = Arc::new(Watched::new(Arc::clone(&inner.store)));
    let mut meanwhile = vec![Change::Remove(path("a.md")), put("new.md", vec![near(1.0)])];
    meanwhile.extend((0..100).map(|it| Change::Remove(path(&format!("others/{it:03}.md")))));
    *watched.seen.meanwhile.lock().unwrap() = meanwhile;
    let explorer = Explorer { store: Arc::clone(&watched) as Arc<_>, min_quality: 0.3 };
    assert_eq!(graph(&explorer, &from("a.md")).await.nodes, expected.nodes);
    assert!(refusal(&explorer, &from("a.md")).await.contains("not in the index"));
}

// GRAPH-32 GRAPH-35
#[tokio::test]
async fn many_nodes_are_asked_for_in_few_passes_and_each_is_counted() {
    let inner = crowd(32).await;
    let watched = Arc::new(Watched::new(Arc::clone(&inner.store)));
    let explorer = Explorer { store: Arc::clone(&watched) as Arc<_>, min_quality: 0.3 };
    let request = GraphRequest { max_nodes: Some(400), ..from("a.md") };
    let graph = graph(&explorer, &request).await;
    let passes = watched.seen.passes.load(Ordering::Relaxed);
    let expanded = usize::try_from(graph.stats.knn_queries).unwrap();
    assert!(expanded > 32 && expanded <= graph.nodes.len(), "{expanded}");
    println!("{passes} passes for {expanded} nodes");
    assert!(passes * 2 < expanded, "{passes} passes for {expanded} nodes");
    let parents: HashSet<_> = graph.nodes.iter().filter_map(|node| node.parent).collect();
    assert!(parents.len() <= expanded);
}
