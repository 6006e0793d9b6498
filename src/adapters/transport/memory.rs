//! A transport without a wire: a queue of requests, and a queue for each answer.
//!
//! It lets a test harness, or a program that embeds the service, call a
//! handler through the same port as any other client.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::adapters::transport::isolated::isolated;
use crate::domain::facets::Facets;
use crate::domain::graph::Graph;
use crate::domain::graph::GraphRequest;
use crate::domain::search::SearchAnswer;
use crate::domain::search::SearchRequest;
use crate::domain::topics::TopicGroup;
use crate::ports::transport::BestPracticeAnswer;
use crate::ports::transport::BestPracticeRequest;
use crate::ports::transport::DocumentAnswer;
use crate::ports::transport::DocumentRequest;
use crate::ports::transport::Handler;
use crate::ports::transport::Library;
use crate::ports::transport::Progress;
use crate::ports::transport::QuoteAnswer;
use crate::ports::transport::QuoteRequest;
use crate::ports::transport::RebuildAnswer;
use crate::ports::transport::Refused;
use crate::ports::transport::Stop;
use crate::ports::transport::Transport;
use crate::ports::transport::TransportError;

/// How many requests wait to be taken before a client has to wait itself.
const QUEUE_LENGTH: usize = 64;

/// Makes the two ends of one connection.
///
/// The client's end may be cloned; the connection ends when the last clone is
/// dropped.
pub fn connection() -> (MemoryTransport, MemoryClient) {
    let (requests, queue) = mpsc::channel(QUEUE_LENGTH);
    (MemoryTransport { queue: Mutex::new(queue) }, MemoryClient { requests })
}

/// The server's end of a connection.
pub struct MemoryTransport {
    queue: Mutex<mpsc::Receiver<Request>>,
}

/// The client's end of a connection.
#[derive(Clone)]
pub struct MemoryClient {
    requests: mpsc::Sender<Request>,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The service took the request and said no.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Nobody serves this connection any more, and the request was not taken.
    #[error("the connection is closed")]
    Closed,
}

type Reply<T> = oneshot::Sender<Result<T, Refused>>;

enum Request {
    Search(Box<SearchRequest>, Arc<dyn Progress>, Reply<SearchAnswer>),
    Document(DocumentRequest, Reply<DocumentAnswer>),
    Graph(Box<GraphRequest>, Reply<Graph>),
    Topics(Reply<Vec<TopicGroup>>),
    Facets(Reply<Facets>),
    BestPractice(BestPracticeRequest, Reply<BestPracticeAnswer>),
    Quote(QuoteRequest, Reply<QuoteAnswer>),
    Library(Reply<Arc<dyn Library>>),
    Rebuild(bool, Arc<dyn Progress>, Reply<RebuildAnswer>),
}

impl MemoryClient {
    /// Searches.
    ///
    /// - `progress`: told of every stage of a long search.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] with the handler's own words, and
    /// [`CallError::Closed`] if nobody serves the connection.
    pub async fn search(
        &self,
        request: SearchRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<SearchAnswer, CallError> {
        self.call(|reply| Request::Search(Box::new(request), progress, reply)).await
    }

    /// Asks for one document.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn document(&self, request: DocumentRequest) -> Result<DocumentAnswer, CallError> {
        self.call(|reply| Request::Document(request, reply)).await
    }

    /// Asks for the graph around a document.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn graph(&self, request: GraphRequest) -> Result<Graph, CallError> {
        self.call(|reply| Request::Graph(Box::new(request), reply)).await
    }

    /// Asks what the index is about.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn topics(&self) -> Result<Vec<TopicGroup>, CallError> {
        self.call(Request::Topics).await
    }

    /// Asks which values filters take.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn facets(&self) -> Result<Facets, CallError> {
        self.call(Request::Facets).await
    }

    /// Asks for best practice.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn best_practice(
        &self,
        request: BestPracticeRequest,
    ) -> Result<BestPracticeAnswer, CallError> {
        self.call(|reply| Request::BestPractice(request, reply)).await
    }

    /// Has a quote checked.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn verify_quote(&self, request: QuoteRequest) -> Result<QuoteAnswer, CallError> {
        self.call(|reply| Request::Quote(request, reply)).await
    }

    /// The documents as resources.
    ///
    /// # Errors
    ///
    /// [`CallError::Closed`] if nobody serves the connection.
    pub async fn library(&self) -> Result<Arc<dyn Library>, CallError> {
        self.call(Request::Library).await
    }

    /// Has the index brought up to date.
    ///
    /// - `force`: index every file anew.
    /// - `progress`: told of every step, on the handler's thread.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn rebuild(
        &self,
        force: bool,
        progress: Arc<dyn Progress>,
    ) -> Result<RebuildAnswer, CallError> {
        self.call(|reply| Request::Rebuild(force, progress, reply)).await
    }

    async fn call<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, CallError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| CallError::Closed)?;
        Ok(answer.await.map_err(|_| CallError::Closed)??)
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    async fn serve(&self, handler: Arc<dyn Handler>, stop: Stop) -> Result<(), TransportError> {
        let mut queue = self.queue.lock().await;
        let mut in_flight = JoinSet::new();
        let mut stop = stop;
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = in_flight.join_next() => {}
                request = queue.recv() => match request {
                    Some(request) => {
                        in_flight.spawn(answer(Arc::clone(&handler), request));
                    }
                    None => break,
                },
            }
        }
        queue.close();
        // What is still in the queue was not taken; its clients hear that the
        // connection is closed.
        while queue.recv().await.is_some() {}
        while in_flight.join_next().await.is_some() {}
        Ok(())
    }
}

async fn answer(handler: Arc<dyn Handler>, request: Request) {
    match request {
        Request::Search(request, progress, reply) => {
            send(reply, handler.search(*request, progress)).await;
        }
        Request::Document(request, reply) => send(reply, handler.document(request)).await,
        Request::Graph(request, reply) => send(reply, handler.graph(*request)).await,
        Request::Topics(reply) => send(reply, handler.topics()).await,
        Request::Facets(reply) => send(reply, handler.facets()).await,
        Request::BestPractice(request, reply) => {
            send(reply, handler.best_practice(request)).await;
        }
        Request::Quote(request, reply) => send(reply, handler.verify_quote(request)).await,
        Request::Library(reply) => send(reply, async { Ok(handler.library()) }).await,
        Request::Rebuild(force, progress, reply) => {
            send(reply, handler.rebuild(force, progress)).await;
        }
    }
}

async fn send<T>(reply: Reply<T>, work: impl Future<Output = Result<T, Refused>>) {
    // A client that did not wait for its answer has dropped the other end.
    let _unwanted = reply.send(isolated(work).await);
}

impl fmt::Debug for MemoryTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryTransport").finish_non_exhaustive()
    }
}

impl fmt::Debug for MemoryClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryClient").finish_non_exhaustive()
    }
}
