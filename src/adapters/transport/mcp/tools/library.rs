//! What a model is told of `get_best_practice`, `verify_quote` and
//! `list_filters`.

use serde_json::Value;
use serde_json::json;

use super::bounded;
use super::flag;
use super::input;
use super::nullable;
use super::object;
use super::output;
use super::text;
use super::whole;

pub(super) const BEST_PRACTICE: &str = "\
Returns what the knowledge base has written down as best practice about a target, such as a \
language or a tool: {target, category, content}. Without `category`, `content` is the whole \
document after a list of its sections; with it, the first section whose heading contains it.

The operator configures where these documents are. If nothing is configured, or there is no \
document about the target, the answer is an error. Completions of the argument `target` (reference \
type ref/prompt, name get_best_practice) name the targets that there are.";

pub(super) const VERIFY_QUOTE: &str = "\
Checks that a quote stands in a document, word for word, before you give it to a reader: {path, \
status, places}. Use it for every sentence that you put between quotation marks.

`status`: exact: it stands in the document now, at `places`. moved: not there, but in the documents \
of `places`; cite those. not_found: neither; do not quote it. Case, punctuation and accents count; \
white space, line breaks and the ways in which Unicode spells the same letters do not.";

pub(super) const FILTERS: &str = "\
Counts the values that the filters of search take: {documents, categories, tags, fields, date_from, \
date_to, truncated}, the most frequent first, each with its number of documents. Use it to choose \
values for `category`, `tags_any`, `tags_all`, `fields` and `fields_not`, which are matched \
exactly. `fields` holds the frontmatter fields that the knowledge base declares; it is absent if \
the index records none. `truncated: true` means that some list has more values than `limit`.";

pub(super) fn best_practice_input() -> Value {
    let properties = json!({
        "target": text("What the best practice is about."),
        "category": text("A part of the heading of the section to return, in any case."),
    });
    input(&properties, &["target"])
}

pub(super) fn best_practice_output() -> Value {
    let properties = json!({
        "target": text("As requested."),
        "category": text("As requested; absent if no section was asked for."),
        "content": text("Markdown."),
    });
    output(&properties, &["target", "content"])
}

pub(super) fn verify_quote_input() -> Value {
    let properties = json!({
        "text": text("The quote, without quotation marks of your own; at most 8192 bytes."),
        "path": text("The path of the document that it is from, exactly as search returns it."),
    });
    input(&properties, &["text", "path"])
}

pub(super) fn verify_quote_output() -> Value {
    let place = json!({
        "path": text("The document."),
        "location": location("The lines on which the quote stands."),
        "start": whole("Where it begins in the document's text, in bytes."),
        "end": whole("Where it ends."),
        "cite": text("How to name the place to a reader."),
        "uri": text("The document as a resource; absent if it cannot be opened."),
    });
    let required = ["path", "location", "start", "end", "cite"];
    let properties = json!({
        "path": text("As requested."),
        "status": { "type": "string", "enum": ["exact", "moved", "not_found"] },
        "places": { "type": "array", "items": object(&place, &required) },
    });
    output(&properties, &["path", "status", "places"])
}

/// The lines on which something stands.
pub(super) fn location(description: &str) -> Value {
    let properties = json!({
        "start_line": whole("The first line, counted from 1."),
        "end_line": whole("The last line."),
    });
    let mut schema = object(&properties, &["start_line", "end_line"]);
    schema["description"] = json!(description);
    schema
}

pub(super) fn filters_input() -> Value {
    let limit =
        bounded("The most values of each kind. Default: 100; more than 1000 counts as 1000.");
    input(&json!({ "limit": limit }), &[])
}

pub(super) fn filters_output() -> Value {
    let count = json!({
        "value": text("The value, as filters take it."),
        "count": whole("How many documents have it."),
    });
    let counts = json!({ "type": "array", "items": object(&count, &["value", "count"]) });
    let properties = json!({
        "documents": whole("How many documents there are."),
        "categories": counts,
        "tags": counts,
        "fields": {
            "type": "object",
            "additionalProperties": counts,
            "description": "The declared frontmatter fields, each with its values.",
        },
        "date_from": nullable("The earliest date that an author wrote."),
        "date_to": nullable("The latest one."),
        "truncated": flag("Whether a list has more values than were asked for."),
    });
    let required = ["documents", "categories", "tags", "date_from", "date_to", "truncated"];
    output(&properties, &required)
}
