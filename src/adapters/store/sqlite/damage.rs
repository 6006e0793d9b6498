//! Finding out what another program, an older one or the medium has damaged.

use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::sqlite::{meta, rows, vectors, words};
use crate::domain::document::DocumentPath;
use crate::ports::chunk_store::{Damage, Fault};

// Each statement gives the name of a document, or none, and how often it is
// damaged.

/// All chunks, unless all of them are waiting for their vectors.
const NO_VECTORS: &str = "SELECT NULL, count(*) FROM chunks
     HAVING count(*) > (SELECT coalesce(sum(pending), 0) FROM documents)";

const LOST_VECTORS: &str = "SELECT d.path, count(c.id) - d.pending FROM documents d
     JOIN chunks c ON c.document_id = d.id AND c.id NOT IN (SELECT rowid FROM vec_chunks_rowids)
     GROUP BY d.id HAVING count(c.id) > d.pending";

const ORPHAN_VECTORS: &str = "SELECT NULL, count(*) FROM vec_chunks_rowids
     WHERE rowid NOT IN (SELECT id FROM chunks)";

const LOST_TEXTS: &str = "SELECT d.path, count(*) FROM chunks c
     LEFT JOIN documents d ON d.id = c.document_id
     WHERE c.id NOT IN (SELECT id FROM fts_chunks_docsize) GROUP BY d.path";

const ORPHAN_TEXTS: &str = "SELECT NULL, count(*) FROM fts_chunks_docsize
     WHERE id NOT IN (SELECT id FROM chunks)";

const ORPHAN_CHUNKS: &str = "SELECT NULL, count(*) FROM chunks
     WHERE document_id NOT IN (SELECT id FROM documents)";

const EMPTY_DOCUMENTS: &str = "SELECT path, 1 FROM documents
     WHERE id NOT IN (SELECT document_id FROM chunks)";

/// How often a kind of damage is found.
pub(super) async fn of(
    connection: &mut SqliteConnection,
    fault: Fault,
) -> Result<Damage, sqlx::Error> {
    match fault {
        Fault::NoVectors if vectors::exist(connection).await? => Ok(Damage::default()),
        Fault::NoVectors => found(connection, NO_VECTORS).await,
        Fault::LostVector | Fault::OrphanVector if !vectors::exist(connection).await? => {
            Ok(Damage::default())
        }
        Fault::LostVector => found(connection, LOST_VECTORS).await,
        Fault::OrphanVector => found(connection, ORPHAN_VECTORS).await,
        Fault::LostText => {
            let mut damage = found(connection, LOST_TEXTS).await?;
            damage.count = damage.count.max(count(words::uncounted(connection).await?));
            Ok(damage)
        }
        Fault::OrphanText => found(connection, ORPHAN_TEXTS).await,
        Fault::OrphanChunk => found(connection, ORPHAN_CHUNKS).await,
        Fault::EmptyDocument => found(connection, EMPTY_DOCUMENTS).await,
        Fault::BlankCode => found(connection, &blank_code()).await,
        Fault::NoKey => no_keys(connection).await,
        Fault::UnreadableFields => unreadable_fields(connection).await,
    }
}

async fn found(connection: &mut SqliteConnection, rows: &str) -> Result<Damage, sqlx::Error> {
    let total =
        format!("WITH found (name, times) AS ({rows}) SELECT coalesce(sum(times), 0) FROM found");
    let total: i64 = sqlx::query_scalar(AssertSqlSafe(total)).fetch_one(&mut *connection).await?;
    let samples = format!(
        "WITH found (name, times) AS ({rows})
         SELECT DISTINCT name FROM found WHERE name IS NOT NULL ORDER BY name LIMIT {}",
        Damage::MAX_SAMPLES
    );
    let samples = sqlx::query_scalar(AssertSqlSafe(samples)).fetch_all(connection).await?;
    Ok(Damage { count: count(total), samples })
}

/// Chunks of source code, which have lines, that hold nothing but white space.
fn blank_code() -> String {
    let blanks: Vec<String> = (char::MIN..=char::MAX)
        .filter(|character| character.is_whitespace())
        .map(|character| u32::from(character).to_string())
        .collect();
    format!(
        "SELECT d.path, 1 FROM chunks c JOIN documents d ON d.id = c.document_id
         WHERE c.start_line IS NOT NULL AND trim(c.content, char({})) = ''",
        blanks.join(", ")
    )
}

async fn no_keys(connection: &mut SqliteConnection) -> Result<Damage, sqlx::Error> {
    let mut samples = names_without_key(connection).await?;
    let count = samples.len() as u64;
    samples.truncate(Damage::MAX_SAMPLES);
    Ok(Damage { count, samples })
}

/// The names of documents that are no keys, in ascending order.
pub(super) async fn names_without_key(
    connection: &mut SqliteConnection,
) -> Result<Vec<String>, sqlx::Error> {
    let names: Vec<String> = sqlx::query_scalar("SELECT path FROM documents ORDER BY path")
        .fetch_all(connection)
        .await?;
    Ok(names.into_iter().filter(|name| DocumentPath::new(name.as_str()).is_err()).collect())
}

async fn unreadable_fields(connection: &mut SqliteConnection) -> Result<Damage, sqlx::Error> {
    let entries = meta::all(connection).await?;
    let recorded = entries.get(meta::DECLARED_FIELDS);
    let unreadable = recorded.is_some_and(|fields| rows::words(fields).is_none());
    Ok(Damage { count: u64::from(unreadable), samples: Vec::new() })
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
