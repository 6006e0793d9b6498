//! What can go wrong in a use case.

use crate::domain::embedding::ModelIdentity;
pub use crate::ports::chain;
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
         rebuild it with `{remedy}`, or go on with the recorded model: {way_back}",
        recorded.model, recorded.dimension, current.model, current.dimension
    )]
    OtherModel {
        /// What the index records.
        recorded: ModelIdentity,
        /// What is configured.
        current: ModelIdentity,
        /// The command that rebuilds the index.
        remedy: String,
        /// How to name the recorded model.
        way_back: String,
    },
    /// The index belongs to another knowledge base in the same folder.
    #[error(
        "the index beside {current:?} belongs to {recorded:?}, which is still there: both would \
         share one file, and each run would remove the other's documents; move one of them into a \
         folder of its own, or give the index to {current:?} with `groove index --force`"
    )]
    OtherRoot {
        /// The knowledge base that the index records.
        recorded: String,
        /// The one that was asked for.
        current: String,
    },
    /// The schema of the frontmatter cannot be used.
    #[error("the schema {file} cannot be used: {reason}")]
    Schema {
        /// The file.
        file: String,
        /// What is wrong with it, by line and rule where there is one, and what to
        /// do.
        reason: String,
    },
    /// The query could not be embedded.
    #[error("the query could not be embedded")]
    EmbedQuery(#[source] EmbedError),
    /// Documents could not be embedded.
    #[error("documents could not be embedded")]
    EmbedDocuments(#[source] EmbedError),
    /// A remote model does not embed, so a forced run did not begin.
    #[error("a probe could not be embedded, so nothing was removed")]
    Probe(#[source] EmbedError),
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

impl AppError {
    /// Frontmatter fields cannot be asked for yet.
    ///
    /// - `again`: what to do again later.
    pub(crate) fn fields_not_recorded(again: &str) -> Self {
        Self::Invalid(format!(
            "this index has not recorded which frontmatter fields it holds, so filters on fields \
             would miss documents; let `groove index` finish, then {again} again"
        ))
    }

    /// What an endpoint said, for the operator of the command line and nobody
    /// else.
    pub fn answer_of_endpoint(&self) -> Option<&str> {
        match self {
            Self::EmbedQuery(EmbedError::Remote { answer, .. })
            | Self::EmbedDocuments(EmbedError::Remote { answer, .. })
            | Self::Probe(EmbedError::Remote { answer, .. }) => answer.as_deref(),
            _ => None,
        }
    }
}
