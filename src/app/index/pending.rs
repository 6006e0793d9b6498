//! Embedding what the store has without vectors.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::app::error::AppError;
use crate::app::index::Indexer;
use crate::app::index::plan::Work;
use crate::app::index::tally::{Effect, Tally};
use crate::app::index::write::GROUP_BYTES;
use crate::domain::chunk::{ChunkId, TextHash};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::Embedding;
use crate::ports::chunk_store::{Change, Snapshot, StoredChunk};
use crate::ports::embedder::EmbedError;

/// The right to change the store, which a long run gives out of its hands now
/// and then.
pub(super) struct Turn {
    all: Arc<Mutex<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Turn {
    /// Waits for the turn.
    pub(super) async fn take(all: &Arc<Mutex<()>>) -> Self {
        Self { all: Arc::clone(all), held: Some(Arc::clone(all).lock_owned().await) }
    }

    /// Lets those go first that wait by now.
    pub(super) async fn pass(&mut self) {
        self.held = None;
        self.held = Some(Arc::clone(&self.all).lock_owned().await);
    }
}

/// A document with chunks that have no vector yet.
struct Unfinished {
    path: DocumentPath,
    /// How many chunks the whole document has.
    chunks: usize,
    /// Its chunks that are not yet in a batch.
    waiting: VecDeque<Waiting>,
    /// How many of its chunks are in none or in the batch under way.
    left: usize,
}

/// A text that is to be embedded.
#[derive(Clone)]
struct Waiting {
    chunk: ChunkId,
    hash: TextHash,
    text: String,
}

impl Indexer {
    /// Embeds the chunks whose vectors are still to come, in batches that are
    /// each committed. Others may have their turn between two of them.
    ///
    /// - `part`: keys of documents and folders whose documents are finished.
    pub(super) async fn finish_pending(
        &self,
        part: &BTreeSet<String>,
        turn: &mut Turn,
        tally: &mut Tally<'_>,
    ) -> Result<(), AppError> {
        let mut paths: VecDeque<DocumentPath> = {
            let pending = self.store.snapshot().await?.pending().await?;
            pending.into_iter().filter(|path| path.is_below_any(part)).collect()
        };
        // Whoever works on the same documents began at another place.
        let others = self.store.runs().await.map_or(0, |runs| runs.len().saturating_sub(1));
        let places = paths.len();
        paths.rotate_left(if places > 0 { places * others / (others + 1) } else { 0 });

        let limit = GROUP_BYTES * self.group_factor();
        let mut batch: Vec<Unfinished> = Vec::new();
        let mut bytes = 0;
        while let Some(path) = paths.pop_front() {
            let mut document = match self.unfinished(path).await? {
                Some(document) if document.left > 0 => document,
                _ => continue,
            };
            // A long document goes in several batches.
            while !document.waiting.is_empty() {
                let mut texts = VecDeque::new();
                while bytes < limit
                    && let Some(text) = document.waiting.pop_front()
                {
                    bytes += text.text.len().max(1);
                    texts.push_back(text);
                }
                let left = document.left;
                document.left -= texts.len();
                let Unfinished { path, chunks, .. } = &document;
                let (path, chunks) = (path.clone(), *chunks);
                batch.push(Unfinished { path, chunks, waiting: texts, left });
                if bytes >= limit {
                    let rejected = self.finish_batch(&mut batch, tally).await?;
                    bytes = 0;
                    turn.pass().await;
                    if rejected.contains(&document.path) {
                        break;
                    }
                }
            }
        }
        self.finish_batch(&mut batch, tally).await?;
        Ok(())
    }

    /// What is left to do of a document, as it is now.
    async fn unfinished(&self, path: DocumentPath) -> Result<Option<Unfinished>, AppError> {
        let pending = self.store.snapshot().await?.pending_of(&path).await?;
        let Some(first) = pending.first() else { return Ok(None) };
        let chunks = first.siblings as usize;
        let text = |chunk: &StoredChunk| {
            let text = chunk.chunk.embedding_text().into_owned();
            Waiting { chunk: chunk.id, hash: TextHash::of(&text), text }
        };
        let waiting: VecDeque<Waiting> = pending.iter().map(text).collect();
        Ok(Some(Unfinished { path, chunks, left: waiting.len(), waiting }))
    }

    /// Embeds and commits a batch and empties it; returns the documents that the
    /// model does not take, which are no longer in the store.
    async fn finish_batch(
        &self,
        batch: &mut Vec<Unfinished>,
        tally: &mut Tally<'_>,
    ) -> Result<BTreeSet<DocumentPath>, AppError> {
        let batch = std::mem::take(batch);
        let mut rejected = BTreeMap::new();
        let texts: Vec<&Waiting> = batch.iter().flat_map(|document| &document.waiting).collect();
        if texts.is_empty() {
            return Ok(BTreeSet::new());
        }
        let snapshot = self.store.snapshot().await?;
        let mut vectors = known(&*snapshot, &texts).await?;
        drop(snapshot);
        match self.embed_missing(&texts, &mut vectors, tally).await {
            Ok(()) => {}
            Err(EmbedError::Refused { .. }) => {
                // One of them is at fault; the others must not suffer.
                for document in &batch {
                    let texts: Vec<&Waiting> = document.waiting.iter().collect();
                    match self.embed_missing(&texts, &mut vectors, tally).await {
                        Ok(()) => {}
                        Err(EmbedError::Refused { reason, .. }) => {
                            rejected.insert(document.path.clone(), reason);
                        }
                        Err(error) => return Err(AppError::EmbedDocuments(error)),
                    }
                }
            }
            Err(error) => return Err(AppError::EmbedDocuments(error)),
        }
        let mut changes = Vec::with_capacity(texts.len());
        for document in &batch {
            if rejected.contains_key(&document.path) {
                changes.push(Change::Remove(document.path.clone()));
                continue;
            }
            for text in &document.waiting {
                if let Some(embedding) = vectors.get(&text.hash) {
                    changes.push(Change::Embed { chunk: text.chunk, embedding: embedding.clone() });
                }
            }
        }
        self.store.apply(changes).await?;
        for document in batch {
            if let Some(reason) = rejected.get(&document.path) {
                tally.rejected(&document.path, reason);
                tally.settled(&document.path, Work::Index, Effect::None);
            } else if document.left == document.waiting.len() {
                let effect = Effect::Indexed { chunks: document.chunks };
                tally.settled(&document.path, Work::Index, effect);
            }
        }
        Ok(rejected.into_keys().collect())
    }

    /// Embeds those texts that have no vector yet, each once.
    async fn embed_missing(
        &self,
        texts: &[&Waiting],
        vectors: &mut HashMap<TextHash, Embedding>,
        tally: &mut Tally<'_>,
    ) -> Result<(), EmbedError> {
        let mut asked = BTreeSet::new();
        let missing: Vec<&Waiting> = texts
            .iter()
            .filter(|text| !vectors.contains_key(&text.hash) && asked.insert(text.hash))
            .copied()
            .collect();
        let texts: Vec<String> = missing.iter().map(|text| text.text.clone()).collect();
        let embedded = self.embed_texts(&texts, tally).await?;
        vectors.extend(missing.iter().map(|text| text.hash).zip(embedded));
        Ok(())
    }
}

/// The vectors that the store has for these texts already.
async fn known(
    snapshot: &dyn Snapshot,
    texts: &[&Waiting],
) -> Result<HashMap<TextHash, Embedding>, AppError> {
    let hashes: Vec<TextHash> = texts.iter().map(|text| text.hash).collect();
    let vectors = snapshot.embeddings_of_texts(&hashes).await?;
    Ok(hashes.into_iter().zip(vectors).filter_map(|(text, it)| Some((text, it?))).collect())
}
