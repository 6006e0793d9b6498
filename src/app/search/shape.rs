//! From ranked chunks to the hits of an answer.

use crate::app::config::ParentSettings;
use crate::app::search::Scored;
use crate::app::search::request::Checked;
use crate::app::search::widen::Surroundings;
use crate::domain::highlights::{Anchor, highlights};
use crate::domain::parent::Expanded;
use crate::domain::search::Hit;
use crate::domain::spans;
use crate::ports::chunk_store::Snapshot;

/// Shapes the hits of an answer, widened where that was asked for; one that
/// cannot be widened stays as it is.
pub(super) async fn hits(
    snapshot: &dyn Snapshot,
    checked: &Checked,
    picked: Vec<Scored>,
    parent: ParentSettings,
) -> Vec<Hit> {
    let surroundings = if checked.parent {
        let chunks = picked.iter().map(|scored| &scored.chunk);
        Some(Surroundings::read(snapshot, chunks, parent).await)
    } else {
        None
    };
    let mut hits = Vec::with_capacity(picked.len());
    for Scored { chunk, score, matched_by, .. } in picked {
        let expanded = surroundings.as_ref().and_then(|around| around.widened(&chunk));
        let document = &chunk.document;
        let mut anchors: Vec<Anchor> =
            chunk.chunk.lines.iter().map(|lines| Anchor { at: 0, line: lines.start }).collect();
        let mut hit = Hit {
            score,
            path: document.path.to_string(),
            title: document.title.clone(),
            heading: chunk.chunk.heading,
            topic: document.topic.clone(),
            date: document.date.clone(),
            tags: document.tags.clone(),
            content: chunk.chunk.content,
            match_spans: None,
            highlights: None,
            expanded_from: None,
            lines: chunk.chunk.lines,
            symbol_kind: chunk.chunk.symbol_kind,
            uri: None,
            chunk_index: chunk.index,
            document_chunks: chunk.siblings,
            matched_by,
            ..Hit::default()
        };
        if let Some(widened) = expanded {
            let Expanded { content, from, lines, symbol_kind, anchors: widened } = widened;
            hit.content = content;
            hit.expanded_from = Some(from);
            hit.lines = lines;
            hit.symbol_kind = symbol_kind;
            anchors = widened;
        }
        hit.match_spans = spans::match_spans(&checked.query, &hit.content);
        hit.highlights = highlights(&checked.query, &hit.content, &anchors);
        hits.push(hit);
    }
    hits
}
