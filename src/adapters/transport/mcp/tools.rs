//! The tools on offer: names, descriptions for a model, and JSON schemas.

mod graph;
mod library;
mod search;

use std::sync::Arc;
use std::sync::LazyLock;

use rmcp::model::Tool;
use rmcp::model::ToolAnnotations;
use serde_json::Value;
use serde_json::json;

use crate::adapters::transport::mcp::icons;

pub(super) const SEARCH: &str = "search";
pub(super) const GET_DOCUMENT: &str = "get_document";
pub(super) const GET_CONNECTION_GRAPH: &str = "get_connection_graph";
pub(super) const LIST_TOPICS: &str = "list_topics";
pub(super) const REBUILD_INDEX: &str = "rebuild_index";
pub(super) const GET_BEST_PRACTICE: &str = "get_best_practice";
pub(super) const LIST_FILTERS: &str = "list_filters";
pub(super) const VERIFY_QUOTE: &str = "verify_quote";

/// In the order in which they are listed.
pub(super) const NAMES: [&str; 8] = [
    SEARCH,
    GET_DOCUMENT,
    GET_CONNECTION_GRAPH,
    LIST_TOPICS,
    LIST_FILTERS,
    GET_BEST_PRACTICE,
    VERIFY_QUOTE,
    REBUILD_INDEX,
];

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
4. If the first search misses, search again in other words: those of the documents found, the \
user's own language, a narrower or wider question. `list_topics` and `list_filters` tell which \
values the filters take.
5. `verify_quote` checks a quote before you give it; `get_best_practice` returns written rules.

A `uri` (kb://doc/...) opens as a resource.

`low_confidence: true` means that the scores are flat, so nothing stands out: say that the \
coverage may be poor. `false` is no proof of the opposite. No results mean that the knowledge \
base is silent: say so instead of filling the gap from general knowledge.

An answer of the form {\"error\": ...} means that the call was refused or failed; the text says \
what to change. `rebuild_index` is needed only when files changed and the index does not follow \
them by itself; do not call it before each search.";

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
///
/// - `asks_outside`: whether indexing sends texts to another service.
pub(super) fn all(asks_outside: bool) -> Vec<Tool> {
    static TOOLS: LazyLock<[Tool; 8]> = LazyLock::new(made);
    let mut tools = TOOLS.to_vec();
    if asks_outside && let Some(rebuild) = tools.last_mut() {
        rebuild.annotations = rebuild.annotations.take().map(|hints| hints.open_world(true));
    }
    tools
}

fn made() -> [Tool; 8] {
    [
        reading(SEARCH, "Search the knowledge base", search::DESCRIPTION, icons::SEARCH)
            .with_input(search::input())
            .with_output(search::output()),
        reading(GET_DOCUMENT, "Read a document", GET_DOCUMENT_DESCRIPTION, icons::DOCUMENT)
            .with_input(document_input())
            .with_output(document_output()),
        reading(
            GET_CONNECTION_GRAPH,
            "Explore what is connected",
            graph::DESCRIPTION,
            icons::GRAPH,
        )
        .with_input(graph::input())
        .with_output(graph::output()),
        reading(LIST_TOPICS, "List topics", LIST_TOPICS_DESCRIPTION, icons::LIST)
            .with_input(topics_input())
            .with_output(topics_output()),
        reading(LIST_FILTERS, "List filter values", library::FILTERS, icons::FILTER)
            .with_input(library::filters_input())
            .with_output(library::filters_output()),
        reading(GET_BEST_PRACTICE, "Read best practice", library::BEST_PRACTICE, icons::PRACTICE)
            .with_input(library::best_practice_input())
            .with_output(library::best_practice_output()),
        reading(VERIFY_QUOTE, "Verify a quote", library::VERIFY_QUOTE, icons::QUOTE)
            .with_input(library::verify_quote_input())
            .with_output(library::verify_quote_output()),
        Tool::new(REBUILD_INDEX, REBUILD_INDEX_DESCRIPTION, Arc::default())
            .with_title("Update the search index")
            .with_annotations(hints("Update the search index", false).destructive(true))
            .with_icons(icons::icon(icons::REBUILD))
            .with_input(input(
                &json!({ "force": flag("Index every file anew, changed or not. Default: false.") }),
                &[],
            ))
            .with_output(rebuild_output()),
    ]
}

fn reading(name: &'static str, title: &str, description: &'static str, drawing: &str) -> Tool {
    Tool::new(name, description, Arc::default())
        .with_title(title)
        .with_annotations(hints(title, true))
        .with_icons(icons::icon(drawing))
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

/// An integer that a caller gives.
fn bounded(description: &str) -> Value {
    json!({
        "type": "integer",
        "minimum": 0,
        "maximum": u32::MAX,
        "description": description,
    })
}

fn whole(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn document_input() -> Value {
    let properties = json!({
        "path": text("The document's path, exactly as search returns it."),
        "offset": bounded("The first byte of the text to return; `next_offset` of the last part."),
        "max_bytes": bounded("The most bytes of the text to return; at most 1 MiB."),
        "max_tokens": bounded("The most tokens of the whole answer, about. At least 200."),
    });
    input(&properties, &["path"])
}

fn topics_input() -> Value {
    let most = "The most titles of each topic; `titles_truncated` tells if there are more.";
    input(&json!({ "max_titles": bounded(most) }), &[])
}

fn document_output() -> Value {
    let properties = json!({
        "path": text("As requested."),
        "title": nullable("The title that the document gives itself."),
        "date": nullable("The date that the author wrote."),
        "topic": nullable("The topic that the document gives itself."),
        "tags": texts("The document's tags."),
        "content": text("The whole text, or the part that was asked for."),
        "truncated": flag("Whether the text goes on after `content`."),
        "offset": whole("Where `content` begins in the text, in bytes; if a part was asked for."),
        "next_offset": whole("Where the text goes on, in bytes; absent at its end."),
        "uri": text("The document as a resource; absent if it cannot be opened as one."),
        "indexed": flag("Whether search can find the document."),
        "size_bytes": whole("The size of the file."),
        "modified": text("When the file was changed last: RFC 3339, UTC."),
    });
    let required = ["path", "title", "date", "topic", "tags", "content", "truncated", "size_bytes"];
    output(&properties, &required)
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
        "titles_truncated": flag("With max_titles: whether there are more titles."),
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
        "names_not_openable": whole("Files left out because of their names."),
        "also_indexing": {
            "type": "array",
            "description": "Other processes that were indexing the same knowledge base.",
            "items": object(
                &json!({
                    "process": whole("The number of the process."),
                    "since": text("Since when: RFC 3339, UTC."),
                }),
                &["process", "since"],
            ),
        },
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
mod tests;
