//! What a model is told of `search`.

use serde_json::Value;
use serde_json::json;

use super::bounded;
use super::count;
use super::flag;
use super::library::location;
use super::nullable;
use super::number;
use super::object;
use super::text;
use super::text_lists;
use super::texts;
use super::whole;

pub(super) const DESCRIPTION: &str = "\
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

pub(super) fn input() -> Value {
    let properties = json!({
        "query": text("What to look for; at most 1024 bytes."),
        "limit": bounded(
            "The most results to return. Default: 5; more than 1000 counts as 1000.",
        ),
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
        "detail": text(
            "How much of each passage to return: ids (no text), snippets (what is around the \
             match), passages (all; default).",
        ),
        "max_tokens": bounded(
            "The most tokens of the whole answer, about: passages are shortened around their \
             matches, then results are left out. At least 200.",
        ),
    });
    super::input(&properties, &["query"])
}

pub(super) fn output() -> Value {
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
        "budget": {
            "type": "object",
            "description": "With max_tokens: what keeping to it cost.",
            "properties": {
                "max_tokens": whole("As given."),
                "results_left_out": whole("Results that were left out."),
                "results_shortened": whole("Results whose passage was shortened."),
            },
            "required": ["max_tokens", "results_left_out", "results_shortened"],
        },
    });
    super::output(&properties, &["results", "low_confidence", "filter_applied", "min_quality"])
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
        "uri": text("The document as a resource; absent if it cannot be opened as one."),
        "chunk_index": whole("The passage's place in its document, counted from 0."),
        "document_chunks": whole("How many passages the document has."),
        "matched_by": texts("What found the passage: vector, fulltext."),
        "location": location("The lines of the file that the passage stands on now, if known."),
        "cite": text("How to name the passage to a reader."),
        "content_shortened": flag("Whether `content` is only a part of the passage."),
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
