//! The dense leg.

use std::collections::HashSet;
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::cosine::Query;
use crate::adapters::store::ranking::Best;
use crate::adapters::store::sample::{self, Sample};
use crate::adapters::store::sqlite::resident::{self, Admission, Resident};
use crate::adapters::store::sqlite::{rows, unavailable, vectors};
use crate::domain::chunk::ChunkId;
use crate::domain::evidence::Spread;
use crate::domain::filter::Filter;
use crate::ports::chunk_store::{Candidate, StoreError};

/// Scans a copy in memory, on a thread that may be busy for long.
pub(super) async fn in_memory(
    resident: Arc<Resident>,
    query: Vec<f32>,
    depth: usize,
    admission: Admission,
) -> Result<Vec<Candidate>, StoreError> {
    tokio::task::spawn_blocking(move || resident.nearest(&query, depth, &admission))
        .await
        .map_err(|error| unavailable("scan the vectors", error))
}

/// How the cosines of all vectors with a query are spread, read from the file.
pub(super) async fn spread_in_file(
    connection: &mut SqliteConnection,
    query: &[f32],
) -> Result<Option<Spread>, sqlx::Error> {
    if !vectors::exist(connection).await? {
        return Ok(None);
    }
    let mut ids: Vec<i64> = sqlx::query_scalar(
        "SELECT rowid FROM vec_chunks_rowids WHERE rowid IN (SELECT id FROM chunks)",
    )
    .fetch_all(&mut *connection)
    .await?;
    let sample = Sample::of(ids.len());
    ids.retain(|&id| sample.takes(id));
    let vectors = vectors::of(connection, &rows::json_numbers(ids)).await?;
    Ok(sample::spread(query, vectors.iter().map(|(&id, vector)| (id, vector.as_slice()))))
}

/// Reads every vector from the file.
pub(super) async fn in_file(
    connection: &mut SqliteConnection,
    query: &[f32],
    depth: usize,
    filter: &Filter,
    excluded: &HashSet<i64>,
) -> Result<Vec<Candidate>, sqlx::Error> {
    let mut best = Best::new(depth);
    if vectors::exist(connection).await? {
        let facets = resident::facets(connection).await?;
        let documents = rows::all_documents(connection).await?;
        let passing = resident::passing(facets, &documents, filter, excluded);
        let dimension = query.len();
        let query = Query::new(query);
        vectors::each(connection, dimension, |id, vector| {
            if passing.contains(&id) {
                best.show(ChunkId(id), query.cosine(vector));
            }
        })
        .await?;
    }
    Ok(best.into_ranking())
}
