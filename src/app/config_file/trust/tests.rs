//! Tests of restricting settings.

use super::*;
use crate::app::config::TransportKind;
use crate::app::config_file::testing::{Facts, load};
use crate::domain::format::EnabledFormats;

fn folders() -> Facts {
    Facts::new(&["/etc/kb/notes/", "/home/ann/kb/", "/srv/kb/"])
}

fn untrusted(text: &str) -> (Config, Vec<String>) {
    let (config, warnings) = load(text, Trust::Untrusted, None, &folders()).unwrap();
    (config, warnings.iter().map(Warning::to_string).collect())
}

/// Holds that a text is warned about once, by key, and changes nothing.
#[track_caller]
fn is_reset(text: &str, key: &str, asked: &str, used: &str) {
    let (config, warnings) = untrusted(text);
    let mut expected = Config::default();
    expected.transport.kind = config.transport.kind;
    assert_eq!(config, expected, "{text}");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in [key, asked, used, "/etc/kb/groove.toml", "--config"] {
        assert!(warnings[0].contains(part), "{part}: {}", warnings[0]);
    }
}

// CFG-20 CLI-222
#[test]
fn what_reaches_nowhere_is_honoured_from_any_file() {
    let text = "model = 'bge-m3'\nreranker = 'bge-base'\nrerank_by_default = false\n\
        exclude_dirs = ['x']\nexclude_headings = ['y']\n[search.fusion]\nbm25_heading_weight = 3\n\
        [quality_filter]\nthreshold = 0.9\nextra_boilerplate = ['z']\nsignals = ['heading']\n[watch]\nenabled = false\n[contextual]\nenabled = true\n\
        [transport]\nkind = 'http'\n[index]\nfail_on_frontmatter_error = true\n\
        [best_practice]\npath_templates = ['a']\n[eval]\nhistory_size = 3\nk_values = [7]\n";
    let trusted = load(text, Trust::Trusted, None, &folders()).unwrap();
    assert_eq!(load(text, Trust::Untrusted, None, &folders()).unwrap(), trusted);
    assert_eq!(trusted.1, []);
    assert_eq!(trusted.0.transport.kind, TransportKind::Http);
}

// CFG-22 CLI-222
#[test]
fn formats_of_an_untrusted_file_are_the_default() {
    is_reset("[parsers]\nenabled = ['md', 'pdf']", "[parsers]", "['md', 'pdf']", "Markdown only");
    is_reset("[parsers.code]\nmax_chunk_chars = 99", "[parsers]", "99", "Markdown only");
    let (config, _) = untrusted("[parsers]\nenabled = []");
    assert_eq!(config.formats, EnabledFormats::default());
}

// CFG-23 CFG-24 CLI-222
#[test]
fn folders_of_an_untrusted_file_are_the_standard_ones() {
    is_reset("grammar_dir = '/opt/x'", "grammar_dir", "/opt/x", "the standard location");
    is_reset("fastembed_cache_dir = '/x'", "fastembed_cache_dir", "/x", "standard cache directory");
}

// CFG-20 IDX-B07
#[test]
fn whose_files_are_read_is_not_for_an_untrusted_file_to_say() {
    is_reset("[index]\nrequire_owner = true", "[index].require_owner", "true", "false");
}

// CFG-20
#[test]
fn a_value_that_is_not_believed_need_not_be_right() {
    is_reset("grammar_dir = 'relative'", "grammar_dir", "relative", "standard");
    is_reset("[index]\nmax_text_file_size = 0", "max_text_file_size", "0", "50 MiB");
    is_reset("[transport.http]\nmax_sessions = -1", "max_sessions", "-1", "256");
    is_reset("[embedding]\nprovider = 'x'", "[embedding]", "x", "built-in local provider");
}

// CFG-02
#[test]
fn an_unknown_key_is_refused_in_an_untrusted_file_too() {
    for text in ["[parsers]\nenabld = ['md']", "[embedding]\nurl = 'x'", "modle = 'x'"] {
        assert!(matches!(
            load(text, Trust::Untrusted, None, &folders()),
            Err(ConfigError::UnknownKey { .. })
        ));
    }
}

// CFG-03
#[test]
fn a_value_that_counts_is_judged_in_an_untrusted_file_too() {
    assert!(load("model = 'x'", Trust::Untrusted, None, &folders()).is_err());
    assert!(load("[transport.http]\nbind = 'x'", Trust::Untrusted, None, &folders()).is_err());
}

// CFG-25 IDX-172
#[test]
fn an_untrusted_file_sends_no_text_out() {
    let text = "model = 'bge-m3'\n[embedding]\nprovider = 'openai-compatible'\n\
        endpoint = 'https://u:s3cret@evil.example/v1'\nmodel = 'm'\ndimension = 3\n\
        api_key = 's3cret'\n";
    let (config, warnings) = untrusted(text);
    assert_eq!(config, Config { model: "bge-m3".to_owned(), ..Config::default() });
    assert_eq!(warnings.len(), 1);
    let warning = &warnings[0];
    assert!(warning.contains("it would have sent document text and queries out"), "{warning}");
    assert!(warning.contains("[embedding]") && warning.contains("evil.example"), "{warning}");
    assert!(!warning.contains("s3cret"), "{warning}");
    let (config, warnings) = untrusted("[embedding]\nmodel = 'bge-m3'");
    assert_eq!((config, warnings.len()), (Config::default(), 1));
}

// CFG-26
#[test]
fn the_judged_set_of_an_untrusted_file_is_the_one_in_the_root() {
    is_reset("[eval]\ngolden = '/x.yml'", "[eval].golden", "/x.yml", "<kb_path>/.groove-eval.yml");
}

// CFG-27
#[test]
fn an_untrusted_file_listens_on_loopback_only() {
    for (asked, used) in [
        ("0.0.0.0:4000", "127.0.0.1:4000"),
        ("[::]:80", "127.0.0.1:80"),
        ("192.168.0.7:0", "127.0.0.1:0"),
    ] {
        let (config, warnings) = untrusted(&format!("[transport.http]\nbind = '{asked}'"));
        assert_eq!(config.transport.http.address().to_string(), used);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains(asked) && warnings[0].contains(used), "{}", warnings[0]);
    }
    for kept in ["127.0.0.1:4000", "[::1]:4000", "127.3.2.1:1"] {
        let (config, warnings) = untrusted(&format!("[transport.http]\nbind = '{kept}'"));
        assert_eq!(config.transport.http.address().to_string(), kept);
        assert_eq!(warnings, Vec::<String>::new());
    }
    assert_eq!(untrusted("[transport.http]\nbind = 'localhost:9'").1, Vec::<String>::new());
    let (config, warnings) =
        load("[transport.http]\nbind = '0.0.0.0:1'", Trust::Trusted, None, &folders()).unwrap();
    assert_eq!(
        (config.transport.http.address().to_string().as_str(), warnings.len()),
        ("0.0.0.0:1", 0)
    );
}

// CFG-28 CFG-29
#[test]
fn gates_and_caps_of_an_untrusted_file_are_the_built_in_ones() {
    let http = |line: &str| format!("[transport.http]\n{line}");
    is_reset(&http("allowed_hosts = []"), "[transport.http].allowed_hosts", "[]", "default");
    is_reset(&http("allowed_origins = []"), "[transport.http].allowed_origins", "[]", "default");
    is_reset(&http("healthz_public = false"), "[transport.http].healthz_public", "false", "true");
    is_reset(&http("max_sessions = 9"), "[transport.http].max_sessions", "9", "256");
    is_reset(&http("systemd_socket = true"), "[transport.http].systemd_socket", "true", "false");
    is_reset(&http("metrics = true"), "[transport.http].metrics", "true", "false");
    for (key, used) in [
        ("max_in_flight", "256"),
        ("max_connections", "768"),
        ("header_timeout_secs", "60"),
        ("body_timeout_secs", "60"),
        ("idle_timeout_secs", "60"),
        ("call_timeout_secs", "600"),
        ("drain_timeout_secs", "30"),
    ] {
        is_reset(&http(&format!("{key} = 0")), &format!("[transport.http].{key}"), "0", used);
    }
    // What only narrows access counts whoever says it.
    let (config, warnings) = untrusted(&http("refuse_forwarded = true"));
    assert!(config.transport.http.refuse_forwarded && warnings.is_empty());
    for key in ["max_binary_file_size", "max_text_file_size", "max_decompressed_size"] {
        for value in ["1", "\"1 TiB\""] {
            is_reset(&format!("[index]\n{key} = {value}"), key, value, "the built-in 50 MiB");
        }
    }
}

// CFG-20 CLI-222
#[test]
fn each_setting_gets_a_warning_of_its_own() {
    let (_, warnings) = untrusted(
        "kb_path = '/'\ngrammar_dir = '/g'\n[parsers]\nenabled = ['md']\n\
         [parsers.code]\nmax_chunk_chars = 30\n[transport.http]\nallowed_hosts = []\n\
         max_sessions = 1\n",
    );
    assert_eq!(warnings.len(), 5, "{warnings:?}");
}

// CFG-21
#[test]
fn a_root_that_is_too_wide_is_dropped() {
    for root in [
        "/",
        "/home/ann",
        "/home",
        "../../home/ann",
        "/etc",
        "..",
        "../..",
        "notes/../..",
        "missing/../..",
        "/home/missing/..",
    ] {
        let (config, warnings) = untrusted(&format!("kb_path = '{root}'"));
        assert_eq!(config.kb_path, None, "{root}");
        assert_eq!(warnings.len(), 1, "{root}");
        assert!(warnings[0].contains("--kb-path") && warnings[0].contains(root), "{}", warnings[0]);
    }
    for root in [".", "/etc/kb", "notes", "/srv/kb", "/home/ann/kb", "missing", "/srv"] {
        let (config, warnings) = untrusted(&format!("kb_path = '{root}'"));
        assert_eq!(config.kb_path, Some(Path::new("/etc/kb").join(root)), "{root}");
        assert_eq!(warnings, Vec::<String>::new(), "{root}");
    }
}

// CFG-21
#[test]
fn a_root_is_judged_by_where_its_links_lead() {
    let files = || {
        folders()
            .link("/etc/kb/all", "/")
            .link("/etc/kb/home", "/home/ann")
            .link("/etc/kb/dead", "/nowhere")
            .link("/etc/kb/fine", "/srv/kb")
    };
    for (root, kept) in
        [("all", false), ("home", false), ("home/..", false), ("dead", false), ("fine", true)]
    {
        let text = format!("kb_path = '{root}'");
        let (config, warnings) = load(&text, Trust::Untrusted, None, &files()).unwrap();
        assert_eq!(config.kb_path.is_some(), kept, "{root}");
        assert_eq!(warnings.is_empty(), kept, "{root}");
    }
}

// CFG-21
#[test]
fn a_trusted_file_may_name_any_root() {
    let (config, warnings) = load("kb_path = '/'", Trust::Trusted, None, &folders()).unwrap();
    assert_eq!((config.kb_path, warnings.len()), (Some("/".into()), 0));
}

// CFG-69e
#[test]
fn caps_above_the_default_are_announced_once() {
    let caps = |text: &str| {
        let (_, warnings) = load(text, Trust::Trusted, None, &folders()).unwrap();
        warnings.iter().map(Warning::to_string).collect::<Vec<_>>()
    };
    assert!(caps("[index]\nmax_text_file_size = '50 MiB'\nmax_binary_file_size = 1").is_empty());
    let raised = caps("[index]\nmax_text_file_size = '51 MiB'\nmax_binary_file_size = '1 GB'");
    assert_eq!(raised.len(), 1);
    for part in ["max_text_file_size", "'51 MiB'", "'1 GB'", "in memory whole", "120 s"] {
        assert!(raised[0].contains(part), "{}", raised[0]);
    }
    assert!(!raised[0].contains("unlimited"));
    let unlimited = caps("[index]\nmax_decompressed_size = 'unlimited'");
    assert!(unlimited[0].contains("only the files of the knowledge base bound memory"));
}

// CFG-25 CFG-41
#[test]
fn an_untrusted_file_names_no_folder_to_read_a_model_from() {
    is_reset("model = 'dir:/srv/m'", "model", "dir:/srv/m", "\"bge-small-en-v1.5\"");
    is_reset("model = 'dir:m'", "model", "dir:m", "\"bge-small-en-v1.5\"");
    is_reset("reranker = 'dir:/srv/m'", "reranker", "dir:/srv/m", "\"none\"");
    let section = "[embedding]\nmodel = 'dir:/srv/m'\nengine = 'onnx'\nprecision = 'f32'";
    is_reset(section, "[embedding]", "dir:/srv/m", "built-in local provider");
    let (config, warnings) =
        load("model = 'dir:/srv/m'", Trust::Trusted, None, &folders()).unwrap();
    assert_eq!((config.model.as_str(), warnings.len()), ("dir:/srv/m", 0));
}
