//! Tests of reading settings.

#![expect(clippy::float_cmp, reason = "settings are kept exactly as they are written")]

use std::net::SocketAddr;

use super::*;
use crate::app::config::{DEFAULT_BIND, DEFAULT_SIZE_CAP, HttpLimits, MmrSettings, ParentSettings};
use crate::app::config_file::testing::{read, refusal};

/// Holds that each text is refused with the key and what would be accepted.
#[track_caller]
fn all_refused(key: &str, accepted: &str, texts: &[&str]) {
    for text in texts {
        let message = refusal(text);
        assert!(message.starts_with("/etc/kb/groove.toml:"), "{message}");
        assert!(message.contains(key), "{message}");
        assert!(message.contains(accepted), "{message}");
    }
}

// CFG-01
#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(read(""), Config::default());
    assert_eq!(read("[search]\n[index]\n[embedding]\n[parsers.code]\n"), Config::default());
}

// CFG-35 CFG-40
#[test]
fn paths_are_relative_to_the_folder_of_the_file() {
    let config = read("kb_path = \"notes\"\n[eval]\ngolden = \"judged.yml\"");
    assert_eq!(config.kb_path, Some("/etc/kb/notes".into()));
    assert_eq!(config.evaluation.golden, Some("/etc/kb/judged.yml".into()));
    assert_eq!(read("kb_path = \"/srv/kb\"").kb_path, Some("/srv/kb".into()));
    all_refused("kb_path", "not empty", &["kb_path = \"\""]);
}

// CFG-41 CFG-03
#[test]
fn a_model_is_one_of_the_known_names() {
    assert_eq!(read("model = \"bge-m3\"").model, "bge-m3");
    all_refused(
        "model is \"BGE-M3\"",
        "\"bge-small-en-v1.5\", \"bge-m3\"",
        &["model = \"BGE-M3\""],
    );
}

// CFG-42 CFG-43
#[test]
fn a_reranker_is_one_of_the_known_names_and_works_by_default() {
    for name in ["none", "bge-v2-m3", "jina-v2-ml", "bge-base"] {
        assert_eq!(read(&format!("reranker = \"{name}\"")).reranker, name);
    }
    all_refused("reranker", "\"bge-base\"", &["reranker = \"bge\""]);
    assert!(read("").rerank_by_default);
    assert!(!read("rerank_by_default = false").rerank_by_default);
}

// CFG-44 CFG-45 CFG-36 CFG-38
#[test]
fn a_folder_of_our_own_has_to_be_absolute() {
    let config = read("fastembed_cache_dir = \"/var/models\"\ngrammar_dir = \"/opt/grammars\"");
    assert_eq!(config.model_cache, Some("/var/models".into()));
    assert_eq!(config.grammar_dir, Some("/opt/grammars".into()));
    for key in ["fastembed_cache_dir", "grammar_dir"] {
        all_refused(key, "an absolute path", &[&format!("{key} = \"models\"")]);
        let message = refusal(&format!("{key} = \"~/models\""));
        assert!(message.contains("`~` is not expanded in the file"), "{message}");
    }
}

// CFG-45b CFG-45c
#[test]
fn a_given_list_replaces_the_default() {
    let config = read("exclude_dirs = []\nexclude_headings = [\"TODO\"]");
    assert!(config.exclude_dirs.is_empty());
    assert_eq!(config.exclude_headings, ["TODO"]);
    assert_eq!(
        read("").exclude_dirs,
        [".obsidian", ".git", "node_modules", "target", ".vscode", ".idea"]
    );
}

// CFG-65 FMT-GEN-01
#[test]
fn parser_ids_are_judged_at_load() {
    assert_eq!(read("[parsers]\nenabled = [\"MD\"]").formats, EnabledFormats::default());
    all_refused(
        "[parsers].enabled",
        "md",
        &[
            "[parsers]\nenabled = []",
            "[parsers]\nenabled = [\"md\", \"md\"]",
            "[parsers]\nenabled = [\"md\", \"rst\"]",
            "[parsers]\nenabled = [\"xls\"]",
        ],
    );
    assert!(refusal("[parsers]\nenabled = [\"rst\"]").contains("unknown"));
}

// CFG-65
#[test]
fn a_documented_format_is_never_called_unknown() {
    let supported: Vec<&str> =
        crate::domain::format::SUPPORTED.iter().map(|format| format.id).collect();
    for id in DOCUMENTED_FORMATS.into_iter().filter(|id| !supported.contains(id)) {
        let message = refusal(&format!("[parsers]\nenabled = [\"{id}\"]"));
        assert!(message.contains(id) && message.contains("this build"), "{message}");
        assert!(!message.contains("unknown"), "{message}");
        assert!(message.ends_with(&supported.join(", ")), "{message}");
    }
}

// CFG-67
#[test]
fn a_chunk_of_code_has_at_least_thirty_characters() {
    assert_eq!(read("").index.max_chunk_chars, 3500);
    assert_eq!(read("[parsers.code]\nmax_chunk_chars = 30").index.max_chunk_chars, 30);
    all_refused("[parsers.code].max_chunk_chars", "30", &["[parsers.code]\nmax_chunk_chars = 29"]);
}

// CFG-68 CFG-77
#[test]
fn switches_of_indexing_are_off_by_default() {
    let index = read("").index;
    assert!(!index.fail_on_frontmatter_error && index.context_mode == ContextMode::Off);
    let index = read("index.fail_on_frontmatter_error = true\ncontextual.enabled = true").index;
    assert!(index.fail_on_frontmatter_error && index.context_mode == ContextMode::Static);
}

// CFG-69a CFG-69b CFG-69c CFG-69d
#[test]
fn each_size_cap_takes_bytes_units_or_no_limit() {
    let index = read(
        "[index]\nmax_binary_file_size = 1\nmax_text_file_size = \"80 MiB\"\n\
         max_decompressed_size = \"unlimited\"",
    )
    .index;
    assert_eq!(index.max_binary_file_size, Some(1));
    assert_eq!(index.max_text_file_size, Some(80 << 20));
    assert_eq!(index.max_decompressed_size, None);
    assert_eq!(read("").index.max_text_file_size, Some(DEFAULT_SIZE_CAP));
    for key in ["max_binary_file_size", "max_text_file_size", "max_decompressed_size"] {
        let text = |value: &str| format!("[index]\n{key} = {value}");
        for value in ["-1", "\"1.5 MiB\"", "\"3 parsecs\"", "\"none\"", "1.5"] {
            all_refused(key, "unlimited", &[&text(value)]);
        }
        all_refused(key, "to lift the limit write \"unlimited\"", &[&text("0"), &text("\"0 MB\"")]);
    }
}

// CFG-71 QUA-12
#[test]
fn the_quality_threshold_is_clamped_and_the_switch_turns_it_off() {
    let quality = |text: &str| read(&format!("[quality_filter]\n{text}")).search.min_quality;
    assert_eq!(quality(""), 0.3);
    assert_eq!(quality("threshold = 0.5"), 0.5);
    assert_eq!(quality("threshold = 7"), 1.0);
    assert_eq!(quality("threshold = -1.0"), 0.0);
    assert_eq!(quality("threshold = 0.5\nenabled = false"), 0.0);
    assert_eq!(quality("enabled = false"), 0.0);
    all_refused("threshold", "a number", &["[quality_filter]\nthreshold = nan"]);
}

// QUA-B01
#[test]
fn phrases_are_added_to_the_boilerplate_within_bounds() {
    let key = "[quality_filter].extra_boilerplate";
    let file = |phrases: &[String]| format!("[quality_filter]\nextra_boilerplate = {phrases:?}");
    let longest = vec!["字".repeat(200); 256];
    assert_eq!(read(&file(&longest)).index.quality.extra_boilerplate, longest);
    assert_eq!(read("").index.quality, quality::Rules::default());
    let too_many = vec!["x".to_owned(); 257];
    all_refused(key, "at most 256 phrases; it has 257", &[&file(&too_many)]);
    let too_long = ["ok".to_owned(), format!("xy{}", "字".repeat(199))];
    all_refused(key, "at most 200 characters", &[&file(&too_long)]);
    all_refused(key, "\"xy字", &[&file(&too_long)]);
    all_refused(key, "has 201", &[&file(&too_long)]);
    for empty in ["", "  ", "- ...", "…"] {
        let file = file(&["ok".to_owned(), empty.to_owned()]);
        all_refused(key, &format!("unlike {empty:?}"), &[&file]);
    }
}

// QUA-B04 QUA-B05 QUA-B08
#[test]
fn signals_are_switched_on_by_name() {
    let signals =
        |names: &str| read(&format!("[quality_filter]\nsignals = {names}")).index.quality.signals;
    assert_eq!(signals("[]"), Signals::default());
    assert_eq!(signals("['heading']"), Signals { heading: true, ..Signals::default() });
    assert_eq!(signals("['mojibake', 'cjk_width', 'heading']").names().count(), 3);
    let key = "[quality_filter].signals";
    let misspelt = "[quality_filter]\nsignals = ['mojibake', 'headings']";
    all_refused(key, "\"headings\" is none of them; did you mean \"heading\"?", &[misspelt]);
    let unknown = "[quality_filter]\nsignals = ['weather']";
    all_refused(key, "\"cjk_width\", \"heading\", \"mojibake\"; \"weather\" is none", &[unknown]);
    assert!(!refusal(unknown).contains("did you mean"));
}

// CFG-72
#[test]
fn the_confidence_ratio_is_finite_and_not_negative() {
    assert_eq!(read("").search.min_confidence_ratio, 1.5);
    assert_eq!(read("[search]\nmin_confidence_ratio = 0").search.min_confidence_ratio, 0.0);
    all_refused(
        "[search].min_confidence_ratio",
        "finite",
        &[
            "[search]\nmin_confidence_ratio = -0.1",
            "[search]\nmin_confidence_ratio = inf",
            "[search]\nmin_confidence_ratio = nan",
        ],
    );
}

// SRCH-B13
#[test]
fn a_reranker_has_no_limit_or_one_of_up_to_ten_minutes() {
    assert_eq!(read("").search.rerank_timeout, None);
    for (text, most) in [("1", 1), ("2000", 2000), ("600000", 600_000)] {
        let search = read(&format!("[search]\nrerank_timeout_ms = {text}")).search;
        assert_eq!(search.rerank_timeout, Some(std::time::Duration::from_millis(most)));
    }
    all_refused(
        "[search].rerank_timeout_ms",
        "600000",
        &["[search]\nrerank_timeout_ms = 0", "[search]\nrerank_timeout_ms = 600001"],
    );
}

// CFG-73
#[test]
fn diversity_is_off_and_its_numbers_lie_between_0_and_1() {
    let off = MmrSettings { enabled: false, lambda: 0.7, same_doc_penalty: 0.0 };
    assert_eq!(read("").search.mmr, off);
    let set = read("[search.mmr]\nenabled = true\nlambda = 1\nsame_doc_penalty = 0.25");
    assert_eq!(set.search.mmr, MmrSettings { enabled: true, lambda: 1.0, same_doc_penalty: 0.25 });
    for key in ["lambda", "same_doc_penalty"] {
        for value in ["-0.1", "1.1", "nan"] {
            all_refused(key, "from 0 to 1", &[&format!("[search.mmr]\n{key} = {value}")]);
        }
    }
}

// CFG-74
#[test]
fn the_rank_constant_lies_between_1_and_a_million() {
    let constant = |value: &str| read(&format!("[search.fusion]\nrrf_k = {value}"));
    assert_eq!(constant("60.0"), Config::default());
    assert_eq!(constant("60"), Config::default());
    assert_ne!(constant("1.0"), Config::default());
    assert_ne!(constant("1e6"), constant("1.0"));
    for value in ["0.9", "1000001", "inf", "nan"] {
        all_refused("rrf_k", "from 1 to 1000000", &[&format!("[search.fusion]\nrrf_k = {value}")]);
    }
}

// CFG-75
#[test]
fn the_weights_are_finite_and_not_all_zero() {
    let weights = read("[search.fusion]\nbm25_heading_weight = 0\nbm25_context_weight = 3.5");
    let weights = weights.search.weights;
    assert_eq!((weights.heading, weights.context, weights.content), (0.0, 3.5, 1.0));
    let defaults = read("").search.weights;
    assert_eq!((defaults.heading, defaults.context, defaults.content), (2.0, 1.0, 1.0));
    for key in ["bm25_heading_weight", "bm25_context_weight", "bm25_content_weight"] {
        for value in ["-1.0", "1000001.0", "inf", "nan"] {
            all_refused(key, "from 0 to 1000000", &[&format!("[search.fusion]\n{key} = {value}")]);
        }
    }
    all_refused(
        "[search.fusion].bm25_heading_weight",
        "not all three",
        &["[search.fusion]\nbm25_heading_weight = 0\nbm25_context_weight = 0\n\
           bm25_content_weight = 0.0"],
    );
}

// CFG-76
#[test]
fn a_widened_hit_is_larger_than_the_threshold_and_bounded() {
    let off = ParentSettings {
        enabled: false,
        whole_doc_threshold_tokens: 100,
        max_expanded_tokens: 2000,
    };
    assert_eq!(read("").search.parent, off);
    let parent = |text: &str| format!("[search.parent_retriever]\n{text}");
    let widest = read(&parent("enabled = true\nmax_expanded_tokens = 8192")).search.parent;
    assert!(widest.enabled && widest.max_expanded_tokens == 8192);
    let zero = read(&parent("whole_doc_threshold_tokens = 0\nmax_expanded_tokens = 1"));
    assert_eq!(zero.search.parent.whole_doc_threshold_tokens, 0);
    all_refused("max_expanded_tokens", "8192", &[&parent("max_expanded_tokens = 8193")]);
    all_refused("whole_doc_threshold_tokens", "0", &[&parent("whole_doc_threshold_tokens = -1")]);
    for text in ["max_expanded_tokens = 100", "whole_doc_threshold_tokens = 2000"] {
        all_refused("max_expanded_tokens", "whole_doc_threshold_tokens", &[&parent(text)]);
    }
}

// CFG-78
#[test]
fn templates_keep_their_order() {
    assert!(read("").path_templates.is_empty());
    let config = read("[best_practice]\npath_templates = [\"b/{target}.md\", \"a.md\"]");
    assert_eq!(config.path_templates, ["b/{target}.md", "a.md"]);
}

// CFG-79
#[test]
fn the_watcher_is_on_and_waits_half_a_second() {
    let watch = read("").watch;
    assert!(watch.enabled && watch.debounce == Duration::from_millis(500));
    let watch = read("[watch]\nenabled = false\ndebounce_ms = 0").watch;
    assert!(!watch.enabled && watch.debounce.is_zero());
    all_refused("[watch].debounce_ms", "from 0 up", &["[watch]\ndebounce_ms = -1"]);
}

// CFG-79 IDX-B20
#[test]
fn the_watcher_polls_where_it_has_to_or_is_told_to() {
    let watch = read("").watch;
    assert_eq!((watch.mode, watch.poll_interval), (WatchMode::Auto, Duration::from_secs(5)));
    for (word, mode) in
        [("auto", WatchMode::Auto), ("events", WatchMode::Events), ("poll", WatchMode::Poll)]
    {
        assert_eq!(read(&format!("[watch]\nmode = '{word}'")).watch.mode, mode);
    }
    all_refused("[watch].mode", "\"events\"", &["[watch]\nmode = 'Poll'", "[watch]\nmode = ''"]);
    for milliseconds in [500, 3_600_000] {
        let watch = read(&format!("[watch]\npoll_interval_ms = {milliseconds}")).watch;
        assert_eq!(watch.poll_interval, Duration::from_millis(milliseconds));
    }
    let out = ["[watch]\npoll_interval_ms = 499", "[watch]\npoll_interval_ms = 3600001"];
    all_refused("[watch].poll_interval_ms", "from 500 to 3600000", &out);
}

// IDX-47
#[test]
fn each_size_cap_is_its_own() {
    let default = read("").index;
    for key in ["max_binary_file_size", "max_text_file_size", "max_decompressed_size"] {
        let index = read(&format!("[index]\n{key} = '300 MiB'")).index;
        let caps = |index: &IndexSettings| {
            [index.max_binary_file_size, index.max_text_file_size, index.max_decompressed_size]
        };
        let raised =
            caps(&index).iter().zip(caps(&default)).filter(|(cap, old)| *cap != old).count();
        assert_eq!(raised, 1, "{key}");
    }
}

// IDX-B07
#[cfg(unix)]
#[test]
fn files_of_others_are_read_unless_the_owner_is_asked_for() {
    assert!(!read("").index.require_owner);
    assert!(read("[index]\nrequire_owner = true").index.require_owner);
}

// CFG-46 HTTP-01
#[test]
fn the_transport_is_the_one_named_else_http_where_its_section_stands() {
    for (text, kind) in [
        ("", TransportKind::Stdio),
        ("[transport]\n", TransportKind::Stdio),
        ("[transport.http]\n", TransportKind::Http),
        ("[transport]\nkind = \"stdio\"\n[transport.http]\n", TransportKind::Stdio),
        ("[transport]\nkind = \"http\"\n", TransportKind::Http),
    ] {
        assert_eq!(read(text).transport.kind, kind, "{text}");
    }
    all_refused("[transport].kind", "\"stdio\", \"http\"", &["[transport]\nkind = \"sse\""]);
}

// CFG-47
#[test]
fn an_address_is_numeric_or_localhost() {
    let bind =
        |text: &str| read(&format!("[transport.http]\nbind = \"{text}\"")).transport.http.address();
    assert_eq!(read("").transport.http.address(), DEFAULT_BIND);
    assert_eq!(DEFAULT_BIND.to_string(), "127.0.0.1:3100");
    assert_eq!(bind("0.0.0.0:80"), SocketAddr::from(([0, 0, 0, 0], 80)));
    assert_eq!(bind("localhost:4000"), SocketAddr::from(([127, 0, 0, 1], 4000)));
    assert_eq!(bind("[::1]:0").to_string(), "[::1]:0");
    for value in ["127.0.0.1", "localhost", "localhost:http", "kb.example:80", "", ":80"] {
        let text = format!("[transport.http]\nbind = \"{value}\"");
        all_refused("[transport.http].bind", "an address with a port", &[&text]);
    }
}

// CFG-48 CFG-49a CFG-49b CFG-49c CFG-49d
#[test]
fn keys_of_http_are_kept_as_they_are_written() {
    let http = read("").transport.http;
    assert_eq!(http, HttpSettings::default());
    assert!(http.healthz_public && !http.systemd_socket && http.max_sessions == Some(256));
    let http = read(
        "[transport.http]\nallowed_hosts = []\nallowed_origins = [\"https://kb.example\"]\n\
         healthz_public = false\nmax_sessions = 0\nsystemd_socket = true",
    )
    .transport
    .http;
    assert_eq!(http.allowed_hosts, Some(Vec::new()));
    assert_eq!(http.allowed_origins, Some(vec!["https://kb.example".to_owned()]));
    assert!(!http.healthz_public && http.systemd_socket && http.max_sessions.is_none());
    all_refused("max_sessions", "from 0 up", &["[transport.http]\nmax_sessions = -1"]);
}

// HTTP-B04 HTTP-B09 HTTP-B16
#[test]
fn limits_of_http_are_seconds_and_numbers_where_none_is_nought() {
    let http = read(
        "[transport.http]\nmetrics = true\nrefuse_forwarded = true\nmax_in_flight = 0\n\
         max_connections = 9\nheader_timeout_secs = 0\nbody_timeout_secs = 2\n\
         idle_timeout_secs = 3\ncall_timeout_secs = 4\ndrain_timeout_secs = 0\n",
    )
    .transport
    .http;
    assert!(http.metrics && http.refuse_forwarded);
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let limits = HttpLimits {
        header: None,
        body: seconds(2),
        idle: seconds(3),
        call: seconds(4),
        drain: Duration::ZERO,
        in_flight: None,
        connections: Some(9),
    };
    assert_eq!(http.limits, limits);
    let section = "[transport.http]\n";
    all_refused("body_timeout_secs", "from 0 to", &[&format!("{section}body_timeout_secs = -1")]);
    all_refused("max_in_flight", "from 0 to", &[&format!("{section}max_in_flight = 1000001")]);
}

// CFG-05
#[test]
fn an_origin_that_only_a_server_can_judge_is_not_judged_at_load() {
    let http = read("[transport.http]\nallowed_origins = [\"no scheme\"]").transport.http;
    assert_eq!(http.allowed_origins, Some(vec!["no scheme".to_owned()]));
}

// CFG-49e CFG-49f CFG-49h
#[test]
fn keys_of_the_evaluation_keep_to_their_ranges() {
    let evaluation = read("").evaluation;
    assert_eq!(evaluation.golden, None);
    assert_eq!(evaluation.history_size, 10);
    assert_eq!(evaluation.regression_threshold, 0.05);
    let evaluation = read("[eval]\nhistory_size = 0\nregression_threshold = 0").evaluation;
    assert_eq!((evaluation.history_size, evaluation.regression_threshold), (0, 0.0));
    all_refused("[eval].history_size", "from 0 up", &["[eval]\nhistory_size = -1"]);
    for value in ["-0.1", "inf", "nan"] {
        let text = format!("[eval]\nregression_threshold = {value}");
        all_refused("[eval].regression_threshold", "finite", &[&text]);
    }
}

// CFG-49g
#[test]
fn cut_offs_are_sorted_once_each_and_lowered_to_a_thousand() {
    assert_eq!(read("").evaluation.k_values, [1, 5, 10]);
    let config = read("[eval]\nk_values = [20, 1, 5000, 1, 1000]");
    assert_eq!(config.evaluation.k_values, [1, 20, 1000]);
    all_refused(
        "[eval].k_values",
        "at least one",
        &["[eval]\nk_values = []", "[eval]\nk_values = [0]", "[eval]\nk_values = [5, -1]"],
    );
}

// CFG-50 CFG-51
#[test]
fn engine_and_precision_of_a_local_model_are_chosen_from_three_each() {
    use crate::ports::embedder::{EngineChoice, PrecisionChoice};

    let plain = read("");
    assert_eq!((plain.engine, plain.precision), (EngineChoice::Auto, PrecisionChoice::Auto));
    let set = read("[embedding]\nengine = 'onnx'\nprecision = 'int8'\nmodel = 'bge-m3'");
    assert_eq!((set.engine, set.precision), (EngineChoice::Onnx, PrecisionChoice::Int8));
    assert_eq!(set.model, "bge-m3");
    let set = read("model = 'bge-m3'\n[embedding]\nengine = 'native'\nprecision = 'f32'");
    assert_eq!((set.engine, set.precision), (EngineChoice::Native, PrecisionChoice::F32));
    for (text, key) in [("engine = 'gpu'", "engine"), ("precision = 'f16'", "precision")] {
        let message = refusal(&format!("[embedding]\n{text}"));
        assert!(message.contains(&format!("[embedding].{key}")), "{message}");
    }
}

// CFG-50 CLI-34
#[test]
fn an_endpoint_refuses_keys_of_local_models_and_the_flag_resets_them() {
    let endpoint = "[embedding]\nprovider = 'openai-compatible'\nendpoint = 'http://h'\n\
                    model = 'm'\ndimension = 3\n";
    for key in ["engine = 'auto'", "precision = 'f32'"] {
        let message = refusal(&format!("{endpoint}{key}"));
        let name = key.split(' ').next().unwrap();
        assert!(message.contains(&format!("[embedding].{name}")), "{message}");
    }
    let mut config = read("[embedding]\nengine = 'onnx'\nprecision = 'f32'");
    config.use_local_model("bge-m3");
    assert_eq!(config, Config { model: "bge-m3".to_owned(), ..Config::default() });
}

// CFG-41 CFG-61
#[test]
fn a_model_in_a_folder_is_named_absolutely() {
    assert_eq!(read("reranker = 'dir:/srv/m'").reranker, "dir:/srv/m");
    assert_eq!(read("model = 'dir:/srv/m'").model, "dir:/srv/m");
    assert_eq!(read("[embedding]\nmodel = 'dir:/srv/m'").model, "dir:/srv/m");
    for text in ["model = 'dir:m'", "[embedding]\nmodel = 'dir:~/m'", "reranker = 'dir:m'"] {
        let message = refusal(text);
        assert!(message.contains("absolute") && message.contains("dir:/srv"), "{message}");
    }
}
