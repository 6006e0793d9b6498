//! The connection graph of the built program, on the command line and over MCP.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::groove::{stderr, stdout, told};
use crate::server::Server;
use crate::site::Site;

const FORMATS: [&str; 5] = ["text", "dot", "svg", "mermaid", "graphml"];

/// An indexed knowledge base in which some documents share words.
fn site() -> Site {
    let site = Site::new();
    for (path, text) in [
        (
            "sea/tides.md",
            "---\ntitle: Tides\n---\n## Harbour\n\nThe harbour tide turns twice every single day.\n\n\
             ## Fog\n\nThick morning fog closes the harbour for every ferry.\n",
        ),
        ("sea/ferry.md", "## Ferry\n\nThe ferry leaves the harbour with the tide every morning.\n"),
        (
            "sea/signals.md",
            "## \"Fog\" & <b>signals</b> \\ ]]>\n\nThick morning fog needs signals.\n",
        ),
        ("land/bread.md", "## Bread\n\nKnead sourdough dough, then bake bread inside ovens.\n"),
    ] {
        site.replace(path, Some(text));
    }
    site.indexed(&[]);
    site
}

fn graph(site: &Site, arguments: &[&str]) -> String {
    let output = site.run("graph", arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

fn parsed(site: &Site, arguments: &[&str]) -> Value {
    serde_json::from_str(&graph(site, arguments)).unwrap()
}

fn paths(graph: &Value) -> Vec<&str> {
    let nodes = graph["nodes"].as_array().unwrap();
    nodes.iter().map(|node| node["path"].as_str().unwrap()).collect()
}

// GRAPH-01 GRAPH-14 GRAPH-50 GRAPH-54 GRAPH-B06 CLI-15 CLI-24 CLI-130
#[test]
fn a_graph_is_json_on_standard_output_and_takes_no_model() {
    let site = site();
    let graph = parsed(&site, &["--start", "sea/tides.md"]);
    assert_eq!(graph["start_path"], "sea/tides.md");
    assert_eq!(graph["truncated"], false);
    assert_eq!(graph["truncation"], json!([]));
    let nodes = graph["nodes"].as_array().unwrap();
    assert_eq!(graph["stats"]["total_nodes"], json!(nodes.len()));
    assert_eq!(graph["stats"]["seeds_used"], 2);
    for (place, node) in nodes.iter().enumerate() {
        assert_eq!(node["node_id"], json!(place));
        assert!(node.get("uri").is_none());
    }
    assert_eq!(paths(&graph)[..2], ["sea/tides.md", "sea/tides.md"]);
    let found: BTreeSet<&str> = paths(&graph)[2..].iter().copied().collect();
    assert_eq!(found, BTreeSet::from(["sea/ferry.md", "sea/signals.md"]));
    assert_eq!(nodes[0]["title"], "Tides");
    assert!(site.fake.take().is_empty(), "the endpoint was asked");
}

// GRAPH-07 GRAPH-08 GRAPH-B01 GRAPH-06 GRAPH-09
#[test]
fn flags_reach_the_walk() {
    let site = site();
    let start = ["--start", "sea/tides.md"];
    let of = |more: &[&str]| parsed(&site, &[&start, more].concat());
    assert!(!paths(&of(&["--exclude-paths", "sea/ferry.md,x.md"])).contains(&"sea/ferry.md"));
    assert!(!paths(&of(&["--exclude-glob", "*/f*"])).contains(&"sea/ferry.md"));
    assert_eq!(
        paths(&of(&["--category", "land", "--min-similarity", "0"]))[2..],
        ["land/bread.md"]
    );
    assert_eq!(paths(&of(&["--depth", "0"])).len(), 2);
    let full = of(&["--max-nodes", "1"]);
    assert_eq!(full["truncation"][0]["reason"], "node_budget");
    assert_eq!(full["truncation"][0]["limit"], 1);
    let centroid = of(&["--seed-strategy=centroid"]);
    assert_eq!(centroid["stats"]["seeds_used"], 2);
    assert_eq!(paths(&centroid).iter().filter(|path| **path == "sea/tides.md").count(), 1);
}

// GRAPH-21 GRAPH-67 CLI-21 CLI-32
#[test]
fn a_start_that_is_not_in_the_index_is_named_with_what_is_near() {
    let site = site();
    for start in ["./sea/tides.md", "sea/Tides.md", "sea/tides.md/", "tides.md"] {
        for format in ["json", "svg"] {
            let output = site.run("graph", &["--start", start, "--format", format]);
            assert_eq!(output.status.code(), Some(1));
            assert_eq!(stdout(&output), "");
            let told = told(&output);
            assert!(told.contains(start), "{told}");
            assert!(told.contains("did you mean \"sea/tides.md\"?"), "{told}");
            assert!(told.contains("groove index"), "{told}");
        }
    }
}

// GRAPH-14 GRAPH-08 CLI-32 CLI-21
#[test]
fn without_an_index_the_place_and_the_remedy_are_named() {
    let site = Site::new();
    let output = site.run("graph", &["--start", "a.md"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let told = told(&output);
    assert!(told.contains(".groove.db") && told.contains("groove index"), "{told}");
    assert!(!site.base.index().exists(), "asking makes no index");
    // What is wrong with the request is told before the index is looked for.
    let output = site.run("graph", &["--start", "a.md", "--exclude-paths", &"x".repeat(1025)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("exclude_paths"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("No index"), "{}", stderr(&output));
}

// GRAPH-14 IDX-112 IDX-113
#[test]
fn an_index_of_another_model_is_refused() {
    let site = site();
    let arguments = ["--start", "sea/tides.md", "--model", "bge-small-en-v1.5"];
    let output = site.run("graph", &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("bge-small-en-v1.5"), "{}", stderr(&output));
}

// GRAPH-11 GRAPH-70 GRAPH-71 GRAPH-72 GRAPH-73 GRAPH-74 GRAPH-B07
#[test]
fn every_format_comes_from_the_same_walk_and_says_what_was_lost() {
    let site = site();
    let arguments = ["--start", "sea/tides.md", "--max-nodes", "4"];
    let of = |format: &str| {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--format", format]);
        graph(&site, &arguments)
    };
    let walk = parsed(&site, &arguments);
    let count = walk["nodes"].as_array().unwrap().len();
    let hops = walk["nodes"].as_array().unwrap().iter().filter(|it| !it["parent_id"].is_null());
    let hops = hops.count();
    assert_eq!((count, hops), (4, 2));
    for format in FORMATS {
        let text = of(format);
        for path in paths(&walk) {
            assert!(text.contains(path), "{format}: {path}\n{text}");
        }
        let words = text.replace("#95;", "_").replace("#40;", "(").replace("#41;", ")");
        assert!(words.contains("node_budget"), "{format}: {text}");
    }
    assert_eq!(of("text").matches("\n[").count(), count);
    let dot = of("dot");
    assert_eq!(dot.matches("fillcolor=").count(), count);
    assert_eq!(dot.matches(" -> ").count(), hops);
    assert_eq!(of("mermaid").matches(" -->").count(), hops);

    let svg = of("svg");
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let of_name = |name: &str| svg.descendants().filter(|it| it.has_tag_name(name)).count();
    assert_eq!((of_name("title"), of_name("path")), (count, hops));
    let rings = graph(&site, &[&arguments[..], &["--format=svg", "--layout=radial"]].concat());
    let rings = roxmltree::Document::parse(&rings).unwrap();
    assert_eq!(rings.descendants().filter(|it| it.has_tag_name("circle")).count(), count);
    let graphml = of("graphml");
    let graphml = roxmltree::Document::parse(&graphml).unwrap();
    assert_eq!(graphml.descendants().filter(|it| it.has_tag_name("node")).count(), count);
}

// GRAPH-71
#[test]
fn graphviz_draws_what_is_written_for_it() {
    let site = site();
    let text = graph(&site, &["--start", "sea/signals.md", "--format", "dot"]);
    let started = Command::new("dot")
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut graphviz) = started else {
        println!("Graphviz is not here: nothing was drawn");
        return;
    };
    std::io::Write::write_all(&mut graphviz.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let drawn = graphviz.wait_with_output().unwrap();
    assert!(drawn.status.success(), "{}\n{text}", stderr(&drawn));
    assert_eq!(stderr(&drawn), "");
    let picture = stdout(&drawn);
    // The document type names what is not to be fetched.
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let picture = roxmltree::Document::parse_with_options(&picture, options).unwrap();
    let texts: Vec<&str> = picture.descendants().filter_map(|it| it.text()).collect();
    assert!(texts.contains(&"#\"Fog\" & <b>signals</b> \\ ]]>"), "{texts:?}");
}

// GRAPH-05 GRAPH-12 CLI-22
#[test]
fn a_value_that_cannot_be_one_ends_with_two() {
    let site = Site::new();
    for arguments in [
        &["--start", "a.md", "--seed-strategy", "both"][..],
        &["--start", "a.md", "--depth", "-1"],
        &[],
    ] {
        let output = site.run("graph", arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "");
    }
    let help = stdout(&site.run("graph", &["--help"]));
    assert!(help.contains("all-chunks") && help.contains("centroid"), "{help}");
}

// MCP-59 MCP-75 GRAPH-11 GRAPH-44 GRAPH-67 CLI-213 CLI-124
#[test]
fn the_tool_answers_as_the_command_does_and_warns_of_each_cut() {
    let site = site();
    let expected = parsed(&site, &["--start", "sea/tides.md"]);
    let mut server = Server::start_with(&site, &["--no-watch"]);
    let mut ask = |arguments: Value| server.call("get_connection_graph", &arguments);
    let (mut answer, failed) = ask(json!({"start": "sea/tides.md"}));
    assert!(!failed, "{answer}");
    answer["stats"]["duration_ms"] = expected["stats"]["duration_ms"].clone();
    // Only clients of the tool can open an address.
    for node in answer["nodes"].as_array_mut().unwrap() {
        let path = node["path"].as_str().unwrap();
        assert_eq!(node["uri"], format!("kb://doc/{path}"));
        node.as_object_mut().unwrap().remove("uri");
    }
    assert_eq!(answer, expected);
    let (cut, _) = ask(json!({
        "start": "sea/tides.md", "max_nodes": 1, "seed_strategy": "all_chunks",
    }));
    assert_eq!(cut["truncated"], true);
    let (refused, failed) = ask(json!({"start": "sea/Tides.md"}));
    assert!(failed, "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("sea/tides.md"), "{refused}");
    assert_eq!(refused.as_object().unwrap().len(), 1);
    let log = server.log();
    let cuts: Vec<&str> = log.lines().filter(|line| line.contains("was cut short")).collect();
    assert_eq!(cuts.len(), 1, "{log}");
    assert!(cuts[0].contains("WARN") && cuts[0].contains("node_budget"), "{}", cuts[0]);
    server.stop();
}

/// Flags that have no parameter: where the index is and what it was made with,
/// and what the answer looks like.
const UNPAIRED: [&str; 6] = ["kb-path", "model", "config", "format", "layout", "help"];

/// Flags that may be repeated; their parameters are lists, named in the plural.
const REPEATED: [&str; 4] = ["exclude-glob", "path-glob", "field", "field-not"];

// CLI-06 CLI-210 CLI-213 CLI-218 GRAPH-11
#[test]
fn every_flag_has_its_parameter_and_every_parameter_its_flag() {
    let site = Site::new();
    let help = stdout(&site.run("graph", &["--help"]));
    let lines = help.lines().map(str::trim_start);
    let flags: BTreeSet<String> = lines
        .filter_map(|line| line.strip_prefix("-h, ").unwrap_or(line).strip_prefix("--"))
        .map(|line| line.split([' ', '=']).next().unwrap().to_owned())
        .filter(|flag| !UNPAIRED.contains(&flag.as_str()))
        .collect();
    let paired: BTreeSet<String> = flags
        .iter()
        .map(|flag| match flag.as_str() {
            "field-not" => "fields_not".to_owned(),
            "tag-any" | "tag-all" => flag.replace("tag-", "tags_"),
            flag if REPEATED.contains(&flag) => format!("{}s", flag.replace('-', "_")),
            flag => flag.replace('-', "_"),
        })
        .collect();
    let mut server = Server::start_with(&site, &["--no-watch"]);
    let tools = server.tools();
    let tool = tools.iter().find(|tool| tool["name"] == "get_connection_graph").unwrap();
    let parameters = tool["inputSchema"]["properties"].as_object().unwrap();
    assert_eq!(paired, parameters.keys().cloned().collect());
    for flag in REPEATED {
        assert!(help.contains(&format!("--{flag} ")), "{flag}");
    }
    server.stop();
}

// GRAPH-B03
#[test]
fn a_graph_is_answered_while_the_index_is_written() {
    let site = site();
    for number in 0..40 {
        let text =
            format!("## Part {number}\n\nThe harbour holds boats and nets number {number}.\n");
        site.replace(&format!("more/{number}.md"), Some(&text));
    }
    site.slow(Duration::from_millis(1500));
    let mut run = site.command("index", &["--quiet"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut answered = 0;
    while run.try_wait().unwrap().is_none() {
        let graph = parsed(&site, &["--start", "sea/tides.md"]);
        assert!(paths(&graph).contains(&"sea/ferry.md"), "{graph}");
        answered += 1;
    }
    assert!(answered > 1, "{answered}");
}
