//! What can go wrong in a use case.

use std::error::Error;

use crate::domain::embedding::ModelIdentity;
use crate::ports::chunk_store::StoreError;
use crate::ports::document_source::SourceError;
use crate::ports::embedder::EmbedError;
use crate::ports::reranker::RerankError;
use crate::ports::transport::TransportError;

/// Why a use case has no result.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The request or the configuration is not valid; the text says what and
    /// what to do.
    #[error("{0}")]
    Invalid(String),
    /// The index was made with another model than the one that is configured.
    #[error(
        "this index was built with {} (dimension {}), but the current model is {} (dimension {}); \
         rebuild it with `{remedy}`, or go on with the recorded model: --model {}",
        recorded.model, recorded.dimension, current.model, current.dimension, recorded.model
    )]
    OtherModel {
        /// What the index records.
        recorded: ModelIdentity,
        /// What is configured.
        current: ModelIdentity,
        /// The command that rebuilds the index.
        remedy: String,
    },
    /// The query could not be embedded.
    #[error("the query could not be embedded")]
    EmbedQuery(#[source] EmbedError),
    /// Documents could not be embedded.
    #[error("documents could not be embedded")]
    EmbedDocuments(#[source] EmbedError),
    /// Candidates could not be scored again.
    #[error("the candidates could not be reranked")]
    Rerank(#[from] RerankError),
    /// The index cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The knowledge base cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The connection to the client cannot be served.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Work that was handed to another thread did not come back.
    #[error("{what} ended early")]
    Interrupted {
        /// The work.
        what: &'static str,
    },
}

/// An error with all of its causes, on one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // A transparent wrapper says the same as its cause.
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}
