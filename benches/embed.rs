//! How fast the native encoder embeds, and how faithfully.
//!
//! Embeds 1,000 chunks of real documentation in file order, in 32 bits and in
//! small integers, and compares each vector with a stored one that an
//! implementation of its own made (`data/embed/README.md`). Exits with 1 if any
//! vector is too far off. The folder of all-MiniLM-L6-v2 is named by
//! `GROOVE_TEST_MODEL`, or is `models/all-minilm-l6-v2` below the target folder.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures: it reads files and the clock, prints, and stops on failure"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use grooveseek::adapters::embedder::native::{NativeEncoder, Precision};
use grooveseek::domain::embedding::Embedding;
use grooveseek::ports::embedder::Embedder;
use rustix::time::{ClockId, clock_gettime};
use tokenizers::{Tokenizer, TruncationParams};
use tokio::runtime::Runtime;

const DIMENSION: usize = 384;
const WINDOW_TOKENS: usize = 256;

/// Texts to a call, as an index run hands them over.
const GROUP: usize = 64;

/// Six words and two special tokens.
const QUERY: &str = "link a static library at runtime";

fn main() -> ExitCode {
    let Some(folder) = model_folder() else {
        println!("skipped: no all-MiniLM-L6-v2 folder; name one in GROOVE_TEST_MODEL");
        return ExitCode::SUCCESS;
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data/embed");
    let chunks: Vec<String> =
        serde_json::from_slice(&std::fs::read(data.join("chunks.json")).unwrap()).unwrap();
    let reference = read_reference(&data.join("reference.f16"));
    assert_eq!(reference.len(), chunks.len());
    let tokens = count_tokens(&folder, &chunks);
    println!("{} chunks, {tokens} tokens", chunks.len());

    let runtime = Runtime::new().unwrap();
    let mut faithful = true;
    for (precision, floor) in [(Precision::F32, 0.999), (Precision::Int8, 0.995)] {
        println!("\n{precision:?}");
        let encoder = open(&runtime, &folder, precision);
        let embeddings = embed(&runtime, &encoder, &chunks, tokens);
        faithful &= compare(&embeddings, &reference, floor);
        time_queries(&runtime, &encoder);
        time_queries_beside_documents(&runtime, &encoder, &chunks);
        println!("  peak memory           {:>9} MiB", peak_memory_mib());
    }
    if faithful { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn model_folder() -> Option<PathBuf> {
    let below = |target: PathBuf| target.join("models/all-minilm-l6-v2");
    let named = std::env::var_os("GROOVE_TEST_MODEL").map(PathBuf::from);
    let built = std::env::var_os("CARGO_TARGET_DIR").map(|target| below(target.into()));
    let own = below(Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    named.or_else(|| built.into_iter().chain([own]).find(|folder| folder.is_dir()))
}

/// Reads vectors of half-precision numbers, least significant byte first.
fn read_reference(path: &Path) -> Vec<Embedding> {
    let bytes = std::fs::read(path).unwrap();
    let (numbers, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    let numbers: Vec<f32> = numbers.iter().map(|&half| widen(u16::from_le_bytes(half))).collect();
    numbers
        .chunks_exact(DIMENSION)
        .map(|row| Embedding::normalised(row.to_vec()).unwrap())
        .collect()
}

/// Widens a number of half precision that is finite.
fn widen(half: u16) -> f32 {
    let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f32::from(half & 0x3ff) / 1024.0);
    let magnitude = match exponent {
        0 => fraction * 2.0_f32.powi(-14),
        _ => (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    };
    if half >> 15 == 1 { -magnitude } else { magnitude }
}

fn count_tokens(folder: &Path, chunks: &[String]) -> usize {
    let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    tokenizer.with_padding(None);
    let truncation = TruncationParams { max_length: WINDOW_TOKENS, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).unwrap();
    chunks.iter().map(|chunk| tokenizer.encode_fast(chunk.as_str(), true).unwrap().len()).sum()
}

fn open(runtime: &Runtime, folder: &Path, precision: Precision) -> NativeEncoder {
    let start = Instant::now();
    let encoder = NativeEncoder::open("all-minilm-l6-v2", folder, precision).unwrap();
    println!("  open                  {:>9.1} ms", milliseconds(start.elapsed()));
    runtime.block_on(encoder.embed_documents(&["text".to_owned()])).unwrap();
    println!("  first document after  {:>9.1} ms", milliseconds(start.elapsed()));
    runtime.block_on(encoder.embed_query(QUERY)).unwrap();
    println!("  first query after     {:>9.1} ms", milliseconds(start.elapsed()));
    encoder
}

fn embed(
    runtime: &Runtime,
    encoder: &NativeEncoder,
    chunks: &[String],
    tokens: usize,
) -> Vec<Embedding> {
    let (start, busy) = (Instant::now(), processor_time());
    let mut embeddings = Vec::with_capacity(chunks.len());
    for group in chunks.chunks(GROUP) {
        embeddings.extend(runtime.block_on(encoder.embed_documents(group)).unwrap());
    }
    let (elapsed, busy) = (start.elapsed(), processor_time().saturating_sub(busy));
    #[expect(clippy::cast_precision_loss, reason = "far fewer tokens than 2⁵²")]
    let tokens = tokens as f64;
    println!("  tokens a processor second {:>5.0}", tokens / busy.as_secs_f64());
    println!("  tokens a second       {:>9.0}", tokens / elapsed.as_secs_f64());
    embeddings
}

/// Compares with the reference; false if any cosine is below the floor.
fn compare(embeddings: &[Embedding], reference: &[Embedding], floor: f32) -> bool {
    let mut cosines: Vec<f32> =
        embeddings.iter().zip(reference).map(|(ours, stored)| ours.cosine(stored)).collect();
    cosines.sort_by(f32::total_cmp);
    let (least, median) = (cosines[0], cosines[cosines.len() / 2]);
    let passed = least >= floor;
    let verdict = if passed { "passed" } else { "FAILED" };
    println!("  cosine, least         {least:>9.6} (floor {floor}: {verdict})");
    println!("  cosine, median        {median:>9.6}");
    passed
}

fn time_queries(runtime: &Runtime, encoder: &NativeEncoder) {
    let busy = processor_time();
    let times = query_times(runtime, encoder, 200);
    let busy = processor_time().saturating_sub(busy) / 200;
    println!("  query, median         {:>9.2} ms", milliseconds(times[100]));
    println!("  query, processor time {:>9.2} ms", milliseconds(busy));
}

fn time_queries_beside_documents(runtime: &Runtime, encoder: &NativeEncoder, chunks: &[String]) {
    let documents = encoder.embed_documents(&chunks[..200]);
    let times = runtime.block_on(async {
        let mut times = Vec::new();
        let queries = async {
            loop {
                let start = Instant::now();
                encoder.embed_query(QUERY).await.unwrap();
                times.push(start.elapsed());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            embedded = documents => { embedded.unwrap(); }
            () = queries => {}
        }
        times.sort();
        times
    });
    let at = |percent: usize| milliseconds(times[(times.len() - 1) * percent / 100]);
    println!("  query beside documents{:>9.2} ms median, {:.2} ms p95", at(50), at(95));
}

fn query_times(runtime: &Runtime, encoder: &NativeEncoder, count: usize) -> Vec<Duration> {
    let one = |_| {
        let start = Instant::now();
        runtime.block_on(encoder.embed_query(QUERY)).unwrap();
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..count).map(one).collect();
    times.sort();
    times
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Processor time of all threads of this process so far.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap()
}

/// The most memory that this process has held so far; 0 where that is not told.
fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib / 1024)
}
