//! MCP messages to and from the values of the domain.

use rmcp::model::CallToolResult;
use rmcp::model::ContentBlock;
use rmcp::model::ErrorData;
use serde_json::Value;
use serde_json::json;

use crate::adapters::json;
use crate::adapters::transport::mcp::arguments::Arguments;
use crate::domain::graph::GraphRequest;
use crate::domain::search::SearchRequest;
use crate::ports::transport::BestPracticeRequest;
use crate::ports::transport::DocumentRequest;
use crate::ports::transport::QuoteRequest;
use crate::ports::transport::Refused;

/// Reads the arguments of `search`.
///
/// # Errors
///
/// -32602 if an argument is missing or of another type than its schema says.
pub(super) fn search_request(given: &mut Arguments) -> Result<SearchRequest, ErrorData> {
    Ok(SearchRequest {
        query: given.required_text("query")?,
        limit: given.count("limit")?,
        category: given.text("category")?,
        topic: given.text("topic")?,
        path_globs: given.texts("path_globs")?,
        tags_any: given.texts("tags_any")?.unwrap_or_default(),
        tags_all: given.texts("tags_all")?.unwrap_or_default(),
        date_from: given.text("date_from")?,
        date_to: given.text("date_to")?,
        fields: given.text_lists("fields")?,
        fields_not: given.text_lists("fields_not")?,
        min_quality: given.number("min_quality")?,
        include_low_quality: given.flag("include_low_quality")?.unwrap_or_default(),
        rerank: given.flag("rerank")?,
        min_confidence_ratio: given.number("min_confidence_ratio")?,
        mmr: given.flag("mmr")?,
        mmr_lambda: given.number("mmr_lambda")?,
        mmr_same_doc_penalty: given.number("mmr_same_doc_penalty")?,
        parent_retriever: given.flag("parent_retriever")?,
    })
}

/// Reads the arguments of `get_connection_graph`.
///
/// # Errors
///
/// -32602 if an argument is missing or of another type than its schema says.
pub(super) fn graph_request(mut given: Arguments) -> Result<GraphRequest, ErrorData> {
    Ok(GraphRequest {
        start: given.required_text("start")?,
        depth: given.count("depth")?,
        fan_out: given.count("fan_out")?,
        min_similarity: given.number("min_similarity")?,
        seed_strategy: given.text("seed_strategy")?,
        dedup_by_path: given.flag("dedup_by_path")?.unwrap_or_default(),
        category: given.text("category")?,
        topic: given.text("topic")?,
        exclude_paths: given.texts("exclude_paths")?.unwrap_or_default(),
        max_nodes: given.count("max_nodes")?,
        max_seed_chunks: given.count("max_seed_chunks")?,
        path_globs: given.texts("path_globs")?,
        exclude_globs: given.texts("exclude_globs")?.unwrap_or_default(),
        tags_any: given.texts("tags_any")?.unwrap_or_default(),
        tags_all: given.texts("tags_all")?.unwrap_or_default(),
        date_from: given.text("date_from")?,
        date_to: given.text("date_to")?,
        fields: given.text_lists("fields")?,
        fields_not: given.text_lists("fields_not")?,
        min_quality: given.number("min_quality")?,
        include_low_quality: given.flag("include_low_quality")?.unwrap_or_default(),
        order: given.text("order")?,
        time_budget_ms: given.count("time_budget_ms")?,
    })
}

/// Reads the arguments of `get_document` that say what to read.
///
/// # Errors
///
/// -32602 if an argument is missing or of another type than its schema says.
pub(super) fn document_request(given: &mut Arguments) -> Result<DocumentRequest, ErrorData> {
    Ok(DocumentRequest {
        path: given.required_text("path")?,
        offset: given.count("offset")?.map(u64::from),
        max_bytes: given.count("max_bytes")?.map(u64::from),
    })
}

/// Reads the arguments of `get_best_practice`.
///
/// # Errors
///
/// -32602 if an argument is missing or of another type than its schema says.
pub(super) fn best_practice_request(
    mut given: Arguments,
) -> Result<BestPracticeRequest, ErrorData> {
    Ok(BestPracticeRequest {
        target: given.required_text("target")?,
        category: given.text("category")?,
    })
}

/// Reads the arguments of `verify_quote`.
///
/// # Errors
///
/// -32602 if an argument is missing or of another type than its schema says.
pub(super) fn quote_request(mut given: Arguments) -> Result<QuoteRequest, ErrorData> {
    Ok(QuoteRequest { text: given.required_text("text")?, path: given.required_text("path")? })
}

/// The result of a call: an object, as text and as structured content, or the
/// error envelope.
pub(super) fn object_result(outcome: Result<Value, Refused>) -> CallToolResult {
    match outcome {
        Ok(object) => result(json::pretty(&object), object),
        Err(refused) => envelope(&refused),
    }
}

/// The result of a call whose text is an array. Structured content has to be
/// an object, so there, and only there, the array is its member `name`.
pub(super) fn array_result(name: &str, outcome: Result<Value, Refused>) -> CallToolResult {
    match outcome {
        Ok(array) => result(json::pretty(&array), json!({ name: array })),
        Err(refused) => envelope(&refused),
    }
}

fn result(text: String, structured: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    result
}

/// Structured content is left out: it would have to satisfy the tool's output
/// schema, and some clients check that of a failed call too.
fn envelope(refused: &Refused) -> CallToolResult {
    let text = json::pretty(&json::error(&refused.message));
    CallToolResult::error(vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn parse(value: Value) -> Result<SearchRequest, ErrorData> {
        search_request(&mut Arguments::new(Some(rmcp::model::object(value))))
    }

    // MCP-20 SRCH-10 SRCH-11 SRCH-13 SRCH-14 SRCH-15 SRCH-16 SRCH-17 SRCH-18
    // SRCH-19 SRCH-20 SRCH-21 SRCH-22 SRCH-23 SRCH-24 SRCH-25 SRCH-26
    #[test]
    fn every_parameter_of_a_search_arrives() {
        let request = parse(json!({
            "query": "tokio -async",
            "limit": 7,
            "category": "deep-dive",
            "topic": "mcp",
            "path_globs": ["docs/**", "!docs/draft/**"],
            "tags_any": ["a", "b"],
            "tags_all": ["c"],
            "date_from": "2026-01-01",
            "date_to": "2026-12-31",
            "fields": { "status": ["open"] },
            "fields_not": { "owner": ["x", "y"] },
            "min_quality": 0.5,
            "include_low_quality": true,
            "rerank": false,
            "min_confidence_ratio": 2,
            "mmr": true,
            "mmr_lambda": 0.25,
            "mmr_same_doc_penalty": 1,
            "parent_retriever": true,
        }));
        assert_eq!(
            request,
            Ok(SearchRequest {
                query: "tokio -async".into(),
                limit: Some(7),
                category: Some("deep-dive".into()),
                topic: Some("mcp".into()),
                path_globs: Some(vec!["docs/**".into(), "!docs/draft/**".into()]),
                tags_any: vec!["a".into(), "b".into()],
                tags_all: vec!["c".into()],
                date_from: Some("2026-01-01".into()),
                date_to: Some("2026-12-31".into()),
                fields: BTreeMap::from([("status".into(), vec!["open".into()])]),
                fields_not: BTreeMap::from([("owner".into(), vec!["x".into(), "y".into()])]),
                min_quality: Some(0.5),
                include_low_quality: true,
                rerank: Some(false),
                min_confidence_ratio: Some(2.0),
                mmr: Some(true),
                mmr_lambda: Some(0.25),
                mmr_same_doc_penalty: Some(1.0),
                parent_retriever: Some(true),
            })
        );
    }

    // MCP-59 GRAPH-01 GRAPH-02 GRAPH-03 GRAPH-04 GRAPH-05 GRAPH-06 GRAPH-07 GRAPH-08 GRAPH-09
    // GRAPH-10 GRAPH-B01 GRAPH-B04 GRAPH-B05 SRCH-B11
    #[test]
    fn every_parameter_of_a_graph_arrives() {
        let request = graph_request(Arguments::new(Some(rmcp::model::object(json!({
            "start": "a b/ü.md",
            "depth": 3,
            "fan_out": 20,
            "min_similarity": 0.5,
            "seed_strategy": "centroid",
            "dedup_by_path": true,
            "category": "deep-dive",
            "topic": "mcp",
            "exclude_paths": ["b.md", "c.md"],
            "max_nodes": 2000,
            "max_seed_chunks": 1,
            "path_globs": ["docs/**"],
            "exclude_globs": ["docs/draft/**"],
            "tags_any": ["a", "b"],
            "tags_all": ["c"],
            "date_from": "2026-01-01",
            "date_to": "2026-12-31",
            "fields": { "status": ["open"] },
            "fields_not": { "owner": ["x", "y"] },
            "min_quality": 0.25,
            "include_low_quality": true,
            "order": "best_first",
            "time_budget_ms": 4_294_967_295_u32,
        })))));
        assert_eq!(
            request,
            Ok(GraphRequest {
                start: "a b/ü.md".into(),
                depth: Some(3),
                fan_out: Some(20),
                min_similarity: Some(0.5),
                seed_strategy: Some("centroid".into()),
                dedup_by_path: true,
                category: Some("deep-dive".into()),
                topic: Some("mcp".into()),
                exclude_paths: vec!["b.md".into(), "c.md".into()],
                max_nodes: Some(2000),
                max_seed_chunks: Some(1),
                path_globs: Some(vec!["docs/**".into()]),
                exclude_globs: vec!["docs/draft/**".into()],
                tags_any: vec!["a".into(), "b".into()],
                tags_all: vec!["c".into()],
                date_from: Some("2026-01-01".into()),
                date_to: Some("2026-12-31".into()),
                fields: BTreeMap::from([("status".into(), vec!["open".into()])]),
                fields_not: BTreeMap::from([("owner".into(), vec!["x".into(), "y".into()])]),
                min_quality: Some(0.25),
                include_low_quality: true,
                order: Some("best_first".into()),
                time_budget_ms: Some(u32::MAX),
            })
        );
        let bare = graph_request(Arguments::new(Some(rmcp::model::object(json!({
            "start": "a.md", "depth": null, "tags_any": null, "no_such_name": 1,
        })))));
        assert_eq!(bare, Ok(GraphRequest { start: "a.md".into(), ..GraphRequest::default() }));
    }

    // SRCH-15 SRCH-95
    #[test]
    fn an_empty_list_of_globs_is_not_the_same_as_none() {
        let globs = |value| parse(value).unwrap().path_globs;
        assert_eq!(globs(json!({ "query": "q", "path_globs": [] })), Some(vec![]));
        assert_eq!(globs(json!({ "query": "q", "path_globs": null })), None);
        assert_eq!(globs(json!({ "query": "q" })), None);
    }

    // SRCH-29 SRCH-31
    #[test]
    fn a_name_that_nobody_knows_is_ignored() {
        let request = parse(json!({
            "query": "q", "top_k": "many", "rrf_k": 1, "bm25_heading_weight": 9,
            "whole_doc_threshold_tokens": 9, "max_expanded_tokens": 9,
        }));
        assert_eq!(request, Ok(SearchRequest { query: "q".into(), ..SearchRequest::default() }));
    }

    // MCP-10 MCP-B03
    #[test]
    fn an_object_is_sent_as_one_text_block_and_as_structured_content() {
        let object = json!({ "b": 1, "a": [true] });
        let result = object_result(Ok(object.clone()));
        assert_eq!(result.content, [ContentBlock::text(json::pretty(&object))]);
        assert_eq!(result.structured_content, Some(object));
        assert_eq!(result.is_error, Some(false));
    }

    // MCP-25 MCP-B03
    #[test]
    fn an_array_is_wrapped_in_structured_content_only() {
        let result = array_result("topics", Ok(json!([1])));
        assert_eq!(result.content, [ContentBlock::text("[\n  1\n]")]);
        assert_eq!(result.structured_content, Some(json!({ "topics": [1] })));
    }

    // MCP-11 MCP-16 MCP-30
    #[test]
    fn a_refusal_is_the_envelope_with_the_flag_set() {
        let refused = Refused { message: "no such topic".into() };
        let text = "{\n  \"error\": \"no such topic\"\n}";
        for result in
            [object_result(Err(refused.clone())), array_result("topics", Err(refused.clone()))]
        {
            assert_eq!(result.content, [ContentBlock::text(text)]);
            assert_eq!(result.is_error, Some(true));
            assert_eq!(result.structured_content, None);
        }
    }
}
