//! Picks the adapters that a configuration asks for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::adapters::embedder;
use crate::adapters::embedder::local::{LocalModel, RunAs};
use crate::adapters::embedder::openai::{self, Endpoint, KeySource, OpenAiEmbedder, Secret};
use crate::adapters::model::catalogue;
use crate::adapters::model::folder::{self, FolderModel};
use crate::adapters::parser::guarded::Guarded;
use crate::adapters::parser::markdown::MarkdownParser;
use crate::adapters::reranker;
use crate::adapters::source::filesystem::FilesystemSource;
use crate::adapters::store::sqlite::SqliteStore;
use crate::adapters::transport::stdio::StdioTransport;
use crate::app::best_practice::Templates;
use crate::app::config::{Config, EndpointSettings, KeySetting, OnServe};
use crate::app::error::{AppError, chain};
use crate::app::explain::{Explainer, Explanation};
use crate::app::index::{Clock, IN_FLIGHT_KIB, Indexer, check_identity, check_root};
use crate::app::model::{Model, RerankerModel};
use crate::app::news::NewsDesk;
use crate::app::place::Place;
use crate::app::quality::{self, QualityReport};
use crate::app::read::Reader;
use crate::app::registry::Registry;
use crate::app::search::Searcher;
use crate::app::service::Service;
use crate::app::watch::Watcher;
use crate::domain::document::DocumentPath;
use crate::domain::quality::Rules;
use crate::ports::chunk_store::ChunkStore;
use crate::ports::document_source::DocumentSource;
use crate::ports::embedder::{Embedder, Engine};
use crate::ports::parser::Parser;
use crate::ports::transport::{Stop, Transport};

pub use crate::adapters::embedder::openai::Proxies;
pub use crate::adapters::json;
pub use crate::adapters::model::hub::{HubSettings, Progress, ProgressSink};
pub use crate::adapters::model::locate::ModelPlaces;
pub use crate::ports::chunk_store::{RunUnderWay, Statistics, Summary};
pub use crate::ports::embedder::{EngineChoice, PrecisionChoice};

pub mod http;
pub mod models;
pub mod upkeep;

/// What the surroundings of the process say, as far as adapters need it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Absolute.
    pub working_dir: PathBuf,
    /// Where models may be.
    pub models: ModelPlaces,
    /// How to reach the hub that models are downloaded from.
    pub hub: HubSettings,
    /// How to reach an embedding endpoint.
    pub proxies: Proxies,
}

/// The names of the local models that can be asked for.
pub fn model_names() -> Vec<&'static str> {
    catalogue::entries().iter().map(|entry| entry.name).collect()
}

/// The names that `reranker` may have in a configuration, `none` first.
pub fn reranker_names() -> Vec<&'static str> {
    let known = catalogue::rerankers().iter().map(|entry| entry.name);
    std::iter::once("none").chain(known).collect()
}

/// Describes the configured model, without loading it.
///
/// # Errors
///
/// [`AppError::Invalid`] if there is no model of this name, naming the nearest.
pub fn model(config: &Config, surroundings: &Surroundings) -> Result<Arc<Model>, AppError> {
    if let Some(settings) = &config.endpoint {
        return Ok(Arc::new(remote_model(endpoint(settings, &surroundings.proxies))));
    }
    let local = local_model(&config.model)?;
    let run_as = RunAs { engine: config.engine, precision: config.precision };
    let identity = local.identity();
    let (places, hub) = (surroundings.models.clone(), surroundings.hub.clone());
    let load = move || {
        let (local, places, hub) = (local.clone(), places.clone(), hub.clone());
        let loaded = async move { embedder::open(&local, run_as, &places, &hub).await };
        Box::pin(loaded) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
    };
    let model = Model::new(identity, Box::new(load)).asked_for_as(config.model.clone());
    let for_english =
        catalogue::find(&config.model).is_ok_and(|entry| entry.languages == "English");
    Ok(Arc::new(if for_english { model.for_latin_letters() } else { model }))
}

/// Describes the configured reranker, without loading it; nothing if it is
/// `none`.
fn reranker(
    config: &Config,
    surroundings: &Surroundings,
) -> Result<Option<Arc<RerankerModel>>, AppError> {
    if config.reranker == "none" {
        return Ok(None);
    }
    if let Some(folder) = config.reranker.strip_prefix(folder::SCHEME) {
        let folder = PathBuf::from(folder);
        let load = move || {
            let loaded = reranker::local::open_folder(folder.clone());
            Box::pin(loaded) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
        };
        return Ok(Some(Arc::new(RerankerModel::new(&config.reranker, Box::new(load)))));
    }
    let Some(entry) = catalogue::find_reranker(&config.reranker) else {
        return Err(AppError::Invalid(format!("no reranker is called {:?}", config.reranker)));
    };
    let (places, hub) = (surroundings.models.clone(), surroundings.hub.clone());
    let load = move || {
        let (places, hub) = (places.clone(), hub.clone());
        let loaded = async move { Ok(reranker::local::open(entry, &places, &hub).await?.reranker) };
        Box::pin(loaded) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
    };
    Ok(Some(Arc::new(RerankerModel::new(entry.name, Box::new(load)))))
}

/// Finds a local model by its name, or by the folder after `dir:`.
fn local_model(name: &str) -> Result<LocalModel, AppError> {
    if let Some(folder) = name.strip_prefix(folder::SCHEME) {
        let model = FolderModel::read(folder).map_err(|error| AppError::Invalid(chain(&error)))?;
        return Ok(LocalModel::Folder(Arc::new(model)));
    }
    catalogue::find(name).map(LocalModel::Known).map_err(|error| AppError::Invalid(chain(&error)))
}

/// Describes the model behind an endpoint, without asking it.
fn remote_model(endpoint: Endpoint) -> Model {
    let Endpoint { document_model, query_model, dimension, .. } = &endpoint;
    let identity = openai::identity(document_model, query_model, *dimension);
    let load = move || {
        let opened = OpenAiEmbedder::new(endpoint.clone());
        let opened = opened.map(|embedder| Arc::new(embedder) as Arc<dyn Embedder>);
        Box::pin(async { opened }) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
    };
    Model::remote(identity, Box::new(load))
}

fn endpoint(settings: &EndpointSettings, proxies: &Proxies) -> Endpoint {
    Endpoint {
        url: settings.url.clone(),
        document_model: settings.document_model.clone(),
        query_model: settings.query_model.clone(),
        dimension: settings.dimension,
        request_dimensions: settings.request_dimensions,
        key: settings.api_key.as_ref().map(|key| match key {
            KeySetting::Given(key) => KeySource::Given(Secret::new(key.reveal())),
            KeySetting::File(path) => KeySource::File(path.clone()),
            KeySetting::Command(words) => KeySource::Command(words.clone()),
        }),
        timeout: settings.timeout,
        max_input_chars: settings.max_input_chars,
        max_retries: settings.max_retries,
        proxies: proxies.clone(),
    }
}

/// A knowledge base whose files and index are open.
pub struct Groove {
    place: Place,
    config: Config,
    model: Arc<Model>,
    reranker: Option<Arc<RerankerModel>>,
    source: Arc<dyn DocumentSource>,
    registry: Registry,
    store: Arc<SqliteStore>,
    /// Shared by all that index.
    turn: Arc<Mutex<()>>,
    /// Shared by all that index while the knowledge base is served.
    news: Arc<NewsDesk>,
}

impl fmt::Debug for Groove {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Groove").field("place", &self.place).finish_non_exhaustive()
    }
}

/// What to do about the index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexFile {
    /// It must be there.
    Existing,
    /// It is made if it is not there.
    Created,
    /// It is made, also in place of one that is damaged.
    Replaced,
}

impl Groove {
    /// Opens a knowledge base and its index.
    ///
    /// - `kb_path`: the root, absolute or relative to the working directory.
    /// - Returns nothing if the index must be there and is not.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the root is no folder, the model is not known, the index
    /// file cannot be used, or (unless it is to be replaced) was made with
    /// another model.
    pub async fn open(
        kb_path: &Path,
        config: Config,
        surroundings: &Surroundings,
        file: IndexFile,
    ) -> Result<Option<Self>, AppError> {
        let place = place(kb_path, &surroundings.working_dir)?;
        let source = source(&place, &config)?;
        let model = model(&config, surroundings)?;
        let reranker = reranker(&config, surroundings)?;
        let Some(store) = open_store(&place, file).await? else { return Ok(None) };
        if file != IndexFile::Replaced {
            let summary = store.snapshot().await?.summary().await?;
            check_identity(&summary, &model)?;
            if let Err(error) = check_root(&summary, &source) {
                tracing::warn!("{error}");
            }
        }
        let registry = registry(&config);
        let source = Arc::new(source);
        let (turn, news) = (Arc::default(), Arc::default());
        Ok(Some(Self { place, config, model, reranker, source, registry, store, turn, news }))
    }

    /// Where the knowledge base and its index lie.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The model, loaded or not.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// What the index records.
    ///
    /// # Errors
    ///
    /// [`AppError::Store`] if it cannot be read.
    pub async fn summary(&self) -> Result<Summary, AppError> {
        Ok(self.store.snapshot().await?.summary().await?)
    }

    /// Whether the index is to be brought up to date when it is served.
    pub fn builds_on_serve(&self) -> bool {
        self.config.index.on_serve == OnServe::Build
    }

    /// The documents of the index that no parser is switched on for: the next
    /// run over everything would remove them.
    ///
    /// # Errors
    ///
    /// [`AppError::Store`] if the index cannot be read.
    pub async fn unread_documents(&self) -> Result<Vec<DocumentPath>, AppError> {
        let documents = self.store.snapshot().await?.documents().await?;
        let unread = |path: &DocumentPath| self.registry.parser_of(path).is_none();
        Ok(documents.iter().map(|row| row.path.clone()).filter(unread).collect())
    }

    /// Loads what the first search would otherwise wait for: the vectors, then
    /// the model. Meant to run beside everything else.
    ///
    /// # Errors
    ///
    /// [`AppError::Store`] or [`AppError::EmbedQuery`]; a later call goes on.
    pub async fn warm_up(&self) -> Result<Engine, AppError> {
        self.store.load_vectors().await?;
        let model = self.model.get().await.map_err(AppError::EmbedQuery)?;
        Ok(model.engine())
    }

    /// Loads the reranker, if one is configured that works by default.
    ///
    /// # Errors
    ///
    /// [`AppError::Rerank`]; a later call goes on.
    pub async fn warm_up_reranker(&self) -> Result<(), AppError> {
        match &self.reranker {
            Some(reranker) if self.config.rerank_by_default => {
                reranker.get().await?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Closes the index, so that all of it is in its one file. Without this it
    /// is complete as well, but part of it is in the log beside the file.
    pub async fn close(&self) {
        self.store.close().await;
    }

    /// The use case of indexing.
    pub fn indexer(&self, clock: Clock) -> Indexer {
        Indexer {
            source: Arc::clone(&self.source),
            registry: self.registry.clone(),
            store: Arc::clone(&self.store) as Arc<dyn ChunkStore>,
            model: Arc::clone(&self.model),
            settings: self.config.index.clone(),
            exclude_headings: self.config.exclude_headings.clone(),
            in_flight_kib: IN_FLIGHT_KIB,
            clock,
            turn: Arc::clone(&self.turn),
        }
    }

    /// The use case of following changes; nothing if it is switched off.
    pub fn watcher(&self, clock: Clock) -> Option<Watcher> {
        self.config.watch.enabled.then(|| Watcher {
            indexer: self.indexer(clock),
            place: self.place.root.display().to_string(),
            debounce: self.config.watch.debounce,
            news: Arc::clone(&self.news),
        })
    }

    /// The use case of searching.
    pub fn searcher(&self) -> Searcher {
        Searcher {
            store: Arc::clone(&self.store) as Arc<dyn ChunkStore>,
            model: Arc::clone(&self.model),
            reranker: self.reranker.clone(),
            rerank_by_default: self.config.rerank_by_default,
            settings: self.config.search.clone(),
        }
    }

    /// All use cases behind one value.
    pub fn service(&self, clock: Clock) -> Service {
        let reader = Reader { source: Arc::clone(&self.source), registry: self.registry.clone() };
        let templates = Templates(self.config.path_templates.clone());
        let service = Service::new(self.searcher(), reader, self.indexer(clock))
            .with_best_practice(templates);
        // Without a watcher most changes would go unnoticed.
        if self.config.watch.enabled { service.with_news(Arc::clone(&self.news)) } else { service }
    }
}

/// What an index records and what is counted of it, read without looking at
/// the knowledge base or the model; nothing if there is no index.
///
/// # Errors
///
/// [`AppError`] if there is no such place, or the file cannot be used.
pub async fn status_of(
    kb_path: &Path,
    working_dir: &Path,
    rules: Option<&Rules>,
) -> Result<(Place, Option<Status>), AppError> {
    let place = place(kb_path, working_dir)?;
    let Some(store) = open_store(&place, IndexFile::Existing).await? else {
        return Ok((place, None));
    };
    let snapshot = store.snapshot().await?;
    let quality = match rules {
        Some(rules) => Some(quality::explain(&*snapshot, rules).await?),
        None => None,
    };
    let status = Status {
        summary: snapshot.summary().await?,
        statistics: snapshot.statistics().await?,
        quality,
        runs: store.runs().await?,
    };
    drop(snapshot);
    store.close().await;
    Ok((place, Some(status)))
}

/// Tells of one path whether it is indexed, and why, or why not.
///
/// - `path`: as [`Explainer::explain`] takes it.
/// - Returns it with whether there is an index.
///
/// # Errors
///
/// [`AppError`] if the root is no folder, or the index file cannot be used.
pub async fn explain(
    kb_path: &Path,
    config: Config,
    working_dir: &Path,
    path: &str,
) -> Result<(Explanation, bool), AppError> {
    let place = place(kb_path, working_dir)?;
    let source = source(&place, &config)?;
    let store = open_store(&place, IndexFile::Existing).await?;
    let snapshot = match &store {
        Some(store) => Some(store.snapshot().await?),
        None => None,
    };
    let Config { index, search, exclude_headings, .. } = &config;
    let registry = registry(&config);
    let explainer =
        Explainer::new(Arc::new(source), registry, index.clone(), search, exclude_headings.clone());
    let explanation = explainer.explain(path, snapshot.as_deref()).await?;
    drop(snapshot);
    if let Some(store) = &store {
        store.close().await;
    }
    Ok((explanation, store.is_some()))
}

/// What an index holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// What is recorded of it.
    pub summary: Summary,
    /// What is counted of it.
    pub statistics: Statistics,
    /// What lowers the scores of its chunks, if that was asked for.
    pub quality: Option<QualityReport>,
    /// The runs that are changing it now.
    pub runs: Vec<RunUnderWay>,
}

/// Serves a service over standard input and output.
///
/// # Errors
///
/// [`AppError::Transport`] if the connection breaks.
pub async fn serve_stdio(service: Arc<Service>, stop: Stop) -> Result<(), AppError> {
    Ok(StdioTransport::new().serve(service, stop).await?)
}

fn place(kb_path: &Path, working_dir: &Path) -> Result<Place, AppError> {
    Place::of(kb_path, working_dir, Path::canonicalize)
}

fn source(place: &Place, config: &Config) -> Result<FilesystemSource, AppError> {
    let source = FilesystemSource::new(&place.root, config.formats.clone(), &config.exclude_dirs)?;
    Ok(source
        .watched_by(config.watch.mode, config.watch.poll_interval)
        .requiring_owner(config.index.require_owner))
}

/// The parsers that are switched on.
fn registry(config: &Config) -> Registry {
    let parsers: [Arc<dyn Parser>; 1] = [Arc::new(Guarded::new(MarkdownParser::new()))];
    Registry::new(parsers, &config.formats)
}

async fn open_store(place: &Place, file: IndexFile) -> Result<Option<Arc<SqliteStore>>, AppError> {
    let store = match file {
        IndexFile::Existing => SqliteStore::open(&place.index).await?,
        IndexFile::Created => Some(SqliteStore::open_or_create(&place.index).await?),
        IndexFile::Replaced => Some(SqliteStore::open_or_replace(&place.index).await?),
    };
    Ok(store.map(Arc::new))
}
