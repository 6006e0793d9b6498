//! A query as both legs, the reranker, the spans and the echo read it.

use std::collections::HashSet;

use super::phrase::Phrase;
use super::scan::{Segment, SegmentText, scan};
use super::terms::{is_separator, split, words};

/// The most bytes of a query.
pub const MAX_QUERY_BYTES: usize = 1024;

/// The most phrases that are looked for, and the most that are excluded.
pub const PHRASE_BUDGET: usize = 32;

/// A query, read once for everything that a search does with it.
///
/// `"…"` is looked for word for word (`""` inside stands for one quote), and a
/// group that a hyphen leads is excluded: `-word` to the next white space,
/// `-"…"` to its closing quote. What is plain is split into phrases of at least
/// three characters.
///
/// ```
/// use grooveseek::domain::query::CompiledQuery;
///
/// let query = CompiledQuery::compile("rust -\"exact phrase\" tokio").unwrap();
/// assert_eq!(query.positive_text(), "rust tokio");
/// assert_eq!(query.include()[1].as_str(), "tokio");
/// assert_eq!(query.exclude()[0].as_str(), "exact phrase");
/// assert!(CompiledQuery::compile("-async").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledQuery {
    positive_text: String,
    include: Phrases,
    exclude: Phrases,
    used_fallback: bool,
    plain_text: String,
    verbatim: Vec<Phrase>,
    widened: Vec<Phrase>,
}

/// Why a query cannot be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The text is too long.
    #[error("`query` is {size_bytes} bytes long, the limit is {limit_bytes} bytes")]
    TooLarge {
        /// How long it is.
        size_bytes: usize,
        /// How long it may be.
        limit_bytes: usize,
    },
    /// Nothing is left to look for once the exclusions are taken away.
    #[error(
        "`query` only excludes and looks for nothing; add a term to look for, or put a term that starts with a hyphen in quotes, as in \"-term\""
    )]
    ExclusionOnly,
}

/// Phrases of one polarity, and what did not become one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Phrases {
    kept: Vec<Phrase>,
    over_budget: usize,
    dropped: Vec<String>,
}

impl Phrases {
    /// Drops repetitions and what exceeds the budget, in this order.
    fn new(found: Vec<Phrase>, dropped: Vec<String>) -> Self {
        let mut kept = without_repetition(found);
        let over_budget = kept.len().saturating_sub(PHRASE_BUDGET);
        kept.truncate(PHRASE_BUDGET);
        Self { kept, over_budget, dropped: without_repetition(dropped) }
    }
}

impl CompiledQuery {
    /// Reads a query. It may be empty or blank; then there is nothing for the
    /// lexical leg.
    ///
    /// - `raw`: up to 1024 bytes, both ends as typed.
    ///
    /// # Errors
    ///
    /// [`QueryError::TooLarge`] if it is longer, and
    /// [`QueryError::ExclusionOnly`] if it excludes something and is blank
    /// otherwise.
    pub fn compile(raw: &str) -> Result<Self, QueryError> {
        if raw.len() > MAX_QUERY_BYTES {
            return Err(QueryError::TooLarge {
                size_bytes: raw.len(),
                limit_bytes: MAX_QUERY_BYTES,
            });
        }
        let segments = scan(raw);
        let positive_text = positive_text(raw, &segments);
        if positive_text.trim().is_empty() && segments.iter().any(|segment| segment.excluded) {
            return Err(QueryError::ExclusionOnly);
        }

        let mut found = [Vec::new(), Vec::new()];
        let mut dropped = [Vec::new(), Vec::new()];
        let mut widened = Vec::new();
        for segment in &segments {
            let polarity = usize::from(segment.excluded);
            let phrases = phrases_of(segment, &mut dropped[polarity]);
            if segment.excluded {
                widened.extend(phrases.iter().filter(|phrase| widens(segment, phrase)).cloned());
            }
            found[polarity].extend(phrases);
        }
        let [mut include, exclude] = found;
        let [dropped_include, dropped_exclude] = dropped;
        let used_fallback = include.is_empty() && {
            include = verbatim_stretches(raw, &segments);
            !include.is_empty()
        };

        let exclude_exactly: HashSet<&str> = segments
            .iter()
            .filter(|segment| segment.excluded)
            .map(|segment| typed_text(&segment.text))
            .collect();
        let exclude = Phrases::new(exclude, dropped_exclude);
        let widened = without_repetition(widened)
            .into_iter()
            .filter(|phrase| !exclude_exactly.contains(phrase.as_str()))
            .filter(|phrase| exclude.kept.contains(phrase))
            .collect();
        let include = Phrases::new(include, dropped_include);
        let is_verbatim = |phrase: &&Phrase| used_fallback || is_quoted(&segments, phrase);
        let verbatim = include.kept.iter().filter(is_verbatim).cloned().collect();
        let plain_text = plain_text(&segments);
        Ok(Self { positive_text, include, exclude, used_fallback, plain_text, verbatim, widened })
    }

    /// The query without its exclusions: what is embedded, reranked against
    /// and highlighted. The raw query itself if nothing is excluded.
    pub fn positive_text(&self) -> &str {
        &self.positive_text
    }

    /// What the lexical leg looks for: at most 32 distinct phrases in the order
    /// of the query; none if only the vectors can answer.
    pub fn include(&self) -> &[Phrase] {
        &self.include.kept
    }

    /// What of the query is neither quoted nor excluded, its pieces on lines of
    /// their own: the text whose words are looked for.
    pub fn plain_text(&self) -> &str {
        &self.plain_text
    }

    /// The words of the plain text that are worth showing, in order, with
    /// repetitions: cut between scripts, two characters and more; of Hiragana,
    /// three and more.
    pub fn plain_words(&self) -> impl Iterator<Item = &str> {
        words(&self.plain_text)
    }

    /// Whether there is anything that the lexical leg could find.
    pub fn has_words(&self) -> bool {
        !self.include.kept.is_empty() || self.plain_text.chars().any(char::is_alphanumeric)
    }

    /// Those of [`include`](Self::include) that were typed as they are to be
    /// found: what is quoted, and the stretches of a query that has no phrase of
    /// its own.
    pub fn verbatim(&self) -> &[Phrase] {
        &self.verbatim
    }

    /// What no hit may hold: at most 32 distinct phrases in the order of the
    /// query. This is also what an answer echoes.
    pub fn exclude(&self) -> &[Phrase] {
        &self.exclude.kept
    }

    /// Whether no part of the query was a phrase of its own, so that
    /// [`include`](Self::include) holds whole stretches of it, word for word.
    pub fn used_fallback(&self) -> bool {
        self.used_fallback
    }

    /// How many phrases to look for exceeded the budget; each one fewer finds
    /// fewer chunks.
    pub fn include_over_budget(&self) -> usize {
        self.include.over_budget
    }

    /// How many phrases to exclude exceeded the budget; each one fewer excludes
    /// fewer chunks.
    pub fn exclude_over_budget(&self) -> usize {
        self.exclude.over_budget
    }

    /// Parts to look for that are no phrase: too short, or with a U+0000 in
    /// quotes. Where the fallback was used, they may be part of its phrases.
    pub fn unsearchable(&self) -> &[String] {
        &self.include.dropped
    }

    /// Parts to exclude that are no phrase, and so exclude nothing.
    pub fn unexcludable(&self) -> &[String] {
        &self.exclude.dropped
    }

    /// Phrases of [`exclude`](Self::exclude) that exclude more than was typed,
    /// because they are only a part of a plain exclusion.
    pub fn widened_exclusions(&self) -> &[Phrase] {
        &self.widened
    }
}

/// Takes every exclusion out, with the white space after it; where it ends the
/// query, with the white space before it.
fn positive_text(raw: &str, segments: &[Segment<'_>]) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut at = 0;
    for segment in segments.iter().filter(|segment| segment.excluded) {
        text.push_str(&raw[at..segment.range.start]);
        let rest = &raw[segment.range.end..];
        at = raw.len() - rest.trim_start().len();
        if rest.is_empty() {
            text.truncate(text.trim_end().len());
        }
    }
    text.push_str(&raw[at..]);
    text
}

fn phrases_of(segment: &Segment<'_>, dropped: &mut Vec<String>) -> Vec<Phrase> {
    match &segment.text {
        SegmentText::Quoted(text) => {
            let phrase = Phrase::new(text.clone());
            if phrase.is_none() && !text.trim().is_empty() {
                dropped.push(text.clone().into_owned());
            }
            phrase.into_iter().collect()
        }
        SegmentText::Plain(text) => {
            let terms = split(text);
            dropped.extend(terms.short.into_iter().map(str::to_owned));
            terms.phrases.into_iter().filter_map(Phrase::new).collect()
        }
    }
}

/// What is plain and not excluded.
fn plain_text(segments: &[Segment<'_>]) -> String {
    let plain = segments.iter().filter(|segment| !segment.excluded).filter_map(|segment| {
        match &segment.text {
            SegmentText::Plain(text) => Some(text.trim()),
            SegmentText::Quoted(_) => None,
        }
    });
    plain.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn is_quoted(segments: &[Segment<'_>], phrase: &Phrase) -> bool {
    segments.iter().filter(|segment| !segment.excluded).any(
        |segment| matches!(&segment.text, SegmentText::Quoted(text) if *text == phrase.as_str()),
    )
}

/// Whether a phrase of an exclusion is less than what was typed.
fn widens(segment: &Segment<'_>, phrase: &Phrase) -> bool {
    typed_text(&segment.text) != phrase.as_str()
}

/// What a segment names as a whole: what is quoted, or what is plain without
/// the separators around it.
fn typed_text<'a>(text: &'a SegmentText<'_>) -> &'a str {
    match text {
        SegmentText::Quoted(text) => text,
        SegmentText::Plain(text) => text.trim_matches(is_separator),
    }
}

/// The stretches of the query between its exclusions, each as one phrase if it
/// can be one.
fn verbatim_stretches(raw: &str, segments: &[Segment<'_>]) -> Vec<Phrase> {
    let excluded = segments.iter().filter(|segment| segment.excluded);
    let starts = std::iter::once(0).chain(excluded.clone().map(|segment| segment.range.end));
    let ends = excluded.map(|segment| segment.range.start).chain(std::iter::once(raw.len()));
    starts.zip(ends).filter_map(|(start, end)| Phrase::new(raw[start..end].trim())).collect()
}

fn without_repetition<T: Clone + Eq + std::hash::Hash>(items: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}
