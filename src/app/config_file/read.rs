//! From keys and values to checked settings.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::app::config::{
    Config, EvaluationSettings, HttpLimits, HttpSettings, IndexSettings, MAX_EVALUATION_CUTOFF,
    OnServe, SearchSettings, TransportKind, WatchSettings,
};
use crate::app::config_file::endpoint;
use crate::app::config_file::error::ConfigError;
use crate::app::config_file::file::{ConfigFile, Entry, Value};
use crate::app::config_file::keys::{nearest_word, shown};
use crate::app::config_file::paths::tilde_hint;
use crate::app::config_file::size;
use crate::app::config_file::trust::{Context, parse_bind};
use crate::domain::chunk::ContextMode;
use crate::domain::format::{EnabledFormats, InvalidFormats, PluginLanguage};
use crate::domain::fusion::RankConstant;
use crate::domain::quality::{self, Signals};
use crate::ports::document_source::WatchMode;

/// Formats of the documentation; one that this build cannot read yet is
/// answered differently from a word that means nothing.
const DOCUMENTED_FORMATS: [&str; 7] = ["md", "txt", "pdf", "docx", "xlsx", "pptx", "rs"];

/// The most tokens of a widened hit that may be asked for.
const MAX_EXPANDED_TOKENS: i64 = 8192;
/// The longest wait for the embedding of a query that may be set: an hour.
const MAX_EMBED_WAIT_MS: i64 = 60 * 60 * 1000;

/// The most phrases that may be added to the built-in boilerplate.
const MAX_PHRASES: usize = 256;
/// The most characters of one.
const MAX_PHRASE_CHARS: usize = 200;

/// Makes settings of a file that is believed as it is.
pub(super) fn read(file: &ConfigFile, context: &Context<'_>) -> Result<Config, ConfigError> {
    let reader = Reader { file };
    let mut config = Config::default();
    endpoint::read(&reader, context.models, context.api_key.as_ref(), &mut config)?;
    if let Some(name) = endpoint::local_model(&reader, "reranker", context.rerankers)? {
        name.clone_into(&mut config.reranker);
    }
    config.kb_path = reader.relative_path("kb_path")?;
    config.model_cache = reader.absolute_path("fastembed_cache_dir")?;
    config.grammar_dir = reader.absolute_path("grammar_dir")?;
    set(&mut config.rerank_by_default, reader.flag("rerank_by_default"));
    set(&mut config.exclude_headings, reader.texts("exclude_headings"));
    set(&mut config.exclude_dirs, reader.texts("exclude_dirs"));
    if let Some((formats, plugins)) = reader.formats()? {
        (config.formats, config.plugins) = (formats, plugins);
    }
    set(&mut config.path_templates, reader.texts("best_practice.path_templates"));
    read_watch(&reader, &mut config.watch)?;
    read_index(&reader, &mut config.index)?;
    read_search(&reader, &mut config.search)?;
    config.transport.kind = read_kind(&reader)?;
    read_http(&reader, &mut config.transport.http)?;
    read_evaluation(&reader, &mut config.evaluation)?;
    Ok(config)
}

fn read_watch(reader: &Reader<'_>, watch: &mut WatchSettings) -> Result<(), ConfigError> {
    set(&mut watch.enabled, reader.flag("watch.enabled"));
    let debounce = reader.integer("watch.debounce_ms", 0..=i64::MAX)?;
    set(&mut watch.debounce, debounce.map(Duration::from_millis));
    let mode = reader.choice("watch.mode", &["auto", "events", "poll"])?;
    set(
        &mut watch.mode,
        mode.map(|mode| match mode {
            "events" => WatchMode::Events,
            "poll" => WatchMode::Poll,
            _ => WatchMode::Auto,
        }),
    );
    let interval = reader.integer("watch.poll_interval_ms", 500..=3_600_000)?;
    set(&mut watch.poll_interval, interval.map(Duration::from_millis));
    Ok(())
}

fn read_index(reader: &Reader<'_>, index: &mut IndexSettings) -> Result<(), ConfigError> {
    set(&mut index.fail_on_frontmatter_error, reader.flag("index.fail_on_frontmatter_error"));
    index.on_serve = match reader.choice("index.on_serve", &["none", "build"])? {
        Some("build") => OnServe::Build,
        _ => OnServe::None,
    };
    set(&mut index.require_owner, reader.flag("index.require_owner"));
    if index.require_owner && cfg!(not(unix)) {
        return Err(reader.conflict(
            "index.require_owner",
            "[index].require_owner = true cannot be kept here: only on Unix do files have an owner \
             to ask for; remove the key",
        ));
    }
    set(&mut index.max_binary_file_size, reader.size("index.max_binary_file_size")?);
    set(&mut index.max_text_file_size, reader.size("index.max_text_file_size")?);
    set(&mut index.max_decompressed_size, reader.size("index.max_decompressed_size")?);
    set(&mut index.max_chunk_chars, reader.integer("parsers.code.max_chunk_chars", 30..=i64::MAX)?);
    let mode = |enabled| if enabled { ContextMode::Static } else { ContextMode::Off };
    set(&mut index.context_mode, reader.flag("contextual.enabled").map(mode));
    read_quality(reader, &mut index.quality)
}

fn read_quality(reader: &Reader<'_>, rules: &mut quality::Rules) -> Result<(), ConfigError> {
    let key = "quality_filter.extra_boilerplate";
    if let Some(phrases) = reader.texts(key) {
        if phrases.len() > MAX_PHRASES {
            let accepted =
                format!("a list of at most {MAX_PHRASES} phrases; it has {}", phrases.len());
            return Err(reader.refused(key, &accepted));
        }
        if let Some(long) = phrases.iter().find(|phrase| has_more_chars(phrase, MAX_PHRASE_CHARS)) {
            let start: String = long.chars().take(20).collect();
            let accepted = format!(
                "a list of phrases of at most {MAX_PHRASE_CHARS} characters each; the one that \
                 begins {start:?} has {}",
                long.chars().count()
            );
            return Err(reader.refused(key, &accepted));
        }
        if let Some(empty) = phrases.iter().find(|phrase| quality::normalised(phrase).is_empty()) {
            let accepted = format!(
                "a list of phrases with more to them than marks and white space, unlike {empty:?}"
            );
            return Err(reader.refused(key, &accepted));
        }
        rules.extra_boilerplate = phrases;
    }
    let key = "quality_filter.signals";
    if let Some(names) = reader.texts(key) {
        rules.signals = Signals::from_names(&names).map_err(|unknown| {
            let hint = nearest_word(&unknown.name, &Signals::NAMES)
                .map(|known| format!("; did you mean \"{known}\"?"))
                .unwrap_or_default();
            let known = Signals::NAMES.map(|name| format!("\"{name}\"")).join(", ");
            let accepted = format!("a list of {known}; {:?} is none of them{hint}", unknown.name);
            reader.refused(key, &accepted)
        })?;
    }
    Ok(())
}

fn has_more_chars(text: &str, limit: usize) -> bool {
    text.chars().nth(limit).is_some()
}

fn read_search(reader: &Reader<'_>, search: &mut SearchSettings) -> Result<(), ConfigError> {
    let threshold = reader.number("quality_filter.threshold", f64::NEG_INFINITY..=f64::INFINITY)?;
    set(&mut search.min_quality, threshold.map(|threshold| single(threshold.clamp(0.0, 1.0))));
    if reader.flag("quality_filter.enabled") == Some(false) {
        search.min_quality = 0.0;
    }
    let ratio = reader.number("search.min_confidence_ratio", 0.0..=f64::MAX)?;
    set(&mut search.min_confidence_ratio, ratio);
    let wait = reader.integer::<u64>("search.max_embed_wait_ms", 0..=MAX_EMBED_WAIT_MS)?;
    search.max_embed_wait = wait.filter(|wait| *wait > 0).map(Duration::from_millis);
    set(&mut search.mmr.enabled, reader.flag("search.mmr.enabled"));
    let share = |key| Ok::<_, ConfigError>(reader.number(key, 0.0..=1.0)?.map(single));
    set(&mut search.mmr.lambda, share("search.mmr.lambda")?);
    set(&mut search.mmr.same_doc_penalty, share("search.mmr.same_doc_penalty")?);
    let most: Option<u64> = reader.integer("search.rerank_timeout_ms", 1..=600_000)?;
    search.rerank_timeout = most.map(Duration::from_millis);
    read_fusion(reader, search)?;
    read_parent(reader, search)
}

fn read_fusion(reader: &Reader<'_>, search: &mut SearchSettings) -> Result<(), ConfigError> {
    set(&mut search.adaptive, reader.flag("search.fusion.adaptive"));
    if let Some(constant) = reader.number("search.fusion.rrf_k", 1.0..=1e6)? {
        search.rank_constant = RankConstant::new(constant)
            .map_err(|_| reader.refused("search.fusion.rrf_k", "a number from 1 to 1000000"))?;
    }
    let keys = [
        "search.fusion.bm25_heading_weight",
        "search.fusion.bm25_context_weight",
        "search.fusion.bm25_content_weight",
    ];
    let weights = &mut search.weights;
    for (key, slot) in
        keys.iter().zip([&mut weights.heading, &mut weights.context, &mut weights.content])
    {
        set(slot, reader.number(key, 0.0..=1e6)?);
    }
    if [weights.heading, weights.context, weights.content].iter().all(|weight| *weight <= 0.0) {
        let reason = format!("{}: not all three may be 0", keys.map(shown).join(", "));
        return Err(reader.conflict(keys[0], &reason));
    }
    Ok(())
}

fn read_parent(reader: &Reader<'_>, search: &mut SearchSettings) -> Result<(), ConfigError> {
    let (threshold, expanded) = (
        "search.parent_retriever.whole_doc_threshold_tokens",
        "search.parent_retriever.max_expanded_tokens",
    );
    let parent = &mut search.parent;
    set(&mut parent.enabled, reader.flag("search.parent_retriever.enabled"));
    set(&mut parent.whole_doc_threshold_tokens, reader.integer(threshold, 0..=i64::MAX)?);
    set(&mut parent.max_expanded_tokens, reader.integer(expanded, 1..=MAX_EXPANDED_TOKENS)?);
    if parent.max_expanded_tokens <= parent.whole_doc_threshold_tokens {
        let reason = format!(
            "{} is {}, but has to be greater than {}, which is {}",
            shown(expanded),
            parent.max_expanded_tokens,
            shown(threshold),
            parent.whole_doc_threshold_tokens
        );
        let written = if reader.has(expanded) { expanded } else { threshold };
        return Err(reader.conflict(written, &reason));
    }
    Ok(())
}

fn read_kind(reader: &Reader<'_>) -> Result<TransportKind, ConfigError> {
    Ok(match reader.choice("transport.kind", &["stdio", "http"])? {
        Some("http") => TransportKind::Http,
        None if reader.file.has_http_section() => TransportKind::Http,
        _ => TransportKind::Stdio,
    })
}

fn read_http(reader: &Reader<'_>, http: &mut HttpSettings) -> Result<(), ConfigError> {
    if let Some(text) = reader.text("transport.http.bind") {
        http.bind = Some(parse_bind(text).ok_or_else(|| {
            reader.refused(
                "transport.http.bind",
                "an address with a port, such as \"127.0.0.1:3100\", \"[::1]:3100\" or \
                 \"localhost:3100\"",
            )
        })?);
    }
    http.allowed_hosts = reader.texts("transport.http.allowed_hosts");
    http.allowed_origins = reader.texts("transport.http.allowed_origins");
    set(&mut http.healthz_public, reader.flag("transport.http.healthz_public"));
    set(&mut http.systemd_socket, reader.flag("transport.http.systemd_socket"));
    let sessions = reader.integer("transport.http.max_sessions", 0..=i64::MAX)?;
    set(&mut http.max_sessions, sessions.map(|most| (most != 0).then_some(most)));
    set(&mut http.metrics, reader.flag("transport.http.metrics"));
    set(&mut http.refuse_forwarded, reader.flag("transport.http.refuse_forwarded"));
    read_http_limits(reader, &mut http.limits)
}

fn read_http_limits(reader: &Reader<'_>, limits: &mut HttpLimits) -> Result<(), ConfigError> {
    const MOST_SECS: i64 = 86_400;
    // A semaphore counts no further than this, by far.
    const MOST: i64 = 1_000_000;
    let seconds = |name: &str| -> Result<Option<Option<Duration>>, ConfigError> {
        let seconds = reader.integer(&format!("transport.http.{name}"), 0..=MOST_SECS)?;
        Ok(seconds.map(|secs: u64| (secs != 0).then(|| Duration::from_secs(secs))))
    };
    set(&mut limits.header, seconds("header_timeout_secs")?);
    set(&mut limits.body, seconds("body_timeout_secs")?);
    set(&mut limits.idle, seconds("idle_timeout_secs")?);
    set(&mut limits.call, seconds("call_timeout_secs")?);
    let drain = seconds("drain_timeout_secs")?.map(Option::unwrap_or_default);
    set(&mut limits.drain, drain);
    let most = |name: &str| -> Result<Option<Option<usize>>, ConfigError> {
        let most = reader.integer(&format!("transport.http.{name}"), 0..=MOST)?;
        Ok(most.map(|most| (most != 0).then_some(most)))
    };
    set(&mut limits.in_flight, most("max_in_flight")?);
    set(&mut limits.connections, most("max_connections")?);
    Ok(())
}

fn read_evaluation(
    reader: &Reader<'_>,
    evaluation: &mut EvaluationSettings,
) -> Result<(), ConfigError> {
    evaluation.golden = reader.relative_path("eval.golden")?;
    set(&mut evaluation.history_size, reader.integer("eval.history_size", 0..=i64::MAX)?);
    let threshold = reader.number("eval.regression_threshold", 0.0..=f64::MAX)?;
    set(&mut evaluation.regression_threshold, threshold);
    if let Some(values) = reader.integers("eval.k_values") {
        if values.is_empty() || values.iter().any(|value| *value < 1) {
            return Err(reader.refused(
                "eval.k_values",
                "a list of at least one whole number, each from 1 up (above 1000 counts as 1000)",
            ));
        }
        let lowered = |value: &i64| {
            usize::try_from(*value).map_or(MAX_EVALUATION_CUTOFF, |k| k.min(MAX_EVALUATION_CUTOFF))
        };
        let mut cutoffs: Vec<usize> = values.iter().map(lowered).collect();
        cutoffs.sort_unstable();
        cutoffs.dedup();
        evaluation.k_values = cutoffs;
    }
    Ok(())
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only numbers from 0 to 1 come here")]
fn single(number: f64) -> f32 {
    number as f32
}

/// Reads single keys and says what is wrong with one.
pub(super) struct Reader<'a> {
    file: &'a ConfigFile,
}

impl<'a> Reader<'a> {
    /// Whether a key is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.file.get(key).is_some()
    }

    /// A string.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        match &self.file.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A switch.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match &self.file.get(key)?.value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn texts(&self, key: &str) -> Option<Vec<String>> {
        match &self.file.get(key)?.value {
            Value::Texts(texts) => Some(texts.clone()),
            _ => None,
        }
    }

    fn integers(&self, key: &str) -> Option<&'a [i64]> {
        match &self.file.get(key)?.value {
            Value::Integers(integers) => Some(integers),
            _ => None,
        }
    }

    /// A string that is not blank, trimmed.
    pub(super) fn name(&self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        match self.text(key).map(str::trim) {
            Some("") => Err(self.refused(key, "a name that is not blank")),
            name => Ok(name),
        }
    }

    /// One of several words.
    pub(super) fn choice(&self, key: &str, words: &[&str]) -> Result<Option<&'a str>, ConfigError> {
        match self.text(key) {
            Some(word) if !words.contains(&word) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                Err(self.refused(key, &format!("one of {}", quoted.join(", "))))
            }
            word => Ok(word),
        }
    }

    /// A whole number within a range.
    pub(super) fn integer<T: TryFrom<i64>>(
        &self,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(Entry { value: Value::Integer(number), .. }) = self.file.get(key) else {
            return Ok(None);
        };
        let accepted = if *range.end() == i64::MAX {
            format!("a whole number from {} up", range.start())
        } else {
            format!("a whole number from {} to {}", range.start(), range.end())
        };
        let fitting = range.contains(number).then(|| T::try_from(*number).ok()).flatten();
        fitting.map(Some).ok_or_else(|| self.refused(key, &accepted))
    }

    /// A number within a range, never one that is not a number.
    fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, ConfigError> {
        match self.file.get(key) {
            Some(Entry { value: Value::Number(number), .. }) if range.contains(number) => {
                Ok(Some(*number))
            }
            Some(_) => Err(self.refused(
                key,
                &if range.end().is_infinite() {
                    "a number".to_owned()
                } else if *range.end() >= f64::MAX {
                    format!("a finite number from {} up", range.start())
                } else {
                    format!("a number from {} to {}", range.start(), range.end())
                },
            )),
            None => Ok(None),
        }
    }

    /// A size in bytes; none within is unlimited.
    #[expect(clippy::option_option, reason = "absent and unlimited are two answers")]
    fn size(&self, key: &str) -> Result<Option<Option<u64>>, ConfigError> {
        match self.file.get(key).map(|entry| &entry.value) {
            Some(Value::Text(text)) => {
                size::parse(text).map(Some).map_err(|accepted| self.refused(key, &accepted))
            }
            Some(Value::Integer(0)) => {
                Err(self.refused(key, &format!("{}{}", size::ACCEPTED, size::ZERO)))
            }
            Some(Value::Integer(bytes)) => match u64::try_from(*bytes) {
                Ok(bytes) => Ok(Some(Some(bytes))),
                Err(_) => Err(self.refused(key, size::ACCEPTED)),
            },
            _ => Ok(None),
        }
    }

    /// A path, relative to the folder of the file.
    fn relative_path(&self, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        match self.text(key) {
            Some("") => Err(self.refused(key, "a path that is not empty")),
            path => Ok(path.map(|path| self.file.directory().join(path))),
        }
    }

    pub(super) fn absolute_path(&self, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        let Some(path) = self.text(key).map(Path::new) else {
            return Ok(None);
        };
        if path.is_absolute() {
            return Ok(Some(path.to_owned()));
        }
        Err(self.refused(key, &format!("an absolute path{}", tilde_hint(path))))
    }

    /// The formats that are switched on, and the languages that need a plugin.
    fn formats(&self) -> Result<Option<(EnabledFormats, Vec<PluginLanguage>)>, ConfigError> {
        let key = "parsers.enabled";
        let Some(ids) = self.texts(key) else {
            return Ok(None);
        };
        let mut plugins = Vec::new();
        let mut own = Vec::new();
        for id in ids {
            match PluginLanguage::of_id(&id) {
                Some(language) if plugins.contains(&language) => {
                    let reason = InvalidFormats::Duplicate { id }.to_string();
                    return Err(self.conflict(key, &reason));
                }
                Some(language) => plugins.push(language),
                None => own.push(id),
            }
        }
        if own.is_empty() && !plugins.is_empty() {
            return Ok(Some((EnabledFormats::none(), plugins)));
        }
        let formats = EnabledFormats::new(&own);
        formats.map(|formats| Some((formats, plugins))).map_err(|error| match error {
            InvalidFormats::Unknown { id, supported }
                if DOCUMENTED_FORMATS.iter().any(|known| known.eq_ignore_ascii_case(&id)) =>
            {
                let reason = format!(
                    "[parsers].enabled names {id:?}, a format that this build of groove cannot \
                     read; supported: {supported}"
                );
                self.conflict(key, &reason)
            }
            error => self.conflict(key, &error.to_string()),
        })
    }

    /// The refusal of a value.
    pub(super) fn refused(&self, key: &str, accepted: &str) -> ConfigError {
        let (line, value) =
            self.file.get(key).map_or((1, ""), |entry| (entry.line, entry.shown.as_str()));
        ConfigError::OutOfRange {
            at: self.file.at(line),
            key: shown(key),
            value: value.to_owned(),
            accepted: accepted.to_owned(),
        }
    }

    /// The refusal of keys that do not go together, of which one is `key`.
    pub(super) fn conflict(&self, key: &str, reason: &str) -> ConfigError {
        let line = self.file.get(key).map_or(1, |entry| entry.line);
        ConfigError::Conflict { at: self.file.at(line), reason: reason.to_owned() }
    }

    /// The complaint about a key that is not there.
    pub(super) fn missing(&self, key: &str, reason: &str) -> ConfigError {
        ConfigError::Missing {
            file: self.file.path().to_owned(),
            key: shown(key),
            reason: reason.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
