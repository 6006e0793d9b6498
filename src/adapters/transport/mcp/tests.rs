//! MCP as a client sees it that speaks it by hand, line by line.

mod sample;
mod surface;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncBufReadExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::io::BufReader;
use tokio::io::DuplexStream;
use tokio::io::Lines;
use tokio::task::JoinHandle;

use crate::adapters::transport::stdio::StdioTransport;
use crate::domain::document::DocumentPath;
use crate::ports::transport::News;
use crate::ports::transport::Transport as _;
use crate::ports::transport::TransportError;
use sample::Sample;
use sample::SampleLibrary;

/// The client's side of a connection that is being served.
struct Session {
    sample: Arc<Sample>,
    requests: DuplexStream,
    answers: Lines<BufReader<DuplexStream>>,
    serving: JoinHandle<Result<(), TransportError>>,
}

impl Session {
    /// Connects without saying anything yet.
    fn silent() -> Self {
        Self::silent_with(Sample::default())
    }

    fn silent_with(sample: Sample) -> Self {
        let (requests, input) = tokio::io::duplex(1 << 16);
        let (output, answers) = tokio::io::duplex(1 << 16);
        let transport = StdioTransport::over(input, output);
        let sample = Arc::new(sample);
        let handler = Arc::clone(&sample);
        let serving = tokio::spawn(async move {
            transport.serve(handler, Box::pin(std::future::pending())).await
        });
        Self { sample, requests, answers: BufReader::new(answers).lines(), serving }
    }

    /// Connects and shakes hands.
    async fn new() -> Self {
        Self::shaken(Self::silent()).await
    }

    /// Connects to a server that watches its documents, and shakes hands.
    async fn watched() -> Self {
        Self::shaken(Self::silent_watched()).await
    }

    fn silent_watched() -> Self {
        let library = SampleLibrary { is_watched: true, ..SampleLibrary::default() };
        Self::silent_with(Sample { library: Arc::new(library), ..Sample::default() })
    }

    async fn shaken(mut session: Self) -> Self {
        session.send(&initialize("2025-11-25")).await;
        session.receive().await;
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        session
    }

    async fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes()).await;
    }

    async fn send_bytes(&mut self, line: &[u8]) {
        self.requests.write_all(line).await.unwrap();
        self.requests.write_all(b"\n").await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.answers.next_line())
            .await
            .expect("no answer comes")
            .unwrap()
            .expect("the session has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request and returns the next message.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&request(1, method, &params)).await;
        self.receive().await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    async fn assert_alive(&mut self) {
        let answer = self.call("search", json!({ "query": "q" })).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn initialize(revision: &str) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    request(0, "initialize", &params)
}

/// What every request carries on the revision without a handshake.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

// MCP-01 MCP-02 MCP-04 MCP-B01
#[tokio::test]
async fn the_server_names_itself_and_only_what_it_can_do() {
    let mut session = Session::silent();
    session.send(&initialize("2025-11-25")).await;
    let greeting = session.receive().await;
    let info = &greeting["result"]["serverInfo"];
    assert_eq!(info["name"], "grooveseek");
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(info["icons"][0]["src"].as_str().unwrap().starts_with("data:image/svg+xml,"));
    // Nobody watches, so nothing is announced.
    let declared =
        json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {} });
    assert_eq!(greeting["result"]["capabilities"], declared);

    let mut stateless = Session::silent();
    let found = stateless.ask("server/discover", json!({ "_meta": meta() })).await;
    let result = &found["result"];
    assert_eq!(result["capabilities"], declared);
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"],
        greeting["result"]["serverInfo"]
    );
    assert_eq!(result["instructions"], greeting["result"]["instructions"]);
    assert!(result["instructions"].as_str().is_some_and(|text| text.contains("`search`")));
}

// MCP-03
#[tokio::test]
async fn a_handshake_agrees_on_the_revision_asked_for_or_on_the_newest() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut session = Session::silent();
        session.send(&initialize(asked)).await;
        assert_eq!(session.receive().await["result"]["protocolVersion"], agreed, "{asked}");
        session.assert_alive().await;
    }
}

// MCP-03 HTTP-11
#[tokio::test]
async fn the_newest_revision_needs_no_handshake() {
    let mut session = Session::silent();
    let found = session.ask("server/discover", json!({ "_meta": meta() })).await;
    assert_eq!(
        found["result"]["supportedVersions"],
        json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
    );
    let params = json!({ "name": "search", "arguments": { "query": "q" }, "_meta": meta() });
    let answer = session.ask("tools/call", params.clone()).await;
    assert_eq!(answer["result"]["structuredContent"]["results"][0]["path"], "a.md");
    assert_eq!(answer["result"]["resultType"], "complete");

    // And without looking first.
    let answer = Session::silent().ask("tools/call", params).await;
    assert_eq!(answer["result"]["isError"], false);
}

// MCP-05 MCP-06
#[tokio::test]
async fn the_list_of_tools_is_one_page_that_is_stale_at_once() {
    let mut session = Session::silent();
    let list = session.ask("tools/list", json!({ "_meta": meta(), "cursor": "x" })).await;
    let result = &list["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["ttlMs"], 0);
    assert_eq!(result["cacheScope"], "public");
    assert_eq!(result.get("nextCursor"), None);
    let names: Vec<&str> =
        result["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, crate::adapters::transport::mcp::tools::NAMES);
}

// MCP-08 MCP-B02 MCP-B03
#[tokio::test]
async fn a_tool_is_listed_with_its_schemas_and_annotations() {
    let mut session = Session::new().await;
    let list = session.ask("tools/list", json!({})).await;
    for tool in list["result"]["tools"].as_array().unwrap() {
        for member in
            ["title", "description", "inputSchema", "outputSchema", "annotations", "icons"]
        {
            assert!(tool.get(member).is_some(), "{member} of {}", tool["name"]);
        }
    }
}

// MCP-B03
#[tokio::test]
async fn structured_content_satisfies_the_output_schema_and_equals_the_text() {
    let mut session = Session::new().await;
    let list = session.ask("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap().clone();
    for (name, arguments) in [
        ("search", json!({ "query": "q" })),
        ("search", json!({ "query": "full" })),
        ("get_document", json!({ "path": "a.md" })),
        ("get_connection_graph", json!({ "start": "a.md" })),
        ("get_connection_graph", json!({ "start": "full.md", "depth": 99 })),
        ("get_document", json!({ "path": "a.md", "offset": 0, "max_bytes": 4 })),
        ("get_document", json!({ "path": "long.md", "max_tokens": 300 })),
        ("search", json!({ "query": "long", "detail": "snippets", "max_tokens": 700 })),
        ("search", json!({ "query": "long", "detail": "ids" })),
        ("list_topics", json!({})),
        ("list_topics", json!({ "max_titles": 1 })),
        ("list_filters", json!({})),
        ("list_filters", json!({ "limit": 1 })),
        ("get_best_practice", json!({ "target": "rust" })),
        ("get_best_practice", json!({ "target": "rust", "category": "a" })),
        ("verify_quote", json!({ "text": "q", "path": "a.md" })),
        ("rebuild_index", json!({})),
        ("rebuild_index", json!({ "force": true })),
    ] {
        let schema = &tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"];
        let answer = session.call(name, arguments).await;
        let result = &answer["result"];
        let structured = &result["structuredContent"];
        assert!(structured.is_object(), "{name}: {answer}");
        check(structured, schema, schema, name);
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        let text = result["content"][0]["text"].as_str().unwrap();
        let said: Value = serde_json::from_str(text).unwrap();
        let unwrapped = if name == "list_topics" { &structured["topics"] } else { structured };
        assert_eq!(&said, unwrapped);
        assert_eq!(text, format!("{said:#}"));
        assert_eq!(result["isError"], false);
    }
}

/// Checks a value against the parts of JSON Schema that the tools use; refuses
/// parts that it does not know, and members that the schema does not name.
fn check(value: &Value, schema: &Value, root: &Value, at: &str) {
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$defs" | "description" => {}
            "type" => {
                let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                assert!(kinds.iter().any(|kind| is(value, kind)), "{at}: {value} is no {rule}");
            }
            "enum" => assert!(rule.as_array().unwrap().contains(value), "{at}: {value}"),
            "minimum" => assert!(value.as_f64() >= rule.as_f64(), "{at}: {value}"),
            "required" => {
                for name in rule.as_array().unwrap() {
                    assert!(value.get(name.as_str().unwrap()).is_some(), "{at}: no {name}");
                }
            }
            "properties" => {
                for (name, member) in value.as_object().unwrap() {
                    let rule = rule.get(name).unwrap_or_else(|| panic!("{at}: unnamed {name}"));
                    check(member, rule, root, &format!("{at}.{name}"));
                }
            }
            "additionalProperties" => {
                for (name, member) in value.as_object().unwrap() {
                    check(member, rule, root, &format!("{at}.{name}"));
                }
            }
            "items" => {
                for (index, item) in value.as_array().unwrap().iter().enumerate() {
                    check(item, rule, root, &format!("{at}[{index}]"));
                }
            }
            unknown => panic!("{at}: this check does not know `{unknown}`"),
        }
    }
}

fn is(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        unknown => panic!("no such type: {unknown}"),
    }
}

// MCP-11 MCP-16 MCP-30 SRCH-176 SRCH-180
#[tokio::test]
async fn a_refused_call_is_a_result_that_holds_the_error_alone() {
    let mut session = Session::new().await;
    for (tool, arguments, message) in [
        ("search", json!({ "query": "refuse" }), "refused"),
        ("get_document", json!({ "path": "b.md" }), "not found"),
    ] {
        let answer = session.call(tool, arguments).await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({ "error": message }));
        assert_eq!(result["isError"], true);
        assert_eq!(result.get("structuredContent"), None);
    }
}

// MCP-16 MCP-53
#[tokio::test]
async fn an_error_beside_counters_is_no_failed_call() {
    let mut session = Session::new().await;
    let answer = session.call("rebuild_index", json!({ "force": true })).await;
    assert_eq!(answer["result"]["isError"], false);
    assert_eq!(answer["result"]["structuredContent"]["error"], "one file is not in the index");
    assert_eq!(answer["result"]["structuredContent"]["updated"], 0);
}

// MCP-07 SRCH-180 SRCH-184
#[tokio::test]
async fn a_panic_is_answered_with_the_envelope_and_the_session_lives_on() {
    let mut session = Session::new().await;
    let answer = session.call("search", json!({ "query": "panic" })).await;
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("internal error") && !text.contains("on purpose"), "{text}");
    session.assert_alive().await;
}

// MCP-12 SRCH-183 GRAPH-12
#[tokio::test]
async fn arguments_that_do_not_fit_are_a_protocol_error() {
    let mut session = Session::new().await;
    for (tool, arguments) in [
        ("search", json!({})),
        ("search", json!({ "query": null })),
        ("search", json!({ "query": 5 })),
        ("search", json!({ "query": "q", "limit": "5" })),
        ("search", json!({ "query": "q", "limit": -1 })),
        ("search", json!({ "query": "q", "limit": 4_294_967_296_u64 })),
        ("search", json!({ "query": "q", "limit": 1.5 })),
        ("search", json!({ "query": "q", "fields": { "k": "v" } })),
        ("search", json!({ "query": "q", "mmr": "yes" })),
        ("search", json!([1])),
        ("get_document", json!({})),
        ("get_connection_graph", json!({})),
        ("get_connection_graph", json!({ "start": ["a.md"] })),
        ("get_connection_graph", json!({ "start": "a.md", "depth": -1 })),
        ("get_connection_graph", json!({ "start": "a.md", "max_nodes": 4_294_967_296_u64 })),
        ("get_connection_graph", json!({ "start": "a.md", "fan_out": 2.5 })),
        ("get_connection_graph", json!({ "start": "a.md", "dedup_by_path": "yes" })),
        ("get_connection_graph", json!({ "start": "a.md", "exclude_paths": "b.md" })),
        ("rebuild_index", json!({ "force": 1 })),
        ("no_such_tool", json!({})),
    ] {
        let answer = session.call(tool, arguments.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{tool} {arguments}: {answer}");
        assert_eq!(answer["id"], 1);
    }
    let answer = session.ask("tools/call", json!({ "arguments": {} })).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    session.assert_alive().await;
}

// SRCH-27 SRCH-29 MCP-13
#[tokio::test]
async fn nulls_and_unknown_names_do_no_harm() {
    let mut session = Session::new().await;
    let arguments = json!({ "query": "q", "limit": null, "fields": null, "no_such_name": 1 });
    let answer = session.call("search", arguments).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let answer = session.ask("tools/call", json!({ "name": "list_topics" })).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

// MCP-85 MCP-87
#[tokio::test]
async fn a_method_that_nobody_knows_is_not_found() {
    let mut session = Session::new().await;
    for method in ["no/such/method", "roots/list", "sampling/createMessage"] {
        let answer = session.ask(method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

// HTTP-B03
#[tokio::test]
async fn a_line_that_is_no_json_is_answered_and_the_session_goes_on() {
    let mut session = Session::silent();
    let deep = "[".repeat(100_000);
    let lines: [&[u8]; 6] =
        [b"garbage", b"{\"jsonrpc\":", b"\"\xFF\xFE\"", b"\x00", deep.as_bytes(), b"{} {}"];
    for line in lines {
        session.send_bytes(line).await;
        let answer = session.receive().await;
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
        assert_eq!(answer["id"], Value::Null);
        assert!(answer.get("id").is_some());
    }
    session.send(&initialize("2025-11-25")).await;
    assert!(session.receive().await["result"].is_object());
    for line in lines {
        session.send_bytes(line).await;
        assert_eq!(session.receive().await["error"]["code"], -32700);
    }
    session.assert_alive().await;
}

// HTTP-B03
#[tokio::test]
async fn json_that_is_no_message_is_an_invalid_request() {
    let mut session = Session::new().await;
    for (line, id) in [
        ("5", Value::Null),
        ("[]", Value::Null),
        ("{}", Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, Value::Null),
        (r#"{"jsonrpc":"1.0","id":7,"method":"tools/list"}"#, json!(7)),
        (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, json!("a")),
    ] {
        session.send_bytes(line.as_bytes()).await;
        let answer = session.receive().await;
        assert_eq!(answer["error"]["code"], -32600, "{line}: {answer}");
        assert_eq!(answer["id"], id, "{line}");
    }
    session.assert_alive().await;
}

#[tokio::test]
async fn what_needs_no_answer_gets_none() {
    let mut session = Session::silent();
    for opened in [false, true] {
        for line in [
            "",
            "  \r",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/no_such_thing","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"m"}}"#,
        ] {
            session.send_bytes(line.as_bytes()).await;
        }
        if !opened {
            session.send(&initialize("2025-11-25")).await;
            assert_eq!(session.receive().await["id"], 0);
        }
    }
    session.assert_alive().await;
}

// MCP-03
#[tokio::test]
async fn a_batch_is_taken_apart() {
    let mut session = Session::new().await;
    let call = |id| request(id, "tools/call", &json!({ "name": "list_topics" }));
    session.send(&json!([call(1), call(2)])).await;
    let mut ids = [session.receive().await["id"].clone(), session.receive().await["id"].clone()];
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [1, 2]);
}

// MCP-88
#[tokio::test]
async fn answers_may_overtake_each_other() {
    let mut session = Session::new().await;
    let call = |id, query| {
        request(id, "tools/call", &json!({ "name": "search", "arguments": { "query": query } }))
    };
    session.send(&call(1, "wait")).await;
    session.send(&call(2, "q")).await;
    assert_eq!(session.receive().await["id"], 2);
    session.sample.may_end.notify_one();
    assert_eq!(session.receive().await["id"], 1);
}

#[tokio::test]
async fn an_id_in_use_cannot_be_used_again() {
    let mut session = Session::new().await;
    let call = json!({ "name": "search", "arguments": { "query": "wait" } });
    session.send(&request(1, "tools/call", &call.clone())).await;
    session.send(&request(1, "tools/call", &call)).await;
    let answer = session.receive().await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    session.sample.may_end.notify_one();
    assert!(session.receive().await["result"].is_object());
    session.assert_alive().await;
}

// HTTP-13
#[tokio::test]
async fn the_end_of_input_is_a_good_end_and_loses_no_answer() {
    let Session { sample, mut requests, mut answers, serving } = Session::new().await;
    let call = json!({ "name": "search", "arguments": { "query": "wait" } });
    // The last line has no end.
    requests.write_all(request(1, "tools/call", &call).to_string().as_bytes()).await.unwrap();
    drop(requests);
    sample.begun.notified().await;
    assert!(!serving.is_finished());
    sample.may_end.notify_one();
    let answer: Value = serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(answer["id"], 1);
    assert_eq!(answers.next_line().await.unwrap(), None);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_says_nothing_and_leaves_is_no_error() {
    let Session { requests, serving, .. } = Session::silent();
    drop(requests);
    serving.await.unwrap().unwrap();
}

// MCP-11 GRAPH-67
#[tokio::test]
async fn a_graph_that_is_refused_is_answered_with_the_envelope() {
    let mut session = Session::new().await;
    let answer = session.call("get_connection_graph", json!({ "start": "b.md" })).await;
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "{\n  \"error\": \"not in the index\"\n}");
}

// MCP-B12 GRAPH-B04
#[tokio::test]
async fn a_cancelled_call_is_given_up_and_does_not_hold_up_the_end() {
    for call in [
        json!({ "name": "search", "arguments": { "query": "wait" } }),
        json!({ "name": "get_connection_graph", "arguments": { "start": "wait" } }),
    ] {
        a_cancelled_call_is_given_up(&call).await;
    }
}

async fn a_cancelled_call_is_given_up(call: &Value) {
    let mut session = Session::new().await;
    session.send(&request(7, "tools/call", call)).await;
    session.sample.begun.notified().await;
    let cancel = json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": 7, "reason": "changed my mind" },
    });
    session.send(&cancel).await;
    session.assert_alive().await;
    drop(session.requests);
    session.serving.await.unwrap().unwrap();
    assert_eq!(session.answers.next_line().await.unwrap(), None);
}

// MCP-B11
#[tokio::test]
async fn a_long_search_tells_its_stages() {
    let mut session = Session::new().await;
    let arguments = json!({ "query": "slow" });
    let params = json!({
        "name": "search", "arguments": arguments, "_meta": { "progressToken": 7 },
    });
    let told = session.ask("tools/call", params).await;
    assert_eq!(told["method"], "notifications/progress", "{told}");
    assert_eq!(told["params"]["message"], "3 of 3 stages");
    assert!(session.receive().await["result"].is_object());
}

// MCP-B12
#[tokio::test]
async fn a_cancelled_run_stops() {
    let mut session = Session::new().await;
    session.send(&request(7, "tools/call", &json!({ "name": "rebuild_index" }))).await;
    session.sample.begun.notified().await;
    let params = json!({ "requestId": 7 });
    let method = "notifications/cancelled";
    session.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    session.assert_alive().await;
    drop(session.requests);
    session.serving.await.unwrap().unwrap();
    assert_eq!(session.sample.runs.load(Ordering::Relaxed), 0);
}

// MCP-B11
#[tokio::test]
async fn progress_is_told_only_to_who_asked_for_it() {
    let mut session = Session::new().await;
    let silent = session.ask("tools/call", json!({ "name": "rebuild_index" })).await;
    assert!(silent["result"].is_object(), "{silent}");

    let mut message = session
        .ask("tools/call", json!({ "name": "rebuild_index", "_meta": { "progressToken": "p" } }))
        .await;
    let mut told = Vec::new();
    while message["method"] == "notifications/progress" {
        told.push(message["params"].clone());
        message = session.receive().await;
    }
    assert!(message["result"].is_object(), "{message}");
    let told_at = |done: f64| {
        json!({
            "progressToken": "p",
            "progress": done,
            "total": 3.0,
            "message": format!("{done} of 3 files"),
        })
    };
    assert_eq!(told.last(), Some(&told_at(3.0)));
    assert_eq!(told.first(), Some(&told_at(1.0)));
}

// SRCH-180 SRCH-184
#[tokio::test]
async fn half_a_character_in_a_query_is_taken_for_the_replacement_character() {
    let mut session = Session::new().await;
    for query in [r"\ud800", r"refuse\ud83d", r"\udc00\ud800 \ud83d\ude00", r"\u0000", r"\ufffe"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"search","arguments":{{"query":"{query}"}}}}}}"#
        );
        session.send_bytes(line.as_bytes()).await;
        let answer = session.receive().await;
        assert_eq!(answer["id"], 7, "{answer}");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
}
