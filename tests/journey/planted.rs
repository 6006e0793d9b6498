//! A repository that brings a hostile `groove.toml`: whoever works in it has not
//! chosen that file, so it decides neither what runs, nor what leaves the
//! machine, nor who can reach it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::endpoint::FakeEndpoint;
use crate::groove::{Base, stderr, stdout, told};

/// A repository around a knowledge base, with a file that asks for everything.
struct Planted {
    base: Base,
    fake: FakeEndpoint,
    marker: PathBuf,
}

impl Planted {
    fn new() -> Self {
        let base =
            Base::new(&[("a.md", "# A\n\nThe event store keeps everything."), ("b.py", "x = 1")]);
        let repository = base.kb().parent().unwrap().to_owned();
        let marker = repository.join("marker");
        let fake = FakeEndpoint::new(&[]);
        let text = format!(
            "kb_path = '/'\ngrammar_dir = '{folder}/grammars'\n\
             fastembed_cache_dir = '{folder}/models'\nreranker = 'dir:{folder}/models'\n\
             [parsers]\nenabled = ['md', 'py']\n[parsers.code]\nmax_chunk_chars = 30\n\
             [embedding]\nprovider = 'openai-compatible'\nendpoint = '{url}'\nmodel = 'm'\n\
             dimension = 8\napi_key_command = ['touch', '{marker}']\n\
             [index]\nmax_text_file_size = 'unlimited'\nmax_binary_file_size = 'unlimited'\n\
             max_decompressed_size = 1\nrequire_owner = true\n\
             [transport.http]\nbind = '0.0.0.0:3999'\nallowed_hosts = []\nallowed_origins = []\n\
             healthz_public = false\nmax_sessions = 0\nsystemd_socket = true\n\
             [eval]\ngolden = '/etc/passwd'\n",
            folder = repository.display(),
            url = fake.url(),
            marker = marker.display(),
        );
        fs::create_dir_all(repository.join(".git")).unwrap();
        fs::create_dir_all(repository.join("models")).unwrap();
        fs::create_dir_all(repository.join("grammars")).unwrap();
        fs::write(repository.join("grammars/libgroove_grammar_python.so"), "not a library")
            .unwrap();
        fs::write(repository.join("groove.toml"), text).unwrap();
        Self { base, fake, marker }
    }

    /// Nothing was sent, nothing was run.
    #[track_caller]
    fn is_untouched(&self) {
        assert!(self.fake.take().is_empty(), "something was sent");
        assert!(!self.marker.exists(), "something was run");
    }

    /// What holds for every key.
    fn settings(&self, arguments: &[&str]) -> BTreeMap<String, Value> {
        let mut all = vec!["config", "check", "--format", "json"];
        all.extend(arguments);
        let output = self.base.bare(&all).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let settings = answer["settings"].as_array().unwrap().iter();
        settings.map(|one| (one["key"].as_str().unwrap().to_owned(), one.clone())).collect()
    }
}

// CFG-15 CFG-20 CFG-21 CFG-22 CFG-23 CFG-24 CFG-25 CFG-26 CFG-27 CFG-28 CFG-29 CLI-222
#[test]
fn no_key_of_a_planted_file_reaches_beyond_its_folder() {
    let planted = Planted::new();
    let settings = planted.settings(&[]);
    let home = planted.base.home();
    let standard = |folder: &str| json!(home.join(folder));
    for (key, value) in [
        ("kb_path", Value::Null),
        ("grammar_dir", standard(".local/share/groove/grammars")),
        ("fastembed_cache_dir", standard(".cache/fastembed")),
        ("reranker", json!("none")),
        ("parsers.enabled", json!(["md"])),
        ("parsers.code.max_chunk_chars", json!(3500)),
        ("embedding.provider", json!("fastembed")),
        ("index.max_text_file_size", json!("50 MiB")),
        ("index.max_binary_file_size", json!("50 MiB")),
        ("index.max_decompressed_size", json!("50 MiB")),
        ("index.require_owner", json!(false)),
        ("transport.http.bind", json!("127.0.0.1:3999")),
        ("transport.http.allowed_hosts", Value::Null),
        ("transport.http.allowed_origins", Value::Null),
        ("transport.http.healthz_public", json!(true)),
        ("transport.http.max_sessions", json!(256)),
        ("transport.http.systemd_socket", json!(false)),
        ("eval.golden", Value::Null),
    ] {
        assert_eq!(settings[key]["value"], value, "{key}");
        assert_eq!(settings[key]["origin"], "not_accepted", "{key}");
    }
    assert!(!settings.contains_key("embedding.endpoint"));
    planted.is_untouched();
    // Whoever names the file means it.
    let trusted = planted.settings(&["--config", "groove.toml"]);
    assert_eq!(trusted["transport.http.bind"]["value"], "0.0.0.0:3999");
    assert_eq!(trusted["embedding.provider"]["value"], "openai-compatible");
    planted.is_untouched();
}

// CLI-222 CFG-20
#[test]
fn each_restricted_setting_is_one_warning_with_key_wish_replacement_and_remedy() {
    let planted = Planted::new();
    let output = planted.base.groove("status", &[]).output().unwrap();
    assert!(output.status.success(), "nothing of it ends a command: {}", stderr(&output));
    let told = told(&output);
    let warnings: Vec<&str> = told.lines().filter(|line| line.contains(" WARN ")).collect();
    for key in [
        "kb_path",
        "grammar_dir",
        "fastembed_cache_dir",
        "reranker",
        "[parsers]",
        "[embedding]",
        "[index].max_text_file_size",
        "[index].max_binary_file_size",
        "[index].max_decompressed_size",
        "[index].require_owner",
        "[transport.http].bind",
        "[transport.http].allowed_hosts",
        "[transport.http].allowed_origins",
        "[transport.http].healthz_public",
        "[transport.http].max_sessions",
        "[transport.http].systemd_socket",
        "[eval].golden",
    ] {
        let about = format!(": {key}: ");
        let of_key: Vec<_> = warnings.iter().filter(|line| line.contains(&about)).collect();
        assert_eq!(of_key.len(), 1, "{key}: {told}");
        assert!(of_key[0].contains("using ") && of_key[0].contains("--config"), "{}", of_key[0]);
    }
    assert_eq!(warnings.len(), 17, "{told}");
    planted.is_untouched();
}

// CFG-91 CFG-31 CFG-70b CLI-223
#[test]
fn a_missing_plugin_stops_a_trusted_run_before_the_index_is_made() {
    let planted = Planted::new();
    let named = planted.base.kb().with_file_name("named.toml");
    fs::write(&named, "[parsers]\nenabled = ['md', 'py']\n").unwrap();
    let arguments = ["--config", named.to_str().unwrap()];
    for command in ["index", "serve"] {
        let run = |folder: &str| {
            let mut run = planted.base.groove(command, &arguments);
            run.env("GROOVE_GRAMMAR_DIR", folder);
            told(&run.output().unwrap())
        };
        let missing = run("/nowhere");
        let wanted = "libgroove_grammar_python.so in /nowhere";
        assert!(missing.contains(wanted), "{missing}");
        let inside = run(planted.base.kb().to_str().unwrap());
        assert!(inside.contains("GROOVE_GRAMMAR_DIR") && inside.contains("inside"), "{inside}");
        let relative = run("grammars");
        assert!(relative.contains("absolute path"), "{relative}");
        assert!(!planted.base.index().exists());
    }
}

// CFG-20 CFG-22 CFG-25
#[test]
#[ignore = "needs the all-MiniLM-L6-v2 folder; make test fetches it and runs ignored tests"]
fn a_run_in_a_planted_repository_indexes_markdown_with_the_local_model() {
    let planted = Planted::new();
    let said = planted.base.indexed(&[]);
    assert!(said.contains("indexed: a.md") && !said.contains("b.py"), "{said}");
    let answer = planted.base.search("event store", &[]);
    assert_eq!(answer["results"][0]["path"], "a.md");
    planted.is_untouched();
}
