//! What is known of the best hit, for the confidence of an answer.

use crate::app::error::AppError;
use crate::app::search::Scored;
use crate::domain::confidence::{Evidence, FEWEST_CHUNKS, confidence};
use crate::domain::embedding::Embedding;
use crate::ports::chunk_store::Snapshot;

/// How sure the best of the hits is: that with the highest score, which need
/// not be the first where they were spread.
///
/// - `chunks`: how many the index has.
pub(super) async fn of(
    snapshot: &dyn Snapshot,
    picked: &[Scored],
    query: Option<&Embedding>,
    reranked: bool,
    chunks: u64,
) -> Result<Option<f32>, AppError> {
    let best = picked.iter().reduce(|best, next| if next.score > best.score { next } else { best });
    let Some(best) = best else { return Ok(None) };
    if reranked {
        return Ok(confidence(Evidence { logit: Some(best.score), ..Evidence::default() }));
    }
    if chunks < FEWEST_CHUNKS {
        return Ok(None);
    }
    let mut evidence = Evidence::default();
    if let Some(query) = query
        && let Some(spread) = snapshot.cosines_between().await?
        && spread.deviation > 0.0
        && let Some(Some(vector)) = snapshot.embeddings(&[best.chunk.id]).await?.first()
    {
        evidence.likeness = Some(spread.standing(query.cosine(vector)));
    }
    Ok(confidence(evidence))
}
