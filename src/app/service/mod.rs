//! The use cases behind one value, as a transport calls them.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::app::best_practice::Templates;
use crate::app::error::{AppError, chain};
use crate::app::graph::Explorer;
use crate::app::index::{IndexEvent, Indexer, Observer, Report};
use crate::app::library::Shelf;
use crate::app::line::on_one_line;
use crate::app::locate::locate;
use crate::app::news::{NewsDesk, Telling};
use crate::app::pulse::Pulse;
use crate::app::quote::QuoteCheck;
use crate::app::read::Reader;
use crate::app::search::{Patience, Searcher};
use crate::domain::facets::{FacetEntry, Facets};
use crate::domain::graph::{Graph, GraphRequest};
use crate::domain::search::{SearchAnswer, SearchRequest};
use crate::domain::topics::{self, TopicEntry, TopicGroup};
use crate::ports::chunk_store::ChunkStore;
use crate::ports::embedder::EmbedError;
use crate::ports::transport::{
    BestPracticeAnswer, BestPracticeRequest, DocumentAnswer, DocumentRequest, Handler, Library,
    OtherRun, Progress, QuoteAnswer, QuoteRequest, RebuildAnswer, Refused, Unheard,
};

/// The service.
pub struct Service {
    searcher: Searcher,
    explorer: Explorer,
    shelf: Shelf,
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
        let shelf = Shelf {
            store: Arc::clone(&store),
            reader,
            max_decompressed_size: indexer.settings.max_decompressed_size,
            templates: Templates::default(),
            news: None,
        };
        let (rebuilding, pulse) = (Mutex::new(None), Arc::default());
        Self { searcher, explorer, shelf, indexer, store, rebuilding, pulse }
    }

    /// How its index runs are going.
    pub fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Says where best practice is written down.
    #[must_use]
    pub fn with_best_practice(mut self, templates: Templates) -> Self {
        self.shelf.templates = templates;
        self
    }

    /// Has clients hear of changes; of those that index runs make, too.
    #[must_use]
    pub fn with_news(mut self, news: Arc<NewsDesk>) -> Self {
        self.shelf.news = Some(news);
        self
    }

    /// Brings the index up to date, unless a run is under way.
    ///
    /// # Errors
    ///
    /// As [`Indexer::run`].
    pub async fn build(&self) -> Result<(), AppError> {
        let Ok(slot) = self.begin_rebuild() else { return Ok(()) };
        let report = self.run(false, Arc::new(Unheard)).await?;
        slot.end_with(&report);
        if let Some(failure) = report.failure {
            tracing::warn!(failure, "the index is not as complete as it should be");
        }
        Ok(())
    }

    /// Runs over everything, and tells of it.
    async fn run(&self, force: bool, progress: Arc<dyn Progress>) -> Result<Report, AppError> {
        let desk = self.shelf.news.clone();
        let next = self.observer(progress);
        let observer: Arc<dyn Observer> = Arc::new(Telling { desk: desk.clone(), next });
        let report = self.indexer.run(force, &observer).await?;
        if let Some(desk) = desk {
            desk.look_at_groups(&*self.store).await?;
        }
        Ok(report)
    }

    /// The runs of other processes; none if that cannot be told.
    async fn other_runs(&self) -> Vec<OtherRun> {
        let runs = self.store.runs().await.unwrap_or_default().into_iter();
        runs.filter(|run| run.process != std::process::id())
            .map(|run| OtherRun { process: run.process, since: run.since })
            .collect()
    }

    /// Says which hits can be opened, where they stand, and how to cite them. An
    /// answer without that is still an answer.
    async fn annotate(&self, answer: &mut SearchAnswer) {
        let paths = answer.hits.iter().map(|hit| hit.path.as_str());
        match self.shelf.uris(paths).await {
            Ok(uris) => {
                for hit in &mut answer.hits {
                    hit.uri = uris.get(&hit.path).cloned().flatten();
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "it could not be told which hits can be opened"
                );
            }
        }
        if let Err(error) = locate(&self.shelf.reader, &mut answer.hits).await {
            tracing::warn!(error = chain(&error), "the hits could not be located");
        }
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
    async fn search(
        &self,
        request: SearchRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<SearchAnswer, Refused> {
        let mut answer = self
            .searcher
            .search_told(&request, Patience::AnswerFromText, &*progress)
            .await
            .map_err(|error| refused("search", &error))?;
        self.annotate(&mut answer).await;
        Ok(answer)
    }

    async fn document(&self, request: DocumentRequest) -> Result<DocumentAnswer, Refused> {
        let read = self.shelf.reader.read(&request).await;
        let mut answer = read.map_err(|error| refused("get_document", &error))?;
        if let Ok(uris) = self.shelf.uris(std::iter::once(request.path.as_str())).await {
            let known = uris.get(&request.path);
            answer.indexed = Some(known.is_some());
            answer.uri = known.cloned().flatten();
        }
        Ok(answer)
    }

    async fn graph(&self, request: GraphRequest) -> Result<Graph, Refused> {
        let mut graph = self
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
        let paths = graph.nodes.iter().map(|node| node.path.as_str());
        if let Ok(uris) = self.shelf.uris(paths).await {
            for node in &mut graph.nodes {
                node.uri = uris.get(&node.path).cloned().flatten();
            }
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

    async fn facets(&self) -> Result<Facets, Refused> {
        let read = async {
            let snapshot = self.store.snapshot().await?;
            let declared = snapshot.summary().await?.declared_fields;
            Ok((snapshot.documents().await?, declared))
        };
        let (documents, declared) =
            read.await.map_err(|error| refused("list_filters", &AppError::Store(error)))?;
        let entries = documents.iter().map(|document| FacetEntry {
            category: document.category.as_deref(),
            tags: &document.tags,
            date: document.date.as_deref(),
            fields: &document.fields,
        });
        Ok(Facets::count(entries, declared.as_ref()))
    }

    async fn best_practice(
        &self,
        request: BestPracticeRequest,
    ) -> Result<BestPracticeAnswer, Refused> {
        let read = self.shelf.templates.read(&self.shelf.reader, request).await;
        read.map_err(|error| refused("get_best_practice", &error))
    }

    async fn verify_quote(&self, request: QuoteRequest) -> Result<QuoteAnswer, Refused> {
        let check =
            QuoteCheck { store: Arc::clone(&self.store), reader: self.shelf.reader.clone() };
        let checked = check.verify(&request).await;
        let mut answer = checked.map_err(|error| refused("verify_quote", &error))?;
        let paths = answer.places.iter().map(|place| place.path.as_str());
        if let Ok(uris) = self.shelf.uris(paths).await {
            for place in &mut answer.places {
                place.uri = uris.get(&place.path).cloned().flatten();
            }
        }
        Ok(answer)
    }

    fn asks_outside(&self) -> bool {
        self.indexer.model.is_remote()
    }

    fn library(&self) -> Arc<dyn Library> {
        Arc::new(self.shelf.clone())
    }

    async fn rebuild(
        &self,
        force: bool,
        progress: Arc<dyn Progress>,
    ) -> Result<RebuildAnswer, Refused> {
        let slot = self.begin_rebuild()?;
        let others = self.other_runs().await;
        let report = self.run(force, progress).await;
        let report = report.map_err(|error| refused("rebuild_index", &error))?;
        slot.end_with(&report);
        Ok(RebuildAnswer { others, ..answer(report) })
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
        names_not_openable: report.not_nameable,
        others: Vec::new(),
        error: report.failure,
    }
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
        AppError::OtherModel { .. } | AppError::OtherRoot { .. } | AppError::Schema { .. } => {
            error.to_string()
        }
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
