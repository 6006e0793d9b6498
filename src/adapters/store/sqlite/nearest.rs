//! The dense leg.

use std::collections::HashSet;
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::cosine::Query;
use crate::adapters::store::ranking::Best;
use crate::adapters::store::sqlite::resident::{self, Admission, Resident};
use crate::adapters::store::sqlite::{rows, unavailable, vectors};
use crate::domain::chunk::ChunkId;
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
