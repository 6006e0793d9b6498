//! The server over HTTP, as clients and attackers see it.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::http_server::{
    Answer, HttpServer, call, initialize, is_closed, read_answer, read_until,
};
use crate::site::Site;

fn site() -> Site {
    let site = Site::new();
    site.base.write("it/vpn.md", "# VPN\n\nThe tunnel to the office needs a certificate.\n");
    site.indexed(&["--quiet"]);
    site
}

// HTTP-20 HTTP-21 HTTP-22 HTTP-23 HTTP-24 HTTP-59 HTTP-B05 HTTP-B16
#[test]
fn there_are_these_routes_and_no_others() {
    let site = site();
    let server = HttpServer::start(&site, "");
    for path in ["/healthz", "/ui", "/api/admin/status"] {
        assert_eq!(server.get(path).status, 200, "{path}");
        assert_eq!(server.send(&format!("HEAD {path}"), &["Host: localhost"], b"").status, 200);
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
            let answer = server.send(&format!("{method} {path}"), &["Host: localhost"], b"");
            assert_eq!(answer.status, 405, "{method} {path}");
        }
    }
    assert_eq!(server.send("PUT /mcp", &["Host: localhost"], b"").status, 405);
    for path in
        ["/", "/api/search", "/metrics", "/ui/", "/mcp/", "/healthz/x", "/MCP", "//mcp", "*"]
    {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    // An endpoint is a model that is there as soon as it is known.
    assert!([200, 503].contains(&server.get("/readyz").status));
    let with_metrics = HttpServer::start(&site, "metrics = true");
    let metrics = with_metrics.get("/metrics");
    assert_eq!(metrics.status, 200);
    for name in ["groove_documents 1", "groove_sessions 0", "groove_refusals_total{group=\"mcp\"}"]
    {
        assert!(metrics.body.contains(name), "{name} is not in {}", metrics.body);
    }
    assert_eq!(with_metrics.send("GET /metrics", &["Host: evil.example"], b"").status, 403);
}

// HTTP-25 HTTP-26 HTTP-27 HTTP-28 HTTP-39b HTTP-44 HTTP-45
#[test]
fn a_foreign_name_gets_nowhere_on_any_route() {
    let site = site();
    let server = HttpServer::start(&site, "healthz_public = false");
    let port = server.address.port();
    let rebound: &[(&str, &[u16])] = &[
        ("127.0.0.1:P", &[200]),
        ("localhost", &[200]),
        ("LOCALHOST:P", &[200]),
        ("[::1]:P", &[200]),
        ("evil.example", &[403]),
        ("evil.example:P", &[403]),
        ("0.0.0.0:P", &[403]),
        ("localhost.", &[403]),
        ("127.1", &[403]),
        ("2130706433", &[403]),
        ("[::ffff:127.0.0.1]:P", &[403]),
        ("user:pw@127.0.0.1:P", &[400]),
        ("@127.0.0.1:P", &[400]),
        ("127.0.0.1@localhost", &[400]),
        ("127.0.0.1:65536", &[400]),
        ("localhost:abc", &[400]),
        ("[]:80", &[400]),
        ("[::1]evil.example", &[400]),
        ("::ffff:127.0.0.1", &[400, 403]),
        ("localhost:P:P", &[400, 403]),
        ("localhost#frag", &[400, 403]),
        ("localhost/", &[400, 403]),
        ("127.0.0.1%00", &[400, 403]),
        ("locälhost", &[400]),
    ];
    for (host, expected) in rebound {
        let host = format!("Host: {}", host.replace('P', &port.to_string()));
        let healthz = server.send("GET /healthz", &[&host], b"");
        assert!(expected.contains(&healthz.status), "{host}: {healthz:?}");
        let body = initialize().to_string();
        let headers = [
            &*host,
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
        ];
        let mcp = server.send("POST /mcp", &headers, body.as_bytes());
        assert_eq!(mcp.status, healthz.status, "{host}");
        let admin = server.send("GET /api/admin/status", &[&host], b"");
        assert_eq!(admin.status, healthz.status, "{host}");
        if healthz.status != 200 {
            let start = if healthz.status == 400 { "Bad Request: " } else { "Forbidden: " };
            for answer in [&healthz, &mcp, &admin] {
                assert!(answer.body.starts_with(start), "{answer:?}");
                assert_eq!(answer.body, healthz.body);
                assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
                assert!(!answer.body.contains("evil"), "{answer:?}");
            }
        }
    }
    for origin in ["http://evil.example", "null", "https://localhost"] {
        let origin = format!("Origin: {origin}");
        for path in ["/mcp", "/ui", "/api/admin/status"] {
            let answer = server.send(&format!("GET {path}"), &["Host: localhost", &origin], b"");
            assert_eq!(answer.status, 403, "{path}");
        }
        assert_eq!(server.send("GET /healthz", &["Host: localhost", &origin], b"").status, 200);
    }
    // Four names were let in and opened sessions; nobody who was refused did.
    let status = server.get("/api/admin/status").json();
    assert_eq!(status["daemon"]["sessions"], 4);
    let log = server.log();
    for group in ["mcp", "health", "admin"] {
        let lines = log.lines().filter(|line| line.contains(&format!("group=\"{group}\"")));
        assert_eq!(lines.count(), 1, "{log}");
    }
    server.assert_serves();
}

// HTTP-27 HTTP-81 HTTP-B04 HTTP-B13
#[test]
fn admin_routes_are_shut_in_even_where_they_refuse() {
    let site = site();
    let server = HttpServer::start(&site, "refuse_forwarded = true");
    let refused = server.send("GET /ui", &["Host: evil.example"], b"");
    let forwarded = ["Host: localhost", "X-Forwarded-For: 10.0.0.1"];
    let passed_on = server.send("GET /api/admin/status", &forwarded, b"");
    assert_eq!((refused.status, passed_on.status), (403, 403));
    for answer in [server.get("/ui"), server.get("/api/admin/status"), refused, passed_on] {
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cache-control"), "no-store");
        let policy = answer.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "script-src 'sha256-",
            "style-src 'sha256-",
            "img-src data:",
            "connect-src 'self'",
        ] {
            assert!(policy.contains(part), "{policy} lacks {part}");
        }
    }
    let lines = server.log().lines().filter(|line| line.contains("through a proxy")).count();
    assert_eq!(lines, 1);
    server.assert_serves();
}

// HTTP-70 HTTP-71 HTTP-72 HTTP-73 HTTP-74 HTTP-75 HTTP-76 HTTP-77 HTTP-78 HTTP-B11 HTTP-B12
#[test]
fn the_status_tells_how_it_is_and_no_path() {
    let site = site();
    let server = HttpServer::start(&site, "");
    let status = server.get("/api/admin/status").json();
    assert_eq!(status["daemon"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(status["daemon"]["pid"].is_u64() && status["daemon"]["uptime_secs"].is_u64());
    let started = status["daemon"]["started_at"].as_str().unwrap();
    assert!(started.len() == 20 && started.ends_with('Z') && &started[10..11] == "T", "{started}");
    assert_eq!(status["indexing"]["active"], false);
    assert!(status["indexing"]["started_at"].is_null() && status["indexing"]["progress"].is_null());
    assert_eq!(status["watcher"], json!({"active": false, "debounce_ms": 500}));
    assert_eq!(status["kb"]["documents"], 1);
    assert!(status["kb"]["model"].as_str().unwrap().contains('m'));
    assert!(status["kb"]["chunks"].as_u64().unwrap() > 0);
    assert_eq!(status["config_source"], "Explicit");
    let folder = site.folder();
    assert!(!status.to_string().contains(folder.to_str().unwrap()), "{status}");

    // During a run it tells how far that is, and still has the counts.
    for number in 0..40 {
        site.base.write(&format!("more/{number}.md"), format!("# {number}\n\nText {number}.\n"));
    }
    site.slow(Duration::from_millis(200));
    std::thread::scope(|scope| {
        let run = scope.spawn(|| server.call("rebuild_index", &json!({})));
        crate::site::wait_for("a run is under way", || {
            let status = server.get("/api/admin/status").json();
            status["indexing"]["active"] == true
                && status["indexing"]["progress"]["total"].as_u64().is_some_and(|total| total > 1)
                && status["indexing"]["started_at"].is_string()
                && status["kb"]["documents"].is_u64()
        });
        site.slow(Duration::ZERO);
        assert_eq!(run.join().unwrap().status, 200);
    });
    let status = server.get("/api/admin/status").json();
    assert_eq!(status["indexing"]["active"], false);
    assert_eq!(status["indexing"]["last_run"]["counters"]["updated"], 40, "{status}");
}

// HTTP-60 HTTP-61 HTTP-67
#[test]
fn a_client_with_a_session_opens_it_uses_it_and_ends_it() {
    let site = site();
    let server = HttpServer::start(&site, "");
    let opened = server.initialize();
    assert_eq!(opened.status, 200, "{opened:?}");
    assert_eq!(opened.json()["result"]["protocolVersion"], "2025-11-25");
    let session = format!("Mcp-Session-Id: {}", opened.header("mcp-session-id"));
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.post(&[&session], &ready).status, 202);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let tools = server.post(&[&session], &list);
    assert_eq!(tools.header("content-type"), "application/json");
    assert!(tools.json()["result"]["tools"].as_array().unwrap().len() >= 5);
    // Who prefers events gets them, and who wants progress.
    let events = server.send(
        "POST /mcp",
        &[
            "Host: localhost",
            "Accept: text/event-stream, application/json",
            "Content-Type: application/json",
            &session,
        ],
        list.to_string().as_bytes(),
    );
    assert_eq!(events.header("content-type"), "text/event-stream");
    assert_eq!(events.json()["result"], tools.json()["result"]);

    assert_eq!(server.post(&[], &list).status, 400);
    assert_eq!(server.post(&["Mcp-Session-Id: no-such"], &list).status, 404);
    let ask = |method: &str, headers: &[&str]| {
        let all = [&["Host: localhost"], headers].concat();
        server.send(&format!("{method} /mcp"), &all, b"").status
    };
    assert_eq!(ask("GET", &[]), 400);
    assert_eq!(ask("GET", &[&session]), 406);
    assert_eq!(ask("GET", &[&session, "Accept: application/json"]), 406);
    assert_eq!(ask("GET", &["Mcp-Session-Id: no-such", "Accept: text/event-stream"]), 404);
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{session}\r\n\r\n"
    );
    let mut stream = server.begin(request.as_bytes());
    let said = read_until(&mut stream, "retry: 3000");
    assert!(said.contains("text/event-stream"), "{said}");

    assert_eq!(ask("DELETE", &[]), 400);
    assert_eq!(ask("DELETE", &["Mcp-Session-Id: no-such"]), 404);
    assert_eq!(ask("DELETE", &[&session]), 202);
    assert_eq!(server.post(&[&session], &list).status, 404);
    assert_eq!(ask("DELETE", &[&session]), 404);
}

// HTTP-60 HTTP-62 MCP-85 MCP-86 HTTP-B08
#[test]
fn a_client_without_a_session_sends_what_stands_by_itself() {
    let site = site();
    let server = HttpServer::start(&site, "");
    let found = server.call("search", &json!({"query": "tunnel certificate"}));
    assert_eq!(found.header("content-type"), "application/json");
    let text = found.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("it/vpn.md"), "{text}");
    assert!(found.header("mcp-session-id").is_empty());

    let version = "MCP-Protocol-Version: 2026-07-28";
    let method = "Mcp-Method: tools/call";
    let name = "Mcp-Name: list_topics";
    let whole = call("list_topics", &json!({}));
    let code = |headers: &[&str], message: &serde_json::Value| {
        let answer = server.post(headers, message);
        (answer.status, answer.json()["error"]["code"].as_i64().unwrap_or_default())
    };
    assert_eq!(code(&[version, method, name], &whole), (200, 0));
    assert_eq!(code(&[method, name], &whole), (400, -32020));
    assert_eq!(code(&[version, name], &whole), (400, -32020));
    assert_eq!(code(&[version, method], &whole), (400, -32020));
    assert_eq!(code(&[version, "Mcp-Method: tools/list", name], &whole), (400, -32020));
    assert_eq!(code(&[version, method, "Mcp-Name: search"], &whole), (400, -32020));
    assert_eq!(code(&["MCP-Protocol-Version: 2025-11-25", method, name], &whole), (400, -32020));
    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut message = whole.clone();
        let meta = message["params"]["_meta"].as_object_mut().unwrap();
        meta.remove(&format!("io.modelcontextprotocol/{missing}"));
        assert_eq!(code(&[version, method, name], &message), (400, -32602), "{missing}");
    }
    let mut future = whole.clone();
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    assert_eq!(code(&["MCP-Protocol-Version: 2099-01-01", method, name], &future), (400, -32022));
    let mut unknown = whole.clone();
    unknown["method"] = json!("no/such");
    assert_eq!(code(&[version, "Mcp-Method: no/such"], &unknown), (404, -32601));
    let no_tool = call("no_such", &json!({}));
    assert_eq!(code(&[version, method, "Mcp-Name: no_such"], &no_tool), (400, -32602));
    let get = server.send("GET /mcp", &["Host: localhost", version], b"");
    assert_eq!((get.status, get.header("allow")), (405, "POST"));

    let body = whole.to_string();
    let post = |accept: &str, kind: &str, body: &str| {
        server.send("POST /mcp", &["Host: localhost", accept, kind], body.as_bytes()).status
    };
    let (both, json) =
        ("Accept: application/json, text/event-stream", "Content-Type: application/json");
    assert_eq!(post("Accept: application/json", json, &body), 406);
    assert_eq!(post("Accept: */*", json, &body), 406);
    assert_eq!(post(both, "Content-Type: text/plain", &body), 415);
    for (body, code) in [("{\"jsonrpc\":", -32700), ("", -32700), ("[]", -32600), ("{}", -32600)] {
        let headers = ["Host: localhost", both, json];
        let answer = server.send("POST /mcp", &headers, body.as_bytes());
        let seen = answer.json()["error"]["code"].as_i64();
        assert_eq!((answer.status, seen), (400, Some(code)), "{body}");
    }
    server.assert_serves();
}

// HTTP-B06
#[test]
fn a_page_of_a_listed_origin_reads_the_answers_and_no_other_does() {
    let site = site();
    let server = HttpServer::start(&site, "allowed_origins = ['https://kb.example']");
    let ask = |origin: &str| {
        let headers = ["Host: localhost", origin, "Access-Control-Request-Method: POST"];
        server.send("OPTIONS /mcp", &headers, b"")
    };
    let listed = ask("Origin: https://kb.example");
    assert_eq!(listed.status, 204);
    assert_eq!(listed.header("access-control-allow-origin"), "https://kb.example");
    assert!(listed.header("access-control-allow-headers").contains("Mcp-Session-Id"));
    assert_eq!(listed.header("vary"), "Origin");
    let foreign = ask("Origin: https://evil.example");
    assert_eq!(foreign.status, 403);
    assert_eq!(foreign.header("access-control-allow-origin"), "");
    let answer = server.post(&["Origin: https://kb.example"], &initialize());
    assert_eq!(answer.header("access-control-expose-headers"), "Mcp-Session-Id");
    // With the check off nobody is listed, so nobody reads.
    let open = HttpServer::start(&site, "allowed_origins = []");
    let answer = open.post(&["Origin: https://evil.example"], &initialize());
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, ""));
    assert!(open.log().contains("Origin check is off"));
}

fn chunked(size: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..size.div_ceil(65536) {
        body.extend_from_slice(b"10000\r\n");
        body.extend_from_slice(&" ".repeat(65536).into_bytes());
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    body
}

// HTTP-63 HTTP-24
#[test]
fn what_is_too_large_is_refused_on_every_path() {
    const MIB: usize = 1024 * 1024;
    let site = site();
    let server = HttpServer::start(&site, "");
    let kinds = ["Accept: application/json, text/event-stream", "Content-Type: application/json"];
    for path in ["/mcp", "/healthz", "/ui", "/api/admin/status", "/no-such"] {
        let line = format!("POST {path}");
        // Refused before any of it is sent.
        let declared = server.send(
            &line,
            &["Host: localhost", kinds[0], kinds[1], "Content-Length: 1048577"],
            b"",
        );
        assert_eq!(declared.status, 413, "{path}");
        let headers = ["Host: localhost", kinds[0], kinds[1], "Transfer-Encoding: chunked"];
        assert_eq!(server.send(&line, &headers, &chunked(2 * MIB)).status, 413, "{path}");
    }
    // A body that just fits is read.
    let mut body = call("list_topics", &json!({})).to_string();
    body.push_str(&" ".repeat(MIB - body.len()));
    let headers = [
        "Host: localhost",
        kinds[0],
        kinds[1],
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: list_topics",
    ];
    assert_eq!(server.send("POST /mcp", &headers, body.as_bytes()).status, 200);
    for deep in
        ["[".repeat(MIB), "{\"a\":".repeat(MIB / 5), format!("{{\"method\":{}", "[".repeat(9000))]
    {
        let answer = server.send("POST /mcp", &headers, deep.as_bytes());
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    let nested = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{nested}}}");
    assert_eq!(server.send("POST /mcp", &headers, body.as_bytes()).status, 400);
    server.assert_serves();
}

// HTTP-28 HTTP-35
#[test]
fn nobody_smuggles_a_request_in() {
    let site = site();
    let server = HttpServer::start(&site, "healthz_public = false");
    let inner = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let smuggled = |first: &str| {
        let seen = server.raw(format!("{first}{inner}").as_bytes());
        seen.matches("HTTP/1.1 200").count()
    };
    // What follows a body of no clear length is never taken for a request.
    for first in [
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: +4\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "GET /healthz HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
         fffffffffffffffff\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n X-Folded: yes\r\n\r\n",
        "GET /healthz\tHTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\u{0}\u{1}\u{2}\r\n\r\n",
    ] {
        assert_eq!(smuggled(first), 0, "{first:?}");
    }
    // With both, the chunks count; a body of them ends before the next request.
    let both = "POST /no-such HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\
                Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert!(smuggled(both) <= 1);
    let swallowed = format!(
        "POST /no-such HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
         Content-Length: 3\r\n\r\n{:x}\r\n{inner}\r\n0\r\n\r\n",
        inner.len()
    );
    assert!(!server.raw(swallowed.as_bytes()).contains("HTTP/1.1 200"));
    for (line, hosts, status) in [
        ("GET /healthz", "Host: localhost\r\nHost: localhost", 400),
        ("GET /healthz", "Host: localhost\r\nHost: evil.example", 400),
        ("GET /healthz", "Host: evil.example\r\nHost: localhost", 400),
        ("GET http://evil.example/healthz", "Host: localhost", 400),
        ("GET http://localhost/healthz", "Host: evil.example", 400),
        ("GET http://evil.example/healthz", "Host: evil.example", 403),
        ("GET http://localhost/healthz", "Host: localhost", 200),
        ("GET /healthz", "X: y", 400),
        ("CONNECT localhost:1", "Host: localhost", 404),
    ] {
        let answer = server.send(line, &[hosts], b"");
        assert_eq!(answer.status, status, "{line} {hosts}");
    }
    let many: Vec<String> = (0..300).map(|number| format!("X-{number}: y")).collect();
    let answer = server.send("GET /healthz", &[&many.join("\r\n")], b"");
    assert_eq!(answer.status, 431);
    let long = format!("X: {}", "y".repeat(100_000));
    let seen = server.raw(format!("GET /healthz HTTP/1.1\r\n{long}\r\n\r\n").as_bytes());
    assert!(!seen.contains("HTTP/1.1 200"));
    server.assert_serves();
}

// HTTP-B09
#[test]
fn a_slow_client_is_given_up_and_nobody_waits_for_it() {
    let keys = "header_timeout_secs = 1\nbody_timeout_secs = 1\nmax_connections = 40";
    let site = site();
    let server = HttpServer::start(&site, keys);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n";
    let mut slow = Vec::new();
    for _ in 0..12 {
        slow.push(server.begin(b""));
        slow.push(server.begin(b"GET /healthz HT"));
        slow.push(server.begin(head.as_bytes()));
    }
    // A place is left, so this does not wait for them.
    server.assert_serves();
    for (number, stream) in slow.iter_mut().enumerate() {
        if number % 3 == 2 {
            // A little now and then does not help.
            drop(stream.write_all(b"{"));
        }
        assert!(is_closed(stream, Duration::from_secs(30)), "connection {number}");
    }
    let mut late = server.begin(head.as_bytes());
    assert_eq!(read_answer(&mut late).status, 408);
    // More than there are places for: the others wait for their turn.
    let _crowd: Vec<_> = (0..60).map(|_| server.begin(b"GET /healthz HT")).collect();
    server.assert_serves();
}

// HTTP-64 HTTP-65 HTTP-45
#[test]
fn a_flood_of_sessions_ends_at_the_cap_exactly() {
    const CAP: usize = 16;
    let site = site();
    let server = HttpServer::start(&site, &format!("max_sessions = {CAP}"));
    let (opened, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let ids = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..400 {
                    let answer = server.initialize();
                    match answer.status {
                        200 => {
                            opened.fetch_add(1, Ordering::Relaxed);
                            let id = answer.header("mcp-session-id").to_owned();
                            ids.lock().unwrap().push(id);
                        }
                        429 => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            assert_eq!(answer.header("retry-after"), "30");
                        }
                        _ => panic!("{answer:?}"),
                    }
                }
            });
        }
    });
    assert_eq!((opened.into_inner(), refused.into_inner()), (CAP, 8 * 400 - CAP));
    assert_eq!(server.get("/api/admin/status").json()["daemon"]["sessions"], CAP);
    server.assert_serves();
    // Sessions that are there go on, and one that ends makes room for one.
    let session = format!("Mcp-Session-Id: {}", ids.lock().unwrap()[0]);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.post(&[&session], &ready).status, 202);
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    assert_eq!(server.post(&[&session], &ping).status, 200);
    assert_eq!(server.send("DELETE /mcp", &["Host: localhost", &session], b"").status, 202);
    assert_eq!(server.initialize().status, 200);
    assert_eq!(server.initialize().status, 429);
    // A second name for the method does not get past the cap.
    let body = initialize().to_string().replacen('{', "{\"method\":\"ping\",", 1);
    let headers = [
        "Host: localhost",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
    ];
    assert_eq!(server.send("POST /mcp", &headers, body.as_bytes()).status, 400);
    // Seats are not held by those who leave before they get one.
    for id in ids.lock().unwrap().iter().skip(1) {
        let session = format!("Mcp-Session-Id: {id}");
        server.send("DELETE /mcp", &["Host: localhost", &session], b"");
    }
    for _ in 0..200 {
        let request = format!(
            "POST /mcp HTTP/1.1\r\n{}\r\nContent-Length: {}\r\n\r\n{}",
            headers.join("\r\n"),
            initialize().to_string().len(),
            initialize()
        );
        drop(server.begin(request.as_bytes()));
    }
    assert_eq!(server.log().matches("group=\"sessions\"").count(), 1);
    server.assert_serves();
}

fn refused_start(site: &Site, keys: &str, arguments: &[&str]) -> String {
    site.configure(keys);
    let output = site.run("serve", arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// HTTP-03 HTTP-05 HTTP-43 HTTP-52 HTTP-59 HTTP-59b CLI-76 CLI-65 CLI-66 CLI-68
#[test]
fn what_cannot_be_served_is_refused_with_a_reason() {
    let site = site();
    assert!(refused_start(&site, "", &["--port", "1"]).contains("--transport http"));
    let open = ["--transport", "http", "--bind", "0.0.0.0:0"];
    assert!(refused_start(&site, "", &open).contains("no authentication"));
    let origins = "[transport.http]\nallowed_origins = ['127.0.0.1:3100']";
    assert!(refused_start(&site, origins, &["--port", "0"]).contains("has no scheme"));
    let first = HttpServer::start(&site, "");
    let port = first.address.port().to_string();
    let taken = refused_start(&site, "", &["--transport", "http", "--port", &port]);
    assert!(taken.contains("another instance") && taken.contains("--port"), "{taken}");
    drop(first);
    site.configure("");
    let mut known = site.command("serve", &open);
    known.arg("--i-know");
    let server = HttpServer::spawn(&site, known);
    crate::site::wait_for("it warns", || server.log().contains("no authentication"));
}

#[cfg(unix)]
mod signals {
    use super::*;

    // HTTP-68 HTTP-B07 CLI-30
    #[test]
    fn a_signal_lets_what_is_in_flight_end_and_takes_nothing_new() {
        for signal in ["INT", "TERM"] {
            let site = site();
            let mut server = HttpServer::start(&site, "");
            // A stream and an idle connection do not keep it.
            let opened = server.initialize();
            let session = opened.header("mcp-session-id");
            let request = format!(
                "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
                 Mcp-Session-Id: {session}\r\n\r\n"
            );
            let mut stream = server.begin(request.as_bytes());
            read_until(&mut stream, "retry: 3000");
            let _idle = server.begin(b"");
            site.base.write("new.md", "# New\n\nText.\n");
            site.slow(Duration::from_secs(2));
            std::thread::scope(|scope| {
                let call = scope.spawn(|| server.call("rebuild_index", &json!({})));
                crate::site::wait_for("the run is under way", || {
                    server.get("/api/admin/status").json()["indexing"]["active"] == true
                });
                server.signal(signal);
                let answer = call.join().unwrap();
                assert_eq!(answer.status, 200);
                assert!(answer.body.contains("\\\"updated\\\": 1"), "{answer:?}");
            });
            let status = server.wait();
            assert_eq!(status.code(), Some(0), "{signal}: {}", server.log());
            assert!(std::net::TcpStream::connect(server.address).is_err());
        }
    }

    // HTTP-B07
    #[test]
    fn what_takes_too_long_is_cut_off() {
        let site = site();
        let mut server = HttpServer::start(&site, "drain_timeout_secs = 1");
        let request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
        let _never = server.begin(request.as_bytes());
        server.assert_serves();
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0));
        assert!(server.log().contains("cut off"), "{}", server.log());
    }
}

#[cfg(target_os = "linux")]
mod inherited {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    use super::*;

    /// `groove serve` as a service manager starts it: the socket is descriptor 3.
    fn started_with(site: &Site, socket: OwnedFd, script: &str, arguments: &[&str]) -> Command {
        let groove = site.command("serve", arguments);
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec 3<&0 </dev/null; {script} exec \"$@\"")).arg("sh");
        command.arg(groove.get_program()).args(groove.get_args());
        command.env_clear();
        for (name, value) in groove.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::from(socket));
        command
    }

    const BOTH: &str = "LISTEN_PID=$$ LISTEN_FDS=1";

    fn refusal(socket: OwnedFd, script: &str, arguments: &[&str]) -> String {
        let site = site();
        site.configure("[transport.http]\n");
        let script = format!("{script}; export LISTEN_PID LISTEN_FDS;");
        let output = started_with(&site, socket, &script, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    // HTTP-90 HTTP-91
    #[test]
    fn what_is_no_socket_to_serve_is_refused_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let listener = || OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let take = ["--systemd-socket"];
        let other = refusal(listener(), "LISTEN_PID=1 LISTEN_FDS=2", &take);
        assert!(other.contains("LISTEN_PID is 1, expected "), "{other}");
        let two = refusal(listener(), "LISTEN_PID=$$ LISTEN_FDS=2", &take);
        assert!(two.contains("LISTEN_FDS is 2, expected 1"), "{two}");
        let datagram = UnixDatagram::bind(folder.path().join("d")).unwrap();
        assert!(refusal(datagram.into(), BOTH, &take).contains("datagram"));
        let (connection, _other) = UnixStream::pair().unwrap();
        assert!(refusal(connection.into(), BOTH, &take).contains("does not listen"));
        let both = refusal(listener(), BOTH, &["--systemd-socket", "--transport", "stdio"]);
        assert!(both.contains("--transport http"), "{both}");
    }

    // HTTP-33 HTTP-90 HTTP-92 HTTP-93 HTTP-B14 CLI-69
    #[test]
    fn a_unix_socket_is_served_and_left_behind() {
        let (site, folder) = (site(), tempfile::tempdir().unwrap());
        site.configure("[transport.http]\nsystemd_socket = true\n");
        let path = folder.path().join("groove.sock");
        let socket = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let script = format!("{BOTH}; export LISTEN_PID LISTEN_FDS;");
        let command = started_with(&site, socket.into(), &script, &["--no-watch"]);
        let server = HttpServer::spawn_with_input(&site, command);
        let ask = |path_: &str, host: &str| {
            let mut stream = UnixStream::connect(&path).unwrap();
            write!(stream, "GET {path_} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
                .unwrap();
            read_answer(&mut stream).status
        };
        assert_eq!(ask("/healthz", "whatever"), 200);
        assert_eq!(ask("/api/admin/status", "localhost"), 200);
        assert_eq!(ask("/api/admin/status", "evil.example"), 403);
        assert_eq!(ask("/mcp", "evil.example"), 403);
        assert_eq!(ask("/mcp", "localhost"), 400);
        assert!(server.log().contains("every user of this machine"), "{}", server.log());
        drop(server);
        assert!(path.exists());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
    }

    // HTTP-92
    #[test]
    fn an_inherited_address_is_served_like_one_that_was_bound() {
        let site = site();
        site.configure("[transport.http]\n");
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let script = format!("{BOTH}; export LISTEN_PID LISTEN_FDS;");
        let arguments = ["--no-watch", "--systemd-socket"];
        let command = started_with(&site, socket.into(), &script, &arguments);
        HttpServer::spawn_with_input(&site, command).assert_serves();
    }
}

// HTTP-08 HTTP-10 HTTP-12 HTTP-95 CLI-18 CLI-71 CLI-72
#[test]
fn many_clients_share_one_server_that_follows_the_files() {
    let site = site();
    site.configure("[transport.http]\n");
    let arguments = ["--port", "0", "--debounce-ms", "30"];
    let server = HttpServer::spawn(&site, site.command("serve", &arguments));
    crate::site::wait_for("it watches", || server.log().contains("watching"));
    let finds = |query: &str, path: &str| {
        server.call("search", &json!({"query": query})).body.contains(path)
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(finds("tunnel certificate", "it/vpn.md"));
                }
            });
        }
    });
    site.base.write("it/fax.md", "# Fax\n\nThe fax stands beside the window.\n");
    crate::site::wait_for("the new file is found", || finds("\"window\"", "it/fax.md"));
    assert_eq!(server.printed(), "");
    assert!(server.log().contains("serving over HTTP, listening on 127.0.0.1:"));
}

/// Whatever comes, an answer has a status.
#[test]
fn an_answer_is_read_whole_by_these_tests() {
    let mut bytes: &[u8] =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    let Answer { status, body, .. } = read_answer(&mut bytes);
    assert_eq!((status, body.as_str()), (200, "abc"));
}
