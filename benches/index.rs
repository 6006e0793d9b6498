//! What `groove index` costs from end to end, beside what embedding alone costs
//! the reference's way: ONNX Runtime in 32 bits, the chunks of a document padded
//! to the longest of them.
//!
//! `benches/support/corpus.rs` says what names the texts and the models.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a measurement"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use support::corpus;
use support::engine::{Engine, open_onnx};

mod support {
    //! What several benchmarks measure with.
    pub(crate) mod corpus;
    pub(crate) mod engine;
}

/// The kernel tells times of other processes in hundredths of a second.
const TICKS: f64 = 100.0;

fn main() {
    let Some(model) = corpus::model_folder() else {
        println!("index: name the folder of all-MiniLM-L6-v2 in GROOVE_TEST_MODEL");
        return;
    };
    let folder = corpus::folder();
    let temporary = tempfile::tempdir().unwrap();
    let kb = temporary.path().join("kb");
    assert!(Command::new("cp").arg("-R").arg(&folder).arg(&kb).status().unwrap().success());
    let documents = corpus::documents(&kb, usize::MAX);
    let chunks: usize = documents.iter().map(Vec::len).sum();
    println!("{} documents, {chunks} chunks", documents.len());

    let first = index(&kb, &model);
    first.report("groove index");
    let second = index(&kb, &model);
    second.report("groove index again, nothing new");
    let Some((onnx, library)) = corpus::onnx() else {
        println!("no comparison: set GROOVE_TEST_ONNX and ORT_DYLIB_PATH");
        return;
    };
    let mut engine = Engine::Padded(open_onnx(&onnx, library));
    let busy = processor_seconds();
    assert_eq!(engine.embed(&documents).len(), chunks);
    let busy = processor_seconds() - busy;
    println!("embedding alone, the reference's way: {busy:.1} s of processor time");
    println!("  that is {:.2} times the whole of groove index", busy / first.processor_seconds);
}

struct Run {
    processor_seconds: f64,
    elapsed: Duration,
    peak_mib: u64,
}

impl Run {
    fn report(&self, what: &str) {
        println!(
            "{what}: {:.1} s of processor time, {:.1} s elapsed, peak memory {} MiB",
            self.processor_seconds,
            self.elapsed.as_secs_f64(),
            self.peak_mib
        );
    }
}

/// Runs `groove index` and watches it.
fn index(kb: &Path, model: &Path) -> Run {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_groove"))
        .args(["index", "--kb-path"])
        .arg(kb)
        .arg("--model")
        .arg(model.file_name().unwrap())
        .env("GROOVE_MODELS_DIR", model.parent().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = Path::new("/proc").join(child.id().to_string());
    let mut peak_kib = 0;
    // Until it has ended, but has not been waited for: its times are final then.
    let processor_seconds = loop {
        let record = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
        // Behind the name, which may hold anything: the state is the first field.
        let fields: Vec<&str> = record
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        if fields.first().is_none_or(|&state| state == "Z") {
            let ticks = |place: usize| fields.get(place).and_then(|it| it.parse::<f64>().ok());
            break (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS;
        }
        let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0_u64));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(child.wait().unwrap().success());
    Run { processor_seconds, elapsed: start.elapsed(), peak_mib: peak_kib / 1024 }
}

/// Processor time of all threads of this process so far, in seconds.
fn processor_seconds() -> f64 {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap().as_secs_f64()
}
