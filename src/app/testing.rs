//! A whole service from the adapters without disk, network or weights, for the
//! tests of the use cases.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::adapters::embedder::hashing::HashingEmbedder;
use crate::adapters::parser::guarded::Guarded;
use crate::adapters::parser::markdown::MarkdownParser;
use crate::adapters::source::memory::MemorySource;
use crate::adapters::store::memory::MemoryStore;
use crate::app::config::{IndexSettings, SearchSettings};
use crate::app::index::{IN_FLIGHT_KIB, IndexEvent, Indexer, Observer, Report};
use crate::app::model::{Load, Model};
use crate::app::registry::Registry;
use crate::app::search::Searcher;
use crate::domain::document::DocumentPath;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::domain::format::EnabledFormats;
use crate::ports::chunk_store::{StoredChunk, Summary};
use crate::ports::embedder::{EmbedError, Embedded, Embedder, Engine};
use crate::ports::parser::Parser;

/// A service over documents in memory.
pub(crate) struct Bench {
    pub(crate) source: Arc<MemorySource>,
    pub(crate) indexer: Indexer,
    pub(crate) counting: Arc<Counting>,
    pub(crate) log: Arc<Log>,
}

impl Bench {
    pub(crate) fn new(documents: &[(&str, &str)]) -> Self {
        let source = Arc::new(MemorySource::default());
        for (path, text) in documents {
            source.put(*path, *text);
        }
        let counting = Arc::new(Counting::default());
        let parsers: [Arc<dyn Parser>; 1] = [Arc::new(Guarded::new(MarkdownParser::new()))];
        let indexer = Indexer {
            source: Arc::clone(&source) as Arc<_>,
            registry: Registry::new(parsers, &EnabledFormats::default()),
            store: Arc::new(MemoryStore::new()),
            model: model(&counting, Model::new),
            settings: IndexSettings::default(),
            exclude_headings: Vec::new(),
            in_flight_kib: IN_FLIGHT_KIB,
            clock: Arc::new(|| "2026-04-16T10:00:00Z".to_owned()),
            turn: Arc::default(),
        };
        Self { source, indexer, counting, log: Arc::default() }
    }

    pub(crate) async fn run(&self) -> Report {
        self.indexer.run(false, &self.observer()).await.unwrap()
    }

    pub(crate) async fn run_forced(&self) -> Report {
        self.indexer.run(true, &self.observer()).await.unwrap()
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.log) as Arc<dyn Observer>
    }

    pub(crate) fn searcher(&self) -> Searcher {
        Searcher {
            store: Arc::clone(&self.indexer.store),
            model: Arc::clone(&self.indexer.model),
            reranker: None,
            rerank_by_default: true,
            settings: SearchSettings::default(),
        }
    }

    pub(crate) async fn summary(&self) -> Summary {
        self.indexer.store.snapshot().await.unwrap().summary().await.unwrap()
    }

    pub(crate) async fn paths(&self) -> Vec<String> {
        let snapshot = self.indexer.store.snapshot().await.unwrap();
        let documents = snapshot.documents().await.unwrap();
        documents.iter().map(|document| document.path.to_string()).collect()
    }

    pub(crate) async fn chunks_of(&self, path: &str) -> Vec<StoredChunk> {
        let snapshot = self.indexer.store.snapshot().await.unwrap();
        snapshot.chunks_of(&DocumentPath::new(path).unwrap()).await.unwrap()
    }

    /// Texts embedded for documents since this was last asked.
    pub(crate) fn embedded(&self) -> usize {
        self.counting.texts.swap(0, Ordering::Relaxed)
    }

    /// Forgets the loaded model, as a new process has.
    pub(crate) fn restart(&mut self) {
        self.counting.loads.store(0, Ordering::Relaxed);
        self.indexer.model = model(&self.counting, Model::new);
    }

    /// The same, with a model that is taken for one behind an endpoint.
    pub(crate) fn restart_remote(&mut self) {
        self.indexer.model = model(&self.counting, Model::remote);
    }
}

/// A model of 64 numbers whose loads and texts are counted.
fn model(
    counting: &Arc<Counting>,
    make: fn(ModelIdentity, Load<dyn Embedder, EmbedError>) -> Model,
) -> Arc<Model> {
    let identity = HashingEmbedder::new(64).identity().clone();
    let counting = Arc::clone(counting);
    Arc::new(make(
        identity,
        Box::new(move || {
            let counting = Arc::clone(&counting);
            Box::pin(async move {
                counting.loads.fetch_add(1, Ordering::Relaxed);
                if *counting.broken.lock().unwrap() {
                    let what = "hashing".to_owned();
                    return Err(EmbedError::Unavailable { what, source: "it is broken".into() });
                }
                Ok(counting as Arc<dyn Embedder>)
            })
        }),
    ))
}

/// The window of [`Counting`], in words.
pub(crate) const WINDOW_WORDS: usize = 200;

fn exceeds(text: &str) -> bool {
    text.split_whitespace().count() > WINDOW_WORDS
}

/// The hashing embedder, counting.
pub(crate) struct Counting {
    embedder: HashingEmbedder,
    pub(crate) loads: AtomicUsize,
    texts: AtomicUsize,
    /// Loading fails while this is set.
    pub(crate) broken: Mutex<bool>,
    /// Texts that hold this word are refused.
    pub(crate) refused: Mutex<Option<String>>,
    /// What a refusal says of other batches.
    pub(crate) accepted_others: AtomicBool,
    /// What was embedded first since the texts were last counted.
    pub(crate) first: Mutex<Vec<String>>,
    failing: AtomicBool,
}

impl Counting {
    /// The next call for documents fails.
    pub(crate) fn fail_next(&self) {
        self.failing.store(true, Ordering::Relaxed);
    }
}

impl Default for Counting {
    fn default() -> Self {
        Self {
            embedder: HashingEmbedder::new(64),
            loads: AtomicUsize::default(),
            texts: AtomicUsize::default(),
            broken: Mutex::default(),
            refused: Mutex::default(),
            accepted_others: AtomicBool::default(),
            first: Mutex::default(),
            failing: AtomicBool::default(),
        }
    }
}

#[async_trait]
impl Embedder for Counting {
    fn identity(&self) -> &ModelIdentity {
        self.embedder.identity()
    }

    fn engine(&self) -> Engine {
        self.embedder.engine()
    }

    fn window_tokens(&self) -> Option<usize> {
        Some(WINDOW_WORDS)
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        Ok(texts.iter().map(|text| exceeds(text)).collect())
    }

    async fn embed_documents(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        if let Some(word) = &*self.refused.lock().unwrap()
            && texts.iter().any(|text| text.contains(word.as_str()))
        {
            let reason = "HTTP 413".to_owned();
            let accepted_others = self.accepted_others.load(Ordering::Relaxed);
            return Err(EmbedError::Refused { reason, accepted_others });
        }
        if self.failing.swap(false, Ordering::Relaxed) {
            let what = "hashing".to_owned();
            return Err(EmbedError::Unavailable { what, source: "it failed".into() });
        }
        if self.texts.fetch_add(texts.len(), Ordering::Relaxed) == 0 {
            *self.first.lock().unwrap() = texts.to_vec();
        }
        let embedded = self.embedder.embed_documents(texts).await?;
        Ok(Embedded { in_parts: texts.iter().filter(|text| exceeds(text)).count(), ..embedded })
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        self.embedder.embed_query(text).await
    }
}

type Act = Box<dyn FnOnce() + Send>;

/// Keeps what a run tells.
#[derive(Default)]
pub(crate) struct Log {
    lines: Mutex<Vec<String>>,
    at: Mutex<Option<(String, Act)>>,
}

impl Log {
    /// The lines since this was last asked.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Does something once, when this line is told.
    pub(crate) fn when(&self, line: &str, act: impl FnOnce() + Send + 'static) {
        *self.at.lock().unwrap() = Some((line.to_owned(), Box::new(act)));
    }
}

impl Observer for Log {
    fn event(&self, event: IndexEvent<'_>) {
        let line = match event {
            IndexEvent::Scanning { .. } | IndexEvent::Finished(_) => return,
            IndexEvent::Texts { done, total } => format!("text {done}/{total}"),
            IndexEvent::Recutting { documents } => format!("recutting {documents}"),
            IndexEvent::Started { .. } => "started".to_owned(),
            IndexEvent::Found { files, .. } => format!("found {files}"),
            IndexEvent::Advanced { done, total } => format!("{done}/{total}"),
            IndexEvent::Indexed { path, chunks } => format!("indexed {path} ({chunks})"),
            IndexEvent::Described { path } => format!("described {path}"),
            IndexEvent::Renamed { from, to } => format!("renamed {from} -> {to}"),
            IndexEvent::Deleted { path } => format!("deleted {path}"),
            IndexEvent::Skipped { path, reason } => format!("skipped {path}: {reason}"),
            IndexEvent::Rejected { path, reason, forced } => {
                format!("rejected {path}: {reason}; {}", IndexEvent::fate_of_rejected(forced))
            }
            IndexEvent::FrontmatterUnparsed { path, .. } => format!("unparsed {path}"),
            IndexEvent::Note(text) => format!("note: {text}"),
            IndexEvent::Warning(text) => format!("warning: {text}"),
        };
        let act = self.at.lock().unwrap().take_if(|(at, _)| *at == line);
        if let Some((_, act)) = act {
            act();
        }
        self.lines.lock().unwrap().push(line);
    }
}
