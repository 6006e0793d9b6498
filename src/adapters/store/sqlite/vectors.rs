//! The vector table.
//!
//! Rows are read in the blocks that sqlite-vec keeps them in: its own scan of a
//! whole table looks every row up by number, and takes ten times as long.

use std::collections::HashMap;

use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::cosine::has_direction;
use crate::domain::chunk::{ChunkId, TextHash};
use crate::ports::Cause;

/// Whether the vector table is there.
pub(super) async fn exist(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) > 0 FROM sqlite_master WHERE name = 'vec_chunks'")
        .fetch_one(connection)
        .await
}

/// A vector as the table stores it.
pub(super) fn encode(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A stored vector.
pub(super) fn decode(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|&number| f32::from_le_bytes(number)).collect()
}

/// The vectors with these numbers. One without a direction is none.
///
/// - `ids`: a JSON array.
pub(super) async fn of(
    connection: &mut SqliteConnection,
    ids: &str,
) -> Result<HashMap<i64, Vec<f32>>, sqlx::Error> {
    let rows: Vec<(i64, Vec<u8>)> = sqlx::query_as(
        "SELECT chunk_id, embedding FROM vec_chunks
         WHERE chunk_id IN (SELECT value FROM json_each(?))",
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    let vectors = rows.into_iter().map(|(id, bytes)| (id, decode(&bytes)));
    Ok(vectors.filter(|(_, vector)| has_direction(vector)).collect())
}

/// For each text the first chunk with a vector that was made of it, if there is
/// one.
pub(super) async fn chunks_of_texts(
    connection: &mut SqliteConnection,
    texts: &[TextHash],
) -> Result<HashMap<TextHash, ChunkId>, sqlx::Error> {
    if !exist(connection).await? {
        return Ok(HashMap::new());
    }
    let list = texts.iter().map(|text| serde_json::Value::from(text.to_string())).collect();
    let list = serde_json::Value::Array(list).to_string();
    let rows: Vec<(Vec<u8>, i64)> = sqlx::query_as(
        "SELECT text_hash, min(id) FROM chunks
         WHERE text_hash IN (SELECT unhex(value) FROM json_each(?))
           AND id IN (SELECT rowid FROM vec_chunks_rowids)
         GROUP BY text_hash",
    )
    .bind(list)
    .fetch_all(connection)
    .await?;
    let known = |(text, id): (Vec<u8>, i64)| Some((TextHash::from_bytes(&text)?, ChunkId(id)));
    Ok(rows.into_iter().filter_map(known).collect())
}

/// Some vectors as the table keeps them.
pub(super) struct VectorBlock {
    dimension: usize,
    validity: Vec<u8>,
    ids: Vec<u8>,
    bytes: Vec<u8>,
}

/// The numbers of the blocks of vectors, in ascending order.
pub(super) async fn blocks(connection: &mut SqliteConnection) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT chunk_id FROM vec_chunks_chunks ORDER BY chunk_id")
        .fetch_all(connection)
        .await
}

/// Reads a block.
pub(super) async fn block(
    connection: &mut SqliteConnection,
    number: i64,
    dimension: usize,
) -> Result<VectorBlock, sqlx::Error> {
    let (validity, ids, bytes): (Vec<u8>, Vec<u8>, Vec<u8>) = sqlx::query_as(
        "SELECT c.validity, c.rowids, v.vectors
         FROM vec_chunks_chunks c JOIN vec_chunks_vector_chunks00 v ON v.rowid = c.chunk_id
         WHERE c.chunk_id = ?",
    )
    .bind(number)
    .fetch_one(connection)
    .await?;
    let rows = ids.len() / 8;
    if validity.len() * 8 < rows || bytes.len() != rows * dimension * 4 {
        return Err(unreadable(number));
    }
    Ok(VectorBlock { dimension, validity, ids, bytes })
}

impl VectorBlock {
    /// More rows than these it does not have.
    pub(super) fn most_rows(&self) -> usize {
        self.ids.len() / 8
    }

    /// Every vector with its number. One without a direction is none.
    pub(super) fn each(&self, mut visit: impl FnMut(i64, &[f32])) {
        let (ids, _) = self.ids.as_chunks::<8>();
        let mut row = vec![0.0; self.dimension];
        for (place, &id) in ids.iter().enumerate() {
            if self.validity[place / 8] >> (place % 8) & 1 == 0 {
                continue;
            }
            let (numbers, _) = self.bytes[place * self.dimension * 4..].as_chunks::<4>();
            for (value, &number) in row.iter_mut().zip(numbers) {
                *value = f32::from_le_bytes(number);
            }
            if has_direction(&row) {
                visit(i64::from_le_bytes(id), &row);
            }
        }
    }
}

fn unreadable(block: i64) -> sqlx::Error {
    let cause: Cause = format!("block {block} of the vector table has another size").into();
    sqlx::Error::Decode(cause)
}
