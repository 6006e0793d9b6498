//! The contract of the transport port.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failure is a failed case, and one case is about a panic"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use grooveseek::adapters::json;
use grooveseek::adapters::transport::http::HttpOptions;
use grooveseek::adapters::transport::http::HttpTransport;
use grooveseek::adapters::transport::http::Listener;
use grooveseek::adapters::transport::memory::CallError;
use grooveseek::adapters::transport::memory::MemoryClient;
use grooveseek::adapters::transport::memory::connection;
use grooveseek::adapters::transport::stdio::StdioTransport;
use grooveseek::domain::chunk::ChunkId;
use grooveseek::domain::chunk::LineRange;
use grooveseek::domain::document::DocumentPath;
use grooveseek::domain::document::Metadata;
use grooveseek::domain::facets::Facets;
use grooveseek::domain::graph::Graph;
use grooveseek::domain::graph::GraphRequest;
use grooveseek::domain::graph::Node;
use grooveseek::domain::resource::ResourceGroup;
use grooveseek::domain::search::Hit;
use grooveseek::domain::search::SearchAnswer;
use grooveseek::domain::search::SearchRequest;
use grooveseek::domain::topics::TopicFolder;
use grooveseek::domain::topics::TopicGroup;
use grooveseek::ports::monitor::Monitor;
use grooveseek::ports::monitor::ServiceStatus;
use grooveseek::ports::transport::BestPracticeAnswer;
use grooveseek::ports::transport::BestPracticeRequest;
use grooveseek::ports::transport::Completable;
use grooveseek::ports::transport::DocumentAnswer;
use grooveseek::ports::transport::DocumentRequest;
use grooveseek::ports::transport::Handler;
use grooveseek::ports::transport::Library;
use grooveseek::ports::transport::Progress;
use grooveseek::ports::transport::QuoteAnswer;
use grooveseek::ports::transport::QuotePlace;
use grooveseek::ports::transport::QuoteRequest;
use grooveseek::ports::transport::RebuildAnswer;
use grooveseek::ports::transport::Refused;
use grooveseek::ports::transport::Transport;
use grooveseek::ports::transport::TransportError;
use grooveseek::ports::transport::Unheard;
use grooveseek::ports::transport::Unopened;
use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::model::JsonObject;
use rmcp::model::ProgressNotificationParam;
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use rmcp::service::ClientServiceExt as _;
use rmcp::service::NotificationContext;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::Value;
use tokio::sync::Barrier;
use tokio::sync::Notify;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

macro_rules! transport_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            a_search_arrives_whole_and_so_does_its_answer,
            a_document_is_asked_for_and_handed_out,
            a_graph_is_asked_for_whole_and_so_is_its_answer,
            a_part_of_a_document_is_asked_for,
            the_topics_arrive_in_order,
            the_values_of_filters_arrive,
            best_practice_is_asked_for_and_handed_out,
            a_quote_is_asked_for_and_so_are_its_places,
            a_run_is_started_and_its_counters_come_back,
            the_progress_of_a_run_is_heard_up_to_the_last_step,
            a_refusal_arrives_word_for_word,
            a_refusal_ends_its_own_request_and_no_other,
            a_panic_ends_its_own_request_and_no_other,
            requests_of_one_client_are_worked_on_side_by_side,
            a_stop_waits_for_what_is_in_flight_and_has_it_answered,
            after_a_stop_nobody_is_served,
            serving_ends_well_when_the_client_has_gone,
            a_run_is_finished_even_if_its_client_has_gone,
        }
    };
}

transport_contract! { memory = super::in_memory }
transport_contract! { stdio = super::over_pipes_with_a_handshake }
transport_contract! { stdio_without_handshake = super::over_pipes_without_a_handshake }
transport_contract! { http = super::over_http_with_a_handshake }
transport_contract! { http_without_handshake = super::over_http_without_a_handshake }

/// A transport, and how to reach it once it serves.
struct Subject {
    transport: Box<dyn Transport>,
    connect: BoxFuture<'static, Box<dyn Client>>,
    /// Whether other clients may come, so that serving does not end with one.
    serves_many: bool,
}

type Make = fn() -> Subject;

/// What a client of any transport can do. Answers are compared as JSON, which
/// is all that some clients ever see.
#[async_trait]
trait Client: Send + Sync {
    async fn search(&self, request: SearchRequest) -> Result<Value, Failure>;
    async fn document(&self, request: DocumentRequest) -> Result<Value, Failure>;
    async fn graph(&self, request: GraphRequest) -> Result<Value, Failure>;
    async fn topics(&self) -> Result<Value, Failure>;
    async fn facets(&self) -> Result<Value, Failure>;
    async fn best_practice(&self, request: BestPracticeRequest) -> Result<Value, Failure>;
    async fn verify_quote(&self, request: QuoteRequest) -> Result<Value, Failure>;
    async fn rebuild(&self, force: bool, progress: Arc<dyn Progress>) -> Result<Value, Failure>;
    /// Breaks the connection without a word about the calls under way.
    async fn leave(&self);
}

#[derive(Debug, PartialEq)]
enum Failure {
    Refused(String),
    Closed,
}

fn in_memory() -> Subject {
    let (transport, client) = connection();
    let client: Box<dyn Client> = Box::new(client);
    let connect = Box::pin(async { client });
    Subject { transport: Box::new(transport), connect, serves_many: false }
}

fn over_pipes_with_a_handshake() -> Subject {
    over_pipes(ClientLifecycleMode::Initialize)
}

fn over_pipes_without_a_handshake() -> Subject {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    over_pipes(ClientLifecycleMode::Discover { preferred_versions })
}

fn over_pipes(lifecycle: ClientLifecycleMode) -> Subject {
    let (requests, input) = tokio::io::duplex(4096);
    let (output, answers) = tokio::io::duplex(4096);
    let connect = async {
        let listener = Progressing::default();
        let progress = Arc::clone(&listener.progress);
        let session = listener.serve_with_lifecycle((answers, requests), lifecycle).await.unwrap();
        Box::new(McpClient { session, progress }) as Box<dyn Client>
    };
    let transport = Box::new(StdioTransport::over(input, output));
    Subject { transport, connect: Box::pin(connect), serves_many: false }
}

fn over_http_with_a_handshake() -> Subject {
    over_http(ClientLifecycleMode::Initialize)
}

fn over_http_without_a_handshake() -> Subject {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    over_http(ClientLifecycleMode::Discover { preferred_versions })
}

fn over_http(lifecycle: ClientLifecycleMode) -> Subject {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.listening().address().unwrap();
    let transport = HttpTransport::new(listener, options(), Arc::new(Unwatched)).unwrap();
    let connect = async move {
        let listener = Progressing::default();
        let progress = Arc::clone(&listener.progress);
        let connection = StreamableHttpClientTransport::from_uri(format!("http://{address}/mcp"));
        let session = listener.serve_with_lifecycle(connection, lifecycle).await.unwrap();
        Box::new(McpClient { session, progress }) as Box<dyn Client>
    };
    Subject { transport: Box::new(transport), connect: Box::pin(connect), serves_many: true }
}

fn options() -> HttpOptions {
    HttpOptions {
        allowed_hosts: None,
        allowed_origins: None,
        healthz_public: true,
        max_sessions: Some(4),
        session_idle: Duration::from_mins(5),
        metrics: false,
        refuse_forwarded: false,
        header_timeout: None,
        body_timeout: None,
        idle_timeout: None,
        call_timeout: Some(Duration::from_mins(5)),
        drain_timeout: Duration::from_secs(30),
        max_in_flight: None,
        max_connections: None,
    }
}

struct Unwatched;

impl Monitor for Unwatched {
    fn status(&self) -> ServiceStatus {
        ServiceStatus::default()
    }
}

#[async_trait]
impl Client for MemoryClient {
    /// To drop the client is all that it can do.
    async fn leave(&self) {}

    async fn search(&self, request: SearchRequest) -> Result<Value, Failure> {
        let progress = Arc::new(Unheard);
        Self::search(self, request, progress)
            .await
            .map(|answer| json::search_answer(&answer))
            .map_err(why)
    }

    async fn document(&self, request: DocumentRequest) -> Result<Value, Failure> {
        Self::document(self, request).await.map(|answer| json::document(&answer)).map_err(why)
    }

    async fn facets(&self) -> Result<Value, Failure> {
        Self::facets(self).await.map(|facets| json::facets(&facets, 100)).map_err(why)
    }

    async fn best_practice(&self, request: BestPracticeRequest) -> Result<Value, Failure> {
        let answer = Self::best_practice(self, request).await;
        answer.map(|answer| json::best_practice(&answer)).map_err(why)
    }

    async fn verify_quote(&self, request: QuoteRequest) -> Result<Value, Failure> {
        let path = request.path.clone();
        let answer = Self::verify_quote(self, request).await;
        answer.map(|answer| json::quote(&path, &answer)).map_err(why)
    }

    async fn graph(&self, request: GraphRequest) -> Result<Value, Failure> {
        Self::graph(self, request).await.map(|graph| json::graph(&graph)).map_err(why)
    }

    async fn topics(&self) -> Result<Value, Failure> {
        Self::topics(self).await.map(|groups| json::topics(&groups)).map_err(why)
    }

    async fn rebuild(&self, force: bool, progress: Arc<dyn Progress>) -> Result<Value, Failure> {
        let answer = Self::rebuild(self, force, progress).await;
        answer.map(|answer| json::rebuild(&answer)).map_err(why)
    }
}

fn why(error: CallError) -> Failure {
    match error {
        CallError::Refused(refused) => Failure::Refused(refused.message),
        CallError::Closed => Failure::Closed,
    }
}

/// A client of the protocol's own SDK.
struct McpClient {
    session: RunningService<RoleClient, Progressing>,
    progress: Arc<Mutex<Option<Arc<dyn Progress>>>>,
}

#[derive(Clone, Default)]
struct Progressing {
    progress: Arc<Mutex<Option<Arc<dyn Progress>>>>,
}

impl ClientHandler for Progressing {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "these tests count to a few thousand"
    )]
    async fn on_progress(
        &self,
        steps: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(progress) = &*self.progress.lock().unwrap() {
            progress.advance(steps.progress as u64, steps.total.unwrap_or(0.0) as u64);
        }
    }
}

impl McpClient {
    async fn call(&self, tool: &'static str, arguments: Value) -> Result<Value, Failure> {
        let arguments = rmcp::model::object(arguments);
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.session.call_tool(request).await.map_err(|_| Failure::Closed)?;
        let text = result.content[0].as_text().unwrap().text.clone();
        let value: Value = serde_json::from_str(&text).unwrap();
        if result.is_error == Some(true) {
            return Err(Failure::Refused(value["error"].as_str().unwrap().to_owned()));
        }
        Ok(value)
    }
}

#[async_trait]
impl Client for McpClient {
    async fn leave(&self) {
        self.session.cancellation_token().cancel();
        while !self.session.peer().is_transport_closed() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn search(&self, request: SearchRequest) -> Result<Value, Failure> {
        self.call("search", Value::Object(arguments(&request))).await
    }

    async fn document(&self, request: DocumentRequest) -> Result<Value, Failure> {
        let DocumentRequest { path, offset, max_bytes } = request;
        let arguments = serde_json::json!({
            "path": path, "offset": offset, "max_bytes": max_bytes,
        });
        self.call("get_document", arguments).await
    }

    async fn facets(&self) -> Result<Value, Failure> {
        self.call("list_filters", serde_json::json!({})).await
    }

    async fn best_practice(&self, request: BestPracticeRequest) -> Result<Value, Failure> {
        let BestPracticeRequest { target, category } = request;
        let arguments = serde_json::json!({ "target": target, "category": category });
        self.call("get_best_practice", arguments).await
    }

    async fn verify_quote(&self, request: QuoteRequest) -> Result<Value, Failure> {
        let arguments = serde_json::json!({ "text": request.text, "path": request.path });
        self.call("verify_quote", arguments).await
    }

    async fn graph(&self, request: GraphRequest) -> Result<Value, Failure> {
        self.call("get_connection_graph", graph_arguments(&request)).await
    }

    async fn topics(&self) -> Result<Value, Failure> {
        self.call("list_topics", serde_json::json!({})).await
    }

    async fn rebuild(&self, force: bool, progress: Arc<dyn Progress>) -> Result<Value, Failure> {
        *self.progress.lock().unwrap() = Some(progress);
        self.call("rebuild_index", serde_json::json!({ "force": force })).await
    }
}

fn arguments(request: &SearchRequest) -> JsonObject {
    rmcp::model::object(serde_json::json!({
        "query": request.query,
        "limit": request.limit,
        "category": request.category,
        "topic": request.topic,
        "path_globs": request.path_globs,
        "tags_any": request.tags_any,
        "tags_all": request.tags_all,
        "date_from": request.date_from,
        "date_to": request.date_to,
        "fields": request.fields,
        "fields_not": request.fields_not,
        "min_quality": request.min_quality,
        "include_low_quality": request.include_low_quality,
        "rerank": request.rerank,
        "min_confidence_ratio": request.min_confidence_ratio,
        "mmr": request.mmr,
        "mmr_lambda": request.mmr_lambda,
        "mmr_same_doc_penalty": request.mmr_same_doc_penalty,
        "parent_retriever": request.parent_retriever,
    }))
}

fn graph_arguments(request: &GraphRequest) -> Value {
    serde_json::json!({
        "start": request.start,
        "depth": request.depth,
        "fan_out": request.fan_out,
        "min_similarity": request.min_similarity,
        "seed_strategy": request.seed_strategy,
        "dedup_by_path": request.dedup_by_path,
        "category": request.category,
        "topic": request.topic,
        "exclude_paths": request.exclude_paths,
        "max_nodes": request.max_nodes,
        "max_seed_chunks": request.max_seed_chunks,
        "path_globs": request.path_globs,
        "exclude_globs": request.exclude_globs,
        "tags_any": request.tags_any,
        "tags_all": request.tags_all,
        "date_from": request.date_from,
        "date_to": request.date_to,
        "fields": request.fields,
        "fields_not": request.fields_not,
        "min_quality": request.min_quality,
        "include_low_quality": request.include_low_quality,
        "order": request.order,
        "time_budget_ms": request.time_budget_ms,
    })
}

/// A service that does what its queries say.
struct Script {
    met: Barrier,
    begun: Notify,
    may_end: Notify,
    finished: Mutex<Vec<&'static str>>,
}

impl Script {
    fn new() -> Self {
        Self {
            met: Barrier::new(2),
            begun: Notify::new(),
            may_end: Notify::new(),
            finished: Mutex::default(),
        }
    }

    async fn wait_for_leave(&self, what: &'static str) {
        self.begun.notify_one();
        self.may_end.notified().await;
        self.finished.lock().unwrap().push(what);
    }
}

#[async_trait]
impl Handler for Script {
    async fn search(
        &self,
        request: SearchRequest,
        _progress: Arc<dyn Progress>,
    ) -> Result<SearchAnswer, Refused> {
        match request.query.as_str() {
            "refuse" => return Err(Refused { message: "\"refuse\" is\nrefused".into() }),
            "panic" => panic!("on purpose"),
            "meet" => _ = self.met.wait().await,
            "wait" => self.wait_for_leave("search").await,
            _ => {}
        }
        Ok(answer_to(&request))
    }

    async fn document(&self, request: DocumentRequest) -> Result<DocumentAnswer, Refused> {
        Ok(document_for(&request))
    }

    async fn facets(&self) -> Result<Facets, Refused> {
        Ok(facets())
    }

    async fn best_practice(
        &self,
        request: BestPracticeRequest,
    ) -> Result<BestPracticeAnswer, Refused> {
        Ok(practice_for(request))
    }

    async fn verify_quote(&self, request: QuoteRequest) -> Result<QuoteAnswer, Refused> {
        Ok(places_for(&request))
    }

    fn asks_outside(&self) -> bool {
        false
    }

    fn library(&self) -> Arc<dyn Library> {
        Arc::new(NoLibrary)
    }

    async fn graph(&self, request: GraphRequest) -> Result<Graph, Refused> {
        Ok(graph_around(&request))
    }

    async fn topics(&self) -> Result<Vec<TopicGroup>, Refused> {
        Ok(groups())
    }

    async fn rebuild(
        &self,
        force: bool,
        progress: Arc<dyn Progress>,
    ) -> Result<RebuildAnswer, Refused> {
        if force {
            self.wait_for_leave("rebuild").await;
        }
        for done in 1..=STEPS {
            progress.advance(done, STEPS);
            if done % 1000 == 0 {
                tokio::time::sleep(Duration::from_millis(120)).await;
            }
        }
        Ok(counters(force))
    }
}

const STEPS: u64 = 2500;

/// An answer that repeats the whole request.
fn answer_to(request: &SearchRequest) -> SearchAnswer {
    let hit = Hit {
        score: 0.032_786_883,
        path: "a/b.md".into(),
        title: Some("日本語 🦀".into()),
        heading: None,
        topic: None,
        date: None,
        tags: vec!["x".into()],
        content: format!("{request:?}\n\u{2028}\u{0}"),
        match_spans: Some(Vec::new()),
        highlights: Some(Vec::new()),
        expanded_from: None,
        lines: None,
        symbol_kind: None,
        uri: None,
        chunk_index: 0,
        document_chunks: 1,
        matched_by: vec!["vector"],
        ..Hit::default()
    };
    SearchAnswer { hits: vec![hit], low_confidence: true, ..SearchAnswer::default() }
}

fn document_for(request: &DocumentRequest) -> DocumentAnswer {
    DocumentAnswer {
        path: request.path.clone(),
        metadata: Metadata { title: Some("T".into()), ..Metadata::default() },
        // More than any buffer of a transport holds.
        content: "line\r\n".repeat(100_000),
        offset: request.offset,
        next_offset: request.max_bytes,
        uri: Some("kb://doc/a.md".into()),
        indexed: Some(false),
        size_bytes: 7,
        modified: Some("2026-01-01T00:00:00Z".into()),
        ..DocumentAnswer::default()
    }
}

fn facets() -> Facets {
    Facets { documents: 3, tags: vec![("日本".into(), 2)], ..Facets::default() }
}

fn practice_for(request: BestPracticeRequest) -> BestPracticeAnswer {
    let BestPracticeRequest { target, category } = request;
    BestPracticeAnswer { target, category, content: "## A\n\u{2028}".into() }
}

/// A place whose citation is the quote.
fn places_for(request: &QuoteRequest) -> QuoteAnswer {
    let place = QuotePlace {
        path: request.path.clone(),
        lines: LineRange { start: 1, end: 2 },
        start: 0,
        end: request.text.len(),
        cite: request.text.clone(),
        uri: None,
    };
    QuoteAnswer { places: vec![place], is_exact: true }
}

/// A library that holds nothing; what is in one has tests of its own.
struct NoLibrary;

#[async_trait]
impl Library for NoLibrary {
    async fn groups(&self) -> Result<Vec<ResourceGroup>, Refused> {
        Ok(Vec::new())
    }

    async fn open(&self, path: &DocumentPath) -> Result<DocumentAnswer, Unopened> {
        Err(Unopened::NotFound(Refused { message: path.to_string() }))
    }

    async fn complete(&self, _what: Completable, _start: &str) -> Result<Vec<String>, Refused> {
        Ok(Vec::new())
    }

    fn listen(&self, _listener: Weak<dyn grooveseek::ports::transport::Listener>) -> bool {
        false
    }
}

/// A graph that repeats the whole request.
fn graph_around(request: &GraphRequest) -> Graph {
    let node = Node {
        parent: None,
        depth: 0,
        chunk: ChunkId(7),
        score: 0.032_786_883,
        path: request.start.clone(),
        heading: Some("日本語 🦀".into()),
        title: None,
        topic: None,
        snippet: format!("{request:?}\n\u{2028}\u{0}"),
        lines: None,
        symbol_kind: None,
        uri: None,
    };
    Graph { start_path: request.start.clone(), nodes: vec![node], ..Graph::default() }
}

fn groups() -> Vec<TopicGroup> {
    let folder = TopicFolder { segment: "x".into(), file_count: 1, children: Vec::new() };
    let named = TopicGroup {
        category: Some("c".into()),
        file_count: 2,
        children: vec![folder],
        ..TopicGroup::default()
    };
    vec![TopicGroup::default(), named]
}

fn counters(force: bool) -> RebuildAnswer {
    RebuildAnswer { updated: 7, skipped: u64::from(force), ..RebuildAnswer::default() }
}

fn asking(query: &str) -> SearchRequest {
    SearchRequest { query: query.into(), ..SearchRequest::default() }
}

fn expected(query: &str) -> Value {
    json::search_answer(&answer_to(&asking(query)))
}

/// A transport that serves, and the client that it serves.
struct Served {
    client: Arc<dyn Client>,
    script: Arc<Script>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), TransportError>>,
    serves_many: bool,
}

impl Served {
    async fn new(make: Make) -> Self {
        let Subject { transport, connect, serves_many } = make();
        let script = Arc::new(Script::new());
        let handler = Arc::clone(&script);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            // A sender that is dropped has not been used: that is no stop.
            let stop = async {
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            transport.serve(handler, Box::pin(stop)).await
        });
        Self { client: connect.await.into(), script, stop, serving, serves_many }
    }

    /// Lets the client go, and says so where serving does not end with it.
    fn leave(self) -> (Arc<Script>, JoinHandle<Result<(), TransportError>>) {
        drop(self.client);
        if self.serves_many {
            self.stop.send(()).unwrap();
        }
        (self.script, self.serving)
    }

    /// Sends a search and waits until it is worked on.
    async fn search_that_waits(&self) -> JoinHandle<Result<Value, Failure>> {
        let client = Arc::clone(&self.client);
        let call = tokio::spawn(async move { client.search(asking("wait")).await });
        self.script.begun.notified().await;
        call
    }
}

/// Runs one case; one that hangs fails.
fn run(case: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        tokio::time::timeout(Duration::from_mins(1), case).await.expect("the case hangs");
    });
}

fn a_search_arrives_whole_and_so_does_its_answer(make: Make) {
    let fields = BTreeMap::from([("status".to_owned(), vec!["open".to_owned(), "new".to_owned()])]);
    let request = SearchRequest {
        query: "\"再ランキング\" -async \\ \u{0}".into(),
        limit: Some(u32::MAX),
        category: Some("c".into()),
        topic: Some("t".into()),
        path_globs: Some(vec!["docs/**".into()]),
        tags_any: vec!["a".into()],
        tags_all: vec!["b".into()],
        date_from: Some("2026-01-01".into()),
        date_to: Some("soon".into()),
        fields: fields.clone(),
        fields_not: fields,
        min_quality: Some(0.1),
        include_low_quality: true,
        rerank: Some(false),
        min_confidence_ratio: Some(1.7),
        mmr: Some(true),
        mmr_lambda: Some(0.3),
        mmr_same_doc_penalty: Some(0.2),
        parent_retriever: Some(true),
    };
    run(async {
        let served = Served::new(make).await;
        let answer = served.client.search(request.clone()).await;
        assert_eq!(answer, Ok(json::search_answer(&answer_to(&request))));
    });
}

fn a_document_is_asked_for_and_handed_out(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let request = DocumentRequest::whole("日本/語 b.md");
        let answer = served.client.document(request.clone()).await;
        assert_eq!(answer, Ok(json::document(&document_for(&request))));
    });
}

// MCP-B06
fn a_part_of_a_document_is_asked_for(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let request =
            DocumentRequest { path: "a.md".into(), offset: Some(5), max_bytes: Some(1 << 20) };
        let answer = served.client.document(request.clone()).await;
        assert_eq!(answer, Ok(json::document(&document_for(&request))));
    });
}

// MCP-B04
fn the_values_of_filters_arrive(make: Make) {
    run(async {
        let served = Served::new(make).await;
        assert_eq!(served.client.facets().await, Ok(json::facets(&facets(), 100)));
    });
}

// MCP-45
fn best_practice_is_asked_for_and_handed_out(make: Make) {
    run(async {
        let served = Served::new(make).await;
        for category in [None, Some("日本".to_owned())] {
            let request = BestPracticeRequest { target: "a/b \"c\"".into(), category };
            let answer = served.client.best_practice(request.clone()).await;
            assert_eq!(answer, Ok(json::best_practice(&practice_for(request))));
        }
    });
}

fn a_quote_is_asked_for_and_so_are_its_places(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let request = QuoteRequest { text: "全文\n\"検索\"".into(), path: "a b.md".into() };
        let answer = served.client.verify_quote(request.clone()).await;
        assert_eq!(answer, Ok(json::quote("a b.md", &places_for(&request))));
    });
}

// MCP-59
fn a_graph_is_asked_for_whole_and_so_is_its_answer(make: Make) {
    let fields = BTreeMap::from([("status".to_owned(), vec!["open".to_owned(), "new".to_owned()])]);
    let request = GraphRequest {
        start: "日本/語 b.md".into(),
        depth: Some(1),
        fan_out: Some(u32::MAX),
        min_similarity: Some(0.25),
        seed_strategy: Some("centroid".into()),
        dedup_by_path: true,
        category: Some("c".into()),
        topic: Some("t".into()),
        exclude_paths: vec!["a,b.md".into()],
        max_nodes: Some(0),
        max_seed_chunks: Some(7),
        path_globs: Some(vec!["docs/**".into()]),
        exclude_globs: vec!["docs/draft/**".into()],
        tags_any: vec!["a".into()],
        tags_all: vec!["b".into()],
        date_from: Some("2026-01-01".into()),
        date_to: Some("soon".into()),
        fields: fields.clone(),
        fields_not: fields,
        min_quality: Some(0.1),
        include_low_quality: true,
        order: Some("best_first".into()),
        time_budget_ms: Some(9),
    };
    run(async {
        let served = Served::new(make).await;
        let answer = served.client.graph(request.clone()).await;
        assert_eq!(answer, Ok(json::graph(&graph_around(&request))));
    });
}

fn the_topics_arrive_in_order(make: Make) {
    run(async {
        let served = Served::new(make).await;
        assert_eq!(served.client.topics().await, Ok(json::topics(&groups())));
    });
}

#[derive(Default)]
struct Heard(Mutex<Vec<(u64, u64)>>);

impl Progress for Heard {
    fn advance(&self, done: u64, total: u64) {
        self.0.lock().unwrap().push((done, total));
    }
}

fn a_run_is_started_and_its_counters_come_back(make: Make) {
    run(async {
        let served = Served::new(make).await;
        served.script.may_end.notify_one();
        for force in [false, true] {
            let answer = served.client.rebuild(force, Arc::new(Heard::default())).await;
            assert_eq!(answer, Ok(json::rebuild(&counters(force))));
        }
    });
}

// MCP-B11
fn the_progress_of_a_run_is_heard_up_to_the_last_step(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let heard = Arc::new(Heard::default());
        served.client.rebuild(false, Arc::clone(&heard) as Arc<dyn Progress>).await.unwrap();
        // A client may hear of the last step a moment after the answer.
        while heard.0.lock().unwrap().last() != Some(&(STEPS, STEPS)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let heard = heard.0.lock().unwrap();
        assert!(heard.len() >= 3, "{heard:?}");
        assert!(heard.is_sorted(), "{heard:?}");
    });
}

fn a_refusal_arrives_word_for_word(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let refused = Failure::Refused("\"refuse\" is\nrefused".into());
        assert_eq!(served.client.search(asking("refuse")).await, Err(refused));
    });
}

fn a_refusal_ends_its_own_request_and_no_other(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let other = served.search_that_waits().await;
        assert!(served.client.search(asking("refuse")).await.is_err());
        served.script.may_end.notify_one();
        assert_eq!(other.await.unwrap(), Ok(expected("wait")));
        assert_eq!(served.client.search(asking("next")).await, Ok(expected("next")));
    });
}

// MCP-07 SRCH-184
fn a_panic_ends_its_own_request_and_no_other(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let other = served.search_that_waits().await;
        let outcome = served.client.search(asking("panic")).await;
        assert!(matches!(outcome, Err(Failure::Refused(_))), "{outcome:?}");
        served.script.may_end.notify_one();
        assert_eq!(other.await.unwrap(), Ok(expected("wait")));
        assert_eq!(served.client.search(asking("next")).await, Ok(expected("next")));
    });
}

// MCP-88
fn requests_of_one_client_are_worked_on_side_by_side(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let (first, second) = tokio::join!(
            served.client.search(asking("meet")),
            served.client.search(asking("meet"))
        );
        assert_eq!(first, Ok(expected("meet")));
        assert_eq!(second, Ok(expected("meet")));
    });
}

fn a_stop_waits_for_what_is_in_flight_and_has_it_answered(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let call = served.search_that_waits().await;
        served.stop.send(()).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!served.serving.is_finished());
        served.script.may_end.notify_one();
        assert_eq!(call.await.unwrap(), Ok(expected("wait")));
        served.serving.await.unwrap().unwrap();
    });
}

fn after_a_stop_nobody_is_served(make: Make) {
    run(async {
        let served = Served::new(make).await;
        served.client.topics().await.unwrap();
        served.stop.send(()).unwrap();
        served.serving.await.unwrap().unwrap();
        assert_eq!(served.client.topics().await, Err(Failure::Closed));
    });
}

// HTTP-13
fn serving_ends_well_when_the_client_has_gone(make: Make) {
    run(async {
        let served = Served::new(make).await;
        served.client.topics().await.unwrap();
        let (_script, serving) = served.leave();
        serving.await.unwrap().unwrap();
    });
}

// MCP-89
fn a_run_is_finished_even_if_its_client_has_gone(make: Make) {
    run(async {
        let served = Served::new(make).await;
        let client = Arc::clone(&served.client);
        let call = tokio::spawn(async move {
            client.rebuild(true, Arc::new(Heard::default())).await.map(drop)
        });
        served.script.begun.notified().await;
        // A call that is given up while the connection lasts would be cancelled.
        served.client.leave().await;
        call.abort();
        drop(call.await);
        let (script, serving) = served.leave();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!serving.is_finished());
        script.may_end.notify_one();
        serving.await.unwrap().unwrap();
        assert_eq!(*script.finished.lock().unwrap(), ["rebuild"]);
    });
}
