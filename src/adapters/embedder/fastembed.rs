//! Models as ONNX: FastEmbed over an ONNX Runtime that is found at run time.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use fastembed::{
    AutoDevicePolicy, InitOptionsUserDefined, TextEmbedding, TokenizerFiles,
    UserDefinedEmbeddingModel,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use ort::environment::Environment;
use serde_json::Value;
use tokenizers::{PostProcessor, Tokenizer};
use tokio::sync::Semaphore;

use crate::adapters::model::catalogue::Pooling;
use crate::adapters::model::encoder::parts::{Part, Splitter, whole};
use crate::adapters::model::encoder::sentence::{self, Modules};
use crate::adapters::model::locate::OnnxFolder;
use crate::adapters::model::onnx::{
    MOST_SESSIONS, SHARED_FROM_BYTES, data_folder, json_of, read, size_bytes, tokenizer_files,
};
use crate::adapters::model::runtime::environment;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::Cause;
use crate::ports::embedder::{EmbedError, Embedded, Embedder, Engine};

/// A model as ONNX, before it is opened.
#[derive(Clone, Debug)]
pub struct OnnxModel {
    /// What the index records of it.
    pub identity: ModelIdentity,
    /// Its files.
    pub folder: OnnxFolder,
    /// How it pools, if its folder does not say.
    pub pooling: Pooling,
    /// The most tokens of a text that it reads; its folder may say less.
    pub window_tokens: usize,
    /// Whether it computes a scale for each batch, so that a text's vector would
    /// depend on its company.
    pub quantised: bool,
    /// What each part of a long document begins with, if the document does.
    pub lead: String,
}

/// Embeds with FastEmbed. A query never waits for more than one batch of
/// documents, and for none where the model is small enough to be held twice.
pub struct FastEmbedEmbedder {
    identity: ModelIdentity,
    windows: Arc<Windows>,
    queries: Arc<Sessions>,
    documents: Arc<Sessions>,
    /// One for each batch of documents that may be under way, so that those who
    /// wait for a session are queries.
    turns: Semaphore,
    parallel: usize,
    quantised: bool,
}

/// Padding costs more than small batches gain, so a batch holds texts of one
/// length in tokens, and short ones at that: about this many tokens in all.
const BATCH_TOKENS: usize = 320;

impl FastEmbedEmbedder {
    /// Opens a model; blocks while its weights are read.
    ///
    /// - `runtime`: libraries of ONNX Runtime to try, or folders that hold one.
    ///   The first that works serves the whole process from then on.
    /// - `parallel`: how many processor cores documents may use.
    ///
    /// # Errors
    ///
    /// [`EmbedError::Unavailable`] if no library works, or if the model's files
    /// cannot be read or do not make a model of this dimension.
    pub fn open(
        model: OnnxModel,
        runtime: &[PathBuf],
        parallel: NonZeroUsize,
    ) -> Result<Self, EmbedError> {
        let what = format!("{} from {}", model.identity.model, model.folder.root.display());
        let unavailable = |source: Cause| EmbedError::Unavailable { what: what.clone(), source };
        let environment = environment(runtime).map_err(|error| unavailable(error.into()))?;
        let recipe = Recipe::read(&model, environment, parallel).map_err(&unavailable)?;
        let (identity, shared, quantised) = (model.identity, recipe.shared, model.quantised);
        let first = recipe.open().map_err(&unavailable)?;
        let windows = Arc::new(Windows::of(&first.tokenizer, model.lead).map_err(&unavailable)?);
        let recipe = Arc::new(recipe);
        let queries = Arc::new(Sessions::new(Arc::clone(&recipe), what.clone(), 1, Some(first)));
        let parallel = if shared { 1 } else { parallel.get().min(MOST_SESSIONS) };
        let documents = if shared {
            Arc::clone(&queries)
        } else {
            Arc::new(Sessions::new(recipe, what, parallel, None))
        };
        let turns = Semaphore::new(parallel);
        Ok(Self { identity, windows, queries, documents, turns, parallel, quantised })
    }

    /// Does something with each text and the window, on a thread that may block.
    async fn compare<T: Send + 'static>(
        &self,
        texts: &[String],
        with: impl Fn(&Windows, &str) -> Result<T, String> + Send + 'static,
    ) -> Result<Vec<T>, EmbedError> {
        let (windows, texts) = (Arc::clone(&self.windows), texts.to_vec());
        let compare =
            move || texts.iter().map(|text| with(&windows, text)).collect::<Result<_, _>>();
        let compared = tokio::task::spawn_blocking(compare).await;
        let compared = compared.map_err(|error| self.documents.unavailable(error.into()))?;
        compared.map_err(|error| self.documents.unavailable(error.into()))
    }

    /// Embeds parts of texts, in their order.
    async fn embed_parts(&self, parts: &[Part]) -> Result<Vec<Embedding>, EmbedError> {
        let lengths: Vec<usize> = parts.iter().map(|part| part.length).collect();
        let budget = if self.quantised { 0 } else { BATCH_TOKENS };
        let done: Vec<Vec<(usize, Embedding)>> =
            stream::iter(batches_of_one_length(&lengths, budget))
                .map(|batch| {
                    let parts = batch.iter().filter_map(|&index| parts.get(index));
                    let texts: Vec<String> = parts.map(|part| part.text.clone()).collect();
                    async move {
                        let embeddings = self.embed_batch(texts).await?;
                        Ok(batch.into_iter().zip(embeddings).collect())
                    }
                })
                .buffer_unordered(self.parallel)
                .try_collect()
                .await?;
        let mut embeddings: Vec<(usize, Embedding)> = done.into_iter().flatten().collect();
        embeddings.sort_by_key(|(index, _)| *index);
        Ok(embeddings.into_iter().map(|(_, embedding)| embedding).collect())
    }

    async fn embed_batch(&self, batch: Vec<String>) -> Result<Vec<Embedding>, EmbedError> {
        let turn = self.turns.acquire().await;
        let _turn = turn.map_err(|error| self.documents.unavailable(error.into()))?;
        self.documents.run(batch, self.identity.dimension).await
    }
}

#[async_trait]
impl Embedder for FastEmbedEmbedder {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn engine(&self) -> Engine {
        Engine { name: "onnx", precision: if self.quantised { "int8" } else { "f32" } }
    }

    fn window_tokens(&self) -> Option<usize> {
        Some(self.windows.tokens)
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        self.compare(texts, |windows, text| windows.splitter().exceeds(text)).await
    }

    async fn embed_documents(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        let parts = self.compare(texts, |windows, text| windows.splitter().split(text)).await?;
        let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
        let parts: Vec<Part> = parts.into_iter().flatten().collect();
        let embeddings = self.embed_parts(&parts).await?;
        let mut weighed = embeddings.into_iter().zip(parts.iter().map(|part| part.tokens));
        let of_text = |&count: &usize| {
            let reason = "a text has no part".to_owned();
            let parts = weighed.by_ref().take(count).collect();
            whole(parts).ok_or(EmbedError::WrongShape { reason })
        };
        let embeddings = counts.iter().map(of_text).collect::<Result<_, _>>()?;
        let in_parts = counts.iter().filter(|count| **count > 1).count();
        Ok(Embedded { embeddings, in_parts })
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let embeddings = self.queries.run(vec![text.to_owned()], self.identity.dimension).await?;
        embeddings.into_iter().next().ok_or_else(|| EmbedError::WrongShape {
            reason: "no embedding for the query".to_owned(),
        })
    }
}

impl fmt::Debug for FastEmbedEmbedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FastEmbedEmbedder")
            .field("identity", &self.identity)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// A model's tokenizer and its window.
struct Windows {
    /// Neither cuts nor pads.
    tokenizer: Tokenizer,
    /// What the model reads at once.
    tokens: usize,
    /// What each part of a long document begins with, if the document does.
    lead: String,
}

impl Windows {
    /// - `tokenizer`: of a session, which cuts at the window.
    fn of(tokenizer: &Tokenizer, lead: String) -> Result<Self, Cause> {
        let cut = tokenizer.get_truncation().ok_or("FastEmbed's tokenizer knows no window")?;
        let tokens = cut.max_length;
        let mut tokenizer = tokenizer.clone();
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None)?;
        let windows = Self { tokenizer, tokens, lead };
        if tokens <= windows.special() {
            return Err(format!("its window of {tokens} tokens has no room for a text").into());
        }
        Ok(windows)
    }

    fn special(&self) -> usize {
        self.tokenizer.get_post_processor().map_or(0, |it| it.added_tokens(false))
    }

    fn splitter(&self) -> Splitter<'_> {
        let room = self.tokens.saturating_sub(self.special());
        Splitter { tokenizer: &self.tokenizer, room, lead: &self.lead }
    }
}

/// Sessions of one model; each serves one batch at a time and is opened when it
/// is first needed.
struct Sessions {
    recipe: Arc<Recipe>,
    what: String,
    idle: Mutex<Vec<TextEmbedding>>,
    permits: Arc<Semaphore>,
}

impl Sessions {
    fn new(
        recipe: Arc<Recipe>,
        what: String,
        at_most: usize,
        first: Option<TextEmbedding>,
    ) -> Self {
        let idle = Mutex::new(first.into_iter().collect());
        Self { recipe, what, idle, permits: Arc::new(Semaphore::new(at_most)) }
    }

    async fn run(
        self: &Arc<Self>,
        texts: Vec<String>,
        dimension: usize,
    ) -> Result<Vec<Embedding>, EmbedError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| self.unavailable(error.into()))?;
        let sessions = Arc::clone(self);
        let run = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            sessions.run_now(&texts, dimension)
        });
        run.await.map_err(|error| self.unavailable(error.into()))?
    }

    /// A session that panics is lost, and another opened in its place.
    fn run_now(&self, texts: &[String], dimension: usize) -> Result<Vec<Embedding>, EmbedError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut session = match idle {
            Some(session) => session,
            None => self.recipe.open().map_err(|error| self.unavailable(error))?,
        };
        let vectors = session.embed(texts, Some(texts.len().max(1)));
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        let vectors = vectors.map_err(|error| self.unavailable(error.into()))?;
        to_embeddings(vectors, texts.len(), dimension)
    }

    fn unavailable(&self, source: Cause) -> EmbedError {
        EmbedError::Unavailable { what: self.what.clone(), source }
    }
}

/// All that opening a session takes.
struct Recipe {
    environment: Environment,
    folder: OnnxFolder,
    tokenizer: TokenizerFiles,
    pooling: Pooling,
    window_tokens: usize,
    intra_threads: usize,
    shared: bool,
}

impl Recipe {
    fn read(
        model: &OnnxModel,
        environment: Environment,
        parallel: NonZeroUsize,
    ) -> Result<Self, Cause> {
        let settings = Settings::read(&model.folder.root)?;
        if let Some(width) = settings.hidden_size
            && width != model.identity.dimension
        {
            let expected = model.identity.dimension;
            return Err(format!("its embeddings have {width} numbers, not {expected}").into());
        }
        let window_tokens =
            settings.window_tokens.map_or(model.window_tokens, |own| own.min(model.window_tokens));
        let folder = model.folder.clone();
        let shared = size_bytes(&folder)? > SHARED_FROM_BYTES;
        Ok(Self {
            environment,
            tokenizer: tokenizer_files(&folder.root, window_tokens)?,
            folder,
            pooling: settings.pooling.unwrap_or(model.pooling),
            window_tokens,
            intra_threads: if shared { parallel.get() } else { 1 },
            shared,
        })
    }

    fn open(&self) -> Result<TextEmbedding, Cause> {
        let pooling = match self.pooling {
            Pooling::Cls => fastembed::Pooling::Cls,
            Pooling::Mean => fastembed::Pooling::Mean,
        };
        let bytes = read(&self.folder.model)?;
        let mut model =
            UserDefinedEmbeddingModel::new(bytes, self.tokenizer.clone()).with_pooling(pooling);
        let mut options = InitOptionsUserDefined::new()
            .with_environment(self.environment.clone())
            .with_max_length(self.window_tokens)
            .with_intra_threads(self.intra_threads)
            .with_auto_device(AutoDevicePolicy::PreferCPU)
            .with_session_config("session.intra_op.allow_spinning", "0");
        match data_folder(&self.folder) {
            Some(folder) => {
                let folder = folder.to_str().ok_or("the path of the model is not UTF-8")?;
                options = options.with_session_config(
                    "session.model_external_initializers_file_folder_path",
                    folder,
                );
            }
            None => {
                for path in &self.folder.data {
                    let name = path.file_name().and_then(|name| name.to_str());
                    let name = name.ok_or("the path of the model is not UTF-8")?;
                    model = model.with_external_initializer(name.to_owned(), read(path)?);
                }
            }
        }
        Ok(TextEmbedding::try_new_from_user_defined(model, options)?)
    }
}

/// What a model's folder says of the model.
#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    hidden_size: Option<usize>,
    window_tokens: Option<usize>,
    pooling: Option<Pooling>,
}

impl Settings {
    fn read(root: &Path) -> Result<Self, Cause> {
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let config = json_of(&root.join("config.json"))?.unwrap_or_default();
        Ok(Self {
            hidden_size: number(&config["hidden_size"]),
            window_tokens: sentence::window_tokens(root)?,
            pooling: Modules::read(root)?.pooling(root)?,
        })
    }
}

/// Groups texts of one length, the longest first, so that none is padded.
///
/// - `lengths`: of each text, in tokens.
/// - Returns every index once; the lengths of a batch of more than one text add
///   up to at most `budget`; at 0 each is on its own.
fn batches_of_one_length(lengths: &[usize], budget: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(lengths[index]), index));
    order
        .chunk_by(|&a, &b| lengths[a] == lengths[b])
        .flat_map(|alike| {
            let length = alike.first().map_or(1, |&index| lengths[index].max(1));
            alike.chunks((budget / length).max(1)).map(<[usize]>::to_vec)
        })
        .collect()
}

fn to_embeddings(
    vectors: Vec<Vec<f32>>,
    count: usize,
    dimension: usize,
) -> Result<Vec<Embedding>, EmbedError> {
    let wrong = |reason: String| EmbedError::WrongShape { reason };
    if vectors.len() != count {
        return Err(wrong(format!("{} embeddings for {count} texts", vectors.len())));
    }
    let embedding = |vector: Vec<f32>| {
        if vector.len() != dimension {
            return Err(wrong(format!("{} numbers instead of {dimension}", vector.len())));
        }
        Embedding::normalised(vector).map_err(|error| wrong(error.to_string()))
    };
    vectors.into_iter().map(embedding).collect()
}

#[cfg(test)]
mod tests;
