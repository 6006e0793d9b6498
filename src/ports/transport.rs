//! How requests reach the service, and answers get back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::document::Metadata;
use crate::domain::graph::{Graph, GraphRequest};
use crate::domain::search::{SearchAnswer, SearchRequest};
use crate::domain::topics::TopicGroup;
use crate::ports::Cause;

/// Carries requests to a [`Handler`].
///
/// # Contract
///
/// - Every request that was taken is answered, also when the transport is told
///   to stop while it is worked on.
/// - Requests of one client are worked on side by side.
/// - A handler that refuses, or panics, ends its own request and no other.
///
/// `tests/contract/transport.rs` holds every adapter to this.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Serves until `stop` completes, or, where there can be one client only,
    /// until that has gone.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the transport cannot start, or breaks.
    async fn serve(&self, handler: Arc<dyn Handler>, stop: Stop) -> Result<(), TransportError>;
}

/// Completes when a transport is to take no more requests.
pub type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The service, as a transport calls it.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Searches.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the request is not valid, or the search failed.
    async fn search(&self, request: SearchRequest) -> Result<SearchAnswer, Refused>;

    /// Hands out one document, asked for by its exact key.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is none, or it must not be read.
    async fn document(&self, path: String) -> Result<DocumentAnswer, Refused>;

    /// Walks from one document to what is near it. A walk that is dropped asks
    /// for nothing more.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the request is not valid, the start is not in the index,
    /// or the walk failed.
    async fn graph(&self, request: GraphRequest) -> Result<Graph, Refused>;

    /// Lists what the index is about.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the index cannot be read.
    async fn topics(&self) -> Result<Vec<TopicGroup>, Refused>;

    /// Brings the index up to date with the knowledge base.
    ///
    /// - `force`: index every file anew.
    /// - `progress`: told of every file that is done.
    ///
    /// # Errors
    ///
    /// [`Refused`] if a run is under way, or this one had to stop.
    async fn rebuild(
        &self,
        force: bool,
        progress: Arc<dyn Progress>,
    ) -> Result<RebuildAnswer, Refused>;
}

/// Hears how far a long request has come.
pub trait Progress: Send + Sync {
    /// `done` of `total` steps are done; neither ever falls.
    fn advance(&self, done: u64, total: u64);
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// For the client to read; names no path of the server.
    pub message: String,
}

/// One document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentAnswer {
    /// As requested.
    pub path: String,
    /// What the file says about itself now.
    pub metadata: Metadata,
    /// The whole file, or the text that was extracted from it.
    pub content: String,
    /// Whether `content` was cut.
    pub truncated: bool,
}

/// What an index run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildAnswer {
    /// Documents in the index after the run.
    pub total_documents: u64,
    /// Files written.
    pub updated: u64,
    /// Keys moved.
    pub renamed: u64,
    /// Documents removed.
    pub deleted: u64,
    /// Files that were not indexed.
    pub skipped: u64,
    /// Documents whose frontmatter could not be read.
    pub frontmatter_unparsed: u64,
    /// Chunks in the index after the run.
    pub total_chunks: u64,
    /// How long the run took, in milliseconds.
    pub duration_ms: u64,
    /// The run finished, but not as asked.
    pub error: Option<String>,
}

/// Why a transport ended.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The transport could not start, or the connection broke.
    #[error("cannot {what}")]
    Unavailable {
        /// What was being done.
        what: String,
        /// The failure as the technology reported it.
        source: Cause,
    },
}
