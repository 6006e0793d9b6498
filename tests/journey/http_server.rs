//! A server over HTTP, as a plain process, and a client that sends what it is
//! told to, be it HTTP or not.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::site::{PATIENCE, Site, wait_for};

static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A server over HTTP at a port of its own.
pub(crate) struct HttpServer {
    child: Child,
    log: PathBuf,
    output: PathBuf,
    pub(crate) address: SocketAddr,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .next()
            .unwrap_or_default()
    }

    /// The body as JSON, or what the last event of a stream holds.
    pub(crate) fn json(&self) -> Value {
        let last = self.body.lines().rev().find_map(|line| line.strip_prefix("data: "));
        let text = last.unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

impl HttpServer {
    /// Starts it, and waits until it says that it listens.
    ///
    /// - `keys`: lines of `[transport.http]`.
    pub(crate) fn start(site: &Site, keys: &str) -> Self {
        site.configure(&format!("[transport.http]\n{keys}"));
        let command = site.command("serve", &["--port", "0", "--no-watch"]);
        Self::spawn(site, command)
    }

    pub(crate) fn spawn(site: &Site, mut command: Command) -> Self {
        command.stdin(Stdio::null());
        Self::spawn_with_input(site, command)
    }

    /// Starts it with the standard input that the command has.
    pub(crate) fn spawn_with_input(site: &Site, mut command: Command) -> Self {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = site.folder().join(format!("http {number}.log"));
        let output = site.folder().join(format!("http {number}.out"));
        let mut child = command
            .stdout(File::create(&output).unwrap())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let said = || fs::read_to_string(&log).unwrap();
        wait_for("the server listens", || {
            assert!(child.try_wait().unwrap().is_none(), "it has ended:\n{}", said());
            said().contains("listening on ")
        });
        let said = said();
        let (_, rest) = said.split_once("listening on ").unwrap();
        let address = rest.split_whitespace().next().unwrap().parse();
        // That of a Unix socket is of no use.
        let address = address.unwrap_or_else(|_| "127.0.0.1:1".parse().unwrap());
        Self { child, log, output, address }
    }

    /// What it has said to its operator.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// What it has written to standard output.
    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Opens a connection, and sends what may be the beginning of a request.
    pub(crate) fn begin(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// Sends bytes and reads all that comes back; empty if it is nothing.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // A server that has seen enough may have closed already.
        drop(stream.write_all(bytes));
        drop(stream.shutdown(Shutdown::Write));
        let mut text = Vec::new();
        drop(stream.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Sends a request with these header lines, and reads the answer.
    pub(crate) fn send(&self, line: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        for header in headers {
            request.push_str(header);
            request.push_str("\r\n");
        }
        if !body.is_empty() && !request.contains("Transfer-Encoding") {
            let length = body.len().to_string();
            request.extend(["Content-Length: ", &length, "\r\n"]);
        }
        request.push_str("\r\n");
        let mut stream = self.connect();
        let bytes = [request.as_bytes(), body].concat();
        drop(stream.write_all(&bytes));
        read_answer(&mut stream)
    }

    /// Asks as an ordinary client does.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &["Host: localhost"], b"")
    }

    /// Posts a message to the protocol's route.
    pub(crate) fn post(&self, headers: &[&str], message: &Value) -> Answer {
        let mut all = vec![
            "Host: localhost",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
        ];
        all.extend(headers);
        self.send("POST /mcp", &all, message.to_string().as_bytes())
    }

    /// Tries to open a session.
    pub(crate) fn initialize(&self) -> Answer {
        self.post(&[], &initialize())
    }

    /// Calls a tool without a session.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Answer {
        let name = format!("Mcp-Name: {tool}");
        let headers = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", &name];
        self.post(&headers, &call(tool, arguments))
    }

    /// Holds that it serves as ever.
    pub(crate) fn assert_serves(&self) {
        let answer = self.get("/healthz");
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"), "{}", self.log());
        let answer = self.call("list_topics", &json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.json()["result"].is_object(), "{answer:?}");
    }

    /// Asks the process to end.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }})
}

pub(crate) fn call(tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

/// Reads an answer up to the end of the connection.
pub(crate) fn read_answer(stream: &mut (impl std::io::Read + ?Sized)) -> Answer {
    let mut bytes = Vec::new();
    // A connection that was reset has said what it had to say.
    drop(stream.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { joined(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

/// The chunks of a body without their sizes.
fn joined(chunks: &str) -> String {
    let (mut rest, mut body) = (chunks, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let Some(chunk) = after.get(..size) else { break };
        body.push_str(chunk);
        rest = after[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    body
}

/// Reads from a stream until something was said.
pub(crate) fn read_until(stream: &mut TcpStream, words: &str) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(words) {
            return text;
        }
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{words:?} was never said: {text}");
        seen.extend_from_slice(&buffer[..read]);
    }
}

/// Whether the other end closes a connection within a while.
pub(crate) fn is_closed(stream: &mut TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).unwrap();
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}
