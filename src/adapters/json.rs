//! The JSON of answers: one shape for MCP and for the command line.

mod graph;
mod library;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::Serializer;
use serde_json::Value;
use serde_json::json;

use crate::domain::highlights::Highlight;
use crate::domain::search::Budget;
use crate::domain::search::Expansion;
use crate::domain::search::FilterEcho;
use crate::domain::search::Hit;
use crate::domain::search::SearchAnswer;
use crate::domain::topics::TopicFolder;
use crate::domain::topics::TopicGroup;
use crate::ports::transport::DocumentAnswer;
use crate::ports::transport::RebuildAnswer;

pub use graph::graph;
pub use library::best_practice;
pub use library::facets;
pub use library::quote;

use library::LocationShape;

/// The answer of a search.
///
/// A member that does not apply is left out instead of being null, except
/// `title`, `heading`, `topic` and `date`, which every hit has. A score is
/// written as the shortest decimal that reads back as the same 32-bit number.
pub fn search_answer(answer: &SearchAnswer) -> Value {
    value_of(&SearchShape {
        results: answer.hits.iter().map(HitShape::from).collect(),
        low_confidence: answer.low_confidence,
        confidence: answer.confidence.map(single),
        filter_applied: FilterShape::from(&answer.filter),
        min_quality: single(answer.min_quality),
        score_kind: answer.score_kind.as_str(),
        degraded: &answer.degraded,
        pending_chunks: (answer.pending_chunks > 0).then_some(answer.pending_chunks),
        warnings: &answer.warnings,
        budget: answer.budget.map(BudgetShape::from),
    })
}

/// A document that is handed out.
pub fn document(answer: &DocumentAnswer) -> Value {
    value_of(&DocumentShape {
        path: &answer.path,
        title: answer.metadata.title.as_deref(),
        date: answer.metadata.date.as_deref(),
        topic: answer.metadata.topic.as_deref(),
        tags: &answer.metadata.tags,
        content: &answer.content,
        truncated: answer.truncated,
        offset: answer.offset,
        next_offset: answer.next_offset,
        uri: answer.uri.as_deref(),
        indexed: answer.indexed,
        size_bytes: answer.size_bytes,
        modified: answer.modified.as_deref(),
    })
}

/// The topics, as an array in the order given.
pub fn topics(groups: &[TopicGroup]) -> Value {
    topics_with(groups, None)
}

/// The topics, with only so many titles of each, and whether there are more.
pub fn topics_with(groups: &[TopicGroup], max_titles: Option<usize>) -> Value {
    let most = max_titles.unwrap_or(usize::MAX);
    let shapes: Vec<GroupShape<'_>> = groups
        .iter()
        .map(|group| GroupShape {
            category: group.category.as_deref(),
            topic: group.topic.as_deref(),
            file_count: group.file_count,
            last_updated: group.last_updated.as_deref(),
            titles: &group.titles[..group.titles.len().min(most)],
            titles_truncated: max_titles.map(|most| group.titles.len() > most),
            children: group.children.iter().map(FolderShape::from).collect(),
        })
        .collect();
    value_of(&shapes)
}

/// The counters of an index run, with an `error` beside them if there is one.
pub fn rebuild(answer: &RebuildAnswer) -> Value {
    value_of(&RebuildShape {
        total_documents: answer.total_documents,
        updated: answer.updated,
        renamed: answer.renamed,
        deleted: answer.deleted,
        skipped: answer.skipped,
        frontmatter_unparsed: answer.frontmatter_unparsed,
        total_chunks: answer.total_chunks,
        duration_ms: answer.duration_ms,
        names_not_openable: answer.names_not_openable,
        also_indexing: answer
            .others
            .iter()
            .map(|run| OtherRunShape { process: run.process, since: &run.since })
            .collect(),
        error: answer.error.as_deref(),
    })
}

/// The envelope that stands in for an answer.
pub fn error(text: &str) -> Value {
    json!({ "error": text })
}

/// Writes a value over several lines, indented by two spaces.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

fn value_of<T: Serialize>(shape: &T) -> Value {
    #[expect(clippy::expect_used, reason = "keys are text and no shape refuses to be written")]
    serde_json::to_value(shape).expect("a shape of this file is JSON")
}

#[derive(Serialize)]
struct SearchShape<'a> {
    results: Vec<HitShape<'a>>,
    low_confidence: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    filter_applied: FilterShape<'a>,
    min_quality: f64,
    score_kind: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    degraded: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_chunks: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetShape>,
}

#[derive(Serialize)]
struct BudgetShape {
    max_tokens: usize,
    results_left_out: usize,
    results_shortened: usize,
}

impl From<Budget> for BudgetShape {
    fn from(budget: Budget) -> Self {
        let Budget { max_tokens, left_out, shortened } = budget;
        Self { max_tokens, results_left_out: left_out, results_shortened: shortened }
    }
}

#[derive(Serialize)]
struct HitShape<'a> {
    score: f64,
    path: &'a str,
    title: Option<&'a str>,
    heading: Option<&'a str>,
    topic: Option<&'a str>,
    date: Option<&'a str>,
    tags: &'a [String],
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    match_spans: Option<Vec<SpanShape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    highlights: Option<Vec<HighlightShape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expanded_from: Option<ExpansionShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol_kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    chunk_index: u32,
    document_chunks: u32,
    matched_by: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<LocationShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cite: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    content_shortened: bool,
}

impl<'a> From<&'a Hit> for HitShape<'a> {
    fn from(hit: &'a Hit) -> Self {
        Self {
            score: single(hit.score),
            path: &hit.path,
            title: hit.title.as_deref(),
            heading: hit.heading.as_deref(),
            topic: hit.topic.as_deref(),
            date: hit.date.as_deref(),
            tags: &hit.tags,
            content: &hit.content,
            match_spans: hit.match_spans.as_ref().map(|spans| {
                spans.iter().map(|span| SpanShape { start: span.start, end: span.end }).collect()
            }),
            highlights: hit
                .highlights
                .as_ref()
                .map(|found| found.iter().map(HighlightShape::from).collect()),
            expanded_from: hit.expanded_from.map(ExpansionShape::from),
            start_line: hit.lines.map(|lines| lines.start),
            end_line: hit.lines.map(|lines| lines.end),
            symbol_kind: hit.symbol_kind.as_deref(),
            uri: hit.uri.as_deref(),
            chunk_index: hit.chunk_index,
            document_chunks: hit.document_chunks,
            matched_by: &hit.matched_by,
            location: hit.location.map(LocationShape::from),
            cite: hit.cite.as_deref(),
            content_shortened: hit.is_shortened,
        }
    }
}

#[derive(Serialize)]
struct SpanShape {
    start: usize,
    end: usize,
}

#[derive(Serialize)]
struct HighlightShape {
    start: usize,
    end: usize,
    line: u32,
}

impl From<&Highlight> for HighlightShape {
    fn from(highlight: &Highlight) -> Self {
        let Highlight { span, line } = *highlight;
        Self { start: span.start, end: span.end, line }
    }
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ExpansionShape {
    WholeDocument { total_chunks: u32 },
    Adjacent { from_index: u32, to_index: u32 },
}

impl From<Expansion> for ExpansionShape {
    fn from(expansion: Expansion) -> Self {
        match expansion {
            Expansion::WholeDocument { total_chunks } => Self::WholeDocument { total_chunks },
            Expansion::Adjacent { from_index, to_index } => Self::Adjacent { from_index, to_index },
        }
    }
}

#[derive(Serialize)]
struct FilterShape<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    path_globs: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags_any: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags_all: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    date_from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date_to: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: &'a BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields_not: &'a BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_confidence_ratio: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    excluded_terms: &'a [String],
}

impl<'a> From<&'a FilterEcho> for FilterShape<'a> {
    fn from(echo: &'a FilterEcho) -> Self {
        Self {
            category: echo.category.as_deref(),
            topic: echo.topic.as_deref(),
            path_globs: &echo.path_globs,
            tags_any: &echo.tags_any,
            tags_all: &echo.tags_all,
            date_from: echo.date_from.as_deref(),
            date_to: echo.date_to.as_deref(),
            fields: &echo.fields,
            fields_not: &echo.fields_not,
            min_confidence_ratio: echo.min_confidence_ratio,
            excluded_terms: &echo.excluded_terms,
        }
    }
}

#[derive(Serialize)]
struct DocumentShape<'a> {
    path: &'a str,
    title: Option<&'a str>,
    date: Option<&'a str>,
    topic: Option<&'a str>,
    tags: &'a [String],
    content: &'a str,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed: Option<bool>,
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<&'a str>,
}

#[derive(Serialize)]
struct GroupShape<'a> {
    category: Option<&'a str>,
    topic: Option<&'a str>,
    file_count: u64,
    last_updated: Option<&'a str>,
    titles: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    titles_truncated: Option<bool>,
    children: Vec<FolderShape<'a>>,
}

#[derive(Serialize)]
struct FolderShape<'a> {
    segment: &'a str,
    file_count: u64,
    children: Vec<Self>,
}

impl<'a> From<&'a TopicFolder> for FolderShape<'a> {
    fn from(folder: &'a TopicFolder) -> Self {
        Self {
            segment: &folder.segment,
            file_count: folder.file_count,
            children: folder.children.iter().map(Self::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct RebuildShape<'a> {
    total_documents: u64,
    updated: u64,
    renamed: u64,
    deleted: u64,
    skipped: u64,
    frontmatter_unparsed: u64,
    total_chunks: u64,
    duration_ms: u64,
    names_not_openable: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_indexing: Vec<OtherRunShape<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct OtherRunShape<'a> {
    process: u32,
    since: &'a str,
}

/// A JSON value keeps 64-bit numbers only. The 64-bit number nearest to the
/// shortest decimal of a 32-bit one is written as that same decimal.
fn single(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}

/// Writes a number in this way.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn shortest<S: Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(single(*number))
}

#[cfg(test)]
mod tests;
