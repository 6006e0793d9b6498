//! Widening hits to what surrounds them, with as little read as that takes.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::app::config::ParentSettings;
use crate::domain::document::DocumentPath;
use crate::domain::parent::{Expanded, ParentBudget, Sibling, expand, needed};
use crate::ports::chunk_store::{Snapshot, StoredChunk};

/// Parts of documents from which hits are widened.
pub(super) struct Surroundings {
    budget: ParentBudget,
    /// For each document the parts that its hits need, ascending and apart.
    parts: HashMap<DocumentPath, Vec<Part>>,
}

struct Part {
    indexes: RangeInclusive<u32>,
    chunks: Vec<StoredChunk>,
}

impl Surroundings {
    /// Reads what the hits need, once, however many are of one document. What
    /// cannot be read is left out, with a warning in the log.
    pub(super) async fn read(
        snapshot: &dyn Snapshot,
        hits: impl Iterator<Item = &StoredChunk>,
        settings: ParentSettings,
    ) -> Self {
        let budget = ParentBudget {
            whole_doc_threshold_tokens: settings.whole_doc_threshold_tokens,
            max_expanded_tokens: settings.max_expanded_tokens,
        };
        let mut wanted: HashMap<DocumentPath, Vec<RangeInclusive<u32>>> = HashMap::new();
        for hit in hits {
            let indexes = needed(hit.index, hit.token_count, hit.siblings, budget);
            wanted.entry(hit.document.path.clone()).or_default().push(indexes);
        }
        let mut parts = HashMap::with_capacity(wanted.len());
        for (path, ranges) in wanted {
            let mut read = Vec::new();
            for indexes in merged(ranges) {
                match snapshot.chunks_between(&path, indexes.clone()).await {
                    Ok(chunks) => read.push(Part { indexes, chunks }),
                    Err(error) => tracing::warn!(%path, %error, "a hit could not be widened"),
                }
            }
            parts.insert(path, read);
        }
        Self { budget, parts }
    }

    /// Widens one hit; nothing if what surrounds it could not be read.
    pub(super) fn widened(&self, hit: &StoredChunk) -> Option<Expanded> {
        let parts = self.parts.get(&hit.document.path)?;
        let part = parts.iter().find(|part| part.indexes.contains(&hit.index))?;
        let place = part.chunks.iter().position(|chunk| chunk.id == hit.id)?;
        let siblings: Vec<Sibling<'_>> = part
            .chunks
            .iter()
            .map(|StoredChunk { chunk, token_count, index, .. }| Sibling {
                chunk,
                token_count: *token_count,
                index: *index,
            })
            .collect();
        expand(&siblings, place, hit.siblings, self.budget)
    }
}

/// Unites ranges that overlap or follow one another.
fn merged(mut ranges: Vec<RangeInclusive<u32>>) -> Vec<RangeInclusive<u32>> {
    ranges.sort_unstable_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<u32>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if *range.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=*last.end().max(range.end());
            }
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    // SRCH-133
    #[test]
    fn what_overlaps_or_follows_is_read_at_once() {
        assert_eq!(merged(vec![8..=10, 0..=1, 2..=4, 3..=5]), [0..=5, 8..=10]);
        assert_eq!(merged(vec![4..=6, 0..=9]), [0..=9]);
        assert_eq!(merged(Vec::new()), []);
    }
}
