//! The use case of searching on a real store, in one process: exact, the same
//! every time, undisturbed by writers, and whatever is asked.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a failure here is a failed case"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "cases make files, and the environment names what they may use"
)]
#![allow(missing_docs, reason = "a test binary has no readers of its interface")]

mod concurrent;
mod exact;
mod hostile;

#[path = "../support/hostile_queries.rs"]
mod hostile_queries;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use grooveseek::adapters::embedder::hashing::HashingEmbedder;
use grooveseek::adapters::store::sqlite::SqliteStore;
use grooveseek::app::config::SearchSettings;
use grooveseek::app::error::AppError;
use grooveseek::app::model::Model;
use grooveseek::app::search::{Patience, Searcher};
use grooveseek::domain::chunk::Chunk;
use grooveseek::domain::document::{ContentHash, DocumentPath};
use grooveseek::domain::search::{SearchAnswer, SearchRequest};
use grooveseek::ports::chunk_store::{Change, ChunkStore, Document, NewChunk};
use grooveseek::ports::embedder::Embedder;
use tempfile::TempDir;

/// An index file in a folder of its own.
struct Site {
    folder: TempDir,
}

impl Site {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(".groove.db")
    }

    /// Opens the index, as another process does.
    async fn open(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open_or_create(&self.path()).await.unwrap())
    }
}

fn embedder() -> HashingEmbedder {
    HashingEmbedder::new(64)
}

/// A search over a store with the hashing embedder.
fn searcher(store: &Arc<SqliteStore>) -> Searcher {
    let embedder = Arc::new(embedder());
    let identity = embedder.identity().clone();
    let load = move || {
        let embedder = Arc::clone(&embedder) as Arc<dyn Embedder>;
        Box::pin(async move { Ok(embedder) }) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
    };
    Searcher {
        store: Arc::clone(store) as Arc<dyn ChunkStore>,
        model: Arc::new(Model::new(identity, Box::new(load))),
        reranker: None,
        rerank_by_default: false,
        settings: SearchSettings::default(),
    }
}

async fn search(searcher: &Searcher, request: &SearchRequest) -> Result<SearchAnswer, AppError> {
    searcher.search(request, Patience::Wait).await
}

fn query(text: &str) -> SearchRequest {
    SearchRequest { query: text.to_owned(), ..SearchRequest::default() }
}

fn document(key: &str) -> Document {
    let path = DocumentPath::new(key).unwrap();
    Document {
        title: path.title(),
        topic: path.topic().map(str::to_owned),
        category: path.category().map(str::to_owned),
        depth: None,
        tags: Vec::new(),
        date: None,
        fields: BTreeMap::new(),
        hash: ContentHash::from_text(key),
        recipe: None,
        size_bytes: None,
        indexed_at: "2026-11-30T12:00:00Z".to_owned(),
        path,
    }
}

/// Chunks of texts with vectors.
async fn chunks(texts: &[String]) -> Vec<NewChunk> {
    let embeddings = embedder().embed_documents(texts).await.unwrap().embeddings;
    let chunk = |(text, embedding): (&String, _)| NewChunk {
        chunk: Chunk { content: text.clone(), ..Chunk::default() },
        quality: 1.0,
        embedding: Some(embedding),
    };
    texts.iter().zip(embeddings).map(chunk).collect()
}

async fn put(document: Document, texts: &[String]) -> Change {
    Change::Put { document, chunks: chunks(texts).await }
}

/// Runs a case on so many threads; the runtime outlives its stores.
fn run<T>(threads: usize, case: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .unwrap()
        .block_on(case)
}
