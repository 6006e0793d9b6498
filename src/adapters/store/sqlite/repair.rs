//! Making the three tables that hold a chunk agree again: another program, an
//! older one or damage may have left a row out of one of them.

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::sqlite::{damage, statistics, vectors, words, write};
use crate::ports::chunk_store::Repairs;

const TEXTS_MISSING: &str = "id NOT IN (SELECT id FROM fts_chunks_docsize)";
const TEXTS_ORPHANED: &str =
    "SELECT id FROM fts_chunks_docsize WHERE id NOT IN (SELECT id FROM chunks)";
const VECTORS_ORPHANED: &str =
    "SELECT rowid FROM vec_chunks_rowids WHERE rowid NOT IN (SELECT id FROM chunks)";

/// Documents whose count of vectors to come is not that of their chunks without
/// one, each with the right count.
const MISCOUNTED: &str = "SELECT d.id, count(c.id) FROM documents d
     LEFT JOIN chunks c ON c.document_id = d.id AND c.id NOT IN (SELECT rowid FROM vec_chunks_rowids)
     GROUP BY d.id HAVING count(c.id) <> d.pending";

/// The same while there is no vector table.
const UNCOUNTED: &str = "SELECT d.id, count(c.id) FROM documents d
     LEFT JOIN chunks c ON c.document_id = d.id GROUP BY d.id HAVING count(c.id) <> d.pending";

/// Whether anything is out of step.
pub(super) async fn is_needed(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let exist = vectors::exist(connection).await?;
    let miscounted = if exist { MISCOUNTED } else { UNCOUNTED };
    let mut statements = vec![
        format!("SELECT EXISTS (SELECT 1 FROM chunks WHERE {TEXTS_MISSING})"),
        format!("SELECT EXISTS ({TEXTS_ORPHANED})"),
        format!("SELECT EXISTS ({miscounted})"),
    ];
    if exist {
        statements.push(format!("SELECT EXISTS ({VECTORS_ORPHANED})"));
    }
    for statement in statements {
        let statement = sqlx::AssertSqlSafe(statement);
        if sqlx::query_scalar(statement).fetch_one(&mut *connection).await? {
            return Ok(true);
        }
    }
    if !damage::names_without_key(connection).await?.is_empty() {
        return Ok(true);
    }
    Ok(!words::are_current(connection).await?)
}

/// Brings all in step, in one transaction.
pub(super) async fn repair(connection: &mut SqliteConnection) -> Result<Repairs, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let exist = vectors::exist(&mut transaction).await?;
    let mut repairs = Repairs::default();

    // Nothing else could name them. What belongs to their chunks goes below.
    for name in damage::names_without_key(&mut transaction).await? {
        sqlx::query("DELETE FROM documents WHERE path = ?")
            .bind(name)
            .execute(&mut *transaction)
            .await?;
    }

    // Before the missing rows come, which its totals count.
    let orphans: Vec<i64> = sqlx::query_scalar(TEXTS_ORPHANED).fetch_all(&mut *transaction).await?;
    for &orphan in &orphans {
        sqlx::query("DELETE FROM fts_chunks WHERE rowid = ?")
            .bind(orphan)
            .execute(&mut *transaction)
            .await?;
    }
    repairs.orphans += orphans.len() as u64;
    let statement = format!(
        "INSERT INTO fts_chunks (rowid, heading, context, content)
         SELECT id, heading, context_text, content FROM chunks WHERE {TEXTS_MISSING} ORDER BY id"
    );
    let inserted = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut *transaction).await?;
    repairs.texts = inserted.rows_affected();
    if !orphans.is_empty() {
        statistics::recount(&mut transaction).await?;
    }
    if !words::are_current(&mut transaction).await? {
        repairs.texts = repairs.texts.max(words::recount(&mut transaction).await?);
    }

    if exist {
        let orphans: Vec<i64> =
            sqlx::query_scalar(VECTORS_ORPHANED).fetch_all(&mut *transaction).await?;
        for &orphan in &orphans {
            sqlx::query("DELETE FROM vec_chunks WHERE chunk_id = ?")
                .bind(orphan)
                .execute(&mut *transaction)
                .await?;
        }
        repairs.orphans += orphans.len() as u64;
    }
    let miscounted: Vec<(i64, i64)> = sqlx::query_as(if exist { MISCOUNTED } else { UNCOUNTED })
        .fetch_all(&mut *transaction)
        .await?;
    for (document, pending) in miscounted {
        let before: i64 = sqlx::query_scalar("SELECT pending FROM documents WHERE id = ?")
            .bind(document)
            .fetch_one(&mut *transaction)
            .await?;
        sqlx::query("UPDATE documents SET pending = ? WHERE id = ?")
            .bind(pending)
            .bind(document)
            .execute(&mut *transaction)
            .await?;
        repairs.vectors += u64::try_from(pending - before).unwrap_or(0);
    }
    write::next_generation(&mut transaction).await?;
    transaction.commit().await?;
    Ok(repairs)
}
