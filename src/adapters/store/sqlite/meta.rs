//! What is recorded of the index as a whole, by name.

use std::collections::BTreeMap;

use sqlx::sqlite::SqliteConnection;

pub(super) const MODEL: &str = "embedding_model";
pub(super) const DIMENSION: &str = "embedding_dim";
pub(super) const CONTEXT_MODE: &str = "context_mode";
pub(super) const DECLARED_FIELDS: &str = "declared_fields";
/// The name of the folder that the documents come from.
pub(super) const ROOT: &str = "kb_root";
/// The rules by which every chunk was scored.
pub(super) const QUALITY_RULES: &str = "quality_rules";
/// In which way texts were embedded that are longer than the model's window.
pub(super) const LONG_TEXTS: &str = "long_texts";
/// By which rules the words of chunks were counted.
pub(super) const WORD_RULES: &str = "word_rules";
/// How many chunks were counted, how many words they have, and the sum of their ids.
pub(super) const WORD_CHUNKS: &str = "word_chunks";
pub(super) const WORD_TOTAL: &str = "word_total";
pub(super) const WORD_IDS: &str = "word_ids";
/// Raised by every commit.
pub(super) const GENERATION: &str = "generation";
/// The highest chunk id that was ever given.
pub(super) const LAST_CHUNK: &str = "last_chunk_id";

/// Every entry.
pub(super) async fn all(
    connection: &mut SqliteConnection,
) -> Result<BTreeMap<String, String>, sqlx::Error> {
    let entries: Vec<(String, Option<String>)> =
        sqlx::query_as("SELECT key, CAST(value AS TEXT) FROM index_meta")
            .fetch_all(connection)
            .await?;
    Ok(entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

/// One entry as a number; 0 if it is not there or none.
pub(super) async fn number(
    connection: &mut SqliteConnection,
    key: &str,
) -> Result<i64, sqlx::Error> {
    let value: Option<Option<i64>> =
        sqlx::query_scalar("SELECT CAST(value AS INTEGER) FROM index_meta WHERE key = ?")
            .bind(key)
            .fetch_optional(connection)
            .await?;
    Ok(value.flatten().unwrap_or(0))
}

/// Records an entry.
pub(super) async fn set(
    connection: &mut SqliteConnection,
    key: &str,
    value: &str,
) -> Result<(), sqlx::Error> {
    let changed = sqlx::query("UPDATE index_meta SET value = ? WHERE key = ?")
        .bind(value)
        .bind(key)
        .execute(&mut *connection)
        .await?;
    if changed.rows_affected() == 0 {
        sqlx::query("INSERT INTO index_meta (key, value) VALUES (?, ?)")
            .bind(key)
            .bind(value)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Forgets an entry.
pub(super) async fn remove(
    connection: &mut SqliteConnection,
    key: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM index_meta WHERE key = ?").bind(key).execute(connection).await?;
    Ok(())
}
