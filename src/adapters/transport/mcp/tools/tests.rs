//! Tests of what a model is told of the tools.

use super::*;
use rmcp::model::JsonObject;

fn tool(name: &str) -> Tool {
    all(false).into_iter().find(|tool| tool.name == name).unwrap()
}

fn parameters(name: &str) -> JsonObject {
    tool(name).input_schema["properties"].as_object().unwrap().clone()
}

#[test]
fn the_list_holds_each_name_once_and_in_order() {
    let all = all(false);
    let names: Vec<&str> = all.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, NAMES);
}

// MCP-20 SRCH-31
#[test]
fn search_has_its_parameters_and_requires_the_query() {
    let mut expected = [
        "query",
        "limit",
        "category",
        "topic",
        "rerank",
        "min_quality",
        "include_low_quality",
        "path_globs",
        "tags_any",
        "tags_all",
        "date_from",
        "date_to",
        "fields",
        "fields_not",
        "min_confidence_ratio",
        "mmr",
        "mmr_lambda",
        "mmr_same_doc_penalty",
        "parent_retriever",
        "detail",
        "max_tokens",
    ];
    expected.sort_unstable();
    let mut names: Vec<String> = parameters(SEARCH).keys().cloned().collect();
    names.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(tool(SEARCH).input_schema["required"], json!(["query"]));
}

// MCP-59 GRAPH-B01 GRAPH-B04 GRAPH-B05 SRCH-B11
#[test]
fn the_graph_has_its_parameters_and_requires_the_start() {
    let stable = [
        ("start", "string"),
        ("depth", "integer"),
        ("fan_out", "integer"),
        ("min_similarity", "number"),
        ("seed_strategy", "string"),
        ("dedup_by_path", "boolean"),
        ("category", "string"),
        ("topic", "string"),
        ("exclude_paths", "array"),
        ("max_nodes", "integer"),
        ("max_seed_chunks", "integer"),
    ];
    let additive = [
        ("path_globs", "array"),
        ("exclude_globs", "array"),
        ("tags_any", "array"),
        ("tags_all", "array"),
        ("date_from", "string"),
        ("date_to", "string"),
        ("fields", "object"),
        ("fields_not", "object"),
        ("min_quality", "number"),
        ("include_low_quality", "boolean"),
        ("order", "string"),
        ("time_budget_ms", "integer"),
    ];
    let parameters = parameters(GET_CONNECTION_GRAPH);
    assert_eq!(parameters.len(), stable.len() + additive.len());
    for (name, kind) in stable.into_iter().chain(additive) {
        assert_eq!(parameters[name]["type"], kind, "{name}");
    }
    assert_eq!(tool(GET_CONNECTION_GRAPH).input_schema["required"], json!(["start"]));
}

// MCP-14 MCP-35 MCP-50
#[test]
fn the_other_tools_have_theirs() {
    assert_eq!(tool(GET_DOCUMENT).input_schema["required"], json!(["path"]));
    assert_eq!(parameters(GET_DOCUMENT)["path"]["type"], "string");
    assert_eq!(tool(REBUILD_INDEX).input_schema.get("required"), None);
    assert_eq!(parameters(REBUILD_INDEX)["force"]["type"], "boolean");
    assert_eq!(tool(LIST_TOPICS).input_schema.get("required"), None);
    // All that it takes is additive.
    assert_eq!(parameters(LIST_TOPICS).keys().collect::<Vec<_>>(), ["max_titles"]);
    assert_eq!(tool(GET_BEST_PRACTICE).input_schema["required"], json!(["target"]));
    assert_eq!(parameters(GET_BEST_PRACTICE)["category"]["type"], "string");
    assert_eq!(tool(VERIFY_QUOTE).input_schema["required"], json!(["text", "path"]));
    assert_eq!(tool(LIST_FILTERS).input_schema.get("required"), None);
}

// MCP-13
#[test]
fn a_parameter_has_one_type_and_no_format() {
    for tool in all(false) {
        assert_eq!(tool.input_schema["$schema"], json!(DIALECT));
        assert_eq!(tool.input_schema["type"], "object");
        for (name, schema) in parameters(&tool.name) {
            let kind = schema["type"].as_str();
            assert!(kind.is_some_and(|kind| kind != "null"), "{name}: {schema}");
            for word in ["format", "anyOf", "oneOf", "default"] {
                assert_eq!(schema.get(word), None, "{name}: {schema}");
            }
            if kind == Some("integer") {
                assert_eq!(schema["minimum"], 0, "{name}");
                assert_eq!(schema["maximum"], 4_294_967_295_u32, "{name}");
            }
        }
    }
}

// MCP-B02
#[test]
fn indexing_reaches_out_if_an_endpoint_embeds() {
    for asks_outside in [false, true] {
        for tool in all(asks_outside) {
            let expected = asks_outside && tool.name == REBUILD_INDEX;
            assert_eq!(tool.annotations.unwrap().open_world_hint, Some(expected));
        }
    }
}

// MCP-17 MCP-B02
#[test]
fn every_tool_says_what_it_does_to_the_world() {
    for tool in all(false) {
        let hints = tool.annotations.as_ref().unwrap();
        let reads = tool.name != REBUILD_INDEX;
        assert_eq!(hints.read_only_hint, Some(reads), "{}", tool.name);
        assert_eq!(hints.destructive_hint, (!reads).then_some(true), "{}", tool.name);
        assert_eq!(hints.idempotent_hint, Some(true));
        assert_eq!(hints.open_world_hint, Some(false));
        assert!(tool.title.as_deref().is_some_and(|title| !title.is_empty()));
    }
}

// MCP-04 MCP-B01
#[test]
fn nothing_is_longer_than_clients_read() {
    assert!(INSTRUCTIONS.chars().count() < 2048, "{}", INSTRUCTIONS.chars().count());
    for tool in all(false) {
        let length = tool.description.as_ref().unwrap().chars().count();
        assert!(length < 2048, "{}: {length}", tool.name);
    }
}

// MCP-15
#[test]
fn the_descriptions_state_the_contracts_that_a_model_needs() {
    for (name, words) in [
        (SEARCH, &["\"...\"", "-async", "three characters", "exclusions only is refused"][..]),
        (GET_DOCUMENT, &["one spelling", "not found"]),
        (GET_CONNECTION_GRAPH, &["similarity", "after search", "excerpt"]),
        (LIST_TOPICS, &["values the search filters"]),
        (LIST_FILTERS, &["values that the filters of search take"]),
        (GET_BEST_PRACTICE, &["not", "configured", "Completions"]),
        (VERIFY_QUOTE, &["word for word", "moved", "not_found"]),
        (REBUILD_INDEX, &["One run at a time", "Meanwhile, searches"]),
    ] {
        let description = tool(name).description.unwrap().replace('\n', " ");
        for word in words {
            assert!(description.contains(word), "{name}: {word}");
        }
    }
}

// MCP-B01
#[test]
fn the_instructions_tell_how_the_tools_go_together() {
    for word in [
        "`search`",
        "`get_document`",
        "`get_connection_graph`",
        "`list_topics`",
        "`low_confidence: true`",
        "opens as a resource",
    ] {
        assert!(INSTRUCTIONS.contains(word), "{word}");
    }
}
