//! Wrong invocations and wrong configurations: each ends with the promised
//! status, one message on standard error, and nothing on standard output.

use std::fs;
use std::process::Output;

use crate::groove::{Base, stderr, stdout, told};

/// What is wrong with a command line: the arguments, and a word of the answer.
type Wrong = (&'static [&'static str], &'static str);

/// Lines that cannot be understood.
const NOT_UNDERSTOOD: &[Wrong] = &[
    (&["indx"], "indx"),
    (&["--kb-path", "kb"], "--kb-path"),
    (&["status", "--config"], "--config"),
    (&["index", "--quiet", "--progress"], "--progress"),
    (&["index", "--force=yes"], "--force"),
    (&["index", "--kb-path"], "--kb-path"),
    (&["index", "notes"], "notes"),
    (&["index", "--model"], "--model"),
    (&["index", "--reranker", "none"], "--reranker"),
    (&["search"], "QUERY"),
    (&["search", "a", "b"], "'b'"),
    (&["search", "-async"], "-a"),
    (&["search", "q", "--limit", "-1"], "-1"),
    (&["search", "q", "--limit", "x"], "--limit"),
    (&["search", "q", "--limit", "4294967296"], "--limit"),
    (&["search", "q", "--limit", "1.5"], "--limit"),
    (&["search", "q", "--limit", "1", "--limit", "2"], "--limit"),
    (&["search", "q", "--format", "xml"], "--format"),
    (&["search", "q", "--format", ""], "--format"),
    (&["search", "q", "--field", "status"], "--field"),
    (&["search", "q", "--field-not", "status"], "--field-not"),
    (&["search", "q", "--min-quality", "high"], "--min-quality"),
    (&["search", "q", "--include-low-quality=true"], "--include-low-quality"),
    (&["search", "q", "--min-confidence-ratio", "-1"], "--min-confidence-ratio"),
    (&["search", "q", "--min-confidence-ratio", "NaN"], "--min-confidence-ratio"),
    (&["search", "q", "--mmr"], "--mmr"),
    (&["search", "q", "--mmr", "yes"], "--mmr"),
    (&["search", "q", "--mmr-lambda", "x"], "--mmr-lambda"),
    (&["search", "q", "--mmr-same-doc-penalty", "x"], "--mmr-same-doc-penalty"),
    (&["search", "q", "--parent-retriever", "1"], "--parent-retriever"),
    (&["search", "q", "--reranker", "bge"], "--reranker"),
    (&["search", "q", "--reranker", "BGE-BASE"], "--reranker"),
    (&["search", "q", "--path-globs", "a"], "--path-globs"),
    (&["search", "q", "--tags-any", "a"], "--tags-any"),
    (&["search", "q", "--path_glob", "a"], "--path_glob"),
    (&["search", "q", "--rerank", "true"], "--rerank"),
    (&["graph"], "--start"),
    (&["graph", "a.md"], "a.md"),
    (&["graph", "--start"], "--start"),
    (&["graph", "--start", "a.md", "--depth", "x"], "--depth"),
    (&["graph", "--start", "a.md", "--fan-out", "-2"], "-2"),
    (&["graph", "--start", "a.md", "--seed-strategy", "all"], "--seed-strategy"),
    (&["graph", "--start", "a.md", "--order", "random"], "--order"),
    (&["graph", "--start", "a.md", "--format", "png"], "--format"),
    (&["graph", "--start", "a.md", "--layout", "round"], "--layout"),
    (&["graph", "--start", "a.md", "--max-nodes", "many"], "--max-nodes"),
    (&["graph", "--start", "a.md", "--time-budget-ms", "-1"], "-1"),
    (&["serve", "--transport", "tcp"], "--transport"),
    (&["serve", "--port", "65536"], "--port"),
    (&["serve", "--port", "http"], "--port"),
    (&["serve", "--bind", "localhost"], "--bind"),
    (&["serve", "--bind", "127.0.0.1"], "--bind"),
    (&["serve", "--rerank-by-default"], "--rerank-by-default"),
    (&["serve", "--rerank-by-default", "2"], "--rerank-by-default"),
    (&["serve", "--debounce-ms", "-1"], "-1"),
    (&["serve", "--debounce-ms", "soon"], "--debounce-ms"),
    (&["serve", "--no-watch=true"], "--no-watch"),
    (&["serve", "--i-know=true"], "--i-know"),
    (&["serve", "--reranker"], "--reranker"),
    (&["serve", "--limit", "3"], "--limit"),
    (&["status", "--format", "json"], "--format"),
    (&["status", "kb"], "kb"),
    (&["status", "--quality=all"], "--quality"),
    (&["serve", "--port", "1", "--bind", "127.0.0.1:1"], "--bind"),
    (&["serve", "--systemd-socket", "--port", "1"], "--systemd-socket"),
    (&["serve", "--systemd-socket=true"], "--systemd-socket"),
    (&["doctor", "--format", "xml"], "--format"),
    (&["doctor", "--fix"], "--fix"),
    (&["doctor", "kb"], "kb"),
    (&["doctor", "--model", "bge-m3"], "--model"),
    (&["validate", "--format", "xml"], "--format"),
    (&["validate", "--schema"], "--schema"),
    (&["validate", "--strict=true"], "--strict"),
    (&["validate", "a.md"], "a.md"),
    (&["validate", "--no-colour"], "--no-colour"),
    (&["models"], "Commands:"),
    (&["models", "get"], "get"),
    (&["models", "pull"], "<NAME>"),
    (&["models", "list", "--format", "xml"], "--format"),
    (&["models", "pull", "x", "--engine", "gpu"], "--engine"),
    (&["models", "import"], "<SOURCE>"),
    (&["explain"], "<PATH>"),
    (&["explain", "a.md", "b.md"], "b.md"),
    (&["explain", "a.md", "--format", "xml"], "--format"),
    (&["config"], "Commands:"),
    (&["config", "show"], "show"),
    (&["config", "check", "--format", "toml"], "--format"),
    (&["completions"], "<SHELL>"),
    (&["completions", "tcsh"], "tcsh"),
    (&["man", "index"], "index"),
    (&["eval", "--k", "1,x"], "--k"),
    (&["eval", "--k", "-1"], "-1"),
    (&["eval", "--limit", "x"], "--limit"),
    (&["eval", "--format", "github"], "--format"),
    (&["eval", "--mmr"], "--mmr"),
    (&["eval", "--reranker", "x"], "--reranker"),
    (&["eval", "--no-history=true"], "--no-history"),
    (&["tune", "--reranker", "none"], "--reranker"),
    (&["tune", "--k", "a"], "--k"),
    (&["tune", "--no-history"], "--no-history"),
    (&["service"], "Commands:"),
    (&["service", "start"], "start"),
    (&["service", "stop"], "stop"),
    (&["service", "install", "mine"], "mine"),
    (&["service", "uninstall", "mine"], "mine"),
    (&["service", "status", "mine"], "mine"),
    (&["service", "status", "--service-name", "a b"], "--service-name"),
    (&["service", "status", "--service-name", ""], "--service-name"),
    (&["service", "status", "--service-name", "../x"], "--service-name"),
    (&["service", "install", "--service-name", "a.b"], "--service-name"),
    (&["service", "install", "--bind", "localhost:80"], "--bind"),
    (&["service", "uninstall", "--force"], "--force"),
    (&["service", "tray-uninstall", "--force"], "--force"),
    (&["service", "tray-install", "--service-name", "\u{e4}"], "--service-name"),
    (&["service", "list", "--service-name", "x"], "--service-name"),
];

/// Lines that are understood and refused, on a knowledge base without an index.
const REFUSED: &[Wrong] = &[
    (&["index", "--kb-path", "gone"], "gone"),
    (&["index", "--kb-path", "kb/a.md"], "not a folder"),
    (&["index", "--kb-path", "/"], "file system"),
    (&["index"], "--kb-path is required"),
    (&["serve"], "--kb-path is required"),
    (&["search", "q"], "--kb-path is required"),
    (&["graph", "--start", "a.md"], "--kb-path is required"),
    (&["status"], "--kb-path is required"),
    (&["explain", "a.md"], "--kb-path is required"),
    (&["eval"], "--kb-path is required"),
    (&["tune"], "--kb-path is required"),
    (&["status", "--kb-path", "kb", "--config", "gone.toml"], "gone.toml"),
    (&["status", "--kb-path", "kb", "--config", "kb"], "is a folder"),
    (&["index", "--kb-path", "kb", "--model", "bge-big"], "bge-big"),
    (&["index", "--kb-path", "kb", "--model", ""], "model"),
    (&["index", "--kb-path", "kb", "--model", "dir:relative"], "dir:"),
    (&["search", "q", "--kb-path", "kb"], "No index found"),
    (&["search", "--kb-path", "kb", "--", "-only -excluded"], "query"),
    (&["search", "q", "--kb-path", "kb", "--mmr-lambda", "1.5"], "lambda"),
    (&["search", "q", "--kb-path", "kb", "--mmr-lambda", "NaN"], "lambda"),
    (&["search", "q", "--kb-path", "kb", "--mmr-same-doc-penalty", "-0.5"], "penalty"),
    (&["search", "q", "--kb-path", "kb", "--path-glob", "[a"], "[a"),
    (&["graph", "--start", "a.md", "--kb-path", "kb"], "No index found"),
    (&["serve", "--kb-path", "kb", "--port", "3100"], "--transport http"),
    (&["serve", "--kb-path", "kb", "--bind", "127.0.0.1:0"], "--transport http"),
    (&["serve", "--kb-path", "kb", "--transport", "http", "--bind", "0.0.0.0:0"], "--i-know"),
    (&["serve", "--kb-path", "kb", "--systemd-socket"], "--transport http"),
    (&["validate"], "--kb-path is required"),
    (&["eval", "--kb-path", "kb"], ".groove-eval.yml"),
    (&["eval", "--kb-path", "kb", "--golden", "gone.yml"], "gone.yml"),
    (&["eval", "--kb-path", "kb", "--mmr-lambda", "2"], "--mmr-lambda"),
    (&["eval", "--kb-path", "kb", "--golden", "kb/a.md"], "in this version"),
    (&["tune", "--kb-path", "kb"], "--golden"),
    (&["service", "install", "--with-tray"], "Windows only"),
    (&["service", "tray-install"], "Windows only"),
    (&["service", "tray-uninstall"], "Windows only"),
    (&["service", "list"], "this version"),
];

/// Configurations that are refused, each with a word of the answer.
const MISCONFIGURED: &[(&str, &str)] = &[
    ("modle = 'bge-m3'", "model"),
    ("[serach]\n", "[search]"),
    ("[search.mmr]\nlamda = 0.5", "lambda"),
    ("kb_path = 5", "kb_path"),
    ("kb_path = ''", "kb_path"),
    ("model = 'gpt'", "bge-small-en-v1.5"),
    ("reranker = 'x'", "bge-base"),
    ("rerank_by_default = 1", "true or false"),
    ("fastembed_cache_dir = 'x'", "absolute"),
    ("fastembed_cache_dir = '~/x'", "~"),
    ("grammar_dir = 'x'", "absolute"),
    ("exclude_headings = 'x'", "list"),
    ("exclude_dirs = [1]", "list"),
    ("[parsers]\nenabled = []", "md"),
    ("[parsers]\nenabled = ['rst']", "rst"),
    ("[parsers]\nenabled = ['xls']", ".xlsx"),
    ("[parsers]\nenabled = ['md', 'MD']", "twice"),
    ("[parsers.code]\nmax_chunk_chars = 29", "30"),
    ("[embedding]\nprovider = 'x'", "openai-compatible"),
    ("[embedding]\nprovider = 'openai-compatible'", "endpoint"),
    ("[embedding]\nendpoint = 'https://h/v1'", "openai-compatible"),
    ("[embedding]\ndimension = 3", "openai-compatible"),
    ("model = 'bge-m3'\n[embedding]\nmodel = 'bge-m3'", "model"),
    ("[index]\nmax_text_file_size = 0", "unlimited"),
    ("[index]\nmax_text_file_size = '1.5 MB'", "KiB"),
    ("[index]\non_serve = 'x'", "build"),
    ("[quality_filter]\nthreshold = 'x'", "number"),
    ("[quality_filter]\nsignals = ['x']", "heading"),
    ("[search]\nmin_confidence_ratio = -1", "min_confidence_ratio"),
    ("[search]\nmin_confidence_ratio = nan", "min_confidence_ratio"),
    ("[search.mmr]\nlambda = 1.5", "lambda"),
    ("[search.fusion]\nrrf_k = 0.5", "rrf_k"),
    (
        "search.fusion = { bm25_heading_weight = 0, bm25_context_weight = 0, bm25_content_weight = 0 }",
        "not all three",
    ),
    ("[search.parent_retriever]\nmax_expanded_tokens = 50", "whole_doc_threshold_tokens"),
    ("[watch]\ndebounce_ms = -1", "debounce_ms"),
    ("[watch]\nmode = 'x'", "poll"),
    ("[watch]\npoll_interval_ms = 1", "500"),
    ("[transport]\nkind = 'tcp'", "stdio"),
    ("[transport.http]\nbind = 'x'", "127.0.0.1:3100"),
    ("[transport.http]\nmax_sessions = -1", "max_sessions"),
    ("[eval]\nk_values = []", "k_values"),
    ("[eval]\nk_values = [0]", "k_values"),
    ("[eval]\nhistory_size = -1", "history_size"),
    ("[eval]\nregression_threshold = inf", "regression_threshold"),
    ("[transport.http]\nallowed_hosts = 'x'", "list"),
    ("[transport.http]\nmetrics = 1", "true or false"),
    ("[transport.http]\nmax_in_flight = -1", "max_in_flight"),
    ("[transport.http]\nheader_timeout_secs = 86401", "86400"),
    ("[best_practice]\npath_templates = 'x'", "list"),
    ("[contextual]\nenabled = 1", "true or false"),
    ("[watch]\nenabled = 'x'", "true or false"),
    ("[eval]\ngolden = 1", "golden"),
    ("[index]\nrequire_owner = 'x'", "true or false"),
    ("[search]\nmax_embed_wait_ms = -1", "max_embed_wait_ms"),
    ("[[search]]\n", "[search]"),
    ("search = 1", "[search]"),
    ("model = 'a'\nmodel = 'b'", "TOML"),
    ("model = ", "TOML"),
    ("\"search.mmr\" = 1", "unknown key"),
];

fn base() -> Base {
    Base::new(&[("a.md", "# A\n\ntext")])
}

/// The answer to a wrong line: its words, if nothing else was said or done.
#[track_caller]
fn refusal(base: &Base, output: &Output, status: i32) -> String {
    let (out, told) = (stdout(output), told(output));
    assert_eq!(output.status.code(), Some(status), "{told}");
    assert_eq!(out, "", "{told}");
    assert_eq!(told.matches("error:").count(), 1, "{told}");
    assert!(!base.index().exists(), "{told}");
    told
}

// CLI-22 CLI-21 CLI-06 CLI-07 CLI-45 CLI-205 OPS-11
#[test]
fn what_cannot_be_understood_ends_with_two_and_names_the_argument() {
    let base = base();
    for (arguments, word) in NOT_UNDERSTOOD {
        let output = base.bare(arguments).output().unwrap();
        if *word == "Commands:" {
            // What asks for a command below it is answered with the list of them.
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert!(stderr(&output).contains(word) && stdout(&output).is_empty(), "{arguments:?}");
            continue;
        }
        let told = refusal(&base, &output, 2);
        assert!(told.contains(word), "{arguments:?}: {told}");
    }
}

// CLI-22 CLI-21 CLI-12 CLI-13 CLI-04 CLI-106 CLI-111 CLI-206 CLI-228 OPS-90
#[test]
fn what_is_refused_ends_with_one_and_one_line_that_names_it() {
    let base = base();
    for (arguments, word) in REFUSED {
        let output = base.bare(arguments).output().unwrap();
        let told = refusal(&base, &output, 1);
        assert!(told.contains(word), "{arguments:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{arguments:?}: {told}");
    }
}

// CFG-02 CFG-03 CLI-13 CLI-225
#[test]
fn a_configuration_that_cannot_be_used_stops_every_command_with_one_line() {
    let base = base();
    let file = base.kb().with_file_name("own.toml");
    let commands: [&[&str]; 6] = [
        &["index", "--kb-path", "kb", "--force"],
        &["serve", "--kb-path", "kb"],
        &["search", "q", "--kb-path", "kb"],
        &["status", "--kb-path", "kb"],
        &["explain", "a.md", "--kb-path", "kb"],
        &["config", "check"],
    ];
    for (place, (text, word)) in MISCONFIGURED.iter().enumerate() {
        fs::write(&file, text).unwrap();
        // One command for each text, and each command for some text.
        let mut arguments = commands[place % commands.len()].to_vec();
        arguments.extend(["--config", "own.toml"]);
        let told = refusal(&base, &base.bare(&arguments).output().unwrap(), 1);
        assert!(told.contains("own.toml") && told.contains(word), "{text}: {told}");
        assert_eq!(told.lines().count(), 1, "{text}: {told}");
    }
}

// CLI-09
#[test]
fn the_words_of_the_program_are_ascii() {
    let base = base();
    for (arguments, _) in NOT_UNDERSTOOD.iter().chain(REFUSED) {
        if arguments.iter().any(|argument| !argument.is_ascii()) {
            continue;
        }
        let told = stderr(&base.bare(arguments).output().unwrap());
        assert!(told.is_ascii(), "{arguments:?}: {told}");
    }
}

// CFG-70g CFG-70h
#[test]
fn variables_of_others_change_nothing() {
    let base = base();
    let mut command = base.bare(&["status"]);
    for (name, value) in [
        ("KB_PATH", "kb"),
        ("KB_EXTENSIONS", "py"),
        ("GROOVE_BIN", "/bin/false"),
        ("GROOVE_CONFIG", "gone.toml"),
        ("LISTEN_PID", "1"),
        ("LISTEN_FDS", "x"),
        ("GROOVE_CONFIG_HOME", ""),
        ("GROOVE_GRAMMAR_DIR", ""),
    ] {
        command.env(name, value);
    }
    let told = refusal(&base, &command.output().unwrap(), 1);
    assert!(told.contains("--kb-path is required"), "{told}");
    let mut command = base.groove("status", &[]);
    command.env("KB_PATH", "gone").env("LISTEN_FDS", "x");
    assert!(command.output().unwrap().status.success());
}

#[test]
fn there_are_enough_of_them() {
    assert!(NOT_UNDERSTOOD.len() + REFUSED.len() + MISCONFIGURED.len() >= 200);
}
