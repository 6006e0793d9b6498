//! The tools on offer: names, descriptions for a model, and JSON schemas.

mod graph;

use std::sync::Arc;
use std::sync::LazyLock;

use rmcp::model::Tool;
use rmcp::model::ToolAnnotations;
use serde_json::Value;
use serde_json::json;

pub(super) const SEARCH: &str = "search";
pub(super) const GET_DOCUMENT: &str = "get_document";
pub(super) const GET_CONNECTION_GRAPH: &str = "get_connection_graph";
pub(super) const LIST_TOPICS: &str = "list_topics";
pub(super) const REBUILD_INDEX: &str = "rebuild_index";

/// In the order in which they are listed.
pub(super) const NAMES: [&str; 5] =
    [SEARCH, GET_DOCUMENT, GET_CONNECTION_GRAPH, LIST_TOPICS, REBUILD_INDEX];

/// What a client is told about the server as a whole. Clients cut it off at
/// 2,048 characters, so the most important comes first.
pub(super) const INSTRUCTIONS: &str = "\
A person's or a team's own knowledge base: notes, documents and source files, indexed for search \
by meaning and by words. Use it before answering from general knowledge whenever the question \
could be about the user's own notes, decisions, projects or documents.

1. `search` finds passages. A hit's `content` is an excerpt; its `path` names the document.
2. `get_document` with that exact `path` returns the whole document. Open a document before you \
rely on it, quote it or dismiss it, and cite the `path` of every document that you used.
3. `get_connection_graph` from a good document's `path` shows what else is near in meaning, \
also in other words than yours.
4. If the first search misses, search again with other words: those of the documents found, the \
user's own language, a narrower or wider question. `list_topics` tells which values the filters \
`category` and `topic` take.

`low_confidence: true` means that the scores are flat, so nothing stands out: say that the \
coverage may be poor. `false` is no proof of the opposite. No results mean that the knowledge \
base is silent: say so instead of filling the gap from general knowledge.

An answer of the form {\"error\": ...} means that the call was refused or failed; the text says \
what to change. `rebuild_index` is needed only when files changed and the index does not follow \
them by itself; do not call it before each search.";

const SEARCH_DESCRIPTION: &str = "\
Searches the knowledge base by meaning and by words at once and returns the best passages: \
{results, low_confidence, filter_applied}, best first. A refused or failed call answers \
{\"error\": ...} with no `results`. `content` is an excerpt: open the `path` with get_document \
before relying on it. Several results may come from one document.

Query: natural language or keywords, in any language, at most 1024 bytes.
- \"...\" searches for the words between the quotes exactly as written; \"\" inside stands for \
one quote.
- A group that starts with - excludes: -async, or -\"exact phrase\", removes every passage that \
contains it. A hyphen inside a word (sqlite-vec) or followed by a space is no exclusion. To search \
for a leading hyphen, quote it: \"-foo\".
- A query of exclusions only is refused: add something to look for.
- Exclusions shorter than three characters have no effect (-ab excludes nothing), and search terms \
that short are found as whole words at best.

Filters combine with AND. `category`, `topic` and tags are matched exactly (list_topics has valid \
values; a category is not a tag). Dates are compared as text with the date that the author wrote: \
use YYYY-MM-DD; a document without a date never passes. `filter_applied` reports the filters that \
had an effect; {} does not mean unfiltered, since passages of low quality are hidden by default \
(include_low_quality shows them).

`low_confidence: true`: the scores are flat and no result stands out. `match_spans` are byte \
offsets into `content`. `start_line`, `end_line` and `symbol_kind` appear for source files.";

const GET_DOCUMENT_DESCRIPTION: &str = "\
Returns one document of the knowledge base whole: {path, title, date, topic, tags, content, \
truncated}. Use it after search, with a hit's `path`, before you rely on a document, quote it or \
dismiss it.

The path must be the document's one spelling: relative to the knowledge base, separated by /, in \
the case that it has on disk, exactly as search returns it. Any other route to the same file \
(./a.md, a//b.md, a/../a.md, an absolute path, another case, a symbolic link) is answered \"not \
found\".

Text files come as they are stored, frontmatter included. PDF and office files come as extracted \
text, cut at 1 MiB, with `truncated: true` if something is missing. Files that the index leaves \
out can be read too, as long as their format is enabled.";

const LIST_TOPICS_DESCRIPTION: &str = "\
Lists what the knowledge base is about: one entry for each category and topic, with the number of \
documents, their titles, when one of them was last indexed, and the folders beneath. Use it to \
learn which values the search filters `category` and `topic` take, or to get an overview.

Category and topic are the first two folders of a path, unless a document's frontmatter names \
another topic; the folders in `children` are those after the second, each with all documents \
beneath it. So category, topic and segments do not add up to a path: do not build one from them.";

const REBUILD_INDEX_DESCRIPTION: &str = "\
Brings the search index up to date with the files of the knowledge base: new and changed files are \
indexed, deleted ones removed, unchanged ones skipped. It can take minutes. Call it when files \
changed and search does not show it; not before each search.

One run at a time: a call while another runs is refused with an error that tells how long that one \
has been running. Meanwhile, searches may wait or be answered from the state before the run.

Returns the counters {total_documents, updated, renamed, deleted, skipped, frontmatter_unparsed, \
total_chunks, duration_ms}. `error` beside the counters: the run finished, but not as asked. \
`error` alone: nothing was run, or the run stopped.";

/// The tools, in the order of [`NAMES`].
pub(super) fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<[Tool; 5]> = LazyLock::new(|| {
        [
            reading(SEARCH, "Search the knowledge base", SEARCH_DESCRIPTION)
                .with_input(search_input())
                .with_output(search_output()),
            reading(GET_DOCUMENT, "Read a document", GET_DOCUMENT_DESCRIPTION)
                .with_input(input(
                    &json!({ "path": text("The document's path, exactly as search returns it.") }),
                    &["path"],
                ))
                .with_output(document_output()),
            reading(GET_CONNECTION_GRAPH, "Explore what is connected", graph::DESCRIPTION)
                .with_input(graph::input())
                .with_output(graph::output()),
            reading(LIST_TOPICS, "List topics", LIST_TOPICS_DESCRIPTION)
                .with_input(input(&json!({}), &[]))
                .with_output(topics_output()),
            Tool::new(REBUILD_INDEX, REBUILD_INDEX_DESCRIPTION, Arc::default())
                .with_title("Update the search index")
                .with_annotations(hints("Update the search index", false).destructive(true))
                .with_input(input(
                    &json!({ "force": flag("Index every file anew, changed or not. Default: false.") }),
                    &[],
                ))
                .with_output(rebuild_output()),
        ]
    });
    &*TOOLS
}

fn reading(name: &'static str, title: &str, description: &'static str) -> Tool {
    Tool::new(name, description, Arc::default())
        .with_title(title)
        .with_annotations(hints(title, true))
}

fn hints(title: &str, read_only: bool) -> ToolAnnotations {
    ToolAnnotations::with_title(title).read_only(read_only).idempotent(true).open_world(false)
}

trait WithSchemas {
    fn with_input(self, schema: Value) -> Self;
    fn with_output(self, schema: Value) -> Self;
}

impl WithSchemas for Tool {
    fn with_input(mut self, schema: Value) -> Self {
        self.input_schema = Arc::new(rmcp::model::object(schema));
        self
    }

    fn with_output(self, schema: Value) -> Self {
        self.with_raw_output_schema(Arc::new(rmcp::model::object(schema)))
    }
}

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A tool's parameters: optional ones have a single type and are left out of
/// `required`, because some clients understand neither null nor `anyOf`.
fn input(properties: &Value, required: &[&str]) -> Value {
    let mut schema = json!({ "$schema": DIALECT, "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn output(properties: &Value, required: &[&str]) -> Value {
    let mut schema = object(properties, required);
    schema["$schema"] = json!(DIALECT);
    schema
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn text_lists(description: &str) -> Value {
    json!({
        "type": "object",
        "additionalProperties": { "type": "array", "items": { "type": "string" } },
        "description": description,
    })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "number", "description": description })
}

fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn nullable(description: &str) -> Value {
    json!({ "type": ["string", "null"], "description": description })
}

fn whole(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn search_input() -> Value {
    let properties = json!({
        "query": text("What to look for; at most 1024 bytes."),
        "limit": {
            "type": "integer",
            "minimum": 0,
            "maximum": u32::MAX,
            "description": "The most results to return. Default: 5; more than 1000 counts as 1000.",
        },
        "category": text("Only documents of exactly this category."),
        "topic": text("Only documents of exactly this topic."),
        "path_globs": texts(
            "Only documents whose path matches one of these globs; one that starts with ! excludes. \
             At least one, at most 64. Example: [\"docs/**\", \"!docs/draft/**\"].",
        ),
        "tags_any": texts("Only documents with at least one of these tags; at most 64."),
        "tags_all": texts("Only documents with all of these tags; at most 64."),
        "date_from": text("Only documents dated then or later: YYYY-MM-DD, compared as text."),
        "date_to": text("Only documents dated then or earlier: YYYY-MM-DD, compared as text."),
        "fields": text_lists(
            "For each key, only documents that hold one of the values in their frontmatter; only \
             keys that the knowledge base declares. Example: {\"status\": [\"open\", \"draft\"]}.",
        ),
        "fields_not": text_lists(
            "Leaves out documents that hold one of the values for any of the keys.",
        ),
        "min_quality": number(
            "The least quality of a passage, from 0 to 1; instead of the configured one.",
        ),
        "include_low_quality": flag("Return passages of any quality. Default: false."),
        "rerank": flag("Whether a reranker orders the results, if one is configured."),
        "min_confidence_ratio": number(
            "The highest score over the mean, below which `low_confidence` is set.",
        ),
        "mmr": flag("Whether results are spread over different passages."),
        "mmr_lambda": number("With mmr: relevance against diversity, from 0 to 1."),
        "mmr_same_doc_penalty": number(
            "With mmr: what a further passage of one document loses, from 0 to 1.",
        ),
        "parent_retriever": flag("Whether results are widened to what surrounds them."),
    });
    input(&properties, &["query"])
}

fn search_output() -> Value {
    let properties = json!({
        "results": { "type": "array", "items": hit() },
        "low_confidence": flag("The scores are flat. Advisory."),
        "confidence": number("How sure the best result is, from 0 to 1; absent if unknown."),
        "min_quality": number("The least quality of a passage that was shown, from 0 to 1."),
        "filter_applied": {
            "type": "object",
            "description": "The filters that had an effect.",
            "properties": {
                "category": text("As given."),
                "topic": text("As given."),
                "path_globs": texts("As given."),
                "tags_any": texts("As given."),
                "tags_all": texts("As given."),
                "date_from": text("As given."),
                "date_to": text("As given."),
                "fields": text_lists("As given, in order and without repetition."),
                "fields_not": text_lists("As given, in order and without repetition."),
                "min_confidence_ratio": number("As given."),
                "excluded_terms": texts("What the query excluded."),
            },
        },
        "score_kind": {
            "type": "string",
            "enum": ["rrf", "rerank"],
            "description": "What the scores are: sums of reciprocal ranks, or the reranker's own.",
        },
        "degraded": texts("What could not take part in this search: vector, fulltext, reranker."),
        "pending_chunks": count("Chunks that only their words can find yet; their vectors follow."),
        "warnings": texts("Remarks about the request."),
    });
    output(&properties, &["results", "low_confidence", "filter_applied", "min_quality"])
}

fn hit() -> Value {
    let properties = json!({
        "score": number("Higher is better; comparable within one answer only."),
        "path": text("The document's path; get_document opens it."),
        "title": nullable("The document's title."),
        "heading": nullable("The section's heading."),
        "topic": nullable("The document's topic."),
        "date": nullable("The date that the author wrote."),
        "tags": texts("The document's tags."),
        "content": text("The passage."),
        "match_spans": {
            "type": "array",
            "description": "Where the query's terms occur in `content`; absent if not computed.",
            "items": object(
                &json!({
                    "start": whole("First byte inside."),
                    "end": whole("First byte after."),
                }),
                &["start", "end"],
            ),
        },
        "highlights": {
            "type": "array",
            "description": "The same without regard to case and accents, in any script.",
            "items": object(
                &json!({
                    "start": whole("First byte inside."),
                    "end": whole("First byte after."),
                    "line": whole("Of the file if start_line is given, else of `content`; from 1."),
                }),
                &["start", "end", "line"],
            ),
        },
        "expanded_from": {
            "type": "object",
            "description": "How the passage was widened.",
            "properties": {
                "kind": { "type": "string", "enum": ["adjacent", "whole_document"] },
                "from_index": whole("adjacent: the first chunk."),
                "to_index": whole("adjacent: the last chunk; the first one if nothing was added."),
                "total_chunks": whole("whole_document: how many chunks the document has."),
            },
            "required": ["kind"],
        },
        "start_line": whole("The first line in a source file, counted from 1."),
        "end_line": whole("The last line in a source file."),
        "symbol_kind": text("What the passage defines: function, class, ..."),
        "uri": text("The document as a resource."),
        "chunk_index": whole("The passage's place in its document, counted from 0."),
        "document_chunks": whole("How many passages the document has."),
        "matched_by": texts("What found the passage: vector, fulltext."),
    });
    let required = [
        "score",
        "path",
        "title",
        "heading",
        "topic",
        "date",
        "tags",
        "content",
        "chunk_index",
        "document_chunks",
        "matched_by",
    ];
    object(&properties, &required)
}

fn document_output() -> Value {
    let properties = json!({
        "path": text("As requested."),
        "title": nullable("The title that the document gives itself."),
        "date": nullable("The date that the author wrote."),
        "topic": nullable("The topic that the document gives itself."),
        "tags": texts("The document's tags."),
        "content": text("The whole text."),
        "truncated": flag("Whether the text was cut."),
    });
    output(&properties, &["path", "title", "date", "topic", "tags", "content", "truncated"])
}

fn topics_output() -> Value {
    let folders = |description: &str| {
        json!({
            "type": "array",
            "items": { "$ref": "#/$defs/folder" },
            "description": description,
        })
    };
    let group = json!({
        "category": nullable("The first folder."),
        "topic": nullable("The second folder, or what the frontmatter says instead."),
        "file_count": whole("How many documents there are."),
        "last_updated": nullable("When one of them was last indexed."),
        "titles": texts("Their titles."),
        "children": folders("The folders beneath the second."),
    });
    let required = ["category", "topic", "file_count", "last_updated", "titles", "children"];
    let topics = json!({ "type": "array", "items": object(&group, &required) });
    let mut schema = output(&json!({ "topics": topics }), &["topics"]);
    let folder = json!({
        "segment": text("The folder's name."),
        "file_count": whole("How many documents lie beneath it."),
        "children": folders("The folders in it."),
    });
    schema["$defs"] = json!({ "folder": object(&folder, &["segment", "file_count", "children"]) });
    schema
}

fn rebuild_output() -> Value {
    let properties = json!({
        "total_documents": whole("Documents in the index after the run."),
        "updated": whole("Files written."),
        "renamed": whole("Documents that moved to a new path."),
        "deleted": whole("Documents removed."),
        "skipped": whole("Files that were not indexed."),
        "frontmatter_unparsed": whole("Documents whose frontmatter could not be read."),
        "total_chunks": whole("Passages in the index after the run."),
        "duration_ms": whole("How long the run took, in milliseconds."),
        "error": text("The run finished, but not as asked."),
    });
    let required = [
        "total_documents",
        "updated",
        "renamed",
        "deleted",
        "skipped",
        "frontmatter_unparsed",
        "total_chunks",
        "duration_ms",
    ];
    output(&properties, &required)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::JsonObject;

    fn tool(name: &str) -> &'static Tool {
        all().iter().find(|tool| tool.name == name).unwrap()
    }

    fn parameters(name: &str) -> JsonObject {
        tool(name).input_schema["properties"].as_object().unwrap().clone()
    }

    #[test]
    fn the_list_holds_each_name_once_and_in_order() {
        let names: Vec<&str> = all().iter().map(|tool| tool.name.as_ref()).collect();
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
        assert!(parameters(LIST_TOPICS).is_empty());
    }

    // MCP-13
    #[test]
    fn a_parameter_has_one_type_and_no_format() {
        for tool in all() {
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
    fn every_tool_says_what_it_does_to_the_world() {
        for tool in all() {
            let hints = tool.annotations.as_ref().unwrap();
            let reads = tool.name != REBUILD_INDEX;
            assert_eq!(hints.read_only_hint, Some(reads), "{}", tool.name);
            assert_eq!(hints.destructive_hint, (!reads).then_some(true), "{}", tool.name);
            assert_eq!(hints.idempotent_hint, Some(true));
            assert_eq!(hints.open_world_hint, Some(false));
            assert!(tool.title.as_deref().is_some_and(|title| !title.is_empty()));
        }
    }

    #[test]
    fn nothing_is_longer_than_clients_read() {
        assert!(INSTRUCTIONS.chars().count() < 2048, "{}", INSTRUCTIONS.chars().count());
        for tool in all() {
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
            (REBUILD_INDEX, &["One run at a time", "Meanwhile, searches"]),
        ] {
            let description = tool(name).description.as_ref().unwrap();
            for word in words {
                assert!(description.replace('\n', " ").contains(word), "{name}: {word}");
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
        ] {
            assert!(INSTRUCTIONS.contains(word), "{word}");
        }
    }
}
