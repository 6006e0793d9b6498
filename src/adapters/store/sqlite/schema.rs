//! Tables and migrations.

use std::collections::BTreeSet;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::adapters::store::sqlite::{meta, words};
use crate::ports::chunk_store::StoreError;

/// The tables whose columns decide whether a file is an index, each with what
/// it must have.
const REQUIRED: [(&str, &[&str]); 3] = [
    (
        "documents",
        &[
            "id",
            "path",
            "title",
            "topic",
            "category",
            "depth",
            "tags",
            "date",
            "content_hash",
            "last_indexed",
        ],
    ),
    ("chunks", &["id", "document_id", "chunk_index", "heading", "content"]),
    ("index_meta", &["key", "value"]),
];

/// Columns that came later: table, column, declaration.
const ADDED: [(&str, &str, &str); 13] = [
    ("documents", "size_bytes", "INTEGER"),
    ("documents", "recipe", "TEXT"),
    ("documents", "pending", "INTEGER NOT NULL DEFAULT 0"),
    ("documents", "language", "TEXT"),
    ("chunks", "level", "INTEGER"),
    ("chunks", "token_count", "INTEGER"),
    ("chunks", SCORES, "REAL NOT NULL DEFAULT 1.0"),
    ("chunks", "context_text", "TEXT"),
    ("chunks", "start_line", "INTEGER"),
    ("chunks", "end_line", "INTEGER"),
    ("chunks", "symbol_kind", "TEXT"),
    ("chunks", "table_rows", "TEXT"),
    ("chunks", "text_hash", "BLOB"),
];

/// The column of them that holds scores.
const SCORES: &str = "quality_score";

/// What a new file starts with.
const CORE: &str = "
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path TEXT NOT NULL UNIQUE,
        title TEXT,
        topic TEXT,
        category TEXT,
        depth TEXT,
        tags TEXT NOT NULL DEFAULT '[]',
        date TEXT,
        content_hash TEXT NOT NULL,
        last_indexed TEXT NOT NULL
    );
    CREATE TABLE chunks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        chunk_index INTEGER NOT NULL,
        heading TEXT,
        content TEXT NOT NULL
    );
    CREATE TABLE index_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
";

/// What follows the columns: all of it may be there already.
const DERIVED: &str = "
    CREATE INDEX IF NOT EXISTS chunks_by_document ON chunks (document_id, chunk_index);
    CREATE INDEX IF NOT EXISTS chunks_by_quality ON chunks (quality_score);
    CREATE INDEX IF NOT EXISTS chunks_by_text ON chunks (text_hash) WHERE text_hash IS NOT NULL;
    CREATE INDEX IF NOT EXISTS documents_pending ON documents (path, pending) WHERE pending > 0;
    CREATE TABLE IF NOT EXISTS document_fields (
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS document_fields_by_document ON document_fields (document_id);
";

const FULL_TEXT: &str = "
    CREATE VIRTUAL TABLE fts_chunks USING fts5(
        heading, context, content,
        content='', contentless_delete=1,
        tokenize='trigram remove_diacritics 1 case_sensitive 0'
    );
    INSERT INTO fts_chunks (rowid, heading, context, content)
        SELECT id, heading, context_text, content FROM chunks ORDER BY id;
";

/// What a file is, by its tables.
pub(super) enum Tables {
    /// A database without a table.
    Empty,
    /// An index.
    Ours(Dimensions),
    /// Something else; the reason says what does not fit.
    Foreign(String),
}

/// The dimension that the vector table declares and the one that is recorded.
pub(super) struct Dimensions {
    declared: Option<usize>,
    recorded: Option<usize>,
}

impl Dimensions {
    /// Refuses a vector table that does not fit the recorded identity.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match (self.declared, self.recorded) {
            (Some(expected), Some(actual)) if expected != actual => {
                Err(StoreError::WrongDimension { expected, actual })
            }
            _ => Ok(()),
        }
    }
}

impl Tables {
    /// Looks at the tables of a file.
    pub(super) async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let tables: BTreeSet<String> = sqlx::query_scalar(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite|_%' ESCAPE '|'",
        )
        .fetch_all(&mut *connection)
        .await?
        .into_iter()
        .collect();
        if tables.is_empty() {
            return Ok(Self::Empty);
        }
        let fields: (&str, &[&str]) = ("document_fields", &["document_id", "key", "value"]);
        let optional = tables.contains(fields.0).then_some(fields);
        for (table, wanted) in REQUIRED.into_iter().chain(optional) {
            if !tables.contains(table) {
                return Ok(Self::Foreign(format!("it has no table `{table}`")));
            }
            let columns = columns(connection, table).await?;
            if let Some(missing) = wanted.iter().find(|&&column| !columns.contains(column)) {
                return Ok(Self::Foreign(format!("`{table}` has no column `{missing}`")));
            }
        }
        let recorded: Option<String> =
            sqlx::query_scalar("SELECT value FROM index_meta WHERE key = 'embedding_dim'")
                .fetch_optional(&mut *connection)
                .await?;
        Ok(Self::Ours(Dimensions {
            declared: declared_dimension(connection).await?,
            recorded: recorded.and_then(|text| text.parse().ok()),
        }))
    }
}

/// Adds what is missing. Takes the write lock only if something is.
pub(super) async fn settle(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    if is_settled(connection).await? {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Another process may have been first.
    if matches!(Tables::read(&mut transaction).await?, Tables::Empty) {
        sqlx::raw_sql(CORE).execute(&mut *transaction).await?;
    }
    for (table, column, declaration) in ADDED {
        if !columns(&mut transaction, table).await?.contains(column) {
            let statement = format!("ALTER TABLE {table} ADD COLUMN {column} {declaration}");
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *transaction).await?;
            if column == SCORES {
                // Whatever was recorded of the scores, none of them is there.
                meta::remove(&mut transaction, meta::QUALITY_RULES).await?;
            }
        }
    }
    sqlx::raw_sql(DERIVED).execute(&mut *transaction).await?;
    if !has_full_text(&mut transaction).await? {
        sqlx::raw_sql("DROP TABLE IF EXISTS fts_chunks").execute(&mut *transaction).await?;
        sqlx::raw_sql(FULL_TEXT).execute(&mut *transaction).await?;
    }
    let counted = words::are_there(&mut transaction).await?;
    sqlx::raw_sql(words::TABLE).execute(&mut *transaction).await?;
    if !counted || !words::follow_rules(&mut transaction).await? {
        words::recount(&mut transaction).await?;
    }
    transaction.commit().await
}

/// Whether nothing is missing.
pub(super) async fn is_settled(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if columns(connection, "index_meta").await?.is_empty() {
        return Ok(false);
    }
    for (table, column, _) in ADDED {
        if !columns(connection, table).await?.contains(column) {
            return Ok(false);
        }
    }
    let derived: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sqlite_master WHERE name IN (
            'chunks_by_document', 'chunks_by_quality', 'chunks_by_text', 'documents_pending',
            'document_fields', 'document_fields_by_document', 'chunk_words',
            'documents_by_language')",
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(derived == 8 && has_full_text(connection).await? && words::follow_rules(connection).await?)
}

/// Whether the full-text table has its three columns and forgets rows.
async fn has_full_text(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let statement: Option<String> =
        sqlx::query_scalar("SELECT sql FROM sqlite_master WHERE name = 'fts_chunks'")
            .fetch_optional(&mut *connection)
            .await?;
    let Some(statement) = statement else { return Ok(false) };
    let columns = columns(connection, "fts_chunks").await?;
    Ok(["heading", "context", "content"].iter().all(|&column| columns.contains(column))
        && ["contentless_delete", "trigram"].iter().all(|&word| statement.contains(word)))
}

async fn columns(
    connection: &mut SqliteConnection,
    table: &str,
) -> Result<BTreeSet<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT name FROM pragma_table_info(?)")
        .bind(table)
        .fetch_all(connection)
        .await
        .map(|names: Vec<String>| names.into_iter().collect())
}

/// The dimension of the vector table, if there is one.
pub(super) async fn declared_dimension(
    connection: &mut SqliteConnection,
) -> Result<Option<usize>, sqlx::Error> {
    let statement: Option<String> =
        sqlx::query_scalar("SELECT sql FROM sqlite_master WHERE name = 'vec_chunks'")
            .fetch_optional(connection)
            .await?;
    Ok(statement.and_then(|statement| dimension_of(&statement)))
}

/// Reads the number out of `float[384]`.
fn dimension_of(statement: &str) -> Option<usize> {
    let statement = statement.to_ascii_lowercase();
    let (_, rest) = statement.split_once("float[")?;
    rest.split_once(']')?.0.trim().parse().ok()
}

/// Makes the vector table, in place of one that is there. Its blocks are smaller
/// than usual: each is one value of a row, and every write into it walks there
/// from its start.
pub(super) async fn create_vectors(
    connection: &mut SqliteConnection,
    dimension: usize,
) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("DROP TABLE IF EXISTS vec_chunks").execute(&mut *connection).await?;
    let statement = format!(
        "CREATE VIRTUAL TABLE vec_chunks USING vec0(chunk_id INTEGER PRIMARY KEY, \
         embedding float[{dimension}], chunk_size=256)"
    );
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dimension_is_read_in_any_spelling() {
        let statement = "CREATE VIRTUAL TABLE vec_chunks USING vec0(\n chunk_id INTEGER PRIMARY KEY,\n embedding FLOAT[ 1024 ]\n)";
        assert_eq!(dimension_of(statement), Some(1024));
        assert_eq!(dimension_of("CREATE TABLE vec_chunks (x)"), None);
    }
}
