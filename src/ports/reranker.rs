//! What scores a query and a passage together.

use async_trait::async_trait;

use crate::ports::Cause;

/// A model that reads a query and a passage together and says how well they
/// fit.
///
/// # Contract
///
/// - n passages give n scores, in order; no passage gives none.
/// - A score is finite, has no fixed range, and depends on its own pair alone.
///
/// `tests/contract/reranker.rs` holds every adapter to this.
#[async_trait]
pub trait Reranker: Send + Sync {
    /// The model's name.
    fn model(&self) -> &str;

    /// Scores passages; higher is better.
    ///
    /// # Errors
    ///
    /// [`RerankError::Unavailable`] if the model cannot be run, and
    /// [`RerankError::WrongShape`] if it answers with anything but n scores, and
    /// [`RerankError::NotFinite`] if one of them is no number.
    async fn score(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError>;
}

/// Why passages could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum RerankError {
    /// The model cannot be loaded or run.
    #[error("cannot run the reranking model {model}")]
    Unavailable {
        /// Which model.
        model: String,
        /// The failure as the technology reported it.
        source: Cause,
    },
    /// The model answered with something else than one score a passage.
    #[error("the reranking model answered with {answered} scores for {asked} passages")]
    WrongShape {
        /// Passages given.
        asked: usize,
        /// Scores returned.
        answered: usize,
    },
    /// A score is no number, so nothing can be ordered by it.
    #[error("the reranking model {model} answered with the score {score}, which is no number")]
    NotFinite {
        /// Which model.
        model: String,
        /// What it answered with.
        score: f32,
    },
}
