//! Prompts, resources, completions, news and budgets as a client sees them.

use super::*;

fn error_code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

async fn read(session: &mut Session, uri: &str) -> Value {
    session.ask("resources/read", json!({ "uri": uri })).await
}

// MCP-05 MCP-06
#[tokio::test]
async fn every_list_is_one_page_that_is_stale_at_once() {
    let mut session = Session::silent();
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let list = session.ask(method, json!({ "_meta": meta(), "cursor": "x" })).await;
        let result = &list["result"];
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["ttlMs"], 0);
        assert_eq!(result["cacheScope"], "public");
        assert_eq!(result.get("nextCursor"), None);
        assert!(!result[member].as_array().unwrap().is_empty());
    }
    let read = json!({ "_meta": meta(), "uri": "kb://doc/a.md" });
    let result = session.ask("resources/read", read).await["result"].clone();
    assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(0)));
    assert_eq!(result["cacheScope"], "public");
}

// MCP-60 MCP-64 MCP-66
#[tokio::test]
async fn a_prompt_is_one_message_of_the_user() {
    let mut session = Session::new().await;
    let list = session.ask("prompts/list", json!({})).await;
    assert_eq!(list["result"]["prompts"][0]["name"], "summarize_topic");
    let params = json!({ "name": "summarize_topic", "arguments": { "topic": "mcp" } });
    let messages = session.ask("prompts/get", params).await["result"]["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 1);
    assert_eq!(messages[0]["role"], "user");
    assert_eq!(messages[0]["content"]["type"], "text");
    assert!(messages[0]["content"]["text"].as_str().unwrap().contains("mcp"));
    for params in [
        json!({ "name": "nothing" }),
        json!({ "name": "summarize_topic" }),
        json!({ "name": "deep_dive", "arguments": { "question": null } }),
        json!({ "arguments": {} }),
    ] {
        assert_eq!(error_code(&session.ask("prompts/get", params).await), -32602);
    }
}

// MCP-73 MCP-74 MCP-B18
#[tokio::test]
async fn groups_are_listed_and_any_document_by_a_template() {
    let mut session = Session::new().await;
    let list = session.ask("resources/list", json!({})).await;
    let root = &list["result"]["resources"][0];
    assert_eq!(root["uri"], "kb://topic/");
    assert_eq!(root["name"], "(root)");
    assert_eq!(root["description"], "1 document");
    assert_eq!(root["mimeType"], "text/markdown");
    assert_eq!(root["annotations"]["lastModified"], "2026-01-01T00:00:00Z");
    let body = read(&mut session, "kb://topic/").await;
    let text = body["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(root["size"], text.len());
    let templates = session.ask("resources/templates/list", json!({})).await;
    let templates = &templates["result"]["resourceTemplates"];
    assert_eq!(templates.as_array().unwrap().len(), 1);
    assert_eq!(templates[0]["uriTemplate"], "kb://doc/{path}");
    assert_eq!(templates[0].get("mimeType"), None);
}

// MCP-72 MCP-77 MCP-78 MCP-B18
#[tokio::test]
async fn a_resource_has_one_element_with_the_address_that_was_asked_for() {
    let mut session = Session::new().await;
    let group = read(&mut session, "kb://topic/it/").await;
    let contents = &group["result"]["contents"];
    assert_eq!(contents.as_array().unwrap().len(), 1);
    assert_eq!(contents[0]["uri"], "kb://topic/it/");
    assert_eq!(contents[0]["mimeType"], "text/markdown");
    let text = "# it\n\n1 document\n\n- it/b c.md <kb://doc/it/b%20c.md>\n";
    assert_eq!(contents[0]["text"], text);

    let document = read(&mut session, "kb://doc/%61.md").await;
    let contents = &document["result"]["contents"][0];
    assert_eq!(contents["uri"], "kb://doc/%61.md");
    assert_eq!(contents["mimeType"], "text/markdown");
    assert_eq!(contents["text"], "text");
    let meta = json!({ "size": 4, "lastModified": "2026-02-02T00:00:00Z" });
    assert_eq!(contents["_meta"], meta);

    let cut = read(&mut session, "kb://doc/long.PDF").await;
    let contents = &cut["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "text/plain");
    assert!(contents["text"].as_str().unwrap().starts_with("text\n\n---\n\n*["), "{contents}");
}

// MCP-07 MCP-79
#[tokio::test]
async fn what_is_not_ours_is_told_apart_from_what_failed() {
    let mut session = Session::new().await;
    for uri in [
        "kb://doc/no.md",
        "kb://doc/../a.md",
        "kb://topic/no",
        "file:///etc/passwd",
        "",
        "kb://doc/%",
    ] {
        let answer = read(&mut session, uri).await;
        assert_eq!(error_code(&answer), -32002, "{uri}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("groove doctor"));
    }
    for uri in ["kb://doc/broken.md", "kb://doc/panic.md"] {
        assert_eq!(error_code(&read(&mut session, uri).await), -32603, "{uri}");
    }
    session.assert_alive().await;
    let params = json!({ "uri": "kb://doc/no.md", "_meta": meta() });
    assert_eq!(error_code(&Session::silent().ask("resources/read", params).await), -32602);
}

// MCP-B09 MCP-B15 MCP-B17
#[tokio::test]
async fn arguments_are_completed() {
    let mut session = Session::new().await;
    for (reference, argument, value, expected) in [
        (json!({ "type": "ref/prompt", "name": "summarize_topic" }), "topic", "m", "Topic from m"),
        (json!({ "type": "ref/prompt", "name": "find_gaps" }), "topic", "", "Topic from "),
        (json!({ "type": "ref/prompt", "name": "deep_dive" }), "language", "j", "ja"),
        (
            json!({ "type": "ref/prompt", "name": "get_best_practice" }),
            "target",
            "r",
            "Target from r",
        ),
        (json!({ "type": "ref/resource", "uri": "kb://doc/{path}" }), "path", "a/", "Path from a/"),
    ] {
        let params = json!({ "ref": reference, "argument": { "name": argument, "value": value } });
        let completion = session.ask("completion/complete", params).await["result"].clone();
        assert_eq!(completion["completion"]["values"], json!([expected]));
    }
    let many = json!({ "type": "ref/resource", "uri": "kb://doc/{path}" });
    let params = json!({ "ref": many, "argument": { "name": "path", "value": "many" } });
    let completion = session.ask("completion/complete", params).await["result"].clone();
    assert_eq!(completion["completion"]["values"].as_array().unwrap().len(), 100);
    assert_eq!(completion["completion"]["total"], 150);
    assert_eq!(completion["completion"]["hasMore"], true);
    for reference in [
        json!({ "type": "ref/prompt", "name": "no" }),
        json!({ "type": "ref/resource", "uri": "file:///{path}" }),
    ] {
        let params = json!({ "ref": reference, "argument": { "name": "path", "value": "" } });
        assert_eq!(error_code(&session.ask("completion/complete", params).await), -32602);
    }
}

fn changed(path: &str) -> News {
    News::Document(DocumentPath::new(path).unwrap())
}

// MCP-02 MCP-80 MCP-B16
#[tokio::test]
async fn nothing_is_announced_that_nobody_watches() {
    let mut session = Session::new().await;
    let answer = session.ask("resources/subscribe", json!({ "uri": "kb://doc/a.md" })).await;
    assert_eq!(error_code(&answer), -32601, "{answer}");
    let list = session.ask("resources/list", json!({})).await;
    // Groups only: single documents are reached by the template.
    let resources = list["result"]["resources"].as_array().unwrap();
    assert!(resources.iter().all(|it| it["uri"].as_str().unwrap().starts_with("kb://topic/")));
}

// MCP-B16
#[tokio::test]
async fn a_session_hears_of_what_it_subscribed_to_and_of_new_groups() {
    let mut session = Session::watched().await;
    for uri in ["kb://doc/it/b%20c.md", "kb://topic/it", "kb://doc/other.md"] {
        let answer = session.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    let answer = session.ask("resources/subscribe", json!({ "uri": "file:///a" })).await;
    assert_eq!(error_code(&answer), -32002);
    let other = json!({ "uri": "kb://doc/other.md" });
    session.ask("resources/unsubscribe", other).await;

    let library = Arc::clone(&session.sample.library);
    library.tell(&changed("other.md"));
    library.tell(&changed("it/b c.md"));
    library.tell(&News::Groups);
    for uri in ["kb://doc/it/b%20c.md", "kb://topic/it"] {
        let message = session.receive().await;
        assert_eq!(message["method"], "notifications/resources/updated");
        assert_eq!(message["params"]["uri"], uri);
    }
    assert_eq!(session.receive().await["method"], "notifications/resources/list_changed");
}

// MCP-02 MCP-B16
#[tokio::test]
async fn a_watched_library_declares_what_it_announces() {
    let mut session = Session::silent_watched();
    session.send(&initialize("2025-11-25")).await;
    let greeting = session.receive().await;
    let declared = &greeting["result"]["capabilities"]["resources"];
    assert_eq!(*declared, json!({ "subscribe": true, "listChanged": true }));
}

// MCP-B16
#[tokio::test]
async fn the_newest_revision_listens_with_one_request() {
    let mut session = Session::silent_watched();
    let params = json!({
        "_meta": meta(),
        "notifications": {
            "resourcesListChanged": true,
            "resourceSubscriptions": ["kb://doc/a.md", "file:///x"],
        },
    });
    session.send(&request(7, "subscriptions/listen", &params)).await;
    let accepted = session.receive().await;
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged", "{accepted}");
    let accepted = &accepted["params"]["notifications"];
    assert_eq!(accepted["resourceSubscriptions"], json!(["kb://doc/a.md"]));
    // The subscription begins right after it was acknowledged.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let library = Arc::clone(&session.sample.library);
    library.tell(&changed("b.md"));
    library.tell(&changed("a.md"));
    library.tell(&News::Groups);
    let update = session.receive().await;
    assert_eq!(update["params"]["uri"], "kb://doc/a.md");
    assert_eq!(update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    assert_eq!(session.receive().await["method"], "notifications/resources/list_changed");
    // Who only listens does not keep the session from ending.
    let Session { requests, answers, serving, .. } = session;
    drop(requests);
    let served = tokio::time::timeout(Duration::from_secs(20), serving).await;
    served.expect("the session does not end").unwrap().unwrap();
    drop(answers);
}

// MCP-87 MCP-B19
#[tokio::test]
async fn warnings_are_messages_for_those_who_set_a_level() {
    let mut session = Session::watched().await;
    let library = Arc::clone(&session.sample.library);
    library.tell(&News::Warning("unheard".into()));
    session.call("search", json!({ "query": "full" })).await;
    let answer = session.ask("logging/setLevel", json!({ "level": "warning" })).await;
    assert_eq!(answer["result"], json!({}));
    library.tell(&News::Warning("skipped a.md".into()));
    let message = session.receive().await;
    assert_eq!(message["method"], "notifications/message");
    assert_eq!(message["params"]["data"], "skipped a.md");
    assert_eq!(message["params"]["level"], "warning");
    let message = session.call("search", json!({ "query": "full" })).await;
    assert_eq!(message["params"]["data"], "a search was answered without vector");
    assert_eq!(session.receive().await["result"]["isError"], false);
    session.ask("logging/setLevel", json!({ "level": "error" })).await;
    library.tell(&News::Warning("unheard".into()));
    let answer = session.call("search", json!({ "query": "full" })).await;
    assert_eq!(answer["result"]["isError"], false);
}

#[tokio::test]
async fn an_answer_stays_within_its_budget_and_keeps_the_match() {
    let mut session = Session::new().await;
    for max_tokens in [300, 700, 1500, 4000] {
        let arguments = json!({ "query": "long", "max_tokens": max_tokens });
        let answer = session.call("search", arguments).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(crate::domain::excerpt::tokens(text) <= max_tokens, "{max_tokens}");
        let structured = &answer["result"]["structuredContent"];
        let results = structured["results"].as_array().unwrap();
        assert!(!results.is_empty(), "{max_tokens}");
        assert!(results.iter().all(|it| it["content"].as_str().unwrap().contains("needle")));
        let left_out = structured["budget"]["results_left_out"].as_u64().unwrap();
        assert_eq!(left_out + results.len() as u64, 5);
    }
    let answer = session.call("search", json!({ "query": "long", "max_tokens": 10 })).await;
    assert_eq!(answer["result"]["isError"], true);
    let answer =
        session.call("get_document", json!({ "path": "long.md", "max_tokens": 300 })).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(crate::domain::excerpt::tokens(text) <= 300);
    assert_eq!(answer["result"]["structuredContent"]["truncated"], true);
}

#[tokio::test]
async fn without_the_new_arguments_an_answer_has_no_new_limits() {
    let mut session = Session::new().await;
    let whole = session.call("search", json!({ "query": "long" })).await;
    let result = &whole["result"]["structuredContent"];
    assert_eq!(result.get("budget"), None);
    assert_eq!(result["results"][0].get("content_shortened"), None);
    let passages = session.call("search", json!({ "query": "long", "detail": "passages" })).await;
    assert_eq!(passages["result"], whole["result"]);
    let ids = session.call("search", json!({ "query": "long", "detail": "ids" })).await;
    let hit = &ids["result"]["structuredContent"]["results"][0];
    assert_eq!((&hit["content"], &hit["path"]), (&json!(""), &json!("a.md")));
}
