//! What holds for every key, and where it comes from.

use std::path::Path;
use std::time::Duration;

use toml::Value as Toml;

use crate::app::config::{Config, HttpSettings, KeySetting, OnServe, TransportKind};
use crate::app::config_file::discovery::Trust;
use crate::app::config_file::endpoint::shown_url;
use crate::app::config_file::file::{ConfigFile, Entry};
use crate::app::config_file::keys::KEYS;
use crate::app::config_file::trust::{Context, restrict};
use crate::domain::chunk::ContextMode;
use crate::ports::document_source::WatchMode;
use crate::ports::embedder::{EngineChoice, PrecisionChoice};

/// A key with what holds for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key with its sections in front, separated by dots.
    pub key: &'static str,
    /// What holds.
    pub value: SettingValue,
    /// Where that comes from.
    pub origin: SettingOrigin,
}

/// What holds for a key.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// This value, as the file would have it.
    Is(Toml),
    /// A value that is not shown.
    Hidden,
    /// None: the key is not set and has no default.
    Unset,
}

/// Where the value of a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Nothing sets it.
    Default,
    /// The file sets it.
    File {
        /// The line, counted from 1.
        line: usize,
    },
    /// The file sets it, but may not: something else holds.
    NotAccepted {
        /// The line, counted from 1.
        line: usize,
        /// What the file says.
        asked: String,
    },
    /// An environment variable sets it.
    Variable(&'static str),
}

/// Lists every key that matters to a configuration, in the order of the
/// documentation. With a local model these are not the keys of an endpoint, and
/// with an endpoint not those of a local model.
///
/// - `file`: what was read, before anything in it was restricted.
/// - `config`: what was made of it.
pub fn effective(
    file: Option<&ConfigFile>,
    trust: Trust,
    context: &Context<'_>,
    config: &Config,
) -> Vec<Setting> {
    let mut accepted = file.cloned();
    if let (Some(file), Trust::Untrusted) = (&mut accepted, trust) {
        // What this warns of was told when the file was loaded.
        drop(restrict(file, context));
    }
    let setting = |key: &'static str| {
        let written = file.and_then(|file| entry_of(file, key));
        let kept = accepted.as_ref().and_then(|file| entry_of(file, key));
        let origin = match (written, kept) {
            (None, _) if key == "embedding.api_key" && context.api_key.is_some() => {
                SettingOrigin::Variable("GROOVE_EMBEDDING_API_KEY")
            }
            (None, _) => SettingOrigin::Default,
            (Some(written), Some(kept)) if written == kept => {
                SettingOrigin::File { line: written.line }
            }
            (Some(written), _) => {
                SettingOrigin::NotAccepted { line: written.line, asked: written.shown.clone() }
            }
        };
        Some(Setting { key, value: value_of(key, config)?, origin })
    };
    KEYS.iter().filter_map(|(key, _)| setting(key)).collect()
}

/// What a file says of a key; one key names the model for several.
fn entry_of<'a>(file: &'a ConfigFile, key: &str) -> Option<&'a Entry> {
    let is_of_model = matches!(key, "model" | "embedding.document_model" | "embedding.query_model");
    let stand_in = || is_of_model.then(|| file.get("embedding.model")).flatten();
    file.get(key).or_else(stand_in)
}

/// What holds for a key; nothing if it does not matter to this configuration.
fn value_of(key: &str, config: &Config) -> Option<SettingValue> {
    let Config { index, search, watch, transport, evaluation, .. } = config;
    let http = &transport.http;
    let value = match key {
        "kb_path" => return Some(optional(config.kb_path.as_deref().map(path))),
        "reranker" => text(&config.reranker),
        "rerank_by_default" => Toml::Boolean(config.rerank_by_default),
        "fastembed_cache_dir" => return Some(optional(config.model_cache.as_deref().map(path))),
        "grammar_dir" => return Some(optional(config.grammar_dir.as_deref().map(path))),
        "exclude_headings" => texts(&config.exclude_headings),
        "exclude_dirs" => texts(&config.exclude_dirs),
        "parsers.enabled" => {
            let own = config.formats.iter().map(|format| format.id);
            let ids = own.chain(config.plugins.iter().map(|language| language.id));
            Toml::Array(ids.map(text).collect())
        }
        "parsers.code.max_chunk_chars" => integer(index.max_chunk_chars),
        "index.fail_on_frontmatter_error" => Toml::Boolean(index.fail_on_frontmatter_error),
        "index.on_serve" => text(match index.on_serve {
            OnServe::None => "none",
            OnServe::Build => "build",
        }),
        "index.require_owner" => Toml::Boolean(index.require_owner),
        "index.max_binary_file_size" => size(index.max_binary_file_size),
        "index.max_text_file_size" => size(index.max_text_file_size),
        "index.max_decompressed_size" => size(index.max_decompressed_size),
        "quality_filter.enabled" => Toml::Boolean(search.min_quality > 0.0),
        "quality_filter.threshold" => single(search.min_quality),
        "quality_filter.extra_boilerplate" => texts(&index.quality.extra_boilerplate),
        "quality_filter.signals" => Toml::Array(index.quality.signals.names().map(text).collect()),
        "search.max_embed_wait_ms" => {
            integer(search.max_embed_wait.map_or(0, |wait| wait.as_millis()))
        }
        "search.min_confidence_ratio" => Toml::Float(search.min_confidence_ratio),
        "search.mmr.enabled" => Toml::Boolean(search.mmr.enabled),
        "search.mmr.lambda" => single(search.mmr.lambda),
        "search.mmr.same_doc_penalty" => single(search.mmr.same_doc_penalty),
        "search.rerank_timeout_ms" => {
            return Some(optional(search.rerank_timeout.map(|most| integer(most.as_millis()))));
        }
        "search.fusion.adaptive" => Toml::Boolean(search.adaptive),
        "search.fusion.rrf_k" => single(search.rank_constant.value()),
        "search.fusion.bm25_heading_weight" => Toml::Float(search.weights.heading),
        "search.fusion.bm25_context_weight" => Toml::Float(search.weights.context),
        "search.fusion.bm25_content_weight" => Toml::Float(search.weights.content),
        "search.parent_retriever.enabled" => Toml::Boolean(search.parent.enabled),
        "search.parent_retriever.whole_doc_threshold_tokens" => {
            integer(search.parent.whole_doc_threshold_tokens)
        }
        "search.parent_retriever.max_expanded_tokens" => integer(search.parent.max_expanded_tokens),
        "contextual.enabled" => Toml::Boolean(index.context_mode == ContextMode::Static),
        "best_practice.path_templates" => texts(&config.path_templates),
        "watch.enabled" => Toml::Boolean(watch.enabled),
        "watch.debounce_ms" => integer(watch.debounce.as_millis()),
        "watch.mode" => text(match watch.mode {
            WatchMode::Auto => "auto",
            WatchMode::Events => "events",
            WatchMode::Poll => "poll",
        }),
        "watch.poll_interval_ms" => integer(watch.poll_interval.as_millis()),
        "transport.kind" => text(match transport.kind {
            TransportKind::Stdio => "stdio",
            TransportKind::Http => "http",
        }),
        "eval.golden" => return Some(optional(evaluation.golden.as_deref().map(path))),
        "eval.history_size" => integer(evaluation.history_size),
        "eval.k_values" => Toml::Array(evaluation.k_values.iter().map(|k| integer(*k)).collect()),
        "eval.regression_threshold" => Toml::Float(evaluation.regression_threshold),
        _ => return of_http(key, http).or_else(|| of_embedding(key, config)),
    };
    Some(SettingValue::Is(value))
}

/// What holds for a key of the HTTP transport.
fn of_http(key: &str, http: &HttpSettings) -> Option<SettingValue> {
    let value = match key {
        "transport.http.bind" => text(&http.address().to_string()),
        "transport.http.allowed_hosts" => {
            return Some(optional(http.allowed_hosts.as_deref().map(texts)));
        }
        "transport.http.allowed_origins" => {
            return Some(optional(http.allowed_origins.as_deref().map(texts)));
        }
        "transport.http.healthz_public" => Toml::Boolean(http.healthz_public),
        "transport.http.max_sessions" => integer(http.max_sessions.unwrap_or(0)),
        "transport.http.systemd_socket" => Toml::Boolean(http.systemd_socket),
        "transport.http.metrics" => Toml::Boolean(http.metrics),
        "transport.http.refuse_forwarded" => Toml::Boolean(http.refuse_forwarded),
        "transport.http.max_in_flight" => integer(http.limits.in_flight.unwrap_or(0)),
        "transport.http.max_connections" => integer(http.limits.connections.unwrap_or(0)),
        "transport.http.header_timeout_secs" => seconds(http.limits.header),
        "transport.http.body_timeout_secs" => seconds(http.limits.body),
        "transport.http.idle_timeout_secs" => seconds(http.limits.idle),
        "transport.http.call_timeout_secs" => seconds(http.limits.call),
        "transport.http.drain_timeout_secs" => integer(http.limits.drain.as_secs()),
        _ => return None,
    };
    Some(SettingValue::Is(value))
}

/// What holds for a key about the model.
fn of_embedding(key: &str, config: &Config) -> Option<SettingValue> {
    let Some(endpoint) = &config.endpoint else {
        let value = match key {
            "embedding.provider" => text("fastembed"),
            "model" => text(&config.model),
            "embedding.engine" => text(match config.engine {
                EngineChoice::Auto => "auto",
                EngineChoice::Native => "native",
                EngineChoice::Onnx => "onnx",
            }),
            "embedding.precision" => text(match config.precision {
                PrecisionChoice::Auto => "auto",
                PrecisionChoice::F32 => "f32",
                PrecisionChoice::Int8 => "int8",
            }),
            _ => return None,
        };
        return Some(SettingValue::Is(value));
    };
    let value = match key {
        "embedding.provider" => text("openai-compatible"),
        "embedding.document_model" => text(&endpoint.document_model),
        "embedding.query_model" => text(&endpoint.query_model),
        "embedding.endpoint" => text(shown_url(&endpoint.url).trim_matches('"')),
        "embedding.dimension" => integer(endpoint.dimension),
        "embedding.request_dimensions" => Toml::Boolean(endpoint.request_dimensions),
        "embedding.api_key" => {
            let is_given = matches!(endpoint.api_key, Some(KeySetting::Given(_)));
            return Some(if is_given { SettingValue::Hidden } else { SettingValue::Unset });
        }
        "embedding.api_key_file" => match &endpoint.api_key {
            Some(KeySetting::File(file)) => path(file),
            _ => return Some(SettingValue::Unset),
        },
        // Its arguments can hold a secret.
        "embedding.api_key_command" => {
            let is_command = matches!(endpoint.api_key, Some(KeySetting::Command(_)));
            return Some(if is_command { SettingValue::Hidden } else { SettingValue::Unset });
        }
        "embedding.timeout_seconds" => integer(endpoint.timeout.as_secs()),
        "embedding.max_input_chars" => integer(endpoint.max_input_chars),
        "embedding.max_retries" => integer(endpoint.max_retries),
        _ => return None,
    };
    Some(SettingValue::Is(value))
}

fn optional(value: Option<Toml>) -> SettingValue {
    value.map_or(SettingValue::Unset, SettingValue::Is)
}

fn text(text: &str) -> Toml {
    Toml::String(text.to_owned())
}

fn texts(texts: &[String]) -> Toml {
    Toml::Array(texts.iter().map(|item| text(item)).collect())
}

fn path(path: &Path) -> Toml {
    text(&path.to_string_lossy())
}

/// A number as far as the file can hold it.
fn integer<T: TryInto<i64>>(number: T) -> Toml {
    Toml::Integer(number.try_into().unwrap_or(i64::MAX))
}

/// A time in seconds, 0 if it is without end.
fn seconds(time: Option<Duration>) -> Toml {
    integer(time.map_or(0, |time| time.as_secs()))
}

/// The number that a person would write for one of single precision.
fn single(number: f32) -> Toml {
    Toml::Float(number.to_string().parse().unwrap_or_else(|_| f64::from(number)))
}

/// A size cap, in MiB where it is whole ones.
fn size(bytes: Option<u64>) -> Toml {
    const MIB: u64 = 1024 * 1024;
    match bytes {
        None => text("unlimited"),
        Some(bytes) if bytes.is_multiple_of(MIB) => text(&format!("{} MiB", bytes / MIB)),
        Some(bytes) => integer(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::app::config::ApiKey;
    use crate::app::config_file::testing::{Facts, MODELS, RERANKERS};
    use crate::app::config_file::trust::apply_trust;

    const ENDPOINT: &str = "[embedding]\nprovider = \"openai-compatible\"\n\
                            endpoint = \"https://h.example/v1/embeddings\"\nmodel = \"m\"\n\
                            dimension = 8\n";

    fn settings(
        text: &str,
        trust: Trust,
        api_key: Option<&str>,
    ) -> BTreeMap<&'static str, Setting> {
        let files = Facts::new(&["/etc/kb/notes/"]);
        let context = Context {
            models: &MODELS,
            rerankers: &RERANKERS,
            api_key: api_key.and_then(ApiKey::new),
            home: Some(Path::new("/home/ann")),
            files: &files,
        };
        let file = ConfigFile::parse(text, Path::new("/etc/kb/groove.toml")).unwrap();
        let (config, _) = apply_trust(file.clone(), trust, &context).unwrap();
        let listed = effective(Some(&file), trust, &context, &config);
        listed.into_iter().map(|setting| (setting.key, setting)).collect()
    }

    #[test]
    fn every_key_has_a_place_with_a_local_model_or_with_an_endpoint() {
        let local = settings("", Trust::Trusted, None);
        let remote = settings(ENDPOINT, Trust::Trusted, None);
        for (key, _) in KEYS.iter().filter(|(key, _)| *key != "embedding.model") {
            assert!(local.contains_key(key) || remote.contains_key(key), "{key}");
        }
        assert!(!local.contains_key("embedding.endpoint") && !remote.contains_key("model"));
    }

    /// What is printed can be written into a file and means the same.
    #[test]
    fn what_holds_by_default_read_again_is_the_default() {
        for text in ["", ENDPOINT] {
            let before = settings(text, Trust::Trusted, None);
            let lines = before.values().filter_map(|setting| match &setting.value {
                SettingValue::Is(value) if setting.key != "transport.http.bind" => {
                    Some(format!("{} = {value}\n", setting.key))
                }
                _ => None,
            });
            let again = settings(&lines.collect::<String>(), Trust::Trusted, None);
            for (key, setting) in before {
                assert_eq!(setting.value, again[key].value, "{key}");
            }
        }
    }

    // CLI-05 CFG-15
    #[test]
    fn each_value_tells_its_line_or_why_it_does_not_hold() {
        let text = "model = \"bge-m3\"\n[transport.http]\nbind = \"0.0.0.0:4000\"\n\
                    max_sessions = 7\n[search.mmr]\nlambda = 0.25\n";
        let trusted = settings(text, Trust::Trusted, None);
        let is = |value: Toml| SettingValue::Is(value);
        assert_eq!(trusted["model"].origin, SettingOrigin::File { line: 1 });
        assert_eq!(trusted["transport.http.max_sessions"].value, is(Toml::Integer(7)));
        assert_eq!(trusted["search.mmr.lambda"].value, is(Toml::Float(0.25)));
        assert_eq!(trusted["search.fusion.rrf_k"].origin, SettingOrigin::Default);
        let found = settings(text, Trust::Untrusted, None);
        assert_eq!(found["model"].origin, SettingOrigin::File { line: 1 });
        let bind = &found["transport.http.bind"];
        assert_eq!(bind.value, is(Toml::String("127.0.0.1:4000".into())));
        let asked = "\"0.0.0.0:4000\"".to_owned();
        assert_eq!(bind.origin, SettingOrigin::NotAccepted { line: 3, asked });
        assert_eq!(found["transport.http.max_sessions"].value, is(Toml::Integer(256)));
        assert_eq!(found["search.mmr.lambda"].origin, SettingOrigin::File { line: 6 });
    }

    // CFG-56 CFG-70c
    #[test]
    fn a_secret_is_not_shown_and_may_come_from_a_variable() {
        let key = &settings(ENDPOINT, Trust::Trusted, Some("s3cret"))["embedding.api_key"];
        assert_eq!(key.value, SettingValue::Hidden);
        assert_eq!(key.origin, SettingOrigin::Variable("GROOVE_EMBEDDING_API_KEY"));
        let text = format!("{ENDPOINT}api_key = \"s3cret\"\n");
        let key = &settings(&text, Trust::Trusted, None)["embedding.api_key"];
        assert_eq!(
            (&key.value, &key.origin),
            (&SettingValue::Hidden, &SettingOrigin::File { line: 6 })
        );
        let text = format!("{ENDPOINT}api_key_command = [\"pass\", \"s3cret\"]\n");
        let listed = settings(&text, Trust::Trusted, None);
        assert_eq!(listed["embedding.api_key_command"].value, SettingValue::Hidden);
        assert!(!format!("{listed:?}").contains("s3cret"));
    }
}
