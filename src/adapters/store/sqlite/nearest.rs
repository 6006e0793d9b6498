//! The dense leg.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::cosine::Query;
use crate::adapters::store::ranking::Best;
use crate::adapters::store::sample::{self, Sample};
use crate::adapters::store::sqlite::admission::Admission;
use crate::adapters::store::sqlite::resident::{self, Resident};
use crate::adapters::store::sqlite::rows::{self, Documents};
use crate::adapters::store::sqlite::{unavailable, vectors};
use crate::domain::chunk::ChunkId;
use crate::domain::embedding::Embedding;
use crate::domain::evidence::Spread;
use crate::domain::filter::Filter;
use crate::ports::chunk_store::{Candidate, StoreError};

/// How the cosines of all vectors of a copy in memory with a query are spread.
pub(super) async fn spread_in_memory(
    resident: Arc<Resident>,
    query: Embedding,
) -> Result<Option<Spread>, StoreError> {
    tokio::task::spawn_blocking(move || resident.spread(query.as_slice()))
        .await
        .map_err(|error| unavailable("sample the vectors", error))
}

/// How the cosines of vectors with one another are spread, by a copy in memory.
pub(super) async fn spread_between(resident: Arc<Resident>) -> Result<Option<Spread>, StoreError> {
    tokio::task::spawn_blocking(move || resident.spread_between())
        .await
        .map_err(|error| unavailable("sample the vectors", error))
}

/// Scans a copy in memory once for all queries, on a thread that may be busy for
/// long.
pub(super) async fn in_memory(
    resident: Arc<Resident>,
    queries: Vec<Embedding>,
    depth: usize,
    admission: Arc<Admission>,
) -> Result<Vec<Vec<Candidate>>, StoreError> {
    tokio::task::spawn_blocking(move || {
        let queries: Vec<&[f32]> = queries.iter().map(Embedding::as_slice).collect();
        resident.nearest(&queries, depth, &admission)
    })
    .await
    .map_err(|error| unavailable("scan the vectors", error))
}

/// How the cosines of all vectors with a query are spread, read from the file.
pub(super) async fn spread_in_file(
    connection: &mut SqliteConnection,
    query: &[f32],
) -> Result<Option<Spread>, sqlx::Error> {
    let vectors = sampled(connection).await?;
    Ok(sample::spread(query, vectors.iter().map(|(&id, vector)| (id, vector.as_slice()))))
}

/// The same of vectors with one another.
pub(super) async fn spread_between_in_file(
    connection: &mut SqliteConnection,
) -> Result<Option<Spread>, sqlx::Error> {
    let vectors = sampled(connection).await?;
    Ok(sample::spread_between(vectors.iter().map(|(&id, vector)| (id, vector.as_slice()))))
}

/// The vectors that stand for all.
async fn sampled(connection: &mut SqliteConnection) -> Result<HashMap<i64, Vec<f32>>, sqlx::Error> {
    if !vectors::exist(connection).await? {
        return Ok(HashMap::new());
    }
    let mut ids: Vec<i64> = sqlx::query_scalar(
        "SELECT rowid FROM vec_chunks_rowids WHERE rowid IN (SELECT id FROM chunks)",
    )
    .fetch_all(&mut *connection)
    .await?;
    let sample = Sample::of(ids.len());
    ids.retain(|&id| sample.takes(id));
    vectors::of(connection, &rows::json_numbers(ids)).await
}

/// Reads every vector from the file, once for all queries.
pub(super) async fn in_file(
    connection: &mut SqliteConnection,
    queries: Vec<Embedding>,
    depth: usize,
    filter: &Filter,
    excluded: Arc<HashSet<i64>>,
) -> Result<Vec<Vec<Candidate>>, sqlx::Error> {
    let Some(dimension) = queries.first().map(Embedding::dimension) else { return Ok(Vec::new()) };
    let mut best: Vec<Best> = queries.iter().map(|_| Best::new(depth)).collect();
    if depth > 0 && vectors::exist(connection).await? {
        let facets = resident::facets(connection).await?;
        let documents = rows::all_documents(connection).await?;
        let filter = filter.clone();
        let passing = on_blocking_thread(move || passing(&facets, &documents, &filter, &excluded));
        let passing = Arc::new(passing.await?);
        let queries = Arc::new(queries);
        for number in vectors::blocks(connection).await? {
            let block = vectors::block(connection, number, dimension).await?;
            let (queries, passing) = (Arc::clone(&queries), Arc::clone(&passing));
            best = on_blocking_thread(move || {
                let prepared: Vec<Query> =
                    queries.iter().map(|query| Query::new(query.as_slice())).collect();
                block.each(|id, vector| {
                    if passing.binary_search(&id).is_ok() {
                        for (query, best) in prepared.iter().zip(&mut best) {
                            best.show(ChunkId(id), query.cosine(vector));
                        }
                    }
                });
                best
            })
            .await?;
        }
    }
    Ok(best.into_iter().map(Best::into_ranking).collect())
}

/// What passes, in ascending order.
///
/// - `facets`: in ascending order of id.
fn passing(
    facets: &[(i64, i64, f32)],
    documents: &Documents,
    filter: &Filter,
    excluded: &HashSet<i64>,
) -> Vec<i64> {
    let admitted: HashSet<i64> = documents
        .iter()
        .filter(|(_, document)| filter.admits(&document.facets()))
        .map(|(&id, _)| id)
        .collect();
    let passes = |&&(id, owner, quality): &&(i64, i64, f32)| {
        admitted.contains(&owner) && filter.admits_quality(quality) && !excluded.contains(&id)
    };
    facets.iter().filter(passes).map(|&(id, ..)| id).collect()
}

async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, sqlx::Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| sqlx::Error::Decode(error.into()))
}
