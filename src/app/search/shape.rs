//! From ranked chunks to the hits of an answer.

use crate::app::config::ParentSettings;
use crate::app::search::Scored;
use crate::app::search::request::Checked;
use crate::domain::parent::{Expanded, ParentBudget, Sibling, expand};
use crate::domain::search::Hit;
use crate::domain::spans;
use crate::ports::chunk_store::{Snapshot, StoredChunk};

/// Shapes the hits of an answer, widened where that was asked for.
pub(super) async fn hits(
    snapshot: &dyn Snapshot,
    checked: &Checked,
    picked: Vec<Scored>,
    parent: ParentSettings,
) -> Vec<Hit> {
    let mut hits = Vec::with_capacity(picked.len());
    for Scored { chunk, score, matched_by } in picked {
        let expanded = if checked.parent { widen(snapshot, &chunk, parent).await } else { None };
        let document = &chunk.document;
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
            expanded_from: None,
            lines: chunk.chunk.lines,
            symbol_kind: chunk.chunk.symbol_kind,
            uri: None,
            chunk_index: chunk.index,
            document_chunks: chunk.siblings,
            matched_by,
        };
        if let Some(Expanded { content, from, lines, symbol_kind }) = expanded {
            hit.content = content;
            hit.expanded_from = Some(from);
            hit.lines = lines;
            hit.symbol_kind = symbol_kind;
        }
        hit.match_spans = spans::match_spans(&checked.query, &hit.content);
        hits.push(hit);
    }
    hits
}

/// Widens one hit; one that cannot be widened stays as it is.
async fn widen(
    snapshot: &dyn Snapshot,
    hit: &StoredChunk,
    parent: ParentSettings,
) -> Option<Expanded> {
    let siblings = match snapshot.chunks_of(&hit.document.path).await {
        Ok(siblings) => siblings,
        Err(error) => {
            tracing::warn!(path = %hit.document.path, %error, "a hit could not be widened");
            return None;
        }
    };
    let place = siblings.iter().position(|sibling| sibling.id == hit.id)?;
    let siblings: Vec<Sibling<'_>> = siblings
        .iter()
        .map(|sibling| Sibling { chunk: &sibling.chunk, token_count: sibling.token_count })
        .collect();
    let budget = ParentBudget {
        whole_doc_threshold_tokens: parent.whole_doc_threshold_tokens,
        max_expanded_tokens: parent.max_expanded_tokens,
    };
    expand(&siblings, place, budget)
}
