//! What a model is told of `get_connection_graph`.

use serde_json::Value;
use serde_json::json;

use super::count;
use super::flag;
use super::nullable;
use super::number;
use super::object;
use super::text;
use super::text_lists;
use super::texts;

pub(super) const DESCRIPTION: &str = "\
Walks from one document of the knowledge base to the passages nearest to it in meaning, and from \
those on: {start_path, nodes, truncated, truncation, stats}. Use it after search, with the `path` \
of a strong hit as `start`, to find related documents that share few words with the question, or \
to see what surrounds a document.

It follows the similarity of stored passages, not links that an author wrote, and no query takes \
part: a node is similar to its parent, and may have little to do with the question. `score` is \
that similarity, from 0 to 1. Nodes come in the order in which they were found; `parent_id` is \
the `node_id` of the node from which one was found, null for the passages of the start document. \
`snippet` is an excerpt: open the `path` with get_document before relying on it.

`start` must be a path exactly as search returns it; another one is answered with an error that \
names near paths. Numbers out of range become the nearest bound. The filters hold for what is \
found, not for the start document.

`truncated: true`: something was left out; each entry of `truncation` says which bound did it, and \
what to change. For a long document or a wide view, set seed_strategy to centroid and \
dedup_by_path to true.";

pub(super) fn input() -> Value {
    let bounded = |description: &str| {
        json!({
            "type": "integer",
            "minimum": 0,
            "maximum": u32::MAX,
            "description": description,
        })
    };
    let properties = json!({
        "start": text("The path of the document to start from, exactly as search returns it."),
        "depth": bounded("The most hops. Default: 2; more than 3 counts as 3; 0 finds nothing."),
        "fan_out": bounded(
            "The most passages found from each. Default: 5; more than 20 counts as 20.",
        ),
        "min_similarity": number("The least similarity to the parent, from 0 to 1. Default: 0.3."),
        "seed_strategy": text(
            "all-chunks: start from each passage of the document (default). centroid: start from \
             their mean.",
        ),
        "dedup_by_path": flag("Find each other document once at most. Default: false."),
        "category": text("Find only documents of exactly this category."),
        "topic": text("Find only documents of exactly this topic."),
        "exclude_paths": texts("Paths of documents to leave out; at most 64, no globs."),
        "max_nodes": bounded("The most nodes. Default: 100; more than 2000 counts as 2000."),
        "max_seed_chunks": bounded(
            "The most passages of the start document that are read, from 1 to 1000. Default: 32.",
        ),
        "path_globs": texts(
            "Find only documents whose path matches one of these globs; one that starts with ! \
             excludes. At least one, at most 64.",
        ),
        "exclude_globs": texts("Leave out documents whose path matches one of these globs."),
        "tags_any": texts("Find only documents with at least one of these tags."),
        "tags_all": texts("Find only documents with all of these tags."),
        "date_from": text("Find only documents dated then or later: YYYY-MM-DD, as text."),
        "date_to": text("Find only documents dated then or earlier: YYYY-MM-DD, as text."),
        "fields": text_lists("As in search: frontmatter values, one of which must be there."),
        "fields_not": text_lists("As in search: frontmatter values that must not be there."),
        "min_quality": number(
            "The least quality of a passage, from 0 to 1; instead of the configured one.",
        ),
        "include_low_quality": flag("Find passages of any quality. Default: false."),
        "order": text(
            "Which node is expanded next. breadth-first: the one found first (default). \
             best-first: the one most similar to its parent.",
        ),
        "time_budget_ms": bounded("Stop looking further after this time. Default: no bound."),
    });
    super::input(&properties, &["start"])
}

pub(super) fn output() -> Value {
    let cut = json!({
        "reason": { "type": "string", "enum": ["seed_chunks", "node_budget", "time_budget"] },
        "limit": count("The bound, in its own unit."),
        "detail": text("What was lost, and what to change."),
    });
    let stats = json!({
        "total_nodes": count("How many nodes there are."),
        "max_depth_reached": count("The most hops at which a node was found."),
        "knn_queries": count("How many nodes were expanded."),
        "duration_ms": count("How long it took, in milliseconds."),
        "seeds_used": count("Passages of the start document that it began with."),
    });
    let stats_members =
        ["total_nodes", "max_depth_reached", "knn_queries", "duration_ms", "seeds_used"];
    let properties = json!({
        "start_path": text("As given."),
        "truncated": flag("Whether something was left out."),
        "truncation": {
            "type": "array",
            "description": "The bounds that left something out.",
            "items": object(&cut, &["reason", "limit", "detail"]),
        },
        "nodes": { "type": "array", "items": node() },
        "stats": object(&stats, &stats_members),
        "warnings": texts("Remarks about the request or the index."),
    });
    super::output(&properties, &["start_path", "truncated", "truncation", "nodes", "stats"])
}

fn node() -> Value {
    let properties = json!({
        "node_id": count("The node's place in `nodes`."),
        "parent_id": {
            "type": ["integer", "null"],
            "description": "The node from which it was found; null in the start document.",
        },
        "depth": count("Hops from the start."),
        "chunk_id": {
            "type": "integer",
            "description": "The passage's number; another one once its document was indexed anew.",
        },
        "score": number("The similarity to the parent, from 0 to 1."),
        "path": text("The document's path; get_document opens it."),
        "heading": nullable("The section's heading."),
        "title": nullable("The document's title."),
        "topic": nullable("The document's topic."),
        "snippet": text("The beginning of the passage."),
        "start_line": count("The first line in a source file, counted from 1."),
        "end_line": count("The last line in a source file."),
        "symbol_kind": text("What the passage defines: function, class, ..."),
        "uri": text("The document as a resource."),
    });
    let required = [
        "node_id",
        "parent_id",
        "depth",
        "chunk_id",
        "score",
        "path",
        "heading",
        "title",
        "topic",
        "snippet",
    ];
    object(&properties, &required)
}
