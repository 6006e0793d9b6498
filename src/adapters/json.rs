//! The JSON of answers: one shape for MCP and for the command line.

mod graph;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::Serializer;
use serde_json::Value;
use serde_json::json;

use crate::domain::highlights::Highlight;
use crate::domain::search::Expansion;
use crate::domain::search::FilterEcho;
use crate::domain::search::Hit;
use crate::domain::search::SearchAnswer;
use crate::domain::topics::TopicFolder;
use crate::domain::topics::TopicGroup;
use crate::ports::transport::DocumentAnswer;
use crate::ports::transport::RebuildAnswer;

pub use graph::graph;

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
    })
}

/// The topics, as an array in the order given.
pub fn topics(groups: &[TopicGroup]) -> Value {
    let shapes: Vec<GroupShape<'_>> = groups
        .iter()
        .map(|group| GroupShape {
            category: group.category.as_deref(),
            topic: group.topic.as_deref(),
            file_count: group.file_count,
            last_updated: group.last_updated.as_deref(),
            titles: &group.titles,
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
}

#[derive(Serialize)]
struct GroupShape<'a> {
    category: Option<&'a str>,
    topic: Option<&'a str>,
    file_count: u64,
    last_updated: Option<&'a str>,
    titles: &'a [String],
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
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
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
mod tests {
    use super::*;
    use crate::domain::chunk::LineRange;
    use crate::domain::chunk::Span;
    use crate::domain::document::Metadata;
    use crate::domain::search::ScoreKind;

    fn bare_hit() -> Hit {
        Hit {
            score: 1.0 / 61.0,
            path: "a/b.md".into(),
            title: None,
            heading: None,
            topic: None,
            date: None,
            tags: Vec::new(),
            content: "text".into(),
            match_spans: None,
            highlights: None,
            expanded_from: None,
            lines: None,
            symbol_kind: None,
            uri: None,
            chunk_index: 0,
            document_chunks: 1,
            matched_by: vec!["vector"],
        }
    }

    fn answer_of(hit: Hit) -> Value {
        search_answer(&SearchAnswer { hits: vec![hit], ..SearchAnswer::default() })
    }

    // SRCH-160 SRCH-161 SRCH-162 SRCH-163 SRCH-164 SRCH-165 SRCH-166 SRCH-167
    // SRCH-168 SRCH-174 SRCH-175 SRCH-177 SRCH-140 SRCH-B19
    #[test]
    fn a_bare_hit_has_the_members_that_are_always_there_and_no_other() {
        assert_eq!(
            answer_of(bare_hit()),
            json!({
                "results": [{
                    "score": 0.016_393_442,
                    "path": "a/b.md",
                    "title": null,
                    "heading": null,
                    "topic": null,
                    "date": null,
                    "tags": [],
                    "content": "text",
                    "chunk_index": 0,
                    "document_chunks": 1,
                    "matched_by": ["vector"],
                }],
                "low_confidence": false,
                "filter_applied": {},
                "score_kind": "rrf",
                "min_quality": 0.0,
            })
        );
    }

    // SRCH-134 SRCH-150 SRCH-169 SRCH-170 SRCH-171 SRCH-172 SRCH-173
    #[test]
    fn a_full_hit_has_every_member() {
        let hit = Hit {
            score: -3.25,
            title: Some("T".into()),
            heading: Some("H".into()),
            topic: Some("mcp".into()),
            date: Some("2026-01-01".into()),
            tags: vec!["code".into()],
            match_spans: Some(vec![Span { start: 0, end: 4 }]),
            highlights: Some(vec![Highlight { span: Span { start: 1, end: 3 }, line: 7 }]),
            expanded_from: Some(Expansion::Adjacent { from_index: 1, to_index: 3 }),
            lines: Some(LineRange { start: 7, end: 9 }),
            symbol_kind: Some("function".into()),
            uri: Some("kb://doc/a/b.md".into()),
            chunk_index: 2,
            document_chunks: 5,
            matched_by: vec!["vector", "fulltext"],
            ..bare_hit()
        };
        assert_eq!(
            answer_of(hit)["results"][0],
            json!({
                "score": -3.25,
                "path": "a/b.md",
                "title": "T",
                "heading": "H",
                "topic": "mcp",
                "date": "2026-01-01",
                "tags": ["code"],
                "content": "text",
                "match_spans": [{ "start": 0, "end": 4 }],
                "highlights": [{ "start": 1, "end": 3, "line": 7 }],
                "expanded_from": { "kind": "adjacent", "from_index": 1, "to_index": 3 },
                "start_line": 7,
                "end_line": 9,
                "symbol_kind": "function",
                "uri": "kb://doc/a/b.md",
                "chunk_index": 2,
                "document_chunks": 5,
                "matched_by": ["vector", "fulltext"],
            })
        );
    }

    // SRCH-134
    #[test]
    fn a_whole_document_tells_how_many_chunks_it_has() {
        let hit =
            Hit { expanded_from: Some(Expansion::WholeDocument { total_chunks: 4 }), ..bare_hit() };
        assert_eq!(
            answer_of(hit)["results"][0]["expanded_from"],
            json!({ "kind": "whole_document", "total_chunks": 4 })
        );
    }

    // SRCH-B12 SRCH-B16
    #[test]
    fn confidence_and_the_threshold_of_quality_are_numbers_beside_the_filters() {
        let answer =
            SearchAnswer { confidence: Some(0.1), min_quality: 0.3, ..SearchAnswer::default() };
        let json = search_answer(&answer);
        assert_eq!((&json["confidence"], &json["min_quality"]), (&json!(0.1), &json!(0.3)));
        assert_eq!(json["filter_applied"], json!({}));
        assert_eq!(search_answer(&SearchAnswer::default()).get("confidence"), None);
    }

    // SRCH-150 SRCH-B17
    #[test]
    fn no_match_is_an_empty_array_and_not_an_absent_one() {
        let none = (Some(Vec::new()), Some(Vec::new()));
        let hit = Hit { match_spans: none.0, highlights: none.1, ..bare_hit() };
        let answer = answer_of(hit);
        assert_eq!(answer["results"][0]["match_spans"], json!([]));
        assert_eq!(answer["results"][0]["highlights"], json!([]));
    }

    #[test]
    fn a_score_is_written_with_the_digits_of_a_32_bit_number() {
        for (score, text) in [
            (1.0_f32 / 61.0, "0.016393442"),
            (2.0 / 61.0, "0.032786883"),
            (0.1, "0.1"),
            (-11.264_648, "-11.264648"),
            (1e-10, "1e-10"),
            (f32::MAX, "3.4028235e38"),
        ] {
            let answer = answer_of(Hit { score, ..bare_hit() });
            let written = answer["results"][0]["score"].to_string();
            assert_eq!(written.replace("e+", "e"), text);
            assert_eq!(written.parse::<f32>().unwrap().to_bits(), score.to_bits());
        }
    }

    // SRCH-185 SRCH-186 SRCH-187 SRCH-194
    #[test]
    fn the_echo_has_what_was_given_and_leaves_out_what_was_not() {
        let fields = BTreeMap::from([("status".to_owned(), vec!["open".to_owned()])]);
        let filter = FilterEcho {
            category: Some("deep-dive".into()),
            topic: Some("mcp".into()),
            path_globs: vec!["docs/**".into()],
            tags_any: vec!["a".into()],
            tags_all: vec!["b".into()],
            date_from: Some("2026-01-01".into()),
            date_to: Some("2026-12-31".into()),
            fields: fields.clone(),
            fields_not: fields,
            min_confidence_ratio: Some(1.1),
            excluded_terms: vec!["async".into()],
        };
        let answer = SearchAnswer { filter, ..SearchAnswer::default() };
        assert_eq!(
            search_answer(&answer)["filter_applied"],
            json!({
                "category": "deep-dive",
                "topic": "mcp",
                "path_globs": ["docs/**"],
                "tags_any": ["a"],
                "tags_all": ["b"],
                "date_from": "2026-01-01",
                "date_to": "2026-12-31",
                "fields": { "status": ["open"] },
                "fields_not": { "status": ["open"] },
                "min_confidence_ratio": 1.1,
                "excluded_terms": ["async"],
            })
        );
    }

    // SRCH-B14
    #[test]
    fn an_answer_tells_what_its_scores_are() {
        let kind = |score_kind| {
            let answer = SearchAnswer { score_kind, ..SearchAnswer::default() };
            search_answer(&answer)["score_kind"].clone()
        };
        assert_eq!(kind(ScoreKind::Fused), json!("rrf"));
        assert_eq!(kind(ScoreKind::Reranked), json!("rerank"));
    }

    // SRCH-B02 SRCH-B04
    #[test]
    fn what_was_missing_or_odd_is_told_only_if_there_was_something() {
        let answer = SearchAnswer {
            degraded: vec!["vector"],
            pending_chunks: 7,
            warnings: vec!["too short".into()],
            ..SearchAnswer::default()
        };
        let value = search_answer(&answer);
        assert_eq!(value["degraded"], json!(["vector"]));
        assert_eq!(value["pending_chunks"], json!(7));
        assert_eq!(value["warnings"], json!(["too short"]));
    }

    // MCP-35
    #[test]
    fn a_document_has_all_its_members_even_if_they_are_null() {
        let answer = DocumentAnswer {
            path: "a.md".into(),
            metadata: Metadata { tags: vec!["x".into()], ..Metadata::default() },
            content: "text".into(),
            truncated: true,
        };
        assert_eq!(
            document(&answer),
            json!({
                "path": "a.md",
                "title": null,
                "date": null,
                "topic": null,
                "tags": ["x"],
                "content": "text",
                "truncated": true,
            })
        );
    }

    // MCP-25 MCP-27
    #[test]
    fn topics_have_all_their_members_down_to_the_last_folder() {
        let leaf = TopicFolder { segment: "x".into(), file_count: 1, children: Vec::new() };
        let group = TopicGroup {
            category: Some("deep-dive".into()),
            file_count: 2,
            titles: vec!["T".into()],
            children: vec![TopicFolder {
                segment: "y".into(),
                file_count: 2,
                children: vec![leaf],
            }],
            ..TopicGroup::default()
        };
        assert_eq!(
            topics(&[group]),
            json!([{
                "category": "deep-dive",
                "topic": null,
                "file_count": 2,
                "last_updated": null,
                "titles": ["T"],
                "children": [{
                    "segment": "y",
                    "file_count": 2,
                    "children": [{ "segment": "x", "file_count": 1, "children": [] }],
                }],
            }])
        );
    }

    // MCP-51 MCP-53
    #[test]
    fn an_index_run_has_all_its_counters_and_an_error_only_if_there_is_one() {
        let mut answer = RebuildAnswer { updated: 3, duration_ms: 12, ..RebuildAnswer::default() };
        let mut expected = json!({
            "total_documents": 0,
            "updated": 3,
            "renamed": 0,
            "deleted": 0,
            "skipped": 0,
            "frontmatter_unparsed": 0,
            "total_chunks": 0,
            "duration_ms": 12,
        });
        assert_eq!(rebuild(&answer), expected);
        answer.error = Some("one file is not in the index".into());
        expected["error"] = json!("one file is not in the index");
        assert_eq!(rebuild(&answer), expected);
    }

    // MCP-11 SRCH-176
    #[test]
    fn the_envelope_holds_the_error_and_nothing_else() {
        assert_eq!(pretty(&error("no")), "{\n  \"error\": \"no\"\n}");
    }
}
