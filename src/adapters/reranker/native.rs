//! Scores with our own engine for cross-encoders of the BERT and XLM-RoBERTa
//! families.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use grooveseek_kernels::Isa;

use crate::adapters::model::encoder::config::Shape;
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::head::Head;
use crate::adapters::model::encoder::layer::Formats;
use crate::adapters::model::encoder::loaded::{BATCH_TOKENS, Loaded, Packed};
use crate::adapters::model::encoder::threads::{Failure, Queue, Threads};
use crate::adapters::model::encoder::{ModelFolder, Precision};
use crate::ports::Cause;
use crate::ports::reranker::{RerankError, Reranker};

/// The most tokens of a query and a passage together, special ones included.
const WINDOW_TOKENS: usize = 512;

/// A reranker that runs a cross-encoder from a local folder on the processor.
///
/// The folder holds `config.json` of a sequence classification with one label,
/// `tokenizer.json`, and weights in safetensors or in an ONNX file. The score is
/// what the model gives as it is, so it may be negative. What of query and
/// passage is beyond 512 tokens is left out: of the longer one first, and of
/// both once they are equally long.
///
/// Opening it checks everything but packs no weights; the first call does.
/// Passages take as many threads as the processor has, over all calls together.
/// They are not the threads of an embedder, so neither waits for the other.
pub struct NativeReranker {
    name: String,
    model: Arc<Model>,
    threads: Threads,
}

impl fmt::Debug for NativeReranker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NativeReranker").field("name", &self.name).finish_non_exhaustive()
    }
}

impl NativeReranker {
    /// Opens the model in a folder. Reads files, so it belongs on a thread that
    /// may block.
    ///
    /// - `name`: what the model is called from now on.
    ///
    /// # Errors
    ///
    /// [`RerankError::Unavailable`] if a file is missing, damaged or contradicts
    /// another, or if the folder holds a model of another kind. Its source
    /// names the file and what is wrong.
    pub fn open(
        name: &str,
        folder: &ModelFolder,
        precision: Precision,
    ) -> Result<Self, RerankError> {
        let isa = Isa::best();
        Self::open_on(name, folder, isa, precision.formats(isa))
    }

    fn open_on(
        name: &str,
        folder: &ModelFolder,
        isa: Isa,
        formats: Formats,
    ) -> Result<Self, RerankError> {
        let model = Model::open(folder, isa, formats).map_err(|error| {
            let from = folder.onnx.as_ref().unwrap_or(&folder.root);
            RerankError::Unavailable {
                model: format!("{name} from {}", from.display()),
                source: error.into(),
            }
        })?;
        Ok(Self { name: name.to_owned(), model: Arc::new(model), threads: Threads::new() })
    }
}

#[async_trait]
impl Reranker for NativeReranker {
    fn model(&self) -> &str {
        &self.name
    }

    async fn score(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        let (model, query) = (Arc::clone(&self.model), query.to_owned());
        let drained =
            self.threads.drain(passages.to_vec(), move |queue| model.score_next(&query, queue));
        let (scores, is_last) = drained.await.map_err(|failure| {
            let source: Cause = match failure {
                Failure::Own(ScoreFailure::Load(error)) => error.into(),
                Failure::Own(ScoreFailure::Words(reason)) => reason.into(),
                Failure::Thread(cause) => cause,
            };
            RerankError::Unavailable { model: self.name.clone(), source }
        })?;
        if is_last {
            self.model.loaded.rest();
        }
        if scores.len() != passages.len() {
            let (asked, answered) = (passages.len(), scores.len());
            return Err(RerankError::WrongShape { asked, answered });
        }
        Ok(scores)
    }
}

/// Why a passage has no score.
enum ScoreFailure {
    Load(LoadError),
    Words(String),
}

/// A model with what was packed of it.
struct Model {
    loaded: Loaded,
    packed: Packed,
    head: OnceLock<Head>,
    packing: Mutex<()>,
}

impl Model {
    fn open(folder: &ModelFolder, isa: Isa, formats: Formats) -> Result<Self, LoadError> {
        let mut folder = folder.clone();
        let most = folder.window_tokens.unwrap_or(WINDOW_TOKENS).min(WINDOW_TOKENS);
        folder.window_tokens = Some(most);
        let shape = Shape::of_cross_encoder(&folder)?;
        let loaded = Loaded::open(&folder, shape, isa)?;
        Head::check(&loaded.weights, &loaded.shape)?;
        loaded.tokens.check_pairs(&folder.root)?;
        let packed = Packed::new(formats);
        Ok(Self { loaded, packed, head: OnceLock::new(), packing: Mutex::default() })
    }

    /// Takes the next few passages of a call and scores them.
    ///
    /// - Returns each with its place among all; nothing once none is left.
    fn score_next(
        &self,
        query: &str,
        queue: &Queue<String>,
    ) -> Result<Vec<(usize, f32)>, ScoreFailure> {
        let (mut places, mut pairs, mut token_count) = (Vec::new(), Vec::new(), 0);
        while token_count < BATCH_TOKENS {
            let Some((place, passage)) = queue.take() else { break };
            let pair = self.loaded.tokens.of_pair(query, passage).map_err(ScoreFailure::Words)?;
            token_count += pair.tokens.len();
            places.push(place);
            pairs.push(pair);
        }
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let firsts = self.loaded.vectors(&self.packed, &pairs).map_err(ScoreFailure::Load)?;
        let scores = self.head().map_err(ScoreFailure::Load)?.scores(&firsts);
        match scores.iter().find(|score| !score.is_finite()) {
            Some(score) => Err(ScoreFailure::Words(format!("the model gives the score {score}"))),
            None => Ok(places.into_iter().zip(scores).collect()),
        }
    }

    fn head(&self) -> Result<&Head, LoadError> {
        if let Some(head) = self.head.get() {
            return Ok(head);
        }
        let _one_packs = self.packing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = self.head.get() {
            return Ok(head);
        }
        let head = Head::read(&self.loaded.weights, &self.loaded.shape, self.loaded.isa)?;
        Ok(self.head.get_or_init(|| head))
    }
}

#[cfg(test)]
mod tests;
