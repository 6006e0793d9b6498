//! A server whose client says hardly anything, as a plain process.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::site::{Site, wait_for};

static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A server that follows its files.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    log: PathBuf,
    asked: u64,
}

impl Server {
    /// Starts it, and waits until it follows the files.
    pub(crate) fn start(site: &Site) -> Self {
        let mut server = Self::start_with(site, &["--debounce-ms", "30"]);
        wait_for("the server watches", || {
            server.assert_runs();
            server.log().contains("watching")
        });
        server
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn start_with(site: &Site, arguments: &[&str]) -> Self {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = site.folder().join(format!("server {number}.log"));
        let mut child = site
            .command("serve", arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, input, output, log, asked: 0 };
        let client = json!({"name": "test", "version": "0"});
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client
        });
        server.ask("initialize", &hello);
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "the server says nothing more:\n{}", self.log());
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == json!(id) {
                return answer["result"].clone();
            }
        }
    }

    /// Calls a tool: what it answers, and whether that is an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> (Value, bool) {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        (serde_json::from_str(text).unwrap_or(result.clone()), result["isError"] == json!(true))
    }

    /// The tools that it lists.
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", &json!({}))["tools"].as_array().unwrap().clone()
    }

    /// What it has said to its operator.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn assert_runs(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the server has ended: {ended:?}\n{}", self.log());
    }

    /// Lets it end by itself, as its client has gone.
    pub(crate) fn stop(mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status:?}\n{}", self.log());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
