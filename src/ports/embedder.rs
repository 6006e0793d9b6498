//! What turns text into vectors.

use async_trait::async_trait;

use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::Cause;

/// A model that embeds documents and queries into one space.
///
/// # Contract
///
/// - Every embedding has length 1 and the dimension of
///   [`identity`](Self::identity).
/// - n texts give n embeddings, in order; no text gives none.
/// - The same text gives the same embedding, whatever it is embedded with.
/// - Any text can be embedded, an empty one too.
/// - A document's text that is longer than the model's window is embedded in
///   parts, if the window is known: it has one embedding, in which all parts
///   count. A query is cut off at the window's end.
///
/// `tests/contract/embedder.rs` holds every adapter to this.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// What an index records of this model.
    fn identity(&self) -> &ModelIdentity;

    /// What computes the embeddings, for a person to read.
    fn engine(&self) -> Engine;

    /// The most tokens that the model reads at once, special ones among them.
    ///
    /// - Returns none if that is not known, or if there is no such limit.
    fn window_tokens(&self) -> Option<usize>;

    /// Tells which texts of documents are longer than the window, without
    /// embedding them.
    ///
    /// - `texts`: n strings.
    /// - Returns n answers, in order, all false where no window is known.
    ///
    /// # Errors
    ///
    /// As [`embed_documents`](Self::embed_documents).
    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError>;

    /// Embeds the texts of documents.
    ///
    /// - `texts`: n strings, possibly none, of any language and length.
    /// - Returns n embeddings; 4 × n × `dimension` bytes of numbers.
    ///
    /// # Errors
    ///
    /// [`EmbedError::Unavailable`] if the model cannot be reached or run,
    /// [`EmbedError::Refused`] if it does not take these texts, and
    /// [`EmbedError::WrongShape`] if it answers with anything but n embeddings.
    async fn embed_documents(&self, texts: &[String]) -> Result<Embedded, EmbedError>;

    /// Embeds what was asked, ahead of any documents that wait.
    ///
    /// # Errors
    ///
    /// As [`embed_documents`](Self::embed_documents).
    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError>;
}

/// Texts as vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embedded {
    /// One for each text, in order.
    pub embeddings: Vec<Embedding>,
    /// How many of the texts were longer than the model's window and were
    /// embedded in parts; 0 where no window is known.
    pub in_parts: usize,
}

impl From<Vec<Embedding>> for Embedded {
    /// Of texts of which none was too long.
    fn from(embeddings: Vec<Embedding>) -> Self {
        Self { embeddings, in_parts: 0 }
    }
}

/// What runs a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// The engine's name: `native`, `onnx`, `hashing`.
    pub name: &'static str,
    /// How the numbers are kept while documents are embedded: `f32`, `int16`,
    /// `int8`.
    pub precision: &'static str,
}

/// Which engine is to run a local model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The one that runs what is here, the native one first.
    #[default]
    Auto,
    /// The native one only.
    Native,
    /// ONNX Runtime only.
    Onnx,
}

/// In how many bits documents are embedded. Whatever it is, the vectors lie in
/// one space, so it is no part of a model's identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrecisionChoice {
    /// What is fastest on this machine at hardly any loss.
    #[default]
    Auto,
    /// 32-bit floating point.
    F32,
    /// Small integers.
    Int8,
}

/// Why texts could not be embedded.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The model does not take this input; another input may do.
    #[error("the model refused the input: {reason}")]
    Refused {
        /// Why, without any of the input.
        reason: String,
        /// Whether others of the same call were taken.
        accepted_others: bool,
    },
    /// A model that is reached over a network could not be had.
    #[error("{what} {reason}")]
    Remote {
        /// The endpoint, by origin and path.
        what: String,
        /// What it did, as the rest of a sentence.
        reason: String,
        /// The beginning of what it said, on one line, for the operator of the
        /// command line and nobody else.
        answer: Option<String>,
    },
    /// The model cannot be loaded, reached or run.
    #[error("cannot run the embedding model {what}")]
    Unavailable {
        /// Which model, and what was being done with it.
        what: String,
        /// The failure as the technology reported it.
        source: Cause,
    },
    /// The model answered with something else than one embedding a text.
    #[error("the embedding model answered in the wrong shape: {reason}")]
    WrongShape {
        /// What was wrong.
        reason: String,
    },
}
