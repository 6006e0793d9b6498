//! Searching: embed, retrieve twice, fuse, rerank, diversify, shape.
//!
//! Everything of one search is answered from one snapshot, so no writer delays
//! it and nothing in it contradicts itself.

mod confidence;
mod request;
mod shape;
mod widen;

#[cfg(test)]
pub(in crate::app) mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::app::config::SearchSettings;
use crate::app::error::AppError;
use crate::app::graph::Explorer;
use crate::app::index::check_identity;
use crate::app::model::{Model, RerankerModel};
use crate::app::search::request::{Checked, Judgement};
use crate::domain::chunk::ChunkId;
use crate::domain::confidence::low_confidence;
use crate::domain::diversity::{Balance, Choice, maximal_marginal_relevance};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::Embedding;
use crate::domain::evidence::{Testimony, Verdict, weigh};
use crate::domain::fusion::{Fused, RankConstant, fill_up, reciprocal_rank_fusion};
use crate::domain::search::{ScoreKind, SearchAnswer, SearchRequest};
use crate::ports::chunk_store::{
    Candidate, ChunkStore, LexicalQuery, Matches, Restriction, Snapshot, StoredChunk, Summary,
};
use crate::ports::reranker::{RerankError, Reranker};
use crate::ports::transport::{Progress, Unheard};

/// The use case of searching.
#[derive(Clone)]
pub struct Searcher {
    /// What is searched.
    pub store: Arc<dyn ChunkStore>,
    /// What embeds the query.
    pub model: Arc<Model>,
    /// What scores candidates again, if anything does.
    pub reranker: Option<Arc<RerankerModel>>,
    /// Whether the reranker works when a caller does not say.
    pub rerank_by_default: bool,
    /// Fusion, thresholds and the like.
    pub settings: SearchSettings,
}

/// What to do while the embedding model is still being loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Wait for it.
    Wait,
    /// Answer from the text alone, as far as the text can answer.
    AnswerFromText,
}

/// A candidate on its way to becoming a hit.
#[derive(Clone, Debug)]
struct Scored {
    chunk: StoredChunk,
    score: f32,
    matched_by: Vec<&'static str>,
}

/// Checks a request without asking the model or the index anything.
///
/// # Errors
///
/// [`AppError::Invalid`] if the request breaks a limit.
pub fn check(request: &SearchRequest, settings: &SearchSettings) -> Result<(), AppError> {
    Checked::new(request, settings).map(drop)
}

/// Of a search with a reranker: retrieving, scoring, shaping the answer.
const STAGES: u64 = 3;

const VECTOR: &str = "vector";
const FULL_TEXT: &str = "fulltext";
const RERANKER: &str = "reranker";

/// The places of the legs among the rankings that are fused.
const DENSE: usize = 0;
const LEXICAL: usize = 1;

impl fmt::Debug for Searcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Searcher").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Searcher {
    /// What explores the same index under the same settings.
    pub fn explorer(&self) -> Explorer {
        Explorer { store: Arc::clone(&self.store), min_quality: self.settings.min_quality }
    }

    /// Searches once.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] if the request breaks a limit or the index cannot
    /// answer it yet, and the other kinds if the model or the index fail.
    pub async fn search(
        &self,
        request: &SearchRequest,
        patience: Patience,
    ) -> Result<SearchAnswer, AppError> {
        self.search_told(request, patience, &Unheard).await
    }

    /// Searches once, and tells how far it has come if a reranker works, which
    /// takes long: the candidates are there, they are scored, the answer is made.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn search_told(
        &self,
        request: &SearchRequest,
        patience: Patience,
        progress: &dyn Progress,
    ) -> Result<SearchAnswer, AppError> {
        let checked = Checked::new(request, &self.settings)?;
        checked.log();
        let snapshot = self.store.snapshot().await?;
        let summary = snapshot.summary().await?;
        if checked.filters_fields() && summary.declared_fields.is_none() {
            return Err(AppError::fields_not_recorded("search"));
        }
        if checked.limit == 0 {
            return Ok(checked.answer(Vec::new(), Vec::new(), Judgement::default()));
        }
        let other = self.other_model(&checked, &summary)?;
        let (vector, mut degraded) = match other {
            Some(_) => (None, vec![VECTOR]),
            // There is nothing to compare with, so no model is waited for.
            None if !summary.has_vectors && summary.pending_chunks > 0 => (None, vec![VECTOR]),
            None if !summary.has_vectors => (None, Vec::new()),
            None => self.embed(&checked, patience).await?,
        };
        let reranker = self.reranker_for(&checked, patience, &mut degraded).await?;
        let fused =
            self.retrieve(&*snapshot, &checked, vector.as_ref(), reranker.is_some()).await?;
        let is_long = reranker.is_some();
        let tell = |stage: u64| {
            if is_long {
                progress.advance(stage, STAGES);
            }
        };
        tell(1);
        let mut remarks: Vec<String> = other.into_iter().collect();
        let (ranked, score_kind, too_slow) = match reranker {
            Some(reranker) => match self.rerank(reranker, &checked, &fused).await? {
                Some(scores) => (with_scores(fused, scores), ScoreKind::Reranked, false),
                None => (fused, ScoreKind::Fused, true),
            },
            None => (fused, ScoreKind::Fused, false),
        };
        if too_slow {
            degraded.push(RERANKER);
        }
        tell(2);
        let picked = pick(&*snapshot, &checked, ranked, &mut remarks).await?;
        let scores: Vec<f32> = picked.iter().map(|scored| scored.score).collect();
        let judgement = Judgement {
            low_confidence: low_confidence(&scores, checked.confidence_ratio),
            confidence: confidence::of(
                &*snapshot,
                &picked,
                vector.as_ref(),
                score_kind == ScoreKind::Reranked,
                summary.chunks,
            )
            .await?,
        };
        let hits = shape::hits(&*snapshot, &checked, picked, self.settings.parent).await;
        let mut answer = checked.answer(hits, degraded, judgement);
        answer.score_kind = score_kind;
        if too_slow {
            answer.warnings.push(
                "the reranker took longer than [search].rerank_timeout_ms allows, so the hits \
                 have their fused order"
                    .to_owned(),
            );
        }
        answer.warnings.extend(remarks);
        answer.pending_chunks = summary.pending_chunks;
        if answer.hits.is_empty() && summary.documents == 0 {
            // Nothing found must not be taken for nothing known.
            answer.warnings.push(
                "the index holds no documents yet; run `groove index`, or call rebuild_index"
                    .to_owned(),
            );
        }
        tell(STAGES);
        Ok(answer)
    }

    /// Compares the index with the model: another process may have built it anew
    /// while this one serves.
    ///
    /// - Returns what an answer from the text alone has to say; nothing if the
    ///   model is the index's.
    fn other_model(
        &self,
        checked: &Checked,
        summary: &Summary,
    ) -> Result<Option<String>, AppError> {
        match (check_identity(summary, &self.model), &summary.identity) {
            (Err(_), Some(recorded)) if checked.query.has_words() => Ok(Some(format!(
                "the index was built anew with {} (dimension {}), and this process uses {}: only \
                 words are compared until it is started again with that model",
                recorded.model,
                recorded.dimension,
                self.model.identity().model
            ))),
            (Err(error), _) => Err(error),
            (Ok(()), _) => Ok(None),
        }
    }

    /// Embeds the query, unless the text can answer without it and the model is
    /// not there yet or takes too long.
    async fn embed(
        &self,
        checked: &Checked,
        patience: Patience,
    ) -> Result<(Option<Embedding>, Vec<&'static str>), AppError> {
        let text_can_answer = checked.query.has_words();
        let model = match self.model.if_loaded() {
            Some(model) => Some(model),
            None if patience == Patience::AnswerFromText && text_can_answer => {
                return Ok((None, vec![VECTOR]));
            }
            None => None,
        };
        let embedding = async {
            let model = match model {
                Some(model) => model,
                None => self.model.get().await?,
            };
            model.embed_query(checked.query.positive_text()).await
        };
        let embedding = match self.settings.max_embed_wait.filter(|_| text_can_answer) {
            None => embedding.await,
            Some(longest) => match tokio::time::timeout(longest, embedding).await {
                Ok(embedding) => embedding,
                Err(_) => return Ok((None, vec![VECTOR])),
            },
        };
        Ok((Some(embedding.map_err(AppError::EmbedQuery)?), Vec::new()))
    }

    /// The reranker, if it is wanted. One that works by default and is still
    /// being loaded is not waited for by those who do not want to wait; one that
    /// a caller asks for is.
    async fn reranker_for(
        &self,
        checked: &Checked,
        patience: Patience,
        degraded: &mut Vec<&'static str>,
    ) -> Result<Option<Arc<dyn Reranker>>, AppError> {
        let wanted = checked.rerank.unwrap_or(self.rerank_by_default);
        let Some(reranker) = self.reranker.as_deref().filter(|_| wanted) else { return Ok(None) };
        let loaded = match reranker.if_loaded() {
            Some(loaded) => loaded,
            None if patience == Patience::AnswerFromText && checked.rerank.is_none() => {
                degraded.push(RERANKER);
                return Ok(None);
            }
            None => reranker.get().await?,
        };
        Ok(Some(Arc::clone(loaded)))
    }

    /// Scores candidates again.
    ///
    /// - Returns one score for each; none if that takes longer than it may.
    async fn rerank(
        &self,
        reranker: Arc<dyn Reranker>,
        checked: &Checked,
        candidates: &[Scored],
    ) -> Result<Option<Vec<f32>>, AppError> {
        let passages: Vec<String> = candidates.iter().map(passage).collect();
        let (asked, query) = (passages.len(), checked.query.positive_text());
        let name = reranker.model().to_owned();
        let scores = match (self.settings.rerank_timeout, self.reranker.as_deref()) {
            (Some(limit), Some(model)) => {
                model.score_within(limit, reranker, query.to_owned(), passages).await?
            }
            _ => Some(reranker.score(query, &passages).await?),
        };
        let Some(scores) = scores else { return Ok(None) };
        if scores.len() != asked {
            let answered = scores.len();
            return Err(AppError::Rerank(RerankError::WrongShape { asked, answered }));
        }
        match scores.iter().find(|score| !score.is_finite()) {
            Some(&score) => Err(AppError::Rerank(RerankError::NotFinite { model: name, score })),
            None => Ok(Some(scores)),
        }
    }

    /// Asks both legs and fuses what they propose, as far as the next stage
    /// reads it.
    async fn retrieve(
        &self,
        snapshot: &dyn Snapshot,
        checked: &Checked,
        vector: Option<&Embedding>,
        reranked: bool,
    ) -> Result<Vec<Scored>, AppError> {
        let pool = (5 * checked.limit).max(50);
        let depth = if reranked && checked.mmr.is_none() { 5 * pool } else { pool };
        let kept = match (checked.mmr.is_some(), reranked) {
            (true, _) => 2 * depth,
            (false, true) => pool,
            (false, false) => checked.limit,
        };
        let restriction = Restriction {
            filter: checked.filter.clone(),
            excluded: checked.query.exclude().to_vec(),
        };
        let dense = async {
            match vector {
                Some(vector) => snapshot.nearest(vector, depth, &restriction).await,
                None => Ok(Vec::new()),
            }
        };
        let lexical = async {
            let query = LexicalQuery {
                text: checked.query.plain_text().to_owned(),
                verbatim: checked.query.verbatim().to_vec(),
                phrases: checked.query.include().to_vec(),
                weights: self.settings.weights,
            };
            snapshot.matching(&query, depth, &restriction).await
        };
        let (dense, lexical) = futures::future::try_join(dense, lexical).await?;
        let verdict = self.weigh(snapshot, checked, vector, &dense, &lexical).await?;
        let mut fused = fuse(&dense, &lexical.candidates, verdict, self.settings.rank_constant);
        fused.truncate(kept);
        let wanted: Vec<ChunkId> = fused.iter().map(|item| item.id).collect();
        let chunks = snapshot.chunks(&wanted).await?;
        let mut fused = fused.into_iter();
        let scored = chunks
            .into_iter()
            .filter_map(|chunk| {
                let item = fused.by_ref().find(|item| item.id == chunk.id)?;
                let matched_by = item
                    .ranks
                    .iter()
                    .zip([VECTOR, FULL_TEXT])
                    .filter_map(|(rank, leg)| rank.map(|_| leg))
                    .collect();
                Some(Scored { score: item.score, matched_by, chunk })
            })
            .collect();
        Ok(scored)
    }

    /// Decides which legs count for this query.
    async fn weigh(
        &self,
        snapshot: &dyn Snapshot,
        checked: &Checked,
        vector: Option<&Embedding>,
        dense: &[Candidate],
        lexical: &Matches,
    ) -> Result<Verdict, AppError> {
        let both = Verdict::Both { lexical: lexical.candidates.len() };
        let Some(vector) = vector.filter(|_| self.settings.adaptive) else { return Ok(both) };
        if dense.is_empty() || lexical.candidates.is_empty() {
            return Ok(both);
        }
        let understood = self.model.reads(checked.query.positive_text());
        let scores = |candidates: &[Candidate]| -> Vec<(ChunkId, f32)> {
            candidates.iter().map(|candidate| (candidate.chunk, candidate.score)).collect()
        };
        let (nearest, matched) = (scores(dense), scores(&lexical.candidates));
        let spread = snapshot.cosine_spread(vector).await?;
        Ok(weigh(
            &Testimony { candidates: &nearest, spread },
            &Testimony { candidates: &matched, spread: lexical.spread },
            understood,
            lexical.named,
        ))
    }
}

/// Takes as many candidates as are wanted, spread out if that is asked for.
async fn pick(
    snapshot: &dyn Snapshot,
    checked: &Checked,
    ranked: Vec<Scored>,
    remarks: &mut Vec<String>,
) -> Result<Vec<Scored>, AppError> {
    let mut picked = match checked.mmr {
        Some(balance) => {
            let ids: Vec<ChunkId> = ranked.iter().map(|scored| scored.chunk.id).collect();
            let vectors = snapshot.embeddings(&ids).await?;
            remarks.extend(request::remark_on_mmr(&vectors));
            let limit = checked.limit;
            // Up to thousands of candidates, each compared with each that is picked.
            tokio::task::spawn_blocking(move || diversify(ranked, vectors, limit, balance))
                .await
                .map_err(|_| AppError::Interrupted { what: "spreading the hits" })?
        }
        None => ranked,
    };
    picked.truncate(checked.limit);
    Ok(picked)
}

/// Fuses the legs that count; what the others propose, or what one proposes
/// without much reason, only fills the ranking up.
fn fuse(
    dense: &[Candidate],
    lexical: &[Candidate],
    verdict: Verdict,
    constant: RankConstant,
) -> Vec<Fused<ChunkId, 2>> {
    let (dense, lexical) = (ids(dense), ids(lexical));
    match verdict {
        Verdict::Both { lexical: head } => {
            let head = &lexical[..head.min(lexical.len())];
            let mut fused = reciprocal_rank_fusion([&dense, head], constant);
            fill_up(&mut fused, LEXICAL, &lexical, constant);
            fused
        }
        Verdict::Dense => {
            let mut fused = reciprocal_rank_fusion([&dense, &[]], constant);
            fill_up(&mut fused, LEXICAL, &lexical, constant);
            fused
        }
        Verdict::Lexical => {
            let mut fused = reciprocal_rank_fusion([&[], &lexical], constant);
            fill_up(&mut fused, DENSE, &dense, constant);
            fused
        }
    }
}

fn ids(candidates: &[Candidate]) -> Vec<ChunkId> {
    candidates.iter().map(|candidate| candidate.chunk).collect()
}

/// Puts candidates in the order of other scores; equal ones keep their order.
fn with_scores(mut candidates: Vec<Scored>, scores: Vec<f32>) -> Vec<Scored> {
    for (candidate, score) in candidates.iter_mut().zip(scores) {
        candidate.score = score;
    }
    candidates.sort_by(|left, right| right.score.total_cmp(&left.score));
    candidates
}

/// What a reranker reads of a candidate.
fn passage(scored: &Scored) -> String {
    let chunk = &scored.chunk.chunk;
    match chunk.context.as_deref() {
        Some(context) if !context.trim().is_empty() => format!("{context}\n\n{}", chunk.content),
        _ => chunk.content.clone(),
    }
}

/// Picks candidates that do not repeat one another; those without a vector are
/// left out, unless none has one.
fn diversify(
    candidates: Vec<Scored>,
    vectors: Vec<Option<Embedding>>,
    limit: usize,
    balance: Balance,
) -> Vec<Scored> {
    if vectors.iter().all(Option::is_none) {
        return candidates;
    }
    let mut with_vector: Vec<(Option<Scored>, Embedding)> = candidates
        .into_iter()
        .zip(vectors)
        .filter_map(|(scored, vector)| Some((Some(scored), vector?)))
        .collect();
    let mut numbers: HashMap<DocumentPath, usize> = HashMap::new();
    let choices: Vec<Choice<'_>> = with_vector
        .iter()
        .filter_map(|(scored, embedding)| {
            let scored = scored.as_ref()?;
            let next = numbers.len();
            let document = *numbers.entry(scored.chunk.document.path.clone()).or_insert(next);
            Some(Choice { score: scored.score, embedding, document })
        })
        .collect();
    let order = maximal_marginal_relevance(&choices, limit, balance);
    order.into_iter().filter_map(|index| with_vector[index].0.take()).collect()
}
