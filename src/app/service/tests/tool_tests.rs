//! The tool `search` from the wire to the index: what it refuses, and how.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use super::service;
use crate::adapters::transport::stdio::StdioTransport;
use crate::app::model::{Model, RerankerModel};
use crate::app::search::Searcher;
use crate::app::search::tests::observed::{Asked, Observed};
use crate::app::service::Service;
use crate::app::testing::Bench;
use crate::ports::chunk_store::Change;
use crate::ports::embedder::EmbedError;
use crate::ports::reranker::RerankError;
use crate::ports::transport::Transport as _;

/// A client of a service.
struct Client {
    requests: DuplexStream,
    answers: Lines<BufReader<DuplexStream>>,
}

impl Client {
    async fn new(service: Service) -> Self {
        let (requests, input) = tokio::io::duplex(1 << 16);
        let (output, answers) = tokio::io::duplex(1 << 16);
        let transport = StdioTransport::over(input, output);
        tokio::spawn(async move {
            transport.serve(Arc::new(service), Box::pin(std::future::pending())).await
        });
        let mut client = Self { requests, answers: BufReader::new(answers).lines() };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        });
        client.ask("initialize", &hello).await;
        client
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.requests.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        serde_json::from_str(&self.answers.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn search(&mut self, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": "search", "arguments": arguments })).await
    }

    /// The text of an error envelope.
    async fn refusal(&mut self, arguments: &Value) -> String {
        let answer = self.search(arguments).await;
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{arguments}: {answer}");
        let envelope: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(envelope.as_object().unwrap().len(), 1, "{envelope}");
        envelope["error"].as_str().unwrap().to_owned()
    }

    async fn assert_answers(&mut self, arguments: &Value) {
        let answer = self.search(arguments).await;
        assert_eq!(answer["result"]["isError"], false, "{arguments}: {answer}");
        assert!(answer["result"]["structuredContent"]["results"].is_array(), "{answer}");
    }
}

async fn bench() -> Bench {
    let bench = Bench::new(&[("a/tides.md", super::TEXT)]);
    bench.run().await;
    bench
}

// SRCH-180 SRCH-181 SRCH-10 SRCH-15 SRCH-16 SRCH-23 SRCH-24 SRCH-47 SRCH-95 SRCH-106
#[tokio::test]
async fn a_request_over_its_limits_is_answered_with_what_was_given_and_what_may_be() {
    let mut client = Client::new(service(&bench().await)).await;
    let many = vec!["x"; 65];
    let huge = vec!["x"; 5000];
    let long = "y".repeat(1025);
    let keys: Map<String, Value> = (0..65).map(|n| (n.to_string(), json!(["v"]))).collect();
    for (arguments, words) in [
        (json!({ "query": "é".repeat(513) }), &["query", "1026", "1024"][..]),
        (json!({ "query": "-tide" }), &["query", "only excludes", "quotes"]),
        (json!({ "query": "q", "mmr_lambda": 1.5 }), &["mmr_lambda", "1.5", "between 0 and 1"]),
        (json!({ "query": "q", "mmr_lambda": -1e300 }), &["mmr_lambda", "between 0 and 1"]),
        (
            json!({ "query": "q", "mmr_same_doc_penalty": -0.1 }),
            &["mmr_same_doc_penalty", "-0.1", "between 0 and 1"],
        ),
        (json!({ "query": "q", "path_globs": [] }), &["path_globs", "[]", "**"]),
        (json!({ "query": "q", "path_globs": ["a/[b"] }), &["path_globs", "a/[b"]),
        (json!({ "query": "q", "path_globs": many }), &["path_globs", "65", "64"]),
        (json!({ "query": "q", "path_globs": [long] }), &["path_globs", "1025", "1024"]),
        (json!({ "query": "q", "tags_any": many }), &["tags_any", "65", "64"]),
        (json!({ "query": "q", "tags_all": huge }), &["tags_all", "5000", "64"]),
        (json!({ "query": "q", "tags_all": [long] }), &["tags_all", "1025", "1024"]),
        (json!({ "query": "q", "fields": keys }), &["fields", "65", "64"]),
        (json!({ "query": "q", "fields": { "": ["v"] } }), &["fields", "empty key"]),
        (json!({ "query": "q", "fields": { "k": [""] } }), &["fields.k", "empty value"]),
        (json!({ "query": "q", "fields_not": { "k": many } }), &["fields_not.k", "65", "64"]),
        (json!({ "query": "q", "fields_not": { "k": [long] } }), &["fields_not.k", "1025"]),
        (json!({ "query": "q", "fields_not": { long.clone(): ["v"] } }), &["fields_not", "1024"]),
    ] {
        let text = client.refusal(&arguments).await;
        for word in words {
            assert!(text.contains(word), "{text:?} does not say {word:?}");
        }
    }
    client.assert_answers(&json!({ "query": "é".repeat(512) })).await;
}

fn searching(bench: &Bench, change: impl FnOnce(&mut Searcher)) -> Service {
    let mut service = service(bench);
    change(&mut service.searcher);
    service
}

fn failing_model(bench: &Bench, error: fn() -> EmbedError) -> Arc<Model> {
    let identity = bench.indexer.model.identity().clone();
    let load = move || Box::pin(async move { Err(error()) }) as std::pin::Pin<Box<_>>;
    Arc::new(Model::new(identity, Box::new(load)))
}

fn remote() -> EmbedError {
    EmbedError::Remote {
        what: "https://host.example/v1/secret-path?key=s3cret".to_owned(),
        reason: "answered HTTP 503".to_owned(),
        answer: Some("the body of the endpoint".to_owned()),
    }
}

fn unavailable() -> EmbedError {
    EmbedError::Unavailable { what: "/models/secret".to_owned(), source: "no such file".into() }
}

fn broken_reranker() -> Arc<RerankerModel> {
    let load = || {
        let model = "bge-base".to_owned();
        let error = RerankError::Unavailable { model, source: "/secret is damaged".into() };
        Box::pin(async move { Err(error) }) as std::pin::Pin<Box<_>>
    };
    Arc::new(RerankerModel::new("bge-base", Box::new(load)))
}

// SRCH-180 SRCH-181 SRCH-107 SRCH-116
#[tokio::test]
async fn a_failure_is_the_envelope_and_shows_nothing_of_the_server() {
    let bench = bench().await;
    let asked = Arc::<Asked>::default();
    let watched = Observed { store: Arc::clone(&bench.indexer.store), asked: Arc::clone(&asked) };
    asked.fails.store(true, Ordering::Relaxed);
    let services = [
        (
            searching(&bench, |it| it.model = failing_model(&bench, remote)),
            &["could not be embedded", "HTTP 503"][..],
        ),
        (
            searching(&bench, |it| it.model = failing_model(&bench, unavailable)),
            &["could not be embedded"],
        ),
        (searching(&bench, |it| it.reranker = Some(broken_reranker())), &["reranked"]),
        (searching(&bench, |it| it.store = Arc::new(watched)), &["index", "rebuild_index"]),
    ];
    for (service, words) in services {
        let mut client = Client::new(service).await;
        // Without a word only the model can answer; a wish waits for a reranker.
        let text = client.refusal(&json!({ "query": "?!", "rerank": true })).await;
        for word in words {
            assert!(text.contains(word), "{text:?} does not say {word:?}");
        }
        for word in ["secret", "s3cret", "body", "host.example", "no such file"] {
            assert!(!text.contains(word), "{text:?} says {word:?}");
        }
    }
    bench.indexer.store.apply(vec![Change::Declare(None)]).await.unwrap();
    let mut client = Client::new(service(&bench)).await;
    let text = client.refusal(&json!({ "query": "q", "fields": { "k": ["v"] } })).await;
    assert!(text.contains("groove index"), "{text}");
    client.assert_answers(&json!({ "query": "q", "fields": {} })).await;
}

const PARAMETERS: [(&str, &str); 19] = [
    ("query", "text"),
    ("limit", "count"),
    ("category", "text"),
    ("topic", "text"),
    ("path_globs", "texts"),
    ("tags_any", "texts"),
    ("tags_all", "texts"),
    ("date_from", "text"),
    ("date_to", "text"),
    ("fields", "lists"),
    ("fields_not", "lists"),
    ("min_quality", "number"),
    ("include_low_quality", "flag"),
    ("rerank", "flag"),
    ("min_confidence_ratio", "number"),
    ("mmr", "flag"),
    ("mmr_lambda", "number"),
    ("mmr_same_doc_penalty", "number"),
    ("parent_retriever", "flag"),
];

// SRCH-183 SRCH-27 MCP-12
#[tokio::test]
async fn each_parameter_takes_its_own_type_and_null_and_nothing_else() {
    let mut client = Client::new(service(&bench().await)).await;
    let values = [
        ("text", json!("tide")),
        ("count", json!(3)),
        ("number", json!(0.5)),
        ("flag", json!(true)),
        ("texts", json!(["*"])),
        ("lists", json!({ "k": ["v"] })),
        ("null", Value::Null),
        ("other", json!([["a"]])),
        ("other", json!({ "k": { "k": ["v"] } })),
        ("other", json!({ "k": "v" })),
        ("other", json!([1, "a", null])),
    ];
    for (name, kind) in PARAMETERS {
        for (given, value) in &values {
            let mut arguments = json!({ "query": "tide" });
            arguments[name] = value.clone();
            let fits = *given == kind
                || (*given == "count" && kind == "number" && name != "limit")
                || (*given == "null" && name != "query");
            let is_share = kind == "number" && *given == "count" && name.starts_with("mmr");
            let answer = client.search(&arguments).await;
            if fits {
                assert_eq!(answer["result"]["isError"], is_share, "{arguments}: {answer}");
            } else {
                assert_eq!(answer["error"]["code"], -32602, "{arguments}: {answer}");
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(message.contains(&format!("`{name}`")), "{message}");
            }
        }
    }
    client.assert_answers(&json!({ "query": "tide" })).await;
}

// SRCH-183 SRCH-191 SRCH-11
#[tokio::test]
async fn odd_numbers_and_sizes_do_no_harm() {
    let mut client = Client::new(service(&bench().await)).await;
    for arguments in [
        json!({ "query": "tide", "limit": 0 }),
        json!({ "query": "tide", "limit": u32::MAX }),
        json!({ "query": "tide", "limit": 4.0 }),
        json!({ "query": "tide", "min_quality": -1e308 }),
        json!({ "query": "tide", "min_quality": 1e308 }),
        json!({ "query": "tide", "min_confidence_ratio": -5 }),
        json!({ "query": "tide", "min_confidence_ratio": 1e308 }),
        json!({ "query": "tide", "date_from": "x".repeat(100_000), "date_to": "" }),
        json!({ "query": "tide", "category": "", "topic": "\u{0}" }),
        json!({ "query": "\u{0}\u{feff}\u{202e} tide", "mmr": true, "mmr_lambda": 0 }),
        json!({ "query": "tide", "unknown": vec![json!({}); 10_000] }),
    ] {
        client.assert_answers(&arguments).await;
    }
    for arguments in [
        json!({ "query": "tide", "limit": -0.5 }),
        json!({ "query": "tide", "limit": 1e10 }),
        json!({ "query": "tide", "path_globs": [["a"], vec!["b"; 10_000]] }),
    ] {
        assert_eq!(client.search(&arguments).await["error"]["code"], -32602);
    }
}
