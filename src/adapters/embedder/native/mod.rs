//! Embeds with our own engine for models of the BERT and XLM-RoBERTa families.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use grooveseek_kernels::Isa;

use crate::adapters::model::encoder::ModelFolder;
pub use crate::adapters::model::encoder::Precision;
use crate::adapters::model::encoder::config::Shape;
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::gather::Gather;
use crate::adapters::model::encoder::layer::Formats;
use crate::adapters::model::encoder::loaded::{BATCH_TOKENS, Loaded, Packed};
use crate::adapters::model::encoder::parts::whole;
use crate::adapters::model::encoder::threads::{Failure, Queue, Threads, available_threads};
use crate::adapters::model::encoder::tokens::Sequence;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::Cause;
use crate::ports::embedder::{EmbedError, Embedded, Embedder, Engine};

/// An embedder that runs a model of the BERT or XLM-RoBERTa family from a local
/// folder on the processor.
///
/// The folder is laid out as sentence-transformers does: `config.json`,
/// `tokenizer.json`, and where they are there `sentence_bert_config.json`,
/// `modules.json` and `1_Pooling/config.json`; its weights are in safetensors
/// or in an ONNX file, in numbers of 32 or 16 bits.
///
/// Opening it checks everything but packs no weights. They are packed when first
/// needed, which takes about a tenth of a second for a model of 22 million
/// parameters; an early query can pay for it ahead.
///
/// Documents take as many threads as the processor has, over all calls
/// together, and come in batches of about 256 tokens. A query waits for none of
/// them: it begins at once, or with others as soon as one of as many queries as
/// the processor has threads is done. Both are embedded in the precision that was
/// asked for.
pub struct NativeEncoder {
    identity: ModelIdentity,
    engine: Engine,
    model: Arc<Model>,
    threads: Threads,
    queries: Arc<Gather<String, Embedding, EmbedFailure>>,
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
    /// - `model`: the name that an index records. Where the folder does not say
    ///   how it pools, the name decides, as [`ModelFolder::of`] has it.
    ///
    /// # Errors
    ///
    /// [`EmbedError::Unavailable`] if a file is missing, damaged or contradicts
    /// another, or if the folder holds a model of another kind. Its source
    /// names the file and what is wrong.
    pub fn open(model: &str, folder: &Path, precision: Precision) -> Result<Self, EmbedError> {
        Self::open_folder(model, &ModelFolder::of(model, folder), precision)
    }

    /// Opens the model in a folder of which more is known than its path.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_folder(
        model: &str,
        folder: &ModelFolder,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        let isa = Isa::best();
        Self::open_on(model, folder, isa, precision.formats(isa))
    }

    fn open_on(
        model: &str,
        folder: &ModelFolder,
        isa: Isa,
        formats: Formats,
    ) -> Result<Self, EmbedError> {
        let opened = Model::open(folder, isa, formats).map_err(|error| {
            let from = folder.onnx.as_ref().unwrap_or(&folder.root);
            EmbedError::Unavailable {
                what: format!("{model} from {}", from.display()),
                source: error.into(),
            }
        })?;
        let dimension = opened.loaded.shape.hidden;
        Ok(Self {
            identity: ModelIdentity { model: model.to_owned(), dimension },
            engine: Engine { name: "native", precision: formats.name() },
            model: Arc::new(opened),
            queries: Arc::new(Gather::new(available_threads())),
            threads: Threads::new(),
        })
    }

    fn error(&self, failure: Failure<EmbedFailure>) -> EmbedError {
        let source: Cause = match failure {
            Failure::Own(EmbedFailure::Load(error)) => error.into(),
            Failure::Own(EmbedFailure::Tokens(reason)) => reason.into(),
            Failure::Own(EmbedFailure::NoDirection) => {
                return EmbedError::WrongShape {
                    reason: format!("{} gives a vector that is no direction", self.identity.model),
                };
            }
            Failure::Thread(cause) => cause,
        };
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

    fn window_tokens(&self) -> Option<usize> {
        Some(self.model.loaded.shape.window_tokens)
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        let model = Arc::clone(&self.model);
        let drained =
            self.threads.drain(texts.to_vec(), move |queue| model.compare_next(queue)).await;
        let (exceed, _) = drained.map_err(|failure| self.error(failure))?;
        Ok(exceed)
    }

    async fn embed_documents(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        let model = Arc::clone(&self.model);
        let drained =
            self.threads.drain(texts.to_vec(), move |queue| model.embed_next(queue)).await;
        let (embedded, is_last) = drained.map_err(|failure| self.error(failure))?;
        if is_last {
            self.model.loaded.rest();
        }
        let in_parts = embedded.iter().filter(|(_, parts)| *parts > 1).count();
        let embeddings = embedded.into_iter().map(|(embedding, _)| embedding).collect();
        Ok(Embedded { embeddings, in_parts })
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let model = Arc::clone(&self.model);
        let serve = move |texts: &[String]| model.embed_queries(texts);
        let embedded = self.queries.ask(text.to_owned(), serve).await;
        embedded.map_err(|failure| self.error(failure))
    }
}

/// Why a text could not be embedded.
enum EmbedFailure {
    Load(LoadError),
    Tokens(String),
    NoDirection,
}

/// A model with what was packed of it.
struct Model {
    loaded: Loaded,
    packed: Packed,
    /// What each part of a long document begins with, if the document does.
    lead: String,
}

/// The embedding of a text, and of how many parts it is made.
type Whole = (Embedding, usize);

/// Splits sequences into those that are embedded together.
fn batches(mut sequences: &[Sequence]) -> impl Iterator<Item = &[Sequence]> {
    std::iter::from_fn(move || {
        let mut tokens = 0;
        let more = |sequence: &&Sequence| {
            let more = tokens < BATCH_TOKENS;
            tokens += sequence.tokens.len();
            more
        };
        let count = sequences.iter().take_while(more).count();
        let (batch, rest) = sequences.split_at(count);
        sequences = rest;
        (count > 0).then_some(batch)
    })
}

impl Model {
    fn open(folder: &ModelFolder, isa: Isa, formats: Formats) -> Result<Self, LoadError> {
        let shape = Shape::of_embedder(folder)?;
        Ok(Self {
            loaded: Loaded::open(folder, shape, isa)?,
            packed: Packed::new(formats),
            lead: folder.lead.clone(),
        })
    }

    /// Embeds queries in one go. Each gets the vector that it gets alone, to the
    /// last bit.
    fn embed_queries(&self, texts: &[String]) -> Vec<Result<Embedding, EmbedFailure>> {
        let sequences = texts.iter().map(|text| self.loaded.tokens.of(text));
        let sequences: Vec<Result<Sequence, String>> = sequences.collect();
        if sequences.len() > 1
            && let Ok(sequences) = sequences.iter().cloned().collect::<Result<Vec<_>, _>>()
            && let Ok(embeddings) = self.embed_batches(&sequences)
        {
            return embeddings.into_iter().map(Ok).collect();
        }
        // One that fails must not take the others with it.
        let alone = |sequence: Result<Sequence, String>| {
            let sequence = sequence.map_err(EmbedFailure::Tokens)?;
            let embeddings = self.embed(&[sequence])?;
            embeddings.into_iter().next().ok_or(EmbedFailure::NoDirection)
        };
        sequences.into_iter().map(alone).collect()
    }

    fn embed_batches(&self, sequences: &[Sequence]) -> Result<Vec<Embedding>, EmbedFailure> {
        let mut embeddings = Vec::with_capacity(sequences.len());
        for batch in batches(sequences) {
            embeddings.extend(self.embed(batch)?);
        }
        Ok(embeddings)
    }

    /// Takes the next text of a call and compares it with the window.
    fn compare_next(&self, queue: &Queue<String>) -> Result<Vec<(usize, bool)>, EmbedFailure> {
        let Some((place, text)) = queue.take() else { return Ok(Vec::new()) };
        let exceeds = self.loaded.tokens.exceed(text).map_err(EmbedFailure::Tokens)?;
        Ok(vec![(place, exceeds)])
    }

    /// Takes the next few texts of a call and embeds them.
    ///
    /// - Returns each with its place among all and the number of its parts;
    ///   nothing once none is left.
    fn embed_next(&self, queue: &Queue<String>) -> Result<Vec<(usize, Whole)>, EmbedFailure> {
        let (mut places, mut parts, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        let mut token_count = 0;
        while token_count < BATCH_TOKENS {
            let Some((place, text)) = queue.take() else { break };
            let of_text = self.loaded.tokens.of_parts(text, &self.lead);
            let of_text = of_text.map_err(EmbedFailure::Tokens)?;
            places.push((place, of_text.len()));
            for (sequence, weight) in of_text {
                token_count += sequence.tokens.len();
                parts.push(sequence);
                weights.push(weight);
            }
        }
        let embeddings = self.embed_batches(&parts)?;
        let mut parts = embeddings.into_iter().zip(weights);
        let of_text = |(place, count)| {
            let parts: Vec<(Embedding, usize)> = parts.by_ref().take(count).collect();
            let embedding = whole(parts).ok_or(EmbedFailure::NoDirection)?;
            Ok((place, (embedding, count)))
        };
        places.into_iter().map(of_text).collect()
    }

    fn embed(&self, texts: &[Sequence]) -> Result<Vec<Embedding>, EmbedFailure> {
        let vectors = self.loaded.vectors(&self.packed, texts).map_err(EmbedFailure::Load)?;
        let embeddings = vectors.into_iter().map(Embedding::normalised);
        embeddings.collect::<Result<_, _>>().map_err(|_| EmbedFailure::NoDirection)
    }
}
