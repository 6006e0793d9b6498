//! Texts that are longer than the model's window: those of an index that has
//! them cut off are embedded again, and what a run embedded in parts is told.

use std::sync::Arc;

use crate::app::error::AppError;
use crate::app::index::tally::Tally;
use crate::app::index::{IndexEvent, Indexer, Observer};
use crate::domain::chunk::ChunkId;
use crate::ports::chunk_store::{Change, Summary};

/// In which way long texts are embedded. Another way that gives other vectors
/// has another name.
pub(super) const WAY: &str = "parts/1";

/// How much text is compared with the window together.
const COMPARED_BYTES: usize = 4 * 1024 * 1024;

/// Chunks whose texts are compared with the window together.
#[derive(Default)]
struct Compared {
    chunks: Vec<ChunkId>,
    texts: Vec<String>,
    bytes: usize,
}

impl Indexer {
    /// Takes the vectors of long texts away, if the store records another way of
    /// embedding them or none, so that they count as still to come. Afterwards no
    /// vector of another way is left that a like text could take over.
    ///
    /// The model is loaded, as only it knows how long its window is.
    pub(super) async fn renew_long_texts(
        &self,
        summary: &Summary,
        observer: &Arc<dyn Observer>,
    ) -> Result<(), AppError> {
        if summary.long_texts.as_deref() == Some(WAY) {
            return Ok(());
        }
        // Nobody knows the window of a remote model.
        if summary.has_vectors && !self.model.is_remote() {
            self.drop_long_vectors().await?;
        }
        let pending = self.store.snapshot().await?.summary().await?.pending_chunks;
        let renewed = pending.saturating_sub(summary.pending_chunks);
        self.store.apply(vec![Change::EmbedLongTexts(WAY.to_owned())]).await?;
        if renewed > 0 {
            observer.event(IndexEvent::Note(&format!(
                "{renewed} chunk(s) were cut off at the model's window when they were embedded, \
                 and are embedded again"
            )));
        }
        Ok(())
    }

    async fn drop_long_vectors(&self) -> Result<(), AppError> {
        let snapshot = self.store.snapshot().await?;
        let mut compared = Compared::default();
        for document in snapshot.documents().await? {
            for stored in snapshot.chunks_of(&document.path).await? {
                let text = stored.chunk.embedding_text().into_owned();
                compared.bytes += text.len();
                compared.chunks.push(stored.id);
                compared.texts.push(text);
            }
            if compared.bytes >= COMPARED_BYTES {
                self.drop_those_of_long(std::mem::take(&mut compared)).await?;
            }
        }
        self.drop_those_of_long(compared).await
    }

    async fn drop_those_of_long(&self, compared: Compared) -> Result<(), AppError> {
        let Compared { chunks, texts, .. } = compared;
        if texts.is_empty() {
            return Ok(());
        }
        let model = self.model.get().await.map_err(AppError::EmbedDocuments)?;
        let exceed = model.exceed_window(&texts).await.map_err(AppError::EmbedDocuments)?;
        let long = chunks.into_iter().zip(exceed).filter_map(|(id, exceeds)| exceeds.then_some(id));
        let changes: Vec<Change> = long.map(Change::Unembed).collect();
        if !changes.is_empty() {
            self.store.apply(changes).await?;
        }
        Ok(())
    }

    /// Tells how many texts a run embedded in parts.
    pub(super) async fn tell_of_long_texts(&self, tally: &Tally<'_>) -> Result<(), AppError> {
        let count = tally.inputs.in_parts;
        if count == 0 {
            return Ok(());
        }
        let model = self.model.get().await.map_err(AppError::EmbedDocuments)?;
        let tokens = model.window_tokens().map(|tokens| format!(" of {tokens} tokens"));
        tally.note(&format!(
            "{count} chunk(s) are longer than the model's window{} and were embedded in parts",
            tokens.unwrap_or_default()
        ));
        Ok(())
    }
}
