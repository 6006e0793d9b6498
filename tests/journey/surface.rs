//! The surface that others build on: help texts, JSON shapes, and how flags and
//! the parameters of tools belong together.
//!
//! Snapshots lie in `snapshots/`; with `UPDATE_SNAPSHOTS=1` a run writes them
//! anew, and the difference is for its author to judge.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::groove::{Base, stderr, stdout};
use crate::server::Server;
use crate::site::Site;

/// Compares a text with the one that is kept under a name.
#[track_caller]
fn assert_snapshot(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journey/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(kept, text, "{name} has changed; if that is meant, set UPDATE_SNAPSHOTS=1");
}

/// Every command, as its help lists those below it.
fn commands() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut next = 0;
    while next < all.len() {
        let words: Vec<String> = all[next].clone();
        let help = help(&words);
        let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
        for line in listed.lines().take_while(|line| !line.is_empty()) {
            let indented = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
            if let Some(name) = indented.and_then(|line| line.split_whitespace().next()) {
                all.push(words.iter().cloned().chain([name.to_owned()]).collect());
            }
        }
        next += 1;
    }
    all
}

fn help(words: &[String]) -> String {
    let base = Base::new(&[]);
    let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    arguments.push("--help");
    let output = base.bare(&arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    stdout(&output)
}

// CLI-02 CLI-03
#[test]
fn the_help_of_every_command_is_the_one_that_was_reviewed() {
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    let mut text = String::new();
    for words in &commands {
        let help = help(words);
        assert!(help.is_ascii(), "{words:?}: {help}");
        let title = format!("groove {}", words.join(" "));
        text.extend(["===== ", title.trim_end(), "\n", &help, "\n"]);
        if words.is_empty() {
            assert!(help.contains("Documentation: "), "{help}");
        }
    }
    assert_snapshot("help.txt", &text);
}

/// The long flags of a command.
fn flags(command: &str) -> BTreeSet<String> {
    let help = help(&[command.to_owned()]);
    let flag = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("-h, ").unwrap_or(line);
        let name = line.strip_prefix("--")?;
        let end = name.find([' ', '=']).unwrap_or(name.len());
        Some(name[..end].to_owned())
    };
    let common = ["help", "config", "kb-path", "model"];
    help.lines().filter_map(flag).filter(|flag| !common.contains(&flag.as_str())).collect()
}

/// The parameters of a tool.
fn parameters(tools: &[Value], tool: &str) -> BTreeSet<String> {
    let tool = tools.iter().find(|one| one["name"] == tool).unwrap();
    tool["inputSchema"]["properties"].as_object().unwrap().keys().cloned().collect()
}

/// The parameter of a flag: the same words, a repeatable one in the plural.
fn parameter_of(flag: &str) -> String {
    match flag {
        "path-glob" => "path_globs".to_owned(),
        "exclude-glob" => "exclude_globs".to_owned(),
        "tag-any" => "tags_any".to_owned(),
        "tag-all" => "tags_all".to_owned(),
        "field" => "fields".to_owned(),
        "field-not" => "fields_not".to_owned(),
        other => other.replace('-', "_"),
    }
}

/// Flags and parameters that have no partner, each with the reason.
const UNPAIRED: &[(&str, &str, &str)] = &[
    ("search", "format", "a tool always answers in JSON"),
    ("search", "reranker", "a tool takes the reranker that the server was started with"),
    ("search", "query", "is the argument of the command"),
    ("search", "rerank", "the command takes the model instead"),
    ("search", "detail", "bounds what an assistant has to read"),
    ("search", "max_tokens", "bounds what an assistant has to read"),
    ("graph", "format", "a tool always answers in JSON"),
    ("graph", "layout", "belongs to a format that is a picture"),
    ("index", "quiet", "a tool answers with counters"),
    ("index", "progress", "a tool sends notifications instead"),
];

// CLI-210 CLI-212 CLI-213 CLI-214 CLI-215 CLI-216 CLI-218 CLI-160
#[test]
fn every_flag_has_its_parameter_or_a_reason_to_have_none() {
    let site = Site::new();
    let mut server = Server::start_with(&site, &["--no-watch"]);
    let tools = server.tools();
    for (command, tool) in
        [("search", "search"), ("graph", "get_connection_graph"), ("index", "rebuild_index")]
    {
        let alone = |name: &str| UNPAIRED.iter().any(|(of, one, _)| *of == command && *one == name);
        let parameters = parameters(&tools, tool);
        let flags = flags(command);
        assert!(!flags.is_empty());
        let paired: BTreeSet<String> =
            flags.iter().filter(|flag| !alone(flag)).map(|flag| parameter_of(flag)).collect();
        let expected: BTreeSet<String> =
            parameters.iter().filter(|name| !alone(name)).cloned().collect();
        assert_eq!(paired, expected, "{command} and {tool}");
    }
    let named: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for command in ["status", "doctor", "validate", "eval", "tune", "service"] {
        assert!(!named.contains(&command), "{command} is no tool");
    }
    server.stop();
}

/// The shape of a value: its keys, and the kinds of what they hold.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(_) => json!("boolean"),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("string"),
        Value::Array(items) => json!(items.first().map(shape).into_iter().collect::<Vec<_>>()),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), shape(value))).collect()
        }
    }
}

fn answer(site: &Site, command: &str, arguments: &[&str]) -> Value {
    let output = site.run(command, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

// CLI-112 CLI-130 CLI-15
#[test]
fn the_shapes_of_answers_are_the_ones_that_were_reviewed() {
    let site = Site::new();
    let text = "---\ntitle: A\ndate: 2026-01-02\ntags: [x]\n---\n# A\n\nThe event store keeps \
                every event, in the order of its arrival, for as long as anybody may ask.\n";
    site.base.write("ops/store/a.md", text);
    site.base
        .write("ops/store/b.md", text.replace("title: A", "title: B").replace("keeps", "holds"));
    site.indexed(&[]);
    let mut all = serde_json::Map::new();
    let mut keep = |name: &str, value: Value| all.insert(name.to_owned(), shape(&value));
    let filters = ["--tag-any", "x", "--path-glob", "ops/**", "--date-from", "2026-01-01"];
    let mut arguments = filters.to_vec();
    arguments.extend(["--", "event store"]);
    keep("groove search", answer(&site, "search", &arguments));
    let start = ["--start", "ops/store/a.md", "--min-similarity", "0"];
    keep("groove graph", answer(&site, "graph", &start));
    keep("groove explain", answer(&site, "explain", &["--format", "json", "ops/store/a.md"]));
    let output = site.base.bare(&["config", "check", "--format", "json"]).output().unwrap();
    let mut checked: Value = serde_json::from_str(&stdout(&output)).unwrap();
    checked["settings"].as_array_mut().unwrap().retain(|one| one["key"] == "model");
    keep("groove config check", checked);
    let output = site.base.bare(&["models", "list", "--format", "json"]).output().unwrap();
    keep("groove models list", serde_json::from_str(&stdout(&output)).unwrap());
    assert_snapshot("shapes.json", &(format!("{:#}", Value::Object(all)) + "\n"));
}

// CLI-03
#[test]
fn completions_and_manual_pages_know_every_command() {
    let base = Base::new(&[]);
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = base.bare(&["completions", shell]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        let script = stdout(&output);
        for word in ["parent-retriever", "rebuild", "tray-install", "explain"] {
            let expected = word != "rebuild";
            assert_eq!(script.contains(word), expected, "{shell}: {word}");
        }
    }
    let page = base.bare(&["man"]).output().unwrap();
    assert!(stdout(&page).contains(".TH groove 1"), "{}", stdout(&page));
    let folder: PathBuf = base.home().join("man");
    let made = base.bare(&["man", "--out", folder.to_str().unwrap()]).output().unwrap();
    assert!(made.status.success() && made.stdout.is_empty(), "{}", stderr(&made));
    for words in commands() {
        let name = std::iter::once("groove".to_owned()).chain(words).collect::<Vec<_>>().join("-");
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap_or_default();
        assert!(page.contains(".TH"), "{name}.1");
    }
}

// CLI-10 CLI-01 CLI-11 CFG-70e
#[test]
fn one_variable_sets_what_is_logged_and_the_log_goes_to_standard_error() {
    let base = Base::new(&[]);
    let log = |filter: Option<&str>| {
        let mut command = base.groove("status", &[]);
        if let Some(filter) = filter {
            command.env("RUST_LOG", filter);
        }
        let output = command.output().unwrap();
        assert!(output.stdout.is_empty());
        stderr(&output)
    };
    assert!(log(None).contains("loaded config") && log(None).contains("source=NotFound"));
    assert!(!log(Some("warn")).contains("loaded config"));
    assert!(log(Some("grooveseek=debug")).contains("grooveseek::config"));
    assert!(!log(Some("grooveseek=off")).contains("loaded config"));
}

// CLI-17 HTTP-10 HTTP-11
#[test]
fn a_server_over_standard_output_prints_messages_and_nothing_else() {
    let site = Site::new();
    let mut child = site
        .command("serve", &["--no-watch"])
        .env("RUST_LOG", "trace")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let client = json!({"name": "test", "version": "0"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let search = json!({"name": "search", "arguments": {"query": "anything"}});
    let mut input = child.stdin.take().unwrap();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "not a message".to_owned(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search}).to_string(),
        json!({"jsonrpc": "2.0", "id": 3, "method": "no/such"}).to_string(),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(printed.lines().count() >= 4, "{printed}");
    for line in printed.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
    assert!(stderr(&output).contains(" TRACE "), "the log goes elsewhere");
}
