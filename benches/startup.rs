//! How long the short commands take, and how soon a server answers: from the
//! start of the process to the answer of the handshake, and to the first answer
//! from the text.
//!
//! `GROOVE_TEST_CORPORA` names the folder that holds `markdown/`, and
//! `GROOVE_TEST_MODEL` the model's folder.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a measurement"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

const RUNS: usize = 30;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const SEARCH: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"const member functions of a class template"}}}"#;

fn main() {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(corpora), Some(model)) = (folder("GROOVE_TEST_CORPORA"), folder("GROOVE_TEST_MODEL"))
    else {
        println!("startup: set GROOVE_TEST_CORPORA and GROOVE_TEST_MODEL");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let kb = folder.path().join("kb");
    let copied = Command::new("cp")
        .arg("-R")
        .arg(corpora.join("markdown/cpp-docs-300"))
        .arg(&kb)
        .status()
        .unwrap();
    assert!(copied.success());
    let indexed = groove("index", &kb, &model).stderr(Stdio::null()).status().unwrap();
    assert!(indexed.success());

    for (what, arguments) in [
        ("groove --version", vec!["--version"]),
        ("groove --help", vec!["--help"]),
        ("groove search --help", vec!["search", "--help"]),
        ("groove status", vec!["status", "--kb-path", kb.to_str().unwrap()]),
    ] {
        let mut times: Vec<f64> = (0..RUNS).map(|_| once(&arguments)).collect();
        report(&format!("{what} (at most 20 ms)"), &mut times);
    }

    let (mut handshakes, mut answers, mut from_text) = (Vec::new(), Vec::new(), 0);
    for _ in 0..RUNS {
        let started = Instant::now();
        let mut server = groove("serve", &kb, &model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = server.stdin.take().unwrap();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        send(&mut input, INITIALIZE);
        receive(&mut output);
        handshakes.push(started.elapsed().as_secs_f64() * 1e3);
        send(&mut input, INITIALIZED);
        send(&mut input, SEARCH);
        let answer = receive(&mut output);
        answers.push(started.elapsed().as_secs_f64() * 1e3);
        assert!(answer.contains("results"), "{answer}");
        if answer.contains("degraded") {
            from_text += 1;
        }
        drop(input);
        assert!(server.wait().unwrap().success());
    }
    report("process start to handshake answered", &mut handshakes);
    report("process start to first search answered", &mut answers);
    println!(
        "first search answered from the text, before the model was there: {from_text} of {RUNS}"
    );
}

/// How long a command takes from its start to its end, in milliseconds.
fn once(arguments: &[&str]) -> f64 {
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_groove")).args(arguments).output().unwrap();
    let took = started.elapsed().as_secs_f64() * 1e3;
    assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
    took
}

fn groove(command: &str, kb: &Path, model: &Path) -> Command {
    let mut groove = Command::new(env!("CARGO_BIN_EXE_groove"));
    groove
        .arg(command)
        .arg("--kb-path")
        .arg(kb)
        .arg("--model")
        .arg(model.file_name().unwrap())
        .env("GROOVE_MODELS_DIR", model.parent().unwrap());
    groove
}

fn send(input: &mut ChildStdin, message: &str) {
    writeln!(input, "{message}").unwrap();
    input.flush().unwrap();
}

fn receive(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

fn report(what: &str, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    println!(
        "{what}: median {:.1} ms, worst of {} {:.1} ms",
        times[times.len() / 2],
        times.len(),
        times[times.len() - 1]
    );
}
