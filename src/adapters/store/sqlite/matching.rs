//! The lexical leg.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::TryStreamExt as _;
use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::ranking::best_first;
use crate::adapters::store::sqlite::resident::{Admission, Resident};
use crate::adapters::store::sqlite::rows::{self, Documents};
use crate::domain::chunk::ChunkId;
use crate::domain::filter::Filter;
use crate::domain::query::{Phrase, full_text_expression};
use crate::ports::chunk_store::{Candidate, ColumnWeights};

/// Rows that the first page reads for every candidate that is wanted.
const PAGE: usize = 4;

/// By how much each further page is larger.
const PAGE_GROWTH: usize = 8;

const RANKED: &str = "SELECT rowid, bm25(fts_chunks, ?, ?, ?) AS score FROM fts_chunks \
     WHERE fts_chunks MATCH ? ORDER BY score, rowid LIMIT ?";

/// What is looked for, as the full-text table reads it.
pub(super) struct Expression {
    text: String,
    weights: ColumnWeights,
}

impl Expression {
    /// None if there is nothing to look for.
    pub(super) fn new(
        included: &[Phrase],
        excluded: &[Phrase],
        weights: ColumnWeights,
    ) -> Option<Self> {
        let text = full_text_expression(included, excluded)?;
        Some(Self { text, weights })
    }
}

/// The chunks in which one of the phrases occurs.
pub(super) async fn excluded(
    connection: &mut SqliteConnection,
    phrases: &[Phrase],
) -> Result<HashSet<i64>, sqlx::Error> {
    let Some(expression) = full_text_expression(phrases, &[]) else { return Ok(HashSet::new()) };
    let ids: Vec<i64> = sqlx::query_scalar("SELECT rowid FROM fts_chunks WHERE fts_chunks MATCH ?")
        .bind(expression)
        .fetch_all(connection)
        .await?;
    Ok(ids.into_iter().collect())
}

/// Ranks matches; a copy in memory tells which of them pass.
pub(super) async fn with_resident(
    connection: &mut SqliteConnection,
    expression: &Expression,
    depth: usize,
    resident: &Arc<Resident>,
    admission: &Admission,
) -> Result<Vec<Candidate>, sqlx::Error> {
    let mut cut = Cut::new(depth);
    let weights = expression.weights;
    let mut ranked = sqlx::query_as(RANKED)
        .bind(weights.heading)
        .bind(weights.context)
        .bind(weights.content)
        .bind(&expression.text)
        .bind(-1_i64)
        .fetch(connection);
    while let Some((id, score)) = ranked.try_next().await? {
        if resident.admits(id, admission) && cut.show(id, score) {
            break;
        }
    }
    Ok(cut.into_ranking())
}

/// Ranks matches; the file tells which of them pass, page by page.
pub(super) async fn in_file(
    connection: &mut SqliteConnection,
    expression: &Expression,
    depth: usize,
    filter: &Filter,
) -> Result<Vec<Candidate>, sqlx::Error> {
    let weights = expression.weights;
    let mut documents = Documents::new();
    let mut page = depth.saturating_mul(PAGE);
    loop {
        let limit = i64::try_from(page).unwrap_or(i64::MAX);
        let ranked: Vec<(i64, f64)> = sqlx::query_as(RANKED)
            .bind(weights.heading)
            .bind(weights.context)
            .bind(weights.content)
            .bind(&expression.text)
            .bind(limit)
            .fetch_all(&mut *connection)
            .await?;
        let ids = rows::json_numbers(ranked.iter().map(|&(id, _)| id));
        let passing = passing(connection, ids, &mut documents, filter).await?;
        let mut cut = Cut::new(depth);
        let passes = |&&(id, _): &&(i64, f64)| passing.contains(&id);
        let full = ranked.iter().filter(passes).any(|&(id, score)| cut.show(id, score));
        if full || ranked.len() < page {
            return Ok(cut.into_ranking());
        }
        page = page.saturating_mul(PAGE_GROWTH);
    }
}

async fn passing(
    connection: &mut SqliteConnection,
    ids: String,
    documents: &mut Documents,
    filter: &Filter,
) -> Result<HashSet<i64>, sqlx::Error> {
    let facets: Vec<(i64, i64, Option<f64>)> = sqlx::query_as(
        "SELECT id, document_id, quality_score FROM chunks
         WHERE id IN (SELECT value FROM json_each(?))",
    )
    .bind(ids)
    .fetch_all(&mut *connection)
    .await?;
    let unknown: HashSet<i64> = facets
        .iter()
        .map(|&(_, owner, _)| owner)
        .filter(|owner| !documents.contains_key(owner))
        .collect();
    documents.extend(rows::documents(connection, rows::json_numbers(unknown)).await?);
    let admitted: HashMap<i64, bool> =
        documents.iter().map(|(&id, document)| (id, filter.admits(&document.facets()))).collect();
    Ok(facets
        .into_iter()
        .filter(|&(_, owner, quality)| {
            admitted.get(&owner).copied().unwrap_or(false)
                && filter.admits_quality(rows::quality(quality))
        })
        .map(|(id, ..)| id)
        .collect())
}

/// The first candidates of a ranking whose scores have more digits than a
/// candidate's: what becomes equal is put in order of id.
struct Cut {
    depth: usize,
    kept: Vec<Candidate>,
}

impl Cut {
    fn new(depth: usize) -> Self {
        Self { depth, kept: Vec::new() }
    }

    /// Takes the next row, given its rank as SQLite counts it: the lower the
    /// better. Returns whether no further row can change the result.
    fn show(&mut self, id: i64, rank: f64) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "a score needs no more digits")]
        let score = -rank as f32;
        if self.kept.len() >= self.depth && self.kept.last().is_none_or(|last| last.score > score) {
            return true;
        }
        self.kept.push(Candidate { chunk: ChunkId(id), score });
        false
    }

    fn into_ranking(mut self) -> Vec<Candidate> {
        self.kept.sort_unstable_by(best_first);
        self.kept.truncate(self.depth);
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SRCH-89
    #[test]
    fn ranks_that_become_equal_are_ordered_by_id_across_the_cut() {
        let mut cut = Cut::new(2);
        assert!(!cut.show(9, -2.0));
        assert!(!cut.show(8, -1.000_000_000_02));
        assert!(!cut.show(7, -1.000_000_000_01));
        assert!(cut.show(6, -0.5));
        let ids: Vec<i64> = cut.into_ranking().iter().map(|kept| kept.chunk.0).collect();
        assert_eq!(ids, [9, 7]);
    }
}
