//! Our own engine for models of the BERT family: no padding, weights packed for
//! the processor at hand.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use futures::future::try_join_all;
use grooveseek_kernels::Isa;
use tokio::sync::Semaphore;

use crate::adapters::model::encoder::config::Shape;
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::layer::{Formats, Scratch};
use crate::adapters::model::encoder::tokens::Tokens;
use crate::adapters::model::encoder::transformer::{self, Transformer};
use crate::adapters::model::encoder::weights::Weights;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::Cause;
use crate::ports::embedder::{EmbedError, Embedder, Engine};

/// Tokens from which on no further text joins a batch. More do not make the
/// work cheaper, and less lets others in earlier.
const BATCH_TOKENS: usize = 256;

/// How the numbers are kept while documents are embedded. Queries are always
/// embedded in 32 bits; both lie in one space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Small integers where the processor multiplies them faster, else 32 bits.
    #[default]
    Auto,
    /// 32-bit floating point.
    F32,
    /// Small integers, each part of a layer in as few bits as its accuracy
    /// bears. The cosine with [`F32`](Self::F32) stays above 0.995.
    Int8,
}

/// An embedder that runs a BERT model from a local folder on the processor.
///
/// The folder is laid out as sentence-transformers does: `config.json`,
/// `model.safetensors` with 32-bit numbers and `tokenizer.json`, and where they
/// are there `sentence_bert_config.json`, `modules.json` and
/// `1_Pooling/config.json`.
///
/// Opening it checks everything but packs no weights. Those for documents and
/// those for queries are packed when first needed, which takes about a tenth of
/// a second for a model of 22 million parameters; an early query can pay for it
/// ahead.
///
/// Documents take as many threads as the processor has, over all calls
/// together, and come in batches of about 256 tokens. A query waits for none of
/// them.
pub struct NativeEncoder {
    identity: ModelIdentity,
    engine: Engine,
    model: Arc<Model>,
    /// A permit for each thread that may embed documents.
    threads: Arc<Semaphore>,
    thread_count: usize,
}

impl fmt::Debug for NativeEncoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NativeEncoder")
            .field("identity", &self.identity)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl NativeEncoder {
    /// Opens the model in a folder. Reads files, so it belongs on a thread that
    /// may block.
    ///
    /// - `model`: the name that an index records. It decides on the pooling
    ///   where the folder has no `1_Pooling/config.json`: the first token for
    ///   names that start with `bge-`, else the mean.
    ///
    /// # Errors
    ///
    /// [`EmbedError::Unavailable`] if a file is missing, damaged or contradicts
    /// another, or if the folder holds a model of another kind. Its source
    /// names the file and what is wrong.
    pub fn open(model: &str, folder: &Path, precision: Precision) -> Result<Self, EmbedError> {
        let isa = Isa::best();
        let small = match precision {
            Precision::Auto => isa.has_integer_products(),
            Precision::F32 => false,
            Precision::Int8 => true,
        };
        let formats = if small { Formats::small(isa) } else { Formats::F32 };
        Self::open_on(model, folder, isa, formats)
    }

    fn open_on(model: &str, folder: &Path, isa: Isa, formats: Formats) -> Result<Self, EmbedError> {
        let loaded =
            Model::read(model, folder, isa, formats).map_err(|error| EmbedError::Unavailable {
                what: format!("{model} from {}", folder.display()),
                source: error.into(),
            })?;
        let thread_count = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            identity: ModelIdentity { model: model.to_owned(), dimension: loaded.shape.hidden },
            engine: Engine { name: "native", precision: formats.name() },
            model: Arc::new(loaded),
            threads: Arc::new(Semaphore::new(thread_count)),
            thread_count,
        })
    }

    /// Embeds batch after batch of a job, until nothing of it is left.
    async fn work(&self, job: &Arc<Job>) -> Result<Vec<(usize, Embedding)>, EmbedError> {
        let mut done = Vec::new();
        loop {
            let permit = Arc::clone(&self.threads).acquire_owned().await;
            let permit = permit.map_err(|error| self.unavailable(error.into()))?;
            let (model, job) = (Arc::clone(&self.model), Arc::clone(job));
            let batch = self.on_blocking_thread(move || {
                let batch = model.embed_next(&job);
                drop(permit);
                batch
            });
            let batch = batch.await?;
            if batch.is_empty() {
                return Ok(done);
            }
            done.extend(batch);
        }
    }

    async fn on_blocking_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, EmbedFailure> + Send + 'static,
    ) -> Result<T, EmbedError> {
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(EmbedFailure::Load(error))) => Err(self.unavailable(error.into())),
            Ok(Err(EmbedFailure::Tokens(reason))) => Err(self.unavailable(reason.into())),
            Ok(Err(EmbedFailure::NoDirection)) => Err(EmbedError::WrongShape {
                reason: format!("{} gives a vector that is no direction", self.identity.model),
            }),
            Err(error) => Err(self.unavailable(error.into())),
        }
    }

    fn unavailable(&self, source: Cause) -> EmbedError {
        EmbedError::Unavailable { what: self.identity.model.clone(), source }
    }
}

#[async_trait]
impl Embedder for NativeEncoder {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn engine(&self) -> Engine {
        self.engine.clone()
    }

    async fn embed_documents(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        let job = Arc::new(Job { texts: texts.to_vec(), next: AtomicUsize::new(0) });
        let workers = self.thread_count.min(texts.len());
        let parts = try_join_all((0..workers).map(|_| self.work(&job))).await?;
        let mut all: Vec<(usize, Embedding)> = parts.into_iter().flatten().collect();
        all.sort_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, embedding)| embedding).collect())
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let (model, text) = (Arc::clone(&self.model), text.to_owned());
        self.on_blocking_thread(move || model.embed_query(&text)).await
    }
}

/// Texts that several threads embed together.
struct Job {
    texts: Vec<String>,
    /// The first text that nobody has taken yet.
    next: AtomicUsize,
}

/// Why a text could not be embedded.
enum EmbedFailure {
    Load(LoadError),
    Tokens(String),
    NoDirection,
}

/// A model's files, and what has been made of them so far.
struct Model {
    isa: Isa,
    shape: Shape,
    tokens: Tokens,
    weights: Weights,
    /// With the formats of documents.
    documents: Packed,
    /// In 32 bits, unless documents are.
    queries: Option<Packed>,
    /// Memory between uses; never more than threads at work.
    scratch: Mutex<Vec<Scratch>>,
}

/// A transformer that is packed when first needed.
struct Packed {
    formats: Formats,
    transformer: OnceLock<Transformer>,
    packing: Mutex<()>,
}

impl Packed {
    fn new(formats: Formats) -> Self {
        Self { formats, transformer: OnceLock::new(), packing: Mutex::new(()) }
    }
}

impl Model {
    fn read(model: &str, folder: &Path, isa: Isa, formats: Formats) -> Result<Self, LoadError> {
        let shape = Shape::read(folder, model)?;
        let weights = Weights::open(folder)?;
        transformer::check(&weights, &shape)?;
        Ok(Self {
            isa,
            tokens: Tokens::read(folder, &shape)?,
            shape,
            weights,
            documents: Packed::new(formats),
            queries: (formats != Formats::F32).then(|| Packed::new(Formats::F32)),
            scratch: Mutex::default(),
        })
    }

    fn embed_query(&self, text: &str) -> Result<Embedding, EmbedFailure> {
        let tokens = self.tokens.of(text).map_err(EmbedFailure::Tokens)?;
        let embeddings = self.embed(self.queries.as_ref().unwrap_or(&self.documents), &[tokens])?;
        embeddings.into_iter().next().ok_or(EmbedFailure::NoDirection)
    }

    /// Takes the next few texts of a job and embeds them.
    ///
    /// - Returns each with its place among the job's texts; nothing once none is left.
    fn embed_next(&self, job: &Job) -> Result<Vec<(usize, Embedding)>, EmbedFailure> {
        let (mut places, mut texts, mut token_count) = (Vec::new(), Vec::new(), 0);
        while token_count < BATCH_TOKENS {
            let place = job.next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = job.texts.get(place) else { break };
            let tokens = self.tokens.of(text).map_err(EmbedFailure::Tokens)?;
            token_count += tokens.len();
            places.push(place);
            texts.push(tokens);
        }
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let embeddings = self.embed(&self.documents, &texts)?;
        Ok(places.into_iter().zip(embeddings).collect())
    }

    fn embed(&self, packed: &Packed, texts: &[Vec<u32>]) -> Result<Vec<Embedding>, EmbedFailure> {
        let transformer = self.transformer(packed).map_err(EmbedFailure::Load)?;
        let taken = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = taken.unwrap_or_default();
        let vectors = transformer.embed(&self.weights, texts, &mut scratch);
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        let embeddings = vectors.into_iter().map(Embedding::normalised);
        embeddings.collect::<Result<_, _>>().map_err(|_| EmbedFailure::NoDirection)
    }

    fn transformer<'a>(&self, packed: &'a Packed) -> Result<&'a Transformer, LoadError> {
        if let Some(transformer) = packed.transformer.get() {
            return Ok(transformer);
        }
        let _one_packs = packed.packing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transformer) = packed.transformer.get() {
            return Ok(transformer);
        }
        let read = Transformer::read(&self.weights, &self.shape, self.isa, packed.formats)?;
        Ok(packed.transformer.get_or_init(|| read))
    }
}
