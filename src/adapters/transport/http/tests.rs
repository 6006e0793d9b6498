//! Tests of what needs a handler that misbehaves.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::adapters::transport::http::{HttpOptions, HttpTransport, Listener};
use crate::domain::document::DocumentPath;
use crate::domain::facets::Facets;
use crate::domain::graph::{Graph, GraphRequest};
use crate::domain::resource::ResourceGroup;
use crate::domain::search::{SearchAnswer, SearchRequest};
use crate::domain::topics::TopicGroup;
use crate::ports::monitor::{Monitor, ServiceStatus};
use crate::ports::transport::{
    BestPracticeAnswer, BestPracticeRequest, Completable, DocumentAnswer, DocumentRequest, Handler,
    Library, Listener as Hears, Progress, QuoteAnswer, QuoteRequest, RebuildAnswer, Refused,
    Transport as _, TransportError, Unopened,
};

/// A service that does what its queries say.
#[derive(Default)]
struct Script {
    begun: Notify,
    may_end: Notify,
    released: AtomicBool,
}

#[async_trait]
impl Handler for Script {
    async fn search(
        &self,
        request: SearchRequest,
        _: Arc<dyn Progress>,
    ) -> Result<SearchAnswer, Refused> {
        match request.query.as_str() {
            "block" => {
                self.begun.notify_one();
                // Wrongly, on the worker itself.
                while !self.released.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            "wait" => {
                self.begun.notify_one();
                self.may_end.notified().await;
            }
            _ => {}
        }
        Ok(SearchAnswer::default())
    }

    async fn document(&self, _: DocumentRequest) -> Result<DocumentAnswer, Refused> {
        std::future::pending().await
    }

    async fn graph(&self, _: GraphRequest) -> Result<Graph, Refused> {
        panic!("on purpose");
    }

    async fn topics(&self) -> Result<Vec<TopicGroup>, Refused> {
        Ok(Vec::new())
    }

    async fn facets(&self) -> Result<Facets, Refused> {
        Ok(Facets::default())
    }

    async fn best_practice(&self, _: BestPracticeRequest) -> Result<BestPracticeAnswer, Refused> {
        std::future::pending().await
    }

    async fn verify_quote(&self, _: QuoteRequest) -> Result<QuoteAnswer, Refused> {
        std::future::pending().await
    }

    fn asks_outside(&self) -> bool {
        false
    }

    fn library(&self) -> Arc<dyn Library> {
        Arc::new(NoLibrary)
    }

    async fn rebuild(&self, _: bool, _: Arc<dyn Progress>) -> Result<RebuildAnswer, Refused> {
        Ok(RebuildAnswer::default())
    }
}

/// Nothing is offered, and nothing changes.
struct NoLibrary;

#[async_trait]
impl Library for NoLibrary {
    async fn groups(&self) -> Result<Vec<ResourceGroup>, Refused> {
        Ok(Vec::new())
    }

    async fn open(&self, _: &DocumentPath) -> Result<DocumentAnswer, Unopened> {
        Err(Unopened::NotFound(Refused { message: "none".to_owned() }))
    }

    async fn complete(&self, _: Completable, _: &str) -> Result<Vec<String>, Refused> {
        Ok(Vec::new())
    }

    fn listen(&self, _: Weak<dyn Hears>) -> bool {
        false
    }
}

impl Monitor for Script {
    fn status(&self) -> ServiceStatus {
        ServiceStatus::default()
    }
}

fn options() -> HttpOptions {
    HttpOptions {
        allowed_hosts: None,
        allowed_origins: None,
        healthz_public: true,
        max_sessions: Some(2),
        session_idle: Duration::from_mins(5),
        metrics: true,
        refuse_forwarded: false,
        header_timeout: None,
        body_timeout: None,
        idle_timeout: None,
        call_timeout: None,
        drain_timeout: Duration::from_secs(10),
        max_in_flight: None,
        max_connections: None,
    }
}

struct Served {
    script: Arc<Script>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), TransportError>>,
}

fn serve(options: HttpOptions) -> Served {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.listening().address().unwrap();
    let script = Arc::new(Script::default());
    let monitor = Arc::clone(&script) as Arc<dyn Monitor>;
    let transport = HttpTransport::new(listener, options, monitor).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let handler = Arc::clone(&script);
    let serving = tokio::spawn(async move {
        let stop = Box::pin(async move { drop(stopped.await) });
        transport.serve(handler, stop).await
    });
    Served { script, address, stop, serving }
}

impl Served {
    async fn begin(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn get(&self, path: &str) -> (u16, String) {
        whole(self.begin(&format!("GET {path}"), "").await).await
    }

    async fn begin_post(&self, more: &str, message: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let body = message.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn begin_call(&self, tool: &str, arguments: Value) -> TcpStream {
        let more = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        self.begin_post(&more, &message).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> (u16, String) {
        whole(self.begin_call(tool, arguments).await).await
    }

    async fn initialize(&self) -> (u16, String) {
        whole(self.begin_post("", &initialize()).await).await
    }

    async fn sessions(&self) -> u64 {
        let (_, body) = self.get("/api/admin/status").await;
        let (_, json) = body.split_once("\r\n\r\n").unwrap();
        let status: Value = serde_json::from_str(json).unwrap();
        status["daemon"]["sessions"].as_u64().unwrap()
    }

    async fn until_sessions(&self, count: u64) {
        while self.sessions().await != count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }})
}

async fn whole(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer: {text:?}")), text)
}

// HTTP-21 HTTP-79
#[test]
fn health_and_status_answer_while_every_worker_is_busy() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let served = runtime.block_on(async { serve(options()) });
    // The only worker is blocked from here on, and this thread asks.
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        let blocked = served.begin_call("search", json!({"query": "block"})).await;
        served.script.begun.notified().await;
        assert_eq!(served.get("/healthz").await.0, 200);
        assert_eq!(served.get("/api/admin/status").await.0, 200);
        assert_eq!(served.get("/metrics").await.0, 200);
        assert_eq!(served.get("/readyz").await.0, 503);
        served.script.released.store(true, Ordering::Relaxed);
        assert_eq!(whole(blocked).await.0, 200);
    });
    runtime.shutdown_background();
}

// HTTP-79 HTTP-97 MCP-07
#[tokio::test]
async fn a_panic_in_a_call_is_that_calls_own() {
    let served = serve(options());
    let (status, body) = served.call("get_connection_graph", json!({"start": "a.md"})).await;
    assert!(status == 200 && body.contains("internal error"), "{body}");
    assert_eq!(served.get("/api/admin/status").await.0, 200);
    assert_eq!(served.call("list_topics", json!({})).await.0, 200);
    served.end().await;
}

// HTTP-B09
#[tokio::test]
async fn calls_in_flight_have_a_cap_that_counts_those_without_a_session() {
    let served = serve(HttpOptions { max_in_flight: Some(2), ..options() });
    let first = served.begin_call("search", json!({"query": "wait"})).await;
    served.script.begun.notified().await;
    let second = served.begin_call("search", json!({"query": "wait"})).await;
    served.script.begun.notified().await;
    let (status, body) = served.call("list_topics", json!({})).await;
    assert!(status == 503 && body.to_ascii_lowercase().contains("retry-after: 1"), "{body}");
    assert_eq!(served.initialize().await.0, 503);
    assert_eq!(served.get("/healthz").await.0, 200);
    served.script.may_end.notify_one();
    served.script.may_end.notify_one();
    assert_eq!((whole(first).await.0, whole(second).await.0), (200, 200));
    assert_eq!(served.call("list_topics", json!({})).await.0, 200);
    served.end().await;
}

// HTTP-B09
#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up_in_words() {
    let served = serve(HttpOptions { call_timeout: Some(Duration::from_millis(100)), ..options() });
    let (status, body) = served.call("get_document", json!({"path": "a.md"})).await;
    assert!(status == 200 && body.contains("took longer than 0.1 s"), "{body}");
    assert!(served.call("rebuild_index", json!({})).await.1.contains("total_documents"));
    served.end().await;
}

// HTTP-61 HTTP-65
#[tokio::test]
async fn a_session_ends_when_nobody_has_used_it_for_a_while() {
    let served = serve(HttpOptions { session_idle: Duration::from_secs(1), ..options() });
    assert_eq!(served.initialize().await.0, 200);
    let (_, kept) = served.initialize().await;
    let id = kept.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    // One whose client listens is in use.
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
         Mcp-Session-Id: {id}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(served.initialize().await.0, 429);
    served.until_sessions(1).await;
    assert_eq!(served.initialize().await.0, 200);
    served.until_sessions(1).await;
    drop(stream);
    served.until_sessions(0).await;
    assert_eq!(served.initialize().await.0, 200);
    served.end().await;
}

// HTTP-64 HTTP-65
#[tokio::test]
async fn a_client_that_leaves_while_it_opens_a_session_keeps_no_seat() {
    let served = serve(options());
    for _ in 0..50 {
        let stream = served.begin_post("", &initialize()).await;
        drop(stream);
    }
    // Those that were opened before their client left are there for a while; the
    // cap holds all the same, and nothing is lost.
    assert!(served.sessions().await <= 2);
    let bad = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let none = serve(options());
    for _ in 0..10 {
        let (status, body) = whole(none.begin_post("", &bad).await).await;
        assert_ne!(status, 429, "{body}");
    }
    none.until_sessions(0).await;
    assert_eq!(none.initialize().await.0, 200);
    assert_eq!(none.initialize().await.0, 200);
    assert_eq!(none.initialize().await.0, 429);
    none.end().await;
    served.end().await;
}

// MCP-89
#[tokio::test]
async fn a_client_that_leaves_frees_what_it_held() {
    let served = serve(HttpOptions { max_in_flight: Some(1), ..options() });
    let call = served.begin_call("search", json!({"query": "wait"})).await;
    served.script.begun.notified().await;
    assert_eq!(served.call("list_topics", json!({})).await.0, 503);
    drop(call);
    while served.call("list_topics", json!({})).await.0 != 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    served.end().await;
}
