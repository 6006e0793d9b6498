//! A store that tells of every pass over its vectors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::domain::chunk::{ChunkId, TextHash};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::domain::evidence::Spread;
use crate::ports::chunk_store::{
    AnnouncedRun, Candidate, Change, ChunkStore, Damage, Document, Fault, LexicalQuery, Matches,
    Repairs, Replacement, Restriction, RunUnderWay, Snapshot, Statistics, StoreError, StoredChunk,
    Summary,
};

/// A store around another one.
pub(super) struct Watched {
    store: Arc<dyn ChunkStore>,
    pub(super) seen: Arc<Seen>,
}

/// What was asked of it.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) snapshots: AtomicUsize,
    pub(super) passes: AtomicUsize,
    /// The most chunks of a document that were read.
    pub(super) read: AtomicUsize,
    /// Changes that somebody makes between two passes, once.
    pub(super) meanwhile: Mutex<Vec<Change>>,
}

impl Watched {
    pub(super) fn new(store: Arc<dyn ChunkStore>) -> Self {
        Self { store, seen: Arc::default() }
    }
}

#[async_trait]
impl ChunkStore for Watched {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        self.seen.snapshots.fetch_add(1, Ordering::Relaxed);
        let snapshot = self.store.snapshot().await?;
        let (store, seen) = (Arc::clone(&self.store), Arc::clone(&self.seen));
        Ok(Box::new(WatchedSnapshot { snapshot, store, seen }))
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        self.store.apply(changes).await
    }

    async fn replacement(
        &self,
        identity: ModelIdentity,
    ) -> Result<Box<dyn Replacement>, StoreError> {
        self.store.replacement(identity).await
    }

    async fn repair(&self) -> Result<Repairs, StoreError> {
        self.store.repair().await
    }

    async fn runs(&self) -> Result<Vec<RunUnderWay>, StoreError> {
        self.store.runs().await
    }

    async fn announce(&self, since: &str) -> Result<Box<dyn AnnouncedRun>, StoreError> {
        self.store.announce(since).await
    }
}

struct WatchedSnapshot {
    snapshot: Box<dyn Snapshot>,
    store: Arc<dyn ChunkStore>,
    seen: Arc<Seen>,
}

#[async_trait]
impl Snapshot for WatchedSnapshot {
    async fn summary(&self) -> Result<Summary, StoreError> {
        self.snapshot.summary().await
    }

    async fn statistics(&self) -> Result<Statistics, StoreError> {
        self.snapshot.statistics().await
    }

    async fn damage(&self, fault: Fault) -> Result<Damage, StoreError> {
        self.snapshot.damage(fault).await
    }

    async fn documents(&self) -> Result<Vec<Arc<Document>>, StoreError> {
        self.snapshot.documents().await
    }

    async fn documents_at(
        &self,
        paths: &[DocumentPath],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        self.snapshot.documents_at(paths).await
    }

    async fn pending(&self) -> Result<Vec<DocumentPath>, StoreError> {
        self.snapshot.pending().await
    }

    async fn pending_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError> {
        self.snapshot.pending_of(path).await
    }

    async fn embeddings_of_texts(
        &self,
        texts: &[TextHash],
    ) -> Result<Vec<Option<Embedding>>, StoreError> {
        self.snapshot.embeddings_of_texts(texts).await
    }

    async fn chunks(&self, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, StoreError> {
        self.snapshot.chunks(ids).await
    }

    async fn chunks_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError> {
        let chunks = self.snapshot.chunks_of(path).await?;
        self.seen.read.fetch_max(chunks.len(), Ordering::Relaxed);
        Ok(chunks)
    }

    async fn chunks_between(
        &self,
        path: &DocumentPath,
        indexes: std::ops::RangeInclusive<u32>,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        self.snapshot.chunks_between(path, indexes).await
    }

    async fn first_chunks_of(
        &self,
        path: &DocumentPath,
        most: usize,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let chunks = self.snapshot.first_chunks_of(path, most).await?;
        self.seen.read.fetch_max(chunks.len(), Ordering::Relaxed);
        Ok(chunks)
    }

    async fn embeddings(&self, ids: &[ChunkId]) -> Result<Vec<Option<Embedding>>, StoreError> {
        self.snapshot.embeddings(ids).await
    }

    async fn nearest(
        &self,
        query: &Embedding,
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.snapshot.nearest(query, depth, restriction).await
    }

    async fn nearest_to_each(
        &self,
        queries: &[Embedding],
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Vec<Vec<Candidate>>, StoreError> {
        self.seen.passes.fetch_add(1, Ordering::Relaxed);
        let found = self.snapshot.nearest_to_each(queries, depth, restriction).await?;
        let changes = std::mem::take(&mut *self.seen.meanwhile.lock().unwrap());
        self.store.apply(changes).await?;
        tokio::task::yield_now().await;
        Ok(found)
    }

    async fn cosines_between(&self) -> Result<Option<Spread>, StoreError> {
        self.snapshot.cosines_between().await
    }

    async fn cosine_spread(&self, query: &Embedding) -> Result<Option<Spread>, StoreError> {
        self.snapshot.cosine_spread(query).await
    }

    async fn matching(
        &self,
        query: &LexicalQuery,
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Matches, StoreError> {
        self.snapshot.matching(query, depth, restriction).await
    }
}
