//! The use cases behind one value, as a transport calls them.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::app::error::{AppError, chain};
use crate::app::graph::Explorer;
use crate::app::index::{IndexEvent, Indexer, Observer, Report};
use crate::app::line::on_one_line;
use crate::app::pulse::Pulse;
use crate::app::read::Reader;
use crate::app::search::{Patience, Searcher};
use crate::domain::graph::{Graph, GraphRequest};
use crate::domain::search::{SearchAnswer, SearchRequest};
use crate::domain::topics::{self, TopicEntry, TopicGroup};
use crate::ports::chunk_store::ChunkStore;
use crate::ports::embedder::EmbedError;
use crate::ports::transport::{DocumentAnswer, Handler, Progress, RebuildAnswer, Refused};

/// The service.
pub struct Service {
    searcher: Searcher,
    explorer: Explorer,
    reader: Reader,
    indexer: Indexer,
    store: Arc<dyn ChunkStore>,
    rebuilding: Mutex<Option<Instant>>,
    pulse: Arc<Pulse>,
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Service").field("searcher", &self.searcher).finish_non_exhaustive()
    }
}

impl Service {
    /// Puts the use cases together; all of them work on one store.
    pub fn new(searcher: Searcher, reader: Reader, indexer: Indexer) -> Self {
        let store = Arc::clone(&searcher.store);
        let explorer = searcher.explorer();
        let (rebuilding, pulse) = (Mutex::new(None), Arc::default());
        Self { searcher, explorer, reader, indexer, store, rebuilding, pulse }
    }

    /// How its index runs are going.
    pub fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Brings the index up to date, unless a run is under way.
    ///
    /// # Errors
    ///
    /// As [`Indexer::run`].
    pub async fn build(&self) -> Result<(), AppError> {
        let Ok(slot) = self.begin_rebuild() else { return Ok(()) };
        let observer = self.observer(Arc::new(Unheard));
        let report = self.indexer.run(false, &observer).await?;
        slot.end_with(&report);
        if let Some(failure) = report.failure {
            tracing::warn!(failure, "the index is not as complete as it should be");
        }
        Ok(())
    }

    /// Takes the one slot for an index run.
    fn begin_rebuild(&self) -> Result<Rebuilding<'_>, Refused> {
        let mut running = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = *running {
            return Err(Refused {
                message: format!(
                    "an index run is under way for {} s; wait for it to finish, then call again \
                     if that is still needed",
                    since.elapsed().as_secs()
                ),
            });
        }
        *running = Some(Instant::now());
        self.pulse.begin((self.indexer.clock)());
        Ok(Rebuilding(self))
    }

    fn observer(&self, progress: Arc<dyn Progress>) -> Arc<dyn Observer> {
        Arc::new(Reporting { progress, pulse: Arc::clone(&self.pulse) })
    }
}

/// Holds the slot for an index run, and frees it on every way out.
struct Rebuilding<'a>(&'a Service);

impl Rebuilding<'_> {
    /// Keeps what the run did.
    fn end_with(self, report: &Report) {
        self.0.pulse.end((self.0.indexer.clock)(), Some(report));
    }
}

impl Drop for Rebuilding<'_> {
    fn drop(&mut self) {
        // Whoever did not say what the run did had none that ended well.
        self.0.pulse.end((self.0.indexer.clock)(), None);
        *self.0.rebuilding.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[async_trait]
impl Handler for Service {
    async fn search(&self, request: SearchRequest) -> Result<SearchAnswer, Refused> {
        self.searcher
            .search(&request, Patience::AnswerFromText)
            .await
            .map_err(|error| refused("search", &error))
    }

    async fn document(&self, path: String) -> Result<DocumentAnswer, Refused> {
        self.reader.read(&path).await.map_err(|error| refused("get_document", &error))
    }

    async fn graph(&self, request: GraphRequest) -> Result<Graph, Refused> {
        let graph = self
            .explorer
            .explore(&request)
            .await
            .map_err(|error| refused("get_connection_graph", &error))?;
        if graph.is_truncated() {
            let reasons: Vec<&str> =
                graph.truncation.iter().map(|cut| cut.reason.as_str()).collect();
            let reasons = reasons.join(", ");
            let (start, nodes) = (on_one_line(&graph.start_path), graph.nodes.len());
            tracing::warn!(%start, nodes, reasons, "a connection graph was cut short");
        }
        Ok(graph)
    }

    async fn topics(&self) -> Result<Vec<TopicGroup>, Refused> {
        let documents = async { self.store.snapshot().await?.documents().await };
        let documents =
            documents.await.map_err(|error| refused("list_topics", &AppError::Store(error)))?;
        Ok(topics::group(documents.iter().map(|document| TopicEntry {
            path: document.path.as_str(),
            category: document.category.as_deref(),
            topic: document.topic.as_deref(),
            title: document.title.as_deref(),
            indexed_at: &document.indexed_at,
        })))
    }

    async fn rebuild(
        &self,
        force: bool,
        progress: Arc<dyn Progress>,
    ) -> Result<RebuildAnswer, Refused> {
        let slot = self.begin_rebuild()?;
        let observer = self.observer(progress);
        let report = self
            .indexer
            .run(force, &observer)
            .await
            .map_err(|error| refused("rebuild_index", &error))?;
        slot.end_with(&report);
        Ok(answer(report))
    }
}

fn answer(report: Report) -> RebuildAnswer {
    RebuildAnswer {
        total_documents: report.documents,
        updated: report.updated,
        renamed: report.renamed,
        deleted: report.deleted,
        skipped: report.skipped,
        frontmatter_unparsed: report.frontmatter_unparsed,
        total_chunks: report.chunks,
        duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        error: report.failure,
    }
}

/// Progress that nobody has asked for.
struct Unheard;

impl Progress for Unheard {
    fn advance(&self, _: u64, _: u64) {}
}

/// Passes a run's progress on to the client, and its warnings to the log.
struct Reporting {
    progress: Arc<dyn Progress>,
    pulse: Arc<Pulse>,
}

impl Observer for Reporting {
    fn event(&self, event: IndexEvent<'_>) {
        match event {
            IndexEvent::Advanced { done, total } => {
                self.progress.advance(done as u64, total as u64);
                self.pulse.advance(done as u64, total as u64);
            }
            IndexEvent::Warning(text) => tracing::warn!("{}", on_one_line(text)),
            IndexEvent::Skipped { path, reason } => {
                tracing::warn!(path = %on_one_line(path.as_str()), reason, "skipped");
            }
            IndexEvent::Rejected { path, reason, forced } => {
                let fate = IndexEvent::fate_of_rejected(forced);
                let path = on_one_line(path.as_str());
                tracing::warn!(%path, reason, "embedding endpoint rejected the input; {fate}");
            }
            IndexEvent::FrontmatterUnparsed { path, reason } => {
                let path = on_one_line(path.as_str());
                tracing::warn!(%path, reason, "failed to parse YAML frontmatter");
            }
            IndexEvent::Note(text) => tracing::info!("{}", on_one_line(text)),
            IndexEvent::Finished(report) => {
                tracing::info!(
                    documents = report.documents,
                    chunks = report.chunks,
                    updated = report.updated,
                    renamed = report.renamed,
                    deleted = report.deleted,
                    skipped = report.skipped,
                    duration_ms = report.duration.as_millis(),
                    "the index is up to date"
                );
            }
            _ => {}
        }
    }
}

/// Logs a failure whole, and tells the client as much as it may see: no path
/// of the server, and no word of what the technology said.
fn refused(tool: &str, error: &AppError) -> Refused {
    let message = match error {
        AppError::Invalid(text) => return Refused { message: text.clone() },
        AppError::OtherModel { .. } | AppError::OtherRoot { .. } => error.to_string(),
        AppError::EmbedQuery(EmbedError::Remote { reason, .. }) => {
            format!("the query could not be embedded: the embedding endpoint {reason}")
        }
        AppError::EmbedDocuments(EmbedError::Remote { reason, .. }) => {
            format!("the run stopped: the embedding endpoint {reason}")
        }
        AppError::Probe(EmbedError::Remote { reason, .. }) => {
            format!("nothing was removed: the embedding endpoint {reason}")
        }
        AppError::Probe(EmbedError::Refused { reason, .. }) => {
            format!("nothing was removed: the embedding endpoint rejected a probe ({reason})")
        }
        AppError::Probe(_) => {
            "nothing was removed: the embedding model cannot be used; the server's log says why"
                .to_owned()
        }
        AppError::EmbedQuery(_) => {
            "the query could not be embedded: the embedding model cannot be used; the server's \
             log says why"
                .to_owned()
        }
        AppError::EmbedDocuments(_) => {
            "the run stopped: the embedding model cannot be used; the server's log says why"
                .to_owned()
        }
        AppError::Rerank(_) => {
            "the candidates could not be reranked; the server's log says why".to_owned()
        }
        AppError::Store(_) => {
            "the index could not be read or written; `rebuild_index` may repair it, and the \
             server's log says more"
                .to_owned()
        }
        AppError::Source(_) => {
            "the knowledge base could not be read; the server's log says why".to_owned()
        }
        AppError::Transport(_) => "the connection broke; connect again".to_owned(),
        AppError::Interrupted { what } => format!("{what} ended early; call again"),
    };
    tracing::error!(tool, error = chain(error), "a request failed");
    Refused { message }
}
