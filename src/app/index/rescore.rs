//! Scoring stored chunks again when the rules of quality have changed.

use std::sync::Arc;

use crate::app::error::AppError;
use crate::app::index::{IndexEvent, Indexer, Observer};
use crate::domain::quality::Profile;
use crate::ports::chunk_store::{Change, StoredChunk};

/// How many scores are committed together.
const SCORES: usize = 4096;

/// Scores closer than this are the same.
const TOLERANCE: f32 = 1e-5;

/// Definitions shorter than this were once cut by size and not by what they are.
const SHORT_DEFINITION_CHARS: usize = 30;

impl Indexer {
    /// Scores every chunk by the rules that hold now, if the store records other
    /// ones or none. Nothing is embedded.
    ///
    /// - `recorded`: the rules that the store records.
    pub(super) async fn refresh_scores(
        &self,
        recorded: Option<&str>,
        observer: &Arc<dyn Observer>,
    ) -> Result<(), AppError> {
        let rules = self.settings.quality.generation();
        if recorded == Some(rules.as_str()) {
            return Ok(());
        }
        let snapshot = self.store.snapshot().await?;
        let mut changes = Vec::new();
        let (mut rescored, mut raised_definitions) = (0_usize, 0_usize);
        for document in snapshot.documents().await? {
            for stored in snapshot.chunks_of(&document.path).await? {
                let quality = self.quality_of(&stored);
                if (quality - stored.quality).abs() > TOLERANCE {
                    rescored += 1;
                    raised_definitions +=
                        usize::from(quality > stored.quality && is_short_definition(&stored));
                    changes.push(Change::Score { chunk: stored.id, quality });
                }
            }
            if changes.len() >= SCORES {
                self.store.apply(std::mem::take(&mut changes)).await?;
            }
        }
        drop(snapshot);
        changes.push(Change::Judge(rules));
        self.store.apply(changes).await?;
        if rescored > 0 {
            observer.event(IndexEvent::Note(&format!("scored {rescored} chunk(s) anew")));
        }
        if raised_definitions > 0 {
            observer.event(IndexEvent::Note(&format!(
                "{raised_definitions} short definition(s) count more than before; \
                 `groove index --force` cuts them anew"
            )));
        }
        Ok(())
    }

    /// The quality of a stored chunk, by its own text and the extension of its
    /// document, whether a parser is switched on for it or not.
    fn quality_of(&self, stored: &StoredChunk) -> f32 {
        let chunk = &stored.chunk;
        let extension = stored.document.path.extension().unwrap_or_default();
        let profile = Profile::of_extension(extension, chunk.symbol_kind.as_deref());
        self.settings.quality.score(&chunk.content, chunk.heading.as_deref(), profile)
    }
}

fn is_short_definition(stored: &StoredChunk) -> bool {
    stored.chunk.symbol_kind.is_some()
        && stored.chunk.content.trim().chars().nth(SHORT_DEFINITION_CHARS - 1).is_none()
}
