//! How fast texts are embedded, how faithfully, and with how much memory: the
//! reference's way and our own, on the same texts with the same weights.
//!
//! Each way runs in a process of its own on one core, so that its processor time
//! and its peak memory are its own. Exits with 1 if a vector of the native
//! encoder is too far from a stored one that an implementation of its own made
//! (`data/embed/README.md`). `benches/support/corpus.rs` says what names the
//! texts and the models; `GROOVE_BENCH_CHUNKS` is how many texts there are.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a program that measures: it reads files and the clock, prints, and stops on failure"
)]

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use grooveseek::adapters::embedder::native::Precision;
use rustix::time::{ClockId, clock_gettime};
use tokenizers::{Tokenizer, TruncationParams};

use support::corpus;
use support::engine::{Engine, WINDOW_TOKENS, open_native, open_onnx};
use support::peak::peak;
use support::stored;

mod support {
    //! What several benchmarks measure with.
    pub(crate) mod corpus;
    pub(crate) mod engine;
    #[path = "../../kernels/benches/support/peak.rs"]
    pub(crate) mod peak;
    pub(crate) mod stored;
}

const CHUNKS: usize = 2_000;

/// Chunks whose neighbours are compared.
const NEIGHBOURHOOD: usize = 1_500;

/// Chunks that are embedded on one core and on two.
const SCALED: usize = 600;

/// Chunks that fill the window, of which the speed is compared with the peak.
const LONG: usize = 100;

/// Six words and two special tokens.
const QUERY: &str = "link a static library at runtime";

/// Multiplications and additions of all-MiniLM-L6-v2 for a text.
fn operations(tokens: f64) -> f64 {
    let (layers, hidden, inner) = (6.0, 384.0, 1536.0);
    layers * tokens * (2.0 * (4.0 * hidden * hidden + 2.0 * hidden * inner) + 4.0 * tokens * hidden)
}

/// The ways that are compared, by the name that a child process is told.
const WAYS: [(&str, &str); 4] = [
    ("padded", "ONNX Runtime f32, a document padded to its longest chunk"),
    ("alone", "ONNX Runtime f32, one text at a time"),
    ("f32", "native, f32"),
    ("int", "native, integers"),
];

fn main() -> ExitCode {
    match std::env::var("GROOVE_BENCH_WAY") {
        Ok(way) => measure(&way, std::env::var_os("GROOVE_BENCH_SCALED").is_some()),
        Err(_) => return compare(),
    }
    ExitCode::SUCCESS
}

/// The chunks of each document, cut to the model's window: what lies beyond it
/// the native encoder would embed in further parts, and ONNX Runtime not at all.
fn documents(model: &Path) -> Vec<Vec<String>> {
    let most = std::env::var("GROOVE_BENCH_CHUNKS").ok().and_then(|count| count.parse().ok());
    let mut documents = corpus::documents(&corpus::folder(), most.unwrap_or(CHUNKS));
    let tokenizer = tokenizer(model);
    for chunk in documents.iter_mut().flatten() {
        let encoding = tokenizer.encode(chunk.as_str(), false).unwrap();
        // Two tokens of the window are for its frame.
        if encoding.len() > WINDOW_TOKENS - 2 {
            chunk.truncate(encoding.get_offsets()[WINDOW_TOKENS - 3].1);
        }
    }
    documents
}

fn tokenizer(model: &Path) -> Tokenizer {
    let mut tokenizer = Tokenizer::from_file(model.join("tokenizer.json")).unwrap();
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None::<TruncationParams>).unwrap();
    tokenizer
}

fn count_tokens(model: &Path, chunks: &[String]) -> Vec<usize> {
    let tokenizer = tokenizer(model);
    chunks.iter().map(|chunk| tokenizer.encode_fast(chunk.as_str(), true).unwrap().len()).collect()
}

/// What a child process found out: numbers by name, and the vectors.
struct Found {
    numbers: BTreeMap<String, f64>,
    vectors: Vec<Vec<f32>>,
}

impl Found {
    fn number(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// Measures one way in a process that runs on the given cores alone.
fn run(way: &str, cores: &str, scaled: bool) -> Found {
    let vectors = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new("taskset");
    child.args(["-c", cores]).arg(std::env::current_exe().unwrap());
    child.env("GROOVE_BENCH_WAY", way).env("GROOVE_BENCH_VECTORS", vectors.path());
    if scaled {
        child.env("GROOVE_BENCH_SCALED", "1");
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{way}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let numbers = lines.lines().filter_map(|line| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    let numbers = numbers.collect();
    let bytes = std::fs::read(vectors.path()).unwrap();
    let floats: Vec<f32> =
        bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let vectors = floats.chunks_exact(stored::DIMENSION).map(<[f32]>::to_vec).collect();
    Found { numbers, vectors }
}

/// The child's part: measures one way and prints numbers by name.
fn measure(way: &str, scaled: bool) {
    let model = corpus::model_folder().unwrap();
    let documents = documents(&model);
    let onnx = || {
        let (folder, library) = corpus::onnx().unwrap();
        open_onnx(&folder, library)
    };
    let mut engine = match way {
        "padded" => Engine::Padded(onnx()),
        "alone" => Engine::Alone(onnx()),
        "f32" => open_native(&model, Precision::F32),
        _ => open_native(&model, Precision::Int8),
    };
    engine.embed(&documents[..1]);
    engine.ask(QUERY);
    if scaled {
        let chunks = documents.concat();
        let chunks = &chunks[..SCALED.min(chunks.len())];
        let start = Instant::now();
        engine.embed(&[chunks.to_vec()]);
        println!("elapsed {}", start.elapsed().as_secs_f64());
        return;
    }
    let busy = processor_seconds();
    let vectors = engine.embed(&documents);
    println!("busy {}", processor_seconds() - busy);
    println!("peak MiB {}", peak_memory_mib());
    let bytes: Vec<u8> = vectors.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(std::env::var_os("GROOVE_BENCH_VECTORS").unwrap(), bytes).unwrap();

    report_times("query", 400, || engine.ask(QUERY));
    let query = [vec![QUERY.to_owned()]];
    report_times("short document", 400, || drop(engine.embed(&query)));

    let chunks = documents.concat();
    let lengths = count_tokens(&model, &chunks);
    let long = chunks.into_iter().zip(lengths).filter(|(_, length)| *length == WINDOW_TOKENS);
    let long: Vec<String> = long.map(|(chunk, _)| chunk).take(LONG).collect();
    let before = peak();
    let busy = processor_seconds();
    engine.embed(std::slice::from_ref(&long));
    let busy = processor_seconds() - busy;
    let speed = operations(WINDOW_TOKENS as f64) * long.len() as f64 * 1e-9 / busy;
    println!("long {speed}");
    println!("peak {}", before.max(peak()));

    if matches!(engine, Engine::Native(..)) {
        println!("cosine {}", stored::least_cosine(&engine.embed(&[stored::chunks()])));
    }
}

fn report_times(name: &str, count: usize, mut work: impl FnMut()) {
    let one = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    let mut times: Vec<f64> = (0..count).map(one).collect();
    times.sort_by(f64::total_cmp);
    println!("{name} p50 {}", times[count / 2]);
    println!("{name} p95 {}", times[count * 95 / 100]);
}

/// The parent's part: has each way measured, and prints the table.
fn compare() -> ExitCode {
    let Some(model) = corpus::model_folder() else {
        println!("skipped: no all-MiniLM-L6-v2 folder; name one in GROOVE_TEST_MODEL");
        return ExitCode::SUCCESS;
    };
    let documents = documents(&model);
    let tokens: usize = count_tokens(&model, &documents.concat()).iter().sum();
    let chunk_count: usize = documents.iter().map(Vec::len).sum();
    println!("{} documents, {chunk_count} chunks, {tokens} tokens", documents.len());
    let with_onnx = corpus::onnx().is_some();
    if !with_onnx {
        println!("without ONNX Runtime: set GROOVE_TEST_ONNX and ORT_DYLIB_PATH");
    }
    let ways = if with_onnx { &WAYS[..] } else { &WAYS[2..] };
    let found: Vec<_> = ways.iter().map(|&(way, name)| (way, name, run(way, "0", false))).collect();

    println!("\nAll chunks in file order, on one core:");
    println!("  {:<58}{:>12}{:>8}{:>11}", "", "tokens/cpu-s", "ratio", "peak MiB");
    for (_, name, way) in &found {
        let busy = way.number("busy");
        println!(
            "  {name:<58}{:>12.0}{:>8.2}{:>11.0}",
            tokens as f64 / busy,
            found[0].2.number("busy") / busy,
            way.number("peak MiB")
        );
    }
    println!("\nQuery of 8 tokens, and a document as short, ms elapsed, p50 / p95:");
    for (_, name, way) in &found {
        let of = |what: &str| {
            let at = |rank: &str| way.number(&format!("{what} {rank}"));
            format!("{:>8.2} /{:>6.2}", at("p50"), at("p95"))
        };
        println!("  {name:<58}{}{}", of("query"), of("short document"));
    }
    println!("\n{LONG} texts that fill the window of {WINDOW_TOKENS} tokens, on one core:");
    // Others on the same core only ever make it look slower than it is.
    let peak = found.iter().map(|(.., way)| way.number("peak")).fold(0.0, f64::max);
    for (_, name, way) in &found {
        let speed = way.number("long");
        let share = 100.0 * speed / peak;
        println!("  {name:<58}{speed:>7.1} GFLOP/s, {share:.0} % of the f32 peak of {peak:.1}");
    }
    let exact = &found.iter().find(|(way, ..)| *way == "f32").unwrap().2.vectors;
    println!("\nAgainst native f32, {} chunks:", NEIGHBOURHOOD.min(exact.len()));
    for (_, name, other) in found.iter().filter(|(way, ..)| *way != "f32") {
        let cosines = exact.iter().zip(&other.vectors).map(|(a, b)| dot(a, b));
        let least = cosines.fold(f32::MAX, f32::min);
        let recall = neighbours_kept(exact, &other.vectors);
        println!("  {name:<58} least cosine {least:.6}, recall@10 of neighbours {recall:.4}");
    }
    println!("\n{SCALED} chunks on one core and on two, wall time:");
    for &(way, name) in &WAYS[2..] {
        // Whatever else runs makes either slower, so the better of two counts.
        let best = |cores| {
            let once = || run(way, cores, true).number("elapsed");
            once().min(once())
        };
        let (one, two) = (best("0"), best("0,1"));
        println!("  {name:<58}{one:>7.2} s, {two:.2} s: {:.2} times as fast", one / two);
    }
    println!("\nAgainst stored vectors, least cosine:");
    let mut faithful = true;
    for (way, name, found) in &found {
        let floor = match *way {
            "f32" => 0.999,
            "int" => 0.995,
            _ => continue,
        };
        let cosine = found.number("cosine");
        faithful &= cosine >= floor;
        let verdict = if cosine >= floor { "passed" } else { "FAILED" };
        println!("  {name:<58}{cosine:>9.6} (floor {floor}: {verdict})");
    }
    if faithful { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// How many of the ten nearest neighbours of each vector are still among the
/// ten nearest of the other vectors, from 0 to 1.
fn neighbours_kept(exact: &[Vec<f32>], other: &[Vec<f32>]) -> f64 {
    let count = NEIGHBOURHOOD.min(exact.len());
    let (exact, other) = (&exact[..count], &other[..count]);
    let kept = (0..count).map(|index| {
        let (wanted, got) = (neighbours(exact, index), neighbours(other, index));
        wanted.intersection(&got).count() as f64 / wanted.len() as f64
    });
    kept.sum::<f64>() / count as f64
}

fn neighbours(vectors: &[Vec<f32>], index: usize) -> HashSet<usize> {
    let others = vectors.iter().enumerate().filter(|(other, _)| *other != index);
    let mut scored: Vec<(f32, usize)> =
        others.map(|(other, vector)| (dot(&vectors[index], vector), other)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(10).map(|(_, other)| other).collect()
}

/// Processor time of all threads of this process so far, in seconds.
fn processor_seconds() -> f64 {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap().as_secs_f64()
}

/// The most memory that this process has held so far; 0 where that is not told.
fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib / 1024)
}
