//! One row for every key: its default, values at and beyond its bounds, and
//! what an untrusted file achieves with it.

use std::path::Path;

use toml::Value as Toml;

use super::effective::{Setting, SettingOrigin, SettingValue, effective};
use super::file::ConfigFile;
use super::keys::{KEYS, shown};
use super::testing::{Facts, MODELS, RERANKERS};
use super::trust::{Context, apply_trust};
use super::{ConfigError, Trust};

/// What is expected of a key. Values are written as in the file.
struct Row {
    key: &'static str,
    /// What the file has to hold besides.
    beside: &'static str,
    /// What holds without the key; empty if nothing does.
    default: &'static str,
    /// Accepted values, each with what holds then; empty if it is the same.
    accepted: &'static [(&'static str, &'static str)],
    /// Values of the right shape that are refused.
    refused: &'static [&'static str],
    untrusted: Untrusted,
}

/// What the first accepted value achieves in a file that was only found.
#[derive(Clone, Copy)]
enum Untrusted {
    /// It holds.
    Kept,
    /// The default holds.
    Dropped,
}

use Untrusted::{Dropped, Kept};

const ENDPOINT: &str = "embedding.provider = \"openai-compatible\"\n\
                        embedding.endpoint = \"https://h.example/v1/embeddings\"\n\
                        embedding.dimension = 8\nembedding.model = \"m\"\n";

const fn row(
    key: &'static str,
    default: &'static str,
    accepted: &'static [(&'static str, &'static str)],
    refused: &'static [&'static str],
    untrusted: Untrusted,
) -> Row {
    Row { key, beside: "", default, accepted, refused, untrusted }
}

/// A key that only an endpoint has.
const fn remote(
    key: &'static str,
    default: &'static str,
    accepted: &'static [(&'static str, &'static str)],
    refused: &'static [&'static str],
) -> Row {
    Row { key, beside: ENDPOINT, default, accepted, refused, untrusted: Dropped }
}

const FLAG: &[(&str, &str)] = &[("true", ""), ("false", "")];
const FLAG_OFF: &[(&str, &str)] = &[("false", ""), ("true", "")];
const SHARE: &[(&str, &str)] =
    &[("0.25", ""), ("0", "0.0"), ("1", "1.0"), ("0.0", ""), ("1.0", "")];
const NO_SHARE: &[&str] = &["-0.1", "1.1", "nan", "inf"];
const WEIGHT: &[(&str, &str)] = &[("0.5", ""), ("0", "0.0"), ("1000000", "1000000.0")];
const NO_WEIGHT: &[&str] = &["-0.5", "1000001", "nan", "inf"];
const SIZE: &[(&str, &str)] = &[
    ("1", ""),
    ("\"unlimited\"", ""),
    ("\"UNLIMITED\"", "\"unlimited\""),
    ("\"80 mib\"", "\"80 MiB\""),
    ("\"1 KB\"", "1000"),
    ("1048576", "\"1 MiB\""),
];
const NO_SIZE: &[&str] = &["0", "-1", "\"0\"", "\"1.5 MiB\"", "\"3 PB\"", "\"lots\"", "\"\""];
const MILLISECONDS: &[(&str, &str)] = &[("250", ""), ("0", "")];

const COUNT: &[(&str, &str)] = &[("7", ""), ("0", ""), ("1000000", "")];
const NO_COUNT: &[&str] = &["-1", "1000001"];
const SECONDS: &[(&str, &str)] = &[("5", ""), ("0", ""), ("86400", "")];
const NO_SECONDS: &[&str] = &["-1", "86401"];

/// Every key, in the order of the documentation.
const ROWS: &[Row] = &[
    row("kb_path", "", &[("\"notes\"", "\"/etc/kb/notes\""), ("\"/srv/kb\"", "")], &["\"\""], Kept),
    row("model", "\"bge-small-en-v1.5\"", &[("\"bge-m3\"", "")], &["\"BGE-M3\"", "\"\""], Kept),
    row("reranker", "\"none\"", &[("\"bge-base\"", ""), ("\"none\"", "")], &["\"bge\""], Kept),
    row("rerank_by_default", "true", FLAG_OFF, &[], Kept),
    row("fastembed_cache_dir", "", &[("\"/m\"", "")], &["\"m\"", "\"~/m\"", "\"\""], Dropped),
    row("grammar_dir", "", &[("\"/g\"", "")], &["\"g\"", "\"~/g\"", "\"\""], Dropped),
    row("exclude_headings", "[]", &[("[\"TODO\"]", ""), ("[]", "")], &[], Kept),
    row(
        "exclude_dirs",
        "[\".obsidian\", \".git\", \"node_modules\", \"target\", \".vscode\", \".idea\"]",
        &[("[]", ""), ("[\"old\"]", "")],
        &[],
        Kept,
    ),
    row("embedding.provider", "\"fastembed\"", &[("\"fastembed\"", "")], &["\"openai\""], Dropped),
    row(
        "embedding.engine",
        "\"auto\"",
        &[("\"onnx\"", ""), ("\"native\"", "")],
        &["\"gpu\""],
        Dropped,
    ),
    row(
        "embedding.precision",
        "\"auto\"",
        &[("\"f32\"", ""), ("\"int8\"", "")],
        &["\"f16\""],
        Dropped,
    ),
    remote(
        "embedding.query_model",
        "\"m\"",
        &[("\"q\"", ""), ("\" q \"", "\"q\"")],
        &["\"\"", "\" \""],
    ),
    remote("embedding.document_model", "\"m\"", &[("\"d\"", "")], &["\"\""]),
    remote("embedding.api_key_file", "", &[("\"/run/key\"", "")], &["\"key\"", "\"\""]),
    remote("embedding.request_dimensions", "false", FLAG, &[]),
    remote("embedding.timeout_seconds", "60", &[("1", ""), ("600", "")], &["0", "-1"]),
    remote("embedding.max_input_chars", "8000", &[("1", ""), ("9", "")], &["0", "-1"]),
    remote("embedding.max_retries", "3", &[("0", ""), ("10", "")], &["-1", "11"]),
    row(
        "parsers.enabled",
        "[\"md\"]",
        &[("[\"md\", \"py\"]", ""), ("[\"MD\"]", "[\"md\"]"), ("[\"php\"]", "")],
        &["[]", "[\"md\", \"md\"]", "[\"py\", \"PY\"]", "[\"rst\"]", "[\"xls\"]"],
        Dropped,
    ),
    row(
        "parsers.code.max_chunk_chars",
        "3500",
        &[("30", ""), ("9999", "")],
        &["29", "-1"],
        Dropped,
    ),
    row("index.fail_on_frontmatter_error", "false", FLAG, &[], Kept),
    row("index.on_serve", "\"none\"", &[("\"build\"", ""), ("\"none\"", "")], &["\"now\""], Kept),
    row("index.max_binary_file_size", "\"50 MiB\"", SIZE, NO_SIZE, Dropped),
    row("index.max_text_file_size", "\"50 MiB\"", SIZE, NO_SIZE, Dropped),
    row("index.max_decompressed_size", "\"50 MiB\"", SIZE, NO_SIZE, Dropped),
    row("quality_filter.enabled", "true", FLAG_OFF, &[], Kept),
    row(
        "quality_filter.threshold",
        "0.3",
        &[("0.5", ""), ("7", "1.0"), ("1", "1.0"), ("0.01", "")],
        &["nan"],
        Kept,
    ),
    row(
        "quality_filter.extra_boilerplate",
        "[]",
        &[("[\"tbc\"]", "")],
        &["[\"\"]", "[\" \"]"],
        Kept,
    ),
    row("quality_filter.signals", "[]", &[("[\"heading\"]", "")], &["[\"colour\"]"], Kept),
    row(
        "search.max_embed_wait_ms",
        "0",
        &[("250", ""), ("0", ""), ("3600000", "")],
        &["-1", "3600001"],
        Kept,
    ),
    row(
        "search.min_confidence_ratio",
        "1.5",
        &[("0", "0.0"), ("99.5", "")],
        &["-0.1", "nan", "inf"],
        Kept,
    ),
    row("search.mmr.enabled", "false", FLAG, &[], Kept),
    row("search.mmr.lambda", "0.7", SHARE, NO_SHARE, Kept),
    row("search.mmr.same_doc_penalty", "0.0", SHARE, NO_SHARE, Kept),
    row("search.rerank_timeout_ms", "", &[("1", ""), ("600000", "")], &["0", "600001"], Kept),
    row("search.fusion.adaptive", "true", FLAG_OFF, &[], Kept),
    row(
        "search.fusion.rrf_k",
        "60.0",
        &[("1", "1.0"), ("1000000", "1000000.0"), ("2.5", "")],
        &["0.9", "1000001", "nan", "inf"],
        Kept,
    ),
    row("search.fusion.bm25_heading_weight", "2.0", WEIGHT, NO_WEIGHT, Kept),
    row("search.fusion.bm25_context_weight", "1.0", WEIGHT, NO_WEIGHT, Kept),
    row("search.fusion.bm25_content_weight", "1.0", WEIGHT, NO_WEIGHT, Kept),
    row("search.parent_retriever.enabled", "false", FLAG, &[], Kept),
    row(
        "search.parent_retriever.whole_doc_threshold_tokens",
        "100",
        &[("0", ""), ("1999", "")],
        &["-1", "2000"],
        Kept,
    ),
    row(
        "search.parent_retriever.max_expanded_tokens",
        "2000",
        &[("101", ""), ("8192", "")],
        &["0", "100", "8193"],
        Kept,
    ),
    row("contextual.enabled", "false", FLAG, &[], Kept),
    row("best_practice.path_templates", "[]", &[("[\"docs/{target}.md\"]", "")], &[], Kept),
    row("watch.enabled", "true", FLAG_OFF, &[], Kept),
    row("watch.debounce_ms", "500", MILLISECONDS, &["-1"], Kept),
    row("watch.mode", "\"auto\"", &[("\"poll\"", ""), ("\"events\"", "")], &["\"never\""], Kept),
    row(
        "watch.poll_interval_ms",
        "5000",
        &[("500", ""), ("3600000", "")],
        &["499", "3600001"],
        Kept,
    ),
    row("transport.kind", "\"stdio\"", &[("\"http\"", ""), ("\"stdio\"", "")], &["\"tcp\""], Kept),
    row(
        "transport.http.bind",
        "\"127.0.0.1:3100\"",
        &[
            ("\"127.0.0.1:4000\"", ""),
            ("\"[::1]:80\"", ""),
            ("\"0.0.0.0:1\"", ""),
            ("\"LocalHost:0\"", "\"127.0.0.1:0\""),
        ],
        &["\"127.0.0.1\"", "\"host:80\"", "\"127.0.0.1:65536\"", "\"\""],
        Kept,
    ),
    row("transport.http.allowed_hosts", "", &[("[\"kb.lan\"]", ""), ("[]", "")], &[], Dropped),
    row(
        "transport.http.allowed_origins",
        "",
        &[("[\"http://kb.lan\"]", ""), ("[]", "")],
        &[],
        Dropped,
    ),
    row("transport.http.healthz_public", "true", FLAG_OFF, &[], Dropped),
    row("transport.http.max_sessions", "256", &[("0", ""), ("1", "")], &["-1"], Dropped),
    row("transport.http.systemd_socket", "false", FLAG, &[], Dropped),
    row("transport.http.metrics", "false", FLAG, &[], Dropped),
    row("transport.http.refuse_forwarded", "false", FLAG, &[], Kept),
    row("transport.http.max_in_flight", "256", COUNT, NO_COUNT, Dropped),
    row("transport.http.max_connections", "768", COUNT, NO_COUNT, Dropped),
    row("transport.http.header_timeout_secs", "60", SECONDS, NO_SECONDS, Dropped),
    row("transport.http.body_timeout_secs", "60", SECONDS, NO_SECONDS, Dropped),
    row("transport.http.idle_timeout_secs", "60", SECONDS, NO_SECONDS, Dropped),
    row("transport.http.call_timeout_secs", "600", SECONDS, NO_SECONDS, Dropped),
    row("transport.http.drain_timeout_secs", "30", SECONDS, NO_SECONDS, Dropped),
    row(
        "eval.golden",
        "",
        &[("\"/srv/g.yml\"", ""), ("\"g.yml\"", "\"/etc/kb/g.yml\"")],
        &["\"\""],
        Dropped,
    ),
    row("eval.history_size", "10", &[("0", ""), ("7", "")], &["-1"], Kept),
    row(
        "eval.k_values",
        "[1, 5, 10]",
        &[("[10, 3, 3]", "[3, 10]"), ("[2000]", "[1000]")],
        &["[]", "[0]", "[-1]"],
        Kept,
    ),
    row(
        "eval.regression_threshold",
        "0.05",
        &[("0", "0.0"), ("2.5", "")],
        &["-0.1", "nan", "inf"],
        Kept,
    ),
];

/// Keys whose effect another place of these tests holds, because no one value of
/// theirs is shown: secrets, what only a whole endpoint has, what only a system
/// has.
const ELSEWHERE: [&str; 6] = [
    "embedding.model",
    "embedding.endpoint",
    "embedding.dimension",
    "embedding.api_key",
    "embedding.api_key_command",
    "index.require_owner",
];

fn load(text: &str, trust: Trust) -> Result<Vec<Setting>, ConfigError> {
    let files = Facts::new(&["/etc/kb/notes/", "/srv/kb/"]);
    let context = Context {
        models: &MODELS,
        rerankers: &RERANKERS,
        api_key: None,
        home: Some(Path::new("/home/ann")),
        files: &files,
    };
    let file = ConfigFile::parse(text, Path::new("/etc/kb/groove.toml"))?;
    let (config, _) = apply_trust(file.clone(), trust, &context)?;
    Ok(effective(Some(&file), trust, &context, &config))
}

/// What holds for a key, as the file would have it; empty if nothing does.
#[track_caller]
fn holds(key: &str, text: &str, trust: Trust) -> (String, SettingOrigin) {
    let settings = load(text, trust).unwrap_or_else(|error| panic!("{text}: {error}"));
    let setting = settings.into_iter().find(|setting| setting.key == key);
    let Setting { value, origin, .. } = setting.unwrap_or_else(|| panic!("{key} is not listed"));
    let value = match value {
        SettingValue::Is(value) => value.to_string(),
        SettingValue::Hidden => "hidden".to_owned(),
        SettingValue::Unset => String::new(),
    };
    (value, origin)
}

fn same(written: &str, value: &str) -> bool {
    let parsed = |text: &str| toml::from_str::<toml::Table>(&format!("x = {text}")).ok();
    written == value || (!written.is_empty() && parsed(written) == parsed(value))
}

// CFG-01
#[test]
fn the_table_holds_every_key() {
    let in_table: Vec<&str> = ROWS.iter().map(|row| row.key).chain(ELSEWHERE).collect();
    for (key, _) in KEYS {
        assert_eq!(in_table.iter().filter(|known| *known == key).count(), 1, "{key}");
    }
    assert_eq!(in_table.len(), KEYS.len());
}

// CFG-01 CFG-40 CFG-41 CFG-42 CFG-43 CFG-46 CFG-47 CFG-48 CFG-49f CFG-49g CFG-49h CFG-71 CFG-72
// CFG-73 CFG-74 CFG-75 CFG-76 CFG-77 CFG-78 CFG-79
#[test]
fn every_key_has_its_default_and_takes_what_is_in_its_range() {
    for Row { key, beside, default, accepted, .. } in ROWS {
        let (value, origin) = holds(key, beside, Trust::Trusted);
        assert!(same(default, &value), "{key} is {value} by default");
        if beside.is_empty() {
            assert_eq!(origin, SettingOrigin::Default, "{key}");
        }
        for (written, expected) in *accepted {
            let text = format!("{beside}{key} = {written}\n");
            let (value, origin) = holds(key, &text, Trust::Trusted);
            let expected = if expected.is_empty() { written } else { expected };
            assert!(same(expected, &value), "{text}: {value}");
            assert!(matches!(origin, SettingOrigin::File { .. }), "{text}: {origin:?}");
        }
    }
}

// CFG-03
#[test]
fn every_key_refuses_what_is_out_of_its_range_by_name_and_line() {
    for Row { key, beside, refused, .. } in ROWS {
        for written in *refused {
            let text = format!("{beside}{key} = {written}\n");
            let Err(error) = load(&text, Trust::Trusted) else { panic!("{text} is accepted") };
            let message = error.to_string();
            let line = beside.lines().count() + 1;
            assert!(message.starts_with(&format!("/etc/kb/groove.toml:{line}: ")), "{message}");
            assert!(message.contains(&shown(key)), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}

// CFG-03
#[test]
fn every_key_refuses_a_value_of_another_shape_whoever_the_file_belongs_to() {
    for (key, _) in KEYS {
        for trust in [Trust::Trusted, Trust::Untrusted] {
            let message = load(&format!("{key} = 2001-01-01\n"), trust).unwrap_err().to_string();
            assert!(message.contains(&shown(key)), "{message}");
        }
    }
}

// CFG-20 CFG-22 CFG-23 CFG-24 CFG-25 CFG-26 CFG-28 CFG-29
#[test]
fn a_file_that_was_only_found_achieves_what_the_table_says() {
    for Row { key, beside, default, accepted, untrusted, .. } in ROWS {
        let (written, expected) = accepted[0];
        let text = format!("{beside}{key} = {written}\n");
        let expected = if expected.is_empty() { written } else { expected };
        match untrusted {
            Kept => {
                let (value, origin) = holds(key, &text, Trust::Untrusted);
                assert!(same(expected, &value), "{text}: {value}");
                assert!(matches!(origin, SettingOrigin::File { .. }), "{text}: {origin:?}");
            }
            Dropped if beside.is_empty() => {
                let (value, origin) = holds(key, &text, Trust::Untrusted);
                assert!(same(default, &value), "{text}: {value}");
                assert!(matches!(origin, SettingOrigin::NotAccepted { .. }), "{text}: {origin:?}");
            }
            // With the endpoint all of its keys are gone.
            Dropped => {
                let settings = load(&text, Trust::Untrusted).unwrap();
                assert!(settings.iter().all(|setting| setting.key != *key), "{text}");
                let provider = settings.iter().find(|setting| setting.key == "embedding.provider");
                let local = SettingValue::Is(Toml::String("fastembed".into()));
                assert_eq!(provider.unwrap().value, local);
            }
        }
        // What is out of range stops a trusted file only, where it is dropped.
        if matches!(untrusted, Dropped) {
            for refused in ROWS.iter().filter(|row| row.key == *key).flat_map(|row| row.refused) {
                let text = format!("{beside}{key} = {refused}\n");
                assert!(load(&text, Trust::Untrusted).is_ok(), "{text}");
            }
        }
    }
}
