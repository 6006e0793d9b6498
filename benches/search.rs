//! How long searching takes: the dense leg beside the vector table's own search,
//! whole searches at several sizes, many queries in one pass, eight clients at
//! once, and queries that are no questions.
//!
//! `GROOVE_TEST_CORPORA` names the folder that holds `markdown/` and
//! `retrieval/`, and `GROOVE_TEST_MODEL` the model's folder. The embeddings of
//! 10,000 chunks are made once and kept below the target folder. `--large` adds
//! a million chunks, which takes a quarter of an hour and 6 GiB of disk.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a measurement"
)]

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use grooveseek::adapters::embedder::native::{NativeEncoder, Precision};
use grooveseek::adapters::store::sqlite::SqliteStore;
use grooveseek::app::config::SearchSettings;
use grooveseek::app::model::Model;
use grooveseek::app::search::{Patience, Searcher};
use grooveseek::domain::embedding::{Embedding, ModelIdentity};
use grooveseek::domain::search::SearchRequest;
use grooveseek::ports::chunk_store::{ChunkStore, Restriction};
use grooveseek::ports::embedder::{EmbedError, Embedded, Embedder, Engine};
use rustix::time::{ClockId, clock_gettime};
use sqlx::{Connection as _, SqliteConnection};
use support::corpus;
use support::filled::{Real, fill, identity};
use support::hostile_queries::{self, Draw};

mod support {
    //! What several benchmarks measure with.
    pub(crate) mod corpus;
    pub(crate) mod filled;
    #[path = "../../tests/support/hostile_queries.rs"]
    pub(crate) mod hostile_queries;
}

/// Chunks that are really embedded.
const REAL: usize = 10_000;

/// How many candidates the dense leg is asked for by a search for five hits.
const DEPTH: usize = 50;

const HOSTILE: usize = 20_000;
const CLIENTS: usize = 8;

fn main() {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(corpora), Some(model)) = (folder("GROOVE_TEST_CORPORA"), corpus::model_folder())
    else {
        println!("search: set GROOVE_TEST_CORPORA and GROOVE_TEST_MODEL");
        return;
    };
    let large = std::env::args().any(|argument| argument == "--large");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let encoder = NativeEncoder::open("all-minilm-l6-v2", &model, Precision::Auto).unwrap();
        let encoder = Arc::new(encoder);
        let real = real(&corpora, &encoder).await;
        let queries = queries(&corpora, &encoder).await;
        println!("{} chunks, {} queries, load {}", real.texts.len(), queries.len(), load());
        println!("\n| what | budget | figure | ratio |\n|---|---|---|---|");
        dense(&real, &queries, 10_000, 384, None).await;
        dense(&real, &queries, 10_000, 1024, Some(2.0)).await;
        dense(&real, &queries, 100_000, 384, None).await;
        if large {
            dense(&real, &queries, 1_000_000, 384, None).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let small = warm(folder.path(), &real, &queries, 10_000, [4.0, 10.0]).await;
        each(&small, &real).await;
        clients(&small, &queries, &encoder).await;
        hostile(&small, &real).await;
        small.close().await;
        drop(small);
        warm(folder.path(), &real, &queries, 100_000, [20.0, 20.0]).await.close().await;
        if large {
            warm(folder.path(), &real, &queries, 1_000_000, [80.0, 80.0]).await.close().await;
        }
    });
}

fn row(what: &str, budget: &str, figure: &str, ratio: Option<f64>) {
    let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    println!("| {what} | {budget} | {figure} | {ratio} |");
}

/// A figure with a budget that it must not exceed.
fn within(what: &str, budget_ms: f64, figure_ms: f64) {
    let ratio = Some(figure_ms / budget_ms);
    row(what, &format!("≤ {budget_ms} ms"), &format!("{figure_ms:.2} ms"), ratio);
}

// What is measured with.

/// The first chunks of real documentation, embedded once.
async fn real(corpora: &Path, encoder: &NativeEncoder) -> Real {
    let folder = tempfile::tempdir().unwrap();
    let archive = corpora.join("markdown/cpp-docs-10k.tar.gz");
    let unpacked =
        Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()).status().unwrap();
    assert!(unpacked.success());
    let documents = corpus::documents(folder.path(), REAL);
    let texts: Vec<String> = documents.into_iter().flatten().collect();
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    let kept = target.join(format!("search-bench-{REAL}.f32"));
    let vectors = match std::fs::read(&kept) {
        Ok(bytes) if bytes.len() == texts.len() * 384 * 4 => bytes
            .as_chunks::<{ 384 * 4 }>()
            .0
            .iter()
            .map(|row| row.as_chunks::<4>().0.iter().map(|&it| f32::from_le_bytes(it)).collect())
            .map(Embedding::from_stored)
            .collect(),
        _ => {
            let start = Instant::now();
            let vectors = encoder.embed_documents(&texts).await.unwrap().embeddings;
            eprintln!("embedded in {:.0} s", start.elapsed().as_secs_f64());
            let numbers = vectors.iter().flat_map(|vector: &Embedding| vector.as_slice());
            let bytes: Vec<u8> = numbers.flat_map(|value| value.to_le_bytes()).collect();
            std::fs::write(&kept, bytes).unwrap();
            vectors
        }
    };
    Real { texts, vectors }
}

/// Real questions about the documentation.
async fn queries(corpora: &Path, encoder: &NativeEncoder) -> Vec<(String, Embedding)> {
    let path = corpora.join("retrieval/cpp-docs-links/queries.tsv");
    let mut queries = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        if let Some((_, text)) = line.split_once('\t') {
            queries.push((text.to_owned(), encoder.embed_query(text).await.unwrap()));
        }
    }
    queries
}

/// Gives every query the vector that it was given before, so that no time goes
/// into embedding.
struct Prepared {
    identity: ModelIdentity,
    known: HashMap<String, Embedding>,
    others: Vec<Embedding>,
}

#[async_trait]
impl Embedder for Prepared {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn engine(&self) -> Engine {
        Engine { name: "prepared", precision: "f32" }
    }

    fn window_tokens(&self) -> Option<usize> {
        None
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        Ok(vec![false; texts.len()])
    }

    async fn embed_documents(&self, _: &[String]) -> Result<Embedded, EmbedError> {
        Ok(Embedded::default())
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let other = || self.others[text.len() % self.others.len()].clone();
        Ok(self.known.get(text).cloned().unwrap_or_else(other))
    }
}

fn searcher(store: &Arc<SqliteStore>, embedder: Arc<dyn Embedder>) -> Searcher {
    let load = move || {
        let embedder = Arc::clone(&embedder);
        Box::pin(async move { Ok(embedder) }) as Pin<Box<dyn Future<Output = _> + Send>>
    };
    Searcher {
        store: Arc::clone(store) as Arc<dyn ChunkStore>,
        model: Arc::new(Model::new(identity(384), Box::new(load))),
        reranker: None,
        rerank_by_default: false,
        settings: SearchSettings::default(),
    }
}

fn prepared(queries: &[(String, Embedding)], others: &[Embedding]) -> Arc<dyn Embedder> {
    let (known, others) = (queries.iter().cloned().collect(), others.to_vec());
    Arc::new(Prepared { identity: identity(384), known, others })
}

async fn search(searcher: &Searcher, text: &str) -> bool {
    let request = SearchRequest { query: text.to_owned(), ..SearchRequest::default() };
    searcher.search(&request, Patience::Wait).await.is_ok()
}

// Time and memory.

/// The processor time of all threads so far, in ms.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// - `times`: ascending.
fn percentile(times: &[f64], percent: usize) -> f64 {
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}

/// What the process holds now, in MiB; Linux only.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().chars().take(14).collect()
}

// The rows.

/// The dense leg, and the same by the vector table's own search.
async fn dense(
    real: &Real,
    queries: &[(String, Embedding)],
    count: usize,
    dimension: usize,
    budget_ms: Option<f64>,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".groove.db");
    fill(&path, real, count, dimension, false).await.close().await;
    let wide: Vec<Embedding> = if dimension == 384 {
        queries.iter().map(|(_, query)| query.clone()).collect()
    } else {
        let vectors = queries.iter().map(|(_, query)| query.clone()).collect();
        let own = Real { texts: Vec::new(), vectors };
        (0..queries.len()).map(|number| own.vector(number, dimension)).collect()
    };
    let cold = from_the_file(&path, &wide[0]).await;
    let store = SqliteStore::open(&path).await.unwrap().unwrap();
    let before = resident_mib();
    let start = Instant::now();
    store.load_vectors().await.unwrap();
    let (loaded, memory) = (start.elapsed(), resident_mib() - before);
    let snapshot = store.snapshot().await.unwrap();
    let free = Restriction::default();
    let mut times = Vec::new();
    let spent = processor_time();
    for query in &wide {
        let start = Instant::now();
        snapshot.nearest(query, DEPTH, &free).await.unwrap();
        times.push(ms(start.elapsed()));
    }
    let spent = (processor_time() - spent) / wide.len() as f64;
    let url = format!("sqlite://{}", path.display());
    let mut own = SqliteConnection::connect(&url).await.unwrap();
    let (mut reference, mut equal) = (Vec::new(), 0);
    let probes = if count > 200_000 { 3 } else { 15 };
    let reference_spent = processor_time();
    for query in wide.iter().take(probes) {
        let bytes: Vec<u8> = query.as_slice().iter().flat_map(|it| it.to_le_bytes()).collect();
        let start = Instant::now();
        let ids: Vec<i64> = sqlx::query_scalar(
            "SELECT chunk_id FROM vec_chunks WHERE embedding MATCH ? AND k = ? \
             ORDER BY distance",
        )
        .bind(bytes)
        .bind(i64::try_from(DEPTH).unwrap())
        .fetch_all(&mut own)
        .await
        .unwrap();
        reference.push(ms(start.elapsed()));
        let found = snapshot.nearest(query, DEPTH, &free).await.unwrap();
        equal += found.iter().filter(|found| ids.contains(&found.chunk.0)).count();
    }
    let reference_spent = (processor_time() - reference_spent) / probes as f64 - spent;
    let (times, reference) = (sorted(times), sorted(reference));
    let p50 = percentile(&times, 50);
    let size = format!("{} × {dimension}", thousands(count));
    let figure = format!("p50 {p50:.2} ms (processor {spent:.2} ms)");
    let budget = budget_ms.map_or_else(String::new, |budget| format!("≤ {budget} ms"));
    row(&format!("dense leg, exact, {size}"), &budget, &figure, budget_ms.map(|it| p50 / it));
    let figure = format!("{memory:.0} MiB, loaded in {:.2} s", loaded.as_secs_f64());
    row(&format!("its memory, {size}"), "", &figure, None);
    row(&format!("before they are in memory, {size}"), "", &format!("{cold:.0} ms"), None);
    let reference = percentile(&reference, 50);
    let budget = if count == 100_000 { "≥ 20 times as long" } else { "" };
    let figure = format!("p50 {reference:.1} ms (processor {reference_spent:.1} ms)");
    row(&format!("the table's own search, {size}"), budget, &figure, Some(reference / p50));
    let recall = equal as f64 / (probes * DEPTH) as f64;
    row(&format!("recall@{DEPTH} against it, {size}"), "≥ 0.99", &format!("{recall:.4}"), None);
}

/// How long the dense leg takes before the vectors are in memory, in ms.
async fn from_the_file(path: &Path, query: &Embedding) -> f64 {
    let store = SqliteStore::open(path).await.unwrap().unwrap();
    let snapshot = store.snapshot().await.unwrap();
    let start = Instant::now();
    snapshot.nearest(query, DEPTH, &Restriction::default()).await.unwrap();
    let time = start.elapsed();
    drop(snapshot);
    // It has begun to load them, which must not disturb what is measured next.
    tokio::time::sleep(2 * time + Duration::from_secs(1)).await;
    store.close().await;
    ms(time)
}

fn thousands(count: usize) -> String {
    if count >= 1_000_000 {
        format!("{} million", count / 1_000_000)
    } else {
        format!("{},000", count / 1000)
    }
}

/// Whole searches of an index, but for embedding the query.
async fn warm(
    folder: &Path,
    real: &Real,
    queries: &[(String, Embedding)],
    count: usize,
    [p50_ms, p95_ms]: [f64; 2],
) -> Arc<SqliteStore> {
    let path = folder.join(format!("{count}.db"));
    let start = Instant::now();
    let store = fill(&path, real, count, 384, true).await;
    eprintln!("{count} chunks written in {:.0} s", start.elapsed().as_secs_f64());
    store.load_vectors().await.unwrap();
    let searcher = searcher(&store, prepared(queries, &real.vectors[..1]));
    let (mut times, mut spent) = (Vec::new(), 0.0);
    for round in 0..3 {
        if round == 1 {
            spent = processor_time();
        }
        for (text, _) in queries {
            let start = Instant::now();
            assert!(search(&searcher, text).await);
            if round > 0 {
                times.push(ms(start.elapsed()));
            }
        }
    }
    let spent = (processor_time() - spent) / times.len() as f64;
    let times = sorted(times);
    let what = format!("warm search, {} chunks", thousands(count));
    row(&format!("{what}, processor"), "", &format!("{spent:.2} ms"), None);
    if p50_ms < p95_ms {
        within(&format!("{what}, p50"), p50_ms, percentile(&times, 50));
    } else {
        row(&format!("{what}, p50"), "", &format!("{:.2} ms", percentile(&times, 50)), None);
    }
    within(&format!("{what}, p95"), p95_ms, percentile(&times, 95));
    store
}

/// What the default walk of the connection graph asks of the store.
async fn each(store: &Arc<SqliteStore>, real: &Real) {
    let snapshot = store.snapshot().await.unwrap();
    let free = Restriction::default();
    let mut times = Vec::new();
    for first in (0..real.vectors.len() - 32).step_by(97) {
        let start = Instant::now();
        snapshot.nearest_to_each(&real.vectors[first..first + 32], 10, &free).await.unwrap();
        times.push(ms(start.elapsed()));
    }
    within(
        "32 queries × depth 10 in one pass, 10,000 chunks, p50",
        8.0,
        percentile(&sorted(times), 50),
    );
}

/// Clients that each ask one query after the other, embedding and all.
async fn clients(
    store: &Arc<SqliteStore>,
    queries: &[(String, Embedding)],
    encoder: &Arc<NativeEncoder>,
) {
    let searcher = searcher(store, Arc::clone(encoder) as Arc<dyn Embedder>);
    let (mut times, spent) = (Vec::new(), processor_time());
    for (text, _) in queries {
        let start = Instant::now();
        assert!(search(&searcher, text).await);
        times.push(ms(start.elapsed()));
    }
    let alone = sorted(times);
    let spent = (processor_time() - spent) / queries.len() as f64;
    let texts: Arc<Vec<String>> = Arc::new(queries.iter().map(|(text, _)| text.clone()).collect());
    let (start, together_spent) = (Instant::now(), processor_time());
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (searcher, texts) = (searcher.clone(), Arc::clone(&texts));
            tokio::spawn(async move {
                let mut times = Vec::new();
                for place in 0..texts.len() {
                    let text = &texts[(place + client * 31) % texts.len()];
                    let start = Instant::now();
                    assert!(search(&searcher, text).await);
                    times.push(ms(start.elapsed()));
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    let (wall, count) = (start.elapsed().as_secs_f64(), times.len() as f64);
    let together_spent = (processor_time() - together_spent) / count;
    let together = sorted(times);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let possible = cores * 1e3 / spent;
    row(
        "a query of one client, embedding and all",
        "",
        &format!("p50 {:.2} ms, processor {:.2} ms", percentile(&alone, 50), spent),
        None,
    );
    row(
        "eight clients at once, searches a second",
        &format!("≥ {:.0} (0.8 × cores ÷ processor time)", 0.8 * possible),
        &format!("{:.0} (processor {:.2} ms each)", count / wall, together_spent),
        Some(count / wall / (0.8 * possible)),
    );
    within(
        "eight clients at once, p95",
        (3.0 * percentile(&alone, 95)).round(),
        percentile(&together, 95),
    );
}

/// Queries that are no questions.
async fn hostile(store: &Arc<SqliteStore>, real: &Real) {
    let searcher = searcher(store, prepared(&[], &real.vectors[..100]));
    let mut draw = Draw::new(7);
    let (mut times, mut worst) = (Vec::new(), (0.0, String::new()));
    for _ in 0..HOSTILE {
        let text = hostile_queries::query(&mut draw);
        let start = Instant::now();
        // Some are refused, which is an answer too.
        search(&searcher, &text).await;
        let time = ms(start.elapsed());
        times.push(time);
        if time > worst.0 {
            worst = (time, text);
        }
    }
    let times = sorted(times);
    row(
        &format!("{HOSTILE} hostile queries, p50 and p99"),
        "",
        &format!("{:.2} and {:.2} ms", percentile(&times, 50), percentile(&times, 99)),
        None,
    );
    within("the worst of them", 200.0, worst.0);
    eprintln!("the worst query: {:?}", worst.1.chars().take(120).collect::<String>());
}
