//! How requests reach the service, and answers get back.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use async_trait::async_trait;

use crate::domain::chunk::LineRange;
use crate::domain::document::{DocumentPath, Metadata};
use crate::domain::facets::Facets;
use crate::domain::graph::{Graph, GraphRequest};
use crate::domain::resource::ResourceGroup;
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
    /// Searches. A search that is dropped asks for nothing more.
    ///
    /// - `progress`: told of every stage of a search that takes long.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the request is not valid, or the search failed.
    async fn search(
        &self,
        request: SearchRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<SearchAnswer, Refused>;

    /// Hands out one document, asked for by its exact key.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is none, or it must not be read.
    async fn document(&self, request: DocumentRequest) -> Result<DocumentAnswer, Refused>;

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

    /// Counts the values that filters take.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the index cannot be read.
    async fn facets(&self) -> Result<Facets, Refused>;

    /// Hands out what the knowledge base has written down as best practice.
    ///
    /// # Errors
    ///
    /// [`Refused`] if nothing is configured, or nothing fits the request.
    async fn best_practice(
        &self,
        request: BestPracticeRequest,
    ) -> Result<BestPracticeAnswer, Refused>;

    /// Looks for a quote in a document, and elsewhere if it is not there.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the request is not valid, the document must not be read,
    /// or the index cannot be read.
    async fn verify_quote(&self, request: QuoteRequest) -> Result<QuoteAnswer, Refused>;

    /// Whether indexing sends texts to another service.
    fn asks_outside(&self) -> bool;

    /// The documents as resources.
    fn library(&self) -> Arc<dyn Library>;

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

/// The documents of the index as resources that a client can list and open.
#[async_trait]
pub trait Library: Send + Sync {
    /// The groups of the documents that are offered, in ascending order of
    /// prefix.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the index cannot be read.
    async fn groups(&self) -> Result<Vec<ResourceGroup>, Refused>;

    /// Opens a document that is offered.
    ///
    /// # Errors
    ///
    /// [`Unopened`] tells whether it is not offered, or could not be read.
    async fn open(&self, path: &DocumentPath) -> Result<DocumentAnswer, Unopened>;

    /// Values that begin with a text, without regard to case.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the index cannot be read.
    async fn complete(&self, what: Completable, start: &str) -> Result<Vec<String>, Refused>;

    /// Has a listener hear of changes for as long as it exists.
    ///
    /// - Returns whether there will ever be anything to hear.
    fn listen(&self, listener: Weak<dyn Listener>) -> bool;
}

/// What can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completable {
    /// The name of a topic.
    Topic,
    /// The key of a document that is offered.
    Path,
    /// What best practice is written down about.
    Target,
}

/// Why a resource was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// It is not offered, or must not be read.
    #[error("{0}")]
    NotFound(Refused),
    /// The service failed.
    #[error("{0}")]
    Failed(Refused),
}

/// Hears what changes. Called from any thread; must not wait for anything.
pub trait Listener: Send + Sync {
    /// Hears one thing.
    fn hear(&self, news: &News);
}

/// Something that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A document of the index was added, changed or removed.
    Document(DocumentPath),
    /// The set of groups is another.
    Groups,
    /// Indexing met something that somebody should look at.
    Warning(String),
}

/// Hears how far a long request has come.
pub trait Progress: Send + Sync {
    /// `done` of `total` steps are done; neither ever falls.
    fn advance(&self, done: u64, total: u64);
}

/// Progress that nobody has asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unheard;

impl Progress for Unheard {
    fn advance(&self, _done: u64, _total: u64) {}
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// For the client to read; names no path of the server.
    pub message: String,
}

/// Which document, and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentRequest {
    /// Its exact key.
    pub path: String,
    /// The first byte of its text to return.
    pub offset: Option<u64>,
    /// The most bytes of its text to return.
    pub max_bytes: Option<u64>,
}

impl DocumentRequest {
    /// Asks for all of a document.
    pub fn whole(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }
}

/// Best practice about what, and which part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BestPracticeRequest {
    /// What the templates call `{target}`.
    pub target: String,
    /// A part of the heading of a section.
    pub category: Option<String>,
}

/// Best practice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BestPracticeAnswer {
    /// As requested.
    pub target: String,
    /// As requested.
    pub category: Option<String>,
    /// Markdown.
    pub content: String,
}

/// A text, and where it is said to stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuoteRequest {
    /// The quote.
    pub text: String,
    /// The exact key of the document.
    pub path: String,
}

/// Where a quote stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuoteAnswer {
    /// The places in the document, or in others if it is not there.
    pub places: Vec<QuotePlace>,
    /// Whether they are in the document.
    pub is_exact: bool,
}

/// A place of a quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotePlace {
    /// The document.
    pub path: String,
    /// The lines of the document's text.
    pub lines: LineRange,
    /// Where it begins and ends in that text, in bytes.
    pub start: usize,
    /// See `start`.
    pub end: usize,
    /// How to name the place to a reader.
    pub cite: String,
    /// The document as a resource, if it is offered.
    pub uri: Option<String>,
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
    /// Where `content` begins in the text, in bytes, if a part was asked for.
    pub offset: Option<u64>,
    /// Where the text goes on, in bytes, if it does.
    pub next_offset: Option<u64>,
    /// The document as a resource, if it is offered.
    pub uri: Option<String>,
    /// Whether it is in the index, if that could be told.
    pub indexed: Option<bool>,
    /// Bytes of its file.
    pub size_bytes: u64,
    /// When its file was changed last, as RFC 3339 has it, if that is known.
    pub modified: Option<String>,
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
    /// Files left out because their names could not be opened again.
    pub names_not_openable: u64,
    /// Other processes that were indexing the same knowledge base.
    pub others: Vec<OtherRun>,
    /// The run finished, but not as asked.
    pub error: Option<String>,
}

/// An index run of another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// The number of the process.
    pub process: u32,
    /// Since when, as RFC 3339 has it.
    pub since: String,
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
