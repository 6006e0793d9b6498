//! A store that remembers what a search asks of it, and fails where it is told
//! to.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// What was asked.
#[derive(Default)]
pub(in crate::app) struct Asked {
    pub(in crate::app) snapshots: AtomicUsize,
    pub(in crate::app) nearest: Mutex<Vec<(usize, Restriction)>>,
    pub(in crate::app) matching: Mutex<Vec<(usize, Restriction, LexicalQuery)>>,
    /// How many chunks were fetched at a time.
    pub(in crate::app) fetched: Mutex<Vec<usize>>,
    pub(in crate::app) between: Mutex<Vec<(String, RangeInclusive<u32>)>>,
    /// Reading parts of documents fails while this is set.
    pub(in crate::app) fails_between: AtomicBool,
    /// Everything fails while this is set.
    pub(in crate::app) fails: AtomicBool,
}

impl Asked {
    fn check(&self) -> Result<(), StoreError> {
        if self.fails.load(Ordering::Relaxed) { Err(failure()) } else { Ok(()) }
    }
}

fn failure() -> StoreError {
    StoreError::Unavailable { what: "read".to_owned(), source: "the disk /secret broke".into() }
}

/// The store.
pub(in crate::app) struct Observed {
    pub(in crate::app) store: Arc<dyn ChunkStore>,
    pub(in crate::app) asked: Arc<Asked>,
}

struct View {
    snapshot: Box<dyn Snapshot>,
    asked: Arc<Asked>,
}

#[async_trait]
impl ChunkStore for Observed {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        self.asked.check()?;
        self.asked.snapshots.fetch_add(1, Ordering::Relaxed);
        let snapshot = self.store.snapshot().await?;
        Ok(Box::new(View { snapshot, asked: Arc::clone(&self.asked) }))
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        self.store.apply(changes).await
    }

    async fn replacement(&self, it: ModelIdentity) -> Result<Box<dyn Replacement>, StoreError> {
        self.store.replacement(it).await
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

#[async_trait]
impl Snapshot for View {
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
        self.asked.fetched.lock().unwrap().push(ids.len());
        self.snapshot.chunks(ids).await
    }

    async fn chunks_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError> {
        self.snapshot.chunks_of(path).await
    }

    async fn chunks_between(
        &self,
        path: &DocumentPath,
        indexes: RangeInclusive<u32>,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        if self.asked.fails_between.load(Ordering::Relaxed) {
            return Err(failure());
        }
        self.asked.between.lock().unwrap().push((path.to_string(), indexes.clone()));
        self.snapshot.chunks_between(path, indexes).await
    }

    async fn first_chunks_of(
        &self,
        path: &DocumentPath,
        most: usize,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        self.snapshot.first_chunks_of(path, most).await
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
        self.asked.nearest.lock().unwrap().push((depth, restriction.clone()));
        self.snapshot.nearest(query, depth, restriction).await
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
        let asked = (depth, restriction.clone(), query.clone());
        self.asked.matching.lock().unwrap().push(asked);
        self.snapshot.matching(query, depth, restriction).await
    }
}
