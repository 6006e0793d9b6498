//! The keys of `groove.toml` and the shape of each value.

/// The shape of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Integer,
    /// A number, whole or not.
    Number,
    /// A list of strings.
    Texts,
    /// A list of whole numbers.
    Integers,
    /// A whole number, or a string with a unit.
    Size,
}

impl Kind {
    /// The shape in words.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "true or false",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Texts => "a list of strings",
            Self::Integers => "a list of whole numbers",
            Self::Size => "a number of bytes, a string such as \"80 MiB\", or \"unlimited\"",
        }
    }
}

/// Every key with its sections in front, and its shape.
pub(super) const KEYS: &[(&str, Kind)] = &[
    ("kb_path", Kind::Text),
    ("model", Kind::Text),
    ("reranker", Kind::Text),
    ("rerank_by_default", Kind::Flag),
    ("fastembed_cache_dir", Kind::Text),
    ("grammar_dir", Kind::Text),
    ("exclude_headings", Kind::Texts),
    ("exclude_dirs", Kind::Texts),
    ("embedding.provider", Kind::Text),
    ("embedding.model", Kind::Text),
    ("embedding.engine", Kind::Text),
    ("embedding.precision", Kind::Text),
    ("embedding.query_model", Kind::Text),
    ("embedding.document_model", Kind::Text),
    ("embedding.endpoint", Kind::Text),
    ("embedding.dimension", Kind::Integer),
    ("embedding.request_dimensions", Kind::Flag),
    ("embedding.api_key", Kind::Text),
    ("embedding.api_key_file", Kind::Text),
    ("embedding.api_key_command", Kind::Texts),
    ("embedding.timeout_seconds", Kind::Integer),
    ("embedding.max_input_chars", Kind::Integer),
    ("embedding.max_retries", Kind::Integer),
    ("parsers.enabled", Kind::Texts),
    ("parsers.code.max_chunk_chars", Kind::Integer),
    ("index.fail_on_frontmatter_error", Kind::Flag),
    ("index.on_serve", Kind::Text),
    ("index.require_owner", Kind::Flag),
    ("index.max_binary_file_size", Kind::Size),
    ("index.max_text_file_size", Kind::Size),
    ("index.max_decompressed_size", Kind::Size),
    ("quality_filter.enabled", Kind::Flag),
    ("quality_filter.threshold", Kind::Number),
    ("quality_filter.extra_boilerplate", Kind::Texts),
    ("quality_filter.signals", Kind::Texts),
    ("search.max_embed_wait_ms", Kind::Integer),
    ("search.min_confidence_ratio", Kind::Number),
    ("search.mmr.enabled", Kind::Flag),
    ("search.mmr.lambda", Kind::Number),
    ("search.mmr.same_doc_penalty", Kind::Number),
    ("search.rerank_timeout_ms", Kind::Integer),
    ("search.fusion.adaptive", Kind::Flag),
    ("search.fusion.rrf_k", Kind::Number),
    ("search.fusion.bm25_heading_weight", Kind::Number),
    ("search.fusion.bm25_context_weight", Kind::Number),
    ("search.fusion.bm25_content_weight", Kind::Number),
    ("search.parent_retriever.enabled", Kind::Flag),
    ("search.parent_retriever.whole_doc_threshold_tokens", Kind::Integer),
    ("search.parent_retriever.max_expanded_tokens", Kind::Integer),
    ("contextual.enabled", Kind::Flag),
    ("best_practice.path_templates", Kind::Texts),
    ("watch.enabled", Kind::Flag),
    ("watch.debounce_ms", Kind::Integer),
    ("watch.mode", Kind::Text),
    ("watch.poll_interval_ms", Kind::Integer),
    ("transport.kind", Kind::Text),
    ("transport.http.bind", Kind::Text),
    ("transport.http.allowed_hosts", Kind::Texts),
    ("transport.http.allowed_origins", Kind::Texts),
    ("transport.http.healthz_public", Kind::Flag),
    ("transport.http.max_sessions", Kind::Integer),
    ("transport.http.systemd_socket", Kind::Flag),
    ("transport.http.metrics", Kind::Flag),
    ("transport.http.refuse_forwarded", Kind::Flag),
    ("transport.http.max_in_flight", Kind::Integer),
    ("transport.http.max_connections", Kind::Integer),
    ("transport.http.header_timeout_secs", Kind::Integer),
    ("transport.http.body_timeout_secs", Kind::Integer),
    ("transport.http.idle_timeout_secs", Kind::Integer),
    ("transport.http.call_timeout_secs", Kind::Integer),
    ("transport.http.drain_timeout_secs", Kind::Integer),
    ("eval.golden", Kind::Text),
    ("eval.history_size", Kind::Integer),
    ("eval.k_values", Kind::Integers),
    ("eval.regression_threshold", Kind::Number),
];

/// What a name means in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A key with a value of this shape.
    Key(Kind),
    /// A section.
    Section,
    /// Nothing.
    Unknown,
}

/// Tells what a dotted name means.
pub(super) fn meaning(name: &str) -> Meaning {
    if let Some((_, kind)) = KEYS.iter().find(|(key, _)| *key == name) {
        return Meaning::Key(*kind);
    }
    if KEYS.iter().any(|(key, _)| is_below(key, name)) {
        return Meaning::Section;
    }
    Meaning::Unknown
}

/// Tells whether a key stands in a section or in one below it.
pub(super) fn is_below(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

/// A key as the documentation writes it: `[search.mmr].lambda`.
pub(super) fn shown(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((section, key)) => format!("[{section}].{key}"),
        None => name.to_owned(),
    }
}

/// How alike two names have to be, from 0 to 1, for one to be taken for the
/// other.
const LEAST_LIKENESS: f64 = 0.8;

/// Finds what an unknown name was probably meant to be: the known name at the
/// same place that is most alike, if it is alike enough; otherwise the key of the same name in another section.
///
/// - Returns the name as the documentation writes it.
pub(super) fn nearest(name: &str) -> Option<String> {
    let (parent, last) = name.rsplit_once('.').map_or(("", name), |(parent, last)| (parent, last));
    let siblings = KEYS.iter().filter_map(|(key, _)| {
        let below =
            if parent.is_empty() { key } else { key.strip_prefix(parent)?.strip_prefix('.')? };
        let (own, is_section) =
            below.split_once('.').map_or((below, false), |(own, _)| (own, true));
        Some((own, is_section))
    });
    let best = siblings
        .map(|(own, is_section)| (strsim::jaro_winkler(last, own), own, is_section))
        .filter(|(likeness, ..)| *likeness >= LEAST_LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)));
    if let Some((_, own, is_section)) = best {
        let full = if parent.is_empty() { own.to_owned() } else { format!("{parent}.{own}") };
        return Some(if is_section { format!("[{full}]") } else { shown(&full) });
    }
    KEYS.iter()
        .find(|(key, _)| key.rsplit_once('.').is_some_and(|(_, own)| own == last))
        .map(|(key, _)| shown(key))
}

/// Finds the word that another was probably meant to be, if one is alike
/// enough.
pub(super) fn nearest_word<'a>(word: &str, words: &[&'a str]) -> Option<&'a str> {
    words
        .iter()
        .map(|known| (strsim::jaro_winkler(word, known), *known))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_also_a_section() {
        for (key, _) in KEYS {
            assert!(!KEYS.iter().any(|(other, _)| is_below(other, key)), "{key}");
        }
    }

    // CFG-02
    #[test]
    fn an_unknown_name_is_answered_with_the_known_one_that_is_closest() {
        for (unknown, known) in [
            ("modle", "model"),
            ("serach", "[search]"),
            ("search.mmr.lamda", "[search.mmr].lambda"),
            ("search.fusoin", "[search.fusion]"),
            ("rrf_k", "[search.fusion].rrf_k"),
        ] {
            assert_eq!(nearest(unknown).as_deref(), Some(known), "{unknown}");
        }
        assert_eq!(nearest("colour_of_the_sky"), None);
    }

    // MCP-65
    #[test]
    fn no_key_has_words_for_the_model() {
        for (key, _) in KEYS {
            for word in ["prompt", "instruction", "description"] {
                assert!(!key.contains(word), "{key}: a configuration must not speak to the model");
            }
        }
    }
}
