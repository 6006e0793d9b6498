//! The lexical leg: words are counted, and what has to be found as it stands is
//! looked for in the full-text table.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::ranking::{MATCHING_LIMIT, best_first};
use crate::adapters::store::sqlite::resident::{Admission, Resident};
use crate::adapters::store::sqlite::rows::{self, Documents};
use crate::adapters::store::sqlite::words::{self, Vocabulary};
use crate::adapters::store::trigram::fold;
use crate::adapters::store::words::{
    Collection, Occurrences, Scored, Sought, below, named_share, score_all, spread, sum,
};
use crate::domain::chunk::ChunkId;
use crate::domain::filter::Filter;
use crate::domain::query::{Phrase, full_text_expression};
use crate::ports::chunk_store::{Candidate, ColumnWeights, LexicalQuery, Matches};

/// Candidates of which the file is asked at once whether they pass.
const PAGE: usize = 512;

const RANKED: &str = "SELECT rowid, bm25(fts_chunks, ?, ?, ?) AS score FROM fts_chunks \
     WHERE fts_chunks MATCH ? ORDER BY score, rowid LIMIT ?";

/// The most characters of a phrase that the full-text table compares: it takes as
/// many steps for each place. Longer phrases are compared with the texts.
const LONGEST: usize = 64;

/// A phrase that stands in more chunks than this tells little, and costs much to
/// rank: it is left out where there is anything rarer.
const COMMON: u64 = 20_000;

/// The chunks in which one of the phrases occurs.
pub(super) async fn excluded(
    connection: &mut SqliteConnection,
    phrases: &[Phrase],
) -> Result<HashSet<i64>, sqlx::Error> {
    let beginnings = beginnings(phrases);
    let Some(expression) = full_text_expression(&beginnings, &[]) else {
        return Ok(HashSet::new());
    };
    let ids: Vec<i64> = sqlx::query_scalar("SELECT rowid FROM fts_chunks WHERE fts_chunks MATCH ?")
        .bind(expression)
        .fetch_all(&mut *connection)
        .await?;
    let mut ids: HashSet<i64> = ids.into_iter().collect();
    if let Some(verified) = verified(connection, phrases, &ids).await? {
        ids = verified;
    }
    Ok(ids)
}

/// The beginnings of phrases that are too long to be looked for at once.
fn beginnings(phrases: &[Phrase]) -> Vec<Phrase> {
    let beginning = |phrase: &Phrase| {
        let text = phrase.as_str();
        let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
        Phrase::new(&text[..end]).unwrap_or_else(|| phrase.clone())
    };
    phrases.iter().map(beginning).collect()
}

/// A chunk's number, and its heading, context and content.
type Columns = (i64, Option<String>, Option<String>, Option<String>);

/// Of the chunks that beginnings of phrases found, those in which a phrase stands
/// whole; none if no phrase was cut.
async fn verified(
    connection: &mut SqliteConnection,
    phrases: &[Phrase],
    found: &HashSet<i64>,
) -> Result<Option<HashSet<i64>>, sqlx::Error> {
    if phrases.iter().all(|phrase| phrase.as_str().chars().nth(LONGEST).is_none()) {
        return Ok(None);
    }
    let phrases: Vec<String> = phrases.iter().map(|phrase| fold(phrase.as_str())).collect();
    let texts: Vec<Columns> = sqlx::query_as(
        "SELECT id, heading, context_text, content FROM chunks
         WHERE id IN (SELECT value FROM json_each(?))",
    )
    .bind(rows::json_numbers(found.iter().copied()))
    .fetch_all(connection)
    .await?;
    let stands = |text: &Option<String>| {
        text.as_deref().is_some_and(|text| {
            let text = fold(text);
            phrases.iter().any(|phrase| text.contains(phrase.as_str()))
        })
    };
    let whole = texts.iter().filter(|(_, heading, context, content)| {
        [heading, context, content].into_iter().any(stands)
    });
    Ok(Some(whole.map(|(id, ..)| *id).collect()))
}

/// Tells which chunks pass.
pub(super) enum Gate<'a> {
    /// A copy in memory knows.
    Resident(Arc<Resident>, Arc<Admission>),
    /// The file has to be asked.
    File {
        /// What documents and chunks have to be like.
        filter: &'a Filter,
        /// Chunks that do not pass, whatever they are like.
        excluded: &'a HashSet<i64>,
    },
}

/// Ranks what a query finds.
///
/// - `vocabulary`: none if the words of the index are not counted; then phrases
///   alone are looked for.
pub(super) async fn ranked(
    connection: &mut SqliteConnection,
    query: &LexicalQuery,
    vocabulary: Option<&Vocabulary>,
    depth: usize,
    gate: &Gate<'_>,
) -> Result<Matches, sqlx::Error> {
    let Some(vocabulary) = vocabulary else {
        let all: Vec<Phrase> = query.verbatim.iter().chain(&query.phrases).cloned().collect();
        let scored = phrases(connection, &all, query.weights, -1).await?;
        let candidates = pass(connection, scored, depth, gate).await?;
        return Ok(Matches { candidates, ..Matches::default() });
    };
    let sought = Sought::new(query, &vocabulary.languages);
    let places = words::places(connection, &sought.groups, vocabulary.collection).await?;
    let (needed, others) = sought.phrases(&places.known);

    let mut needed = rare(connection, needed, vocabulary.collection).await?;
    if needed.rare.is_empty() && !places.known.contains(&true) {
        // There is nothing else to go by.
        needed.rare.extend(needed.common.pop());
    }
    let as_they_stand = phrases(connection, &needed.rare, query.weights, limit()).await?;
    let (groups, weights, collection) = (sought.groups, query.weights, vocabulary.collection);
    let (words, scored, spread) = beside(move || {
        let words: Vec<Occurrences> =
            groups.iter().map(|group| places.occurrences(group)).collect();
        let mut scored = score_all(collection, weights, &words);
        if !as_they_stand.is_empty() {
            scored = sum(&scored, &by_id(as_they_stand));
        }
        let spread = spread(&scored, collection.chunks);
        (words, scored, spread)
    })
    .await?;

    let found: Vec<i64> =
        if others.is_empty() { Vec::new() } else { scored.iter().map(|&(id, _)| id).collect() };
    let mut candidates = pass(connection, scored, depth, gate).await?;
    if candidates.len() < depth && !others.is_empty() {
        // What stands inside of longer words comes after all that words found.
        let others = rare(connection, others, vocabulary.collection).await?.rare;
        let mut inside = phrases(connection, &others, query.weights, limit()).await?;
        inside.retain(|(id, _)| found.binary_search(id).is_err());
        below(candidates.last().map(|last| f64::from(last.score)), &mut inside);
        let room = depth - candidates.len();
        candidates.extend(pass(connection, inside, room, gate).await?);
    }
    let named =
        candidates.first().map_or(0.0, |best| named_share(collection, &words, best.chunk.0));
    Ok(Matches { candidates, spread, named })
}

/// Phrases by how many chunks they stand in.
struct ByFrequency {
    rare: Vec<Phrase>,
    /// The longest last, which is likely to be the least common.
    common: Vec<Phrase>,
}

/// Tells rare phrases from common ones. Of those it counts no further than to
/// where they become common.
async fn rare(
    connection: &mut SqliteConnection,
    phrases: Vec<Phrase>,
    collection: Collection,
) -> Result<ByFrequency, sqlx::Error> {
    if collection.chunks <= COMMON {
        return Ok(ByFrequency { rare: phrases, common: Vec::new() });
    }
    let mut told = ByFrequency { rare: Vec::new(), common: Vec::new() };
    for phrase in phrases {
        let expression = full_text_expression(&beginnings(std::slice::from_ref(&phrase)), &[]);
        let count: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM (SELECT 1 FROM fts_chunks WHERE fts_chunks MATCH ? LIMIT ?)",
        )
        .bind(expression)
        .bind(i64::try_from(COMMON + 1).unwrap_or(i64::MAX))
        .fetch_one(&mut *connection)
        .await?;
        let is_rare = u64::try_from(count).is_ok_and(|count| count <= COMMON);
        if is_rare { &mut told.rare } else { &mut told.common }.push(phrase);
    }
    told.common.sort_by_key(|phrase| phrase.as_str().len());
    Ok(told)
}

fn limit() -> i64 {
    i64::try_from(MATCHING_LIMIT).unwrap_or(i64::MAX)
}

fn by_id(mut scored: Vec<Scored>) -> Vec<Scored> {
    scored.sort_unstable_by_key(|&(id, _)| id);
    scored
}

/// Computes on a thread that may be busy for long.
async fn beside<T: Send + 'static>(
    compute: impl FnOnce() -> T + Send + 'static,
) -> Result<T, sqlx::Error> {
    tokio::task::spawn_blocking(compute).await.map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Ranks the chunks in which phrases stand, by the full-text table.
async fn phrases(
    connection: &mut SqliteConnection,
    phrases: &[Phrase],
    weights: ColumnWeights,
    limit: i64,
) -> Result<Vec<Scored>, sqlx::Error> {
    let beginnings = beginnings(phrases);
    let Some(expression) = full_text_expression(&beginnings, &[]) else { return Ok(Vec::new()) };
    let mut ranked: Vec<Scored> = sqlx::query_as(RANKED)
        .bind(weights.heading)
        .bind(weights.context)
        .bind(weights.content)
        .bind(expression)
        .bind(limit)
        .fetch_all(&mut *connection)
        .await?;
    let ids = ranked.iter().map(|&(id, _)| id).collect();
    if let Some(verified) = verified(connection, phrases, &ids).await? {
        ranked.retain(|(id, _)| verified.contains(id));
    }
    // SQLite counts ranks downwards.
    Ok(ranked.into_iter().map(|(id, rank)| (id, -rank)).collect())
}

/// The best of the scored chunks that pass.
async fn pass(
    connection: &mut SqliteConnection,
    scored: Vec<Scored>,
    depth: usize,
    gate: &Gate<'_>,
) -> Result<Vec<Candidate>, sqlx::Error> {
    if depth == 0 || scored.is_empty() {
        return Ok(Vec::new());
    }
    match gate {
        Gate::Resident(resident, admission) => {
            let (resident, admission) = (Arc::clone(resident), Arc::clone(admission));
            beside(move || {
                let mut cut = Cut::new(depth);
                for next in BestFirst::new(scored) {
                    if resident.admits(next.chunk.0, &admission) && cut.show(next) {
                        break;
                    }
                }
                cut.kept
            })
            .await
        }
        Gate::File { filter, excluded } => {
            let mut rest = BestFirst::new(scored);
            let mut documents = Documents::new();
            let mut cut = Cut::new(depth);
            loop {
                let page: Vec<Candidate> = rest.by_ref().take(PAGE.max(depth)).collect();
                if page.is_empty() {
                    return Ok(cut.kept);
                }
                let ids = rows::json_numbers(page.iter().map(|next| next.chunk.0));
                let passing = passing(connection, ids, &mut documents, filter).await?;
                let passes = |next: &Candidate| {
                    passing.contains(&next.chunk.0) && !excluded.contains(&next.chunk.0)
                };
                if page.into_iter().filter(passes).any(|next| cut.show(next)) {
                    return Ok(cut.kept);
                }
            }
        }
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

/// Hands scored chunks out, the best first, sorting no more of them than are
/// taken.
struct BestFirst(BinaryHeap<Ranked>);

impl BestFirst {
    fn new(scored: Vec<Scored>) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a score needs no more digits")]
        let ranked = |(id, score)| Ranked(Candidate { chunk: ChunkId(id), score: score as f32 });
        Self(scored.into_iter().map(ranked).collect())
    }
}

impl Iterator for BestFirst {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        self.0.pop().map(|ranked| ranked.0)
    }
}

/// Orders the best candidate to the top of a heap.
struct Ranked(Candidate);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        best_first(&other.0, &self.0)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// The first candidates of a ranking.
struct Cut {
    depth: usize,
    kept: Vec<Candidate>,
}

impl Cut {
    fn new(depth: usize) -> Self {
        Self { depth, kept: Vec::new() }
    }

    /// Takes the next candidate; returns whether there is room for no further
    /// one.
    fn show(&mut self, candidate: Candidate) -> bool {
        self.kept.push(candidate);
        self.kept.len() >= self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SRCH-89
    #[test]
    fn ranks_that_become_equal_in_single_precision_are_ordered_by_id() {
        let scored = vec![(9, 2.0), (8, 1.000_000_000_02), (7, 1.000_000_000_01), (6, 0.5)];
        let ids: Vec<i64> = BestFirst::new(scored).map(|next| next.chunk.0).collect();
        assert_eq!(ids, [9, 7, 8, 6]);
    }
}
