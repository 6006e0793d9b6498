//! What a server gives while it indexes ten thousand new files: how soon the
//! first answer and all texts are there, how long a search takes beside the run
//! and without it, over standard input and over HTTP, how long a connection graph
//! with default bounds takes, and how much memory all of it takes.
//!
//! `GROOVE_TEST_CORPORA` names the folder that holds `markdown/`, and
//! `GROOVE_TEST_MODEL` the model's folder. With `GROOVE_BENCH_WHOLE=1` the run
//! goes on to its end, a quarter of an hour later, and one without changes
//! follows.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a measurement"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const QUERIES: [&str; 12] = [
    "const member functions of a class template",
    "linker cannot find a library",
    "exception specification",
    "how to use std::unique_ptr",
    "compiler warning level",
    "virtual base class",
    "precompiled header",
    "convert a string to a number",
    "thread local storage",
    "lambda capture by reference",
    "module definition file",
    "integer overflow",
];
const SEARCHES: usize = 300;

fn main() {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(corpora), Some(model)) = (folder("GROOVE_TEST_CORPORA"), folder("GROOVE_TEST_MODEL"))
    else {
        println!("serving: set GROOVE_TEST_CORPORA and GROOVE_TEST_MODEL");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let archive = corpora.join("markdown/cpp-docs-10k.tar.gz");
    let unpacked =
        Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()).status().unwrap();
    assert!(unpacked.success());
    let kb = folder.path().join("cpp-docs");
    let files = count(&kb);
    println!("{files} files");

    let mut server = Server::start(&kb, &model, "build");
    let first = server.until(|answer| !answer["results"].as_array().unwrap().is_empty());
    println!("process start to the first answer with a hit: {:.2} s", first.as_secs_f64());
    let texts = server.until_documents(files);
    println!("process start to all texts found: {:.1} s", texts.as_secs_f64());
    let beside = server.searches();
    report("search beside the run", &beside);
    println!("peak memory of the server so far: {} MiB", server.peak_mib());
    server.stop();

    let mut server = Server::start(&kb, &model, "none");
    server.until(|answer| answer.get("degraded").is_none());
    let idle = server.searches();
    report("search without a run", &idle);
    report("connection graph without a run", &server.graphs());
    println!(
        "ratio of the 95th percentiles: {:.2}",
        percentile(&beside, 95) / percentile(&idle, 95)
    );
    server.stop();

    let mut server = Http::start(&kb, &model);
    server.until_ready();
    let over_http = server.searches();
    report("search without a run, over HTTP", &over_http);
    println!(
        "HTTP beside standard input: {:+.2} ms at the median",
        percentile(&over_http, 50) - percentile(&idle, 50)
    );
    server.stop();

    if std::env::var_os("GROOVE_BENCH_WHOLE").is_some() {
        for what in ["what was left", "nothing new"] {
            let start = Instant::now();
            let mut run = groove(&kb, &model, "none").arg("index").arg("--quiet").spawn().unwrap();
            assert!(run.wait().unwrap().success());
            println!("groove index, {what}: {:.2} s", start.elapsed().as_secs_f64());
        }
    }
}

fn count(folder: &Path) -> u64 {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += count(&path);
        } else {
            files += u64::from(path.extension().is_some_and(|extension| extension == "md"));
        }
    }
    files
}

fn groove(kb: &Path, model: &Path, on_serve: &str) -> Command {
    let config = kb.with_extension(format!("{on_serve}.toml"));
    let text = format!(
        "kb_path = {:?}\nmodel = {:?}\n[index]\non_serve = {on_serve:?}\n",
        kb.to_str().unwrap(),
        model.file_name().unwrap().to_str().unwrap()
    );
    std::fs::write(&config, text).unwrap();
    let mut groove = Command::new(env!("CARGO_BIN_EXE_groove"));
    groove.arg("--config").arg(config).env("GROOVE_MODELS_DIR", model.parent().unwrap());
    groove
}

struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    started: Instant,
    calls: usize,
}

impl Server {
    fn start(kb: &Path, model: &Path, on_serve: &str) -> Self {
        let started = Instant::now();
        let mut process = groove(kb, model, on_serve)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut server = Self { process, input, output, started, calls: 0 };
        server.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "0"},
            }),
        );
        writeln!(server.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)
            .unwrap();
        server
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        writeln!(self.input, "{request}").unwrap();
        self.input.flush().unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has gone");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == json!(self.calls) {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or("null");
        serde_json::from_str(text).unwrap()
    }

    fn search(&mut self, query: &str) -> Value {
        self.call("search", &json!({"query": query}))
    }

    /// Searches until an answer is as it should be; returns the time since the
    /// process was started.
    fn until(&mut self, is_so: impl Fn(&Value) -> bool) -> Duration {
        loop {
            if is_so(&self.search(QUERIES[0])) {
                return self.started.elapsed();
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn until_documents(&mut self, files: u64) -> Duration {
        loop {
            let topics = self.call("list_topics", &json!({}));
            let groups = topics.as_array().or_else(|| topics["topics"].as_array());
            let known: u64 =
                groups.unwrap().iter().map(|group| group["file_count"].as_u64().unwrap()).sum();
            // A few files have nothing in them to index.
            if known + 20 >= files {
                return self.started.elapsed();
            }
            sleep(Duration::from_millis(500));
        }
    }

    fn searches(&mut self) -> Vec<f64> {
        timed(|query| drop(self.search(query)))
    }

    /// Graphs around the documents that searches find by their vectors.
    fn graphs(&mut self) -> Vec<f64> {
        let mut starts = Vec::new();
        for query in QUERIES {
            let found = self.call("search", &json!({"query": query, "limit": 20}));
            let hits = found["results"].as_array().unwrap();
            let by_vector = hits
                .iter()
                .filter(|hit| hit["matched_by"].as_array().unwrap().contains(&json!("vector")));
            starts.extend(by_vector.map(|hit| hit["path"].clone()));
        }
        let mut times: Vec<f64> = starts
            .iter()
            .map(|start| {
                sleep(Duration::from_millis(30));
                let started = Instant::now();
                let graph = self.call("get_connection_graph", &json!({"start": start}));
                assert!(graph["stats"]["knn_queries"].as_u64().unwrap() > 0, "{graph}");
                started.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// The most memory that the process has had, in MiB; Linux only.
    fn peak_mib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or(0) / 1024
    }

    fn stop(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A server over HTTP, with one connection that is kept.
struct Http {
    process: Child,
    stream: BufReader<TcpStream>,
}

impl Http {
    fn start(kb: &Path, model: &Path) -> Self {
        let mut process = groove(kb, model, "none")
            .args(["serve", "--transport", "http", "--port", "0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server has gone");
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.split_whitespace().next().unwrap().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { process, stream: BufReader::new(stream) }
    }

    fn search(&mut self, query: &str) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "search", "arguments": {"query": query}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }})
        .to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: search\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        serde_json::from_str(text).unwrap()
    }

    fn until_ready(&mut self) {
        while self.search(QUERIES[0]).get("degraded").is_some() {
            sleep(Duration::from_millis(20));
        }
    }

    fn searches(&mut self) -> Vec<f64> {
        timed(|query| drop(self.search(query)))
    }

    fn stop(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Searches with a pause between them; how many milliseconds each took,
/// ascending.
fn timed(mut search: impl FnMut(&str)) -> Vec<f64> {
    let mut times: Vec<f64> = (0..SEARCHES)
        .map(|number| {
            sleep(Duration::from_millis(30));
            let start = Instant::now();
            search(QUERIES[number % QUERIES.len()]);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// - `times`: ascending.
fn percentile(times: &[f64], percent: usize) -> f64 {
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn report(what: &str, times: &[f64]) {
    println!(
        "{what}: p50 {:.1} ms, p95 {:.1} ms, worst of {} {:.1} ms",
        percentile(times, 50),
        percentile(times, 95),
        times.len(),
        percentile(times, 100)
    );
}
