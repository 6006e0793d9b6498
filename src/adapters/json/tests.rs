//! Tests of the JSON of answers.

use super::*;
use crate::domain::chunk::LineRange;
use crate::domain::chunk::Span;
use crate::domain::document::Metadata;
use crate::domain::search::ScoreKind;
use crate::ports::transport::OtherRun;

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
        ..Hit::default()
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
        size_bytes: 4,
        ..DocumentAnswer::default()
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
            "size_bytes": 4,
        })
    );
}

// MCP-B06 MCP-B07
#[test]
fn a_part_of_a_document_says_where_it_goes_on_and_what_the_document_is() {
    let answer = DocumentAnswer {
        offset: Some(0),
        next_offset: Some(4),
        uri: Some("kb://doc/a.md".into()),
        indexed: Some(true),
        modified: Some("2026-01-01T00:00:00Z".into()),
        ..DocumentAnswer::default()
    };
    let json = document(&answer);
    assert_eq!((&json["offset"], &json["next_offset"]), (&json!(0), &json!(4)));
    assert_eq!(json["uri"], "kb://doc/a.md");
    assert_eq!(json["indexed"], true);
    assert_eq!(json["modified"], "2026-01-01T00:00:00Z");
}

// MCP-B05
#[test]
fn titles_can_be_bounded_and_then_it_is_told_whether_there_are_more() {
    let titles = vec!["A".to_owned(), "B".to_owned()];
    let group = [TopicGroup { titles, ..TopicGroup::default() }];
    let of = |max_titles| topics_with(&group, max_titles)[0].clone();
    assert_eq!(of(None).get("titles_truncated"), None);
    for (most, titles, truncated) in
        [(0, json!([]), true), (1, json!(["A"]), true), (2, json!(["A", "B"]), false)]
    {
        let json = of(Some(most));
        assert_eq!((&json["titles"], &json["titles_truncated"]), (&titles, &json!(truncated)));
    }
}

#[test]
fn a_hit_can_be_cited_and_an_answer_tells_what_a_budget_cost() {
    let hit = Hit {
        location: Some(LineRange { start: 3, end: 4 }),
        cite: Some("T (a/b.md:3-4)".into()),
        is_shortened: true,
        ..bare_hit()
    };
    let budget = Some(Budget { max_tokens: 500, left_out: 2, shortened: 1 });
    let answer = search_answer(&SearchAnswer { hits: vec![hit], budget, ..Default::default() });
    let hit = &answer["results"][0];
    assert_eq!(hit["location"], json!({ "start_line": 3, "end_line": 4 }));
    assert_eq!(hit["cite"], "T (a/b.md:3-4)");
    assert_eq!(hit["content_shortened"], true);
    let told = json!({ "max_tokens": 500, "results_left_out": 2, "results_shortened": 1 });
    assert_eq!(answer["budget"], told);
}

// MCP-25 MCP-27
#[test]
fn topics_have_all_their_members_down_to_the_last_folder() {
    let leaf = TopicFolder { segment: "x".into(), file_count: 1, children: Vec::new() };
    let group = TopicGroup {
        category: Some("deep-dive".into()),
        file_count: 2,
        titles: vec!["T".into()],
        children: vec![TopicFolder { segment: "y".into(), file_count: 2, children: vec![leaf] }],
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

// MCP-51 MCP-53 MCP-B13
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
        "names_not_openable": 0,
    });
    assert_eq!(rebuild(&answer), expected);
    answer.others = vec![OtherRun { process: 7, since: "2026-01-01T00:00:00Z".into() }];
    expected["also_indexing"] = json!([{ "process": 7, "since": "2026-01-01T00:00:00Z" }]);
    answer.error = Some("one file is not in the index".into());
    expected["error"] = json!("one file is not in the index");
    assert_eq!(rebuild(&answer), expected);
}

// MCP-11 SRCH-176
#[test]
fn the_envelope_holds_the_error_and_nothing_else() {
    assert_eq!(pretty(&error("no")), "{\n  \"error\": \"no\"\n}");
}
