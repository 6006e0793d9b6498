//! From rows to domain values and back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::domain::chunk::{Chunk, ChunkId, LineRange, Span};
use crate::domain::document::{ContentHash, DocumentPath};
use crate::ports::chunk_store::{Document, StoredChunk};

/// Documents by the number that their row has.
pub(super) type Documents = HashMap<i64, Arc<Document>>;

const DOCUMENT_COLUMNS: &str = "id, path, title, topic, category, depth, tags, date, \
     content_hash, last_indexed, size_bytes, recipe";

/// Writes numbers as the JSON array that a statement unfolds with `json_each`.
pub(super) fn json_numbers(numbers: impl IntoIterator<Item = i64>) -> String {
    let mut text = String::from("[");
    for number in numbers {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&number.to_string());
    }
    text.push(']');
    text
}

/// Writes words as a JSON array.
pub(super) fn json_words<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    let words = words.into_iter().map(|word| serde_json::Value::from(word.as_str())).collect();
    serde_json::Value::Array(words).to_string()
}

/// Reads a JSON array of words back.
pub(super) fn words(json: &str) -> Option<Vec<String>> {
    serde_json::from_str(json).ok()
}

/// Every document. A row whose path cannot be a document's key is left out.
pub(super) async fn all_documents(
    connection: &mut SqliteConnection,
) -> Result<Documents, sqlx::Error> {
    let fields = sqlx::query("SELECT document_id, key, value FROM document_fields ORDER BY rowid")
        .fetch_all(&mut *connection)
        .await?;
    let statement = format!("SELECT {DOCUMENT_COLUMNS} FROM documents");
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement)).fetch_all(connection).await?;
    documents_of(&rows, &fields)
}

/// The documents with these numbers.
///
/// - `ids`: a JSON array.
pub(super) async fn documents(
    connection: &mut SqliteConnection,
    ids: String,
) -> Result<Documents, sqlx::Error> {
    let fields = sqlx::query(
        "SELECT document_id, key, value FROM document_fields
         WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY rowid",
    )
    .bind(&ids)
    .fetch_all(&mut *connection)
    .await?;
    let statement = format!(
        "SELECT {DOCUMENT_COLUMNS} FROM documents WHERE id IN (SELECT value FROM json_each(?))"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(&ids).fetch_all(connection).await?;
    documents_of(&rows, &fields)
}

/// The documents with these paths.
pub(super) async fn documents_at(
    connection: &mut SqliteConnection,
    paths: &[DocumentPath],
) -> Result<HashMap<DocumentPath, Arc<Document>>, sqlx::Error> {
    let list = paths.iter().map(|path| serde_json::Value::from(path.as_str())).collect();
    let ids: Vec<i64> = sqlx::query_scalar(
        "SELECT id FROM documents WHERE path IN (SELECT value FROM json_each(?))",
    )
    .bind(serde_json::Value::Array(list).to_string())
    .fetch_all(&mut *connection)
    .await?;
    let documents = documents(connection, json_numbers(ids)).await?;
    Ok(documents.into_values().map(|document| (document.path.clone(), document)).collect())
}

fn documents_of(rows: &[SqliteRow], fields: &[SqliteRow]) -> Result<Documents, sqlx::Error> {
    let mut values: HashMap<i64, BTreeMap<String, Vec<String>>> = HashMap::new();
    for row in fields {
        values
            .entry(row.try_get_unchecked(0)?)
            .or_default()
            .entry(row.try_get_unchecked(1)?)
            .or_default()
            .push(row.try_get_unchecked(2)?);
    }
    let mut documents = HashMap::with_capacity(rows.len());
    for row in rows {
        let id: i64 = row.try_get_unchecked(0)?;
        if let Some(document) = document(row, values.remove(&id).unwrap_or_default())? {
            documents.insert(id, Arc::new(document));
        }
    }
    Ok(documents)
}

fn document(
    row: &SqliteRow,
    fields: BTreeMap<String, Vec<String>>,
) -> Result<Option<Document>, sqlx::Error> {
    let path: String = row.try_get_unchecked(1)?;
    let path = match DocumentPath::new(path.as_str()) {
        Ok(path) => path,
        Err(error) => {
            tracing::warn!(path, %error, "leaving out a document whose path cannot be opened");
            return Ok(None);
        }
    };
    let tags: Option<String> = row.try_get_unchecked(6)?;
    let tags = tags.map_or(Some(Vec::new()), |tags| words(&tags)).unwrap_or_else(|| {
        tracing::warn!(%path, "the stored tags cannot be read and count as none");
        Vec::new()
    });
    let size_bytes: Option<i64> = row.try_get_unchecked(10)?;
    Ok(Some(Document {
        path,
        title: row.try_get_unchecked(2)?,
        topic: row.try_get_unchecked(3)?,
        category: row.try_get_unchecked(4)?,
        depth: row.try_get_unchecked(5)?,
        tags,
        date: row.try_get_unchecked(7)?,
        fields,
        hash: ContentHash::from_text(
            row.try_get_unchecked::<Option<String>, _>(8)?.unwrap_or_default(),
        ),
        recipe: row.try_get_unchecked(11)?,
        size_bytes: size_bytes.and_then(|size| u64::try_from(size).ok()),
        indexed_at: row.try_get_unchecked::<Option<String>, _>(9)?.unwrap_or_default(),
    }))
}

/// Which chunks a statement reads.
pub(super) enum Which<'a> {
    /// Those with these ids.
    Ids(&'a [ChunkId]),
    /// Those of one document, in order.
    Of(&'a DocumentPath),
    /// Those of one document from one place in it to another, in order.
    Between(&'a DocumentPath, u32, u32),
    /// So many of one document at most, in order.
    FirstOf(&'a DocumentPath, usize),
    /// Those of one document that are not in the vector table, in order.
    PendingOf(&'a DocumentPath),
}

/// Reads chunks with their documents; in no order for [`Which::Ids`].
pub(super) async fn chunks(
    connection: &mut SqliteConnection,
    which: Which<'_>,
) -> Result<Vec<StoredChunk>, sqlx::Error> {
    const COLUMNS: &str = "SELECT c.id, c.document_id, c.chunk_index, c.heading, c.level, \
         c.content, c.token_count, c.quality_score, c.context_text, c.start_line, c.end_line, \
         c.symbol_kind, c.table_rows FROM chunks c";
    let between;
    let (condition, argument) = match which {
        Which::Ids(ids) => (
            "WHERE c.id IN (SELECT value FROM json_each(?))",
            json_numbers(ids.iter().map(|id| id.0)),
        ),
        Which::Of(path) => (
            "WHERE c.document_id = (SELECT id FROM documents WHERE path = ?)
             ORDER BY c.chunk_index, c.id",
            path.as_str().to_owned(),
        ),
        Which::Between(path, first, last) => {
            between = format!(
                "WHERE c.document_id = (SELECT id FROM documents WHERE path = ?)
                 AND c.chunk_index BETWEEN {first} AND {last}
                 ORDER BY c.chunk_index, c.id"
            );
            (between.as_str(), path.as_str().to_owned())
        }
        Which::FirstOf(path, _) => (
            "WHERE c.document_id = (SELECT id FROM documents WHERE path = ?)
             ORDER BY c.chunk_index, c.id LIMIT ?",
            path.as_str().to_owned(),
        ),
        Which::PendingOf(path) => (
            "WHERE c.document_id = (SELECT id FROM documents WHERE path = ?)
             AND c.id NOT IN (SELECT rowid FROM vec_chunks_rowids)
             ORDER BY c.chunk_index, c.id",
            path.as_str().to_owned(),
        ),
    };
    let mut query =
        sqlx::query(sqlx::AssertSqlSafe(format!("{COLUMNS} {condition}"))).bind(argument);
    if let Which::FirstOf(_, most) = which {
        query = query.bind(i64::try_from(most).unwrap_or(i64::MAX));
    }
    let rows = query.fetch_all(&mut *connection).await?;
    let mut owners = Vec::with_capacity(rows.len());
    for row in &rows {
        owners.push(row.try_get_unchecked::<i64, _>(1)?);
    }
    owners.sort_unstable();
    owners.dedup();
    let owners = json_numbers(owners);
    let documents = documents(connection, owners.clone()).await?;
    let counts: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT document_id, count(*) FROM chunks
         WHERE document_id IN (SELECT value FROM json_each(?)) GROUP BY document_id",
    )
    .bind(owners)
    .fetch_all(connection)
    .await?;
    let siblings: HashMap<i64, i64> = counts.into_iter().collect();
    let mut chunks = Vec::with_capacity(rows.len());
    for row in &rows {
        let owner: i64 = row.try_get_unchecked(1)?;
        if let Some(document) = documents.get(&owner) {
            let siblings = siblings.get(&owner).copied().unwrap_or(1);
            chunks.push(chunk(row, Arc::clone(document), siblings)?);
        }
    }
    Ok(chunks)
}

fn chunk(
    row: &SqliteRow,
    document: Arc<Document>,
    siblings: i64,
) -> Result<StoredChunk, sqlx::Error> {
    let number = |index: usize| -> Result<Option<u32>, sqlx::Error> {
        let number: Option<i64> = row.try_get_unchecked(index)?;
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    };
    let table_rows: Option<String> = row.try_get_unchecked(12)?;
    Ok(StoredChunk {
        id: ChunkId(row.try_get_unchecked(0)?),
        document,
        index: number(2)?.unwrap_or(0),
        siblings: u32::try_from(siblings).unwrap_or(u32::MAX),
        chunk: Chunk {
            heading: row.try_get_unchecked(3)?,
            level: number(4)?.and_then(|level| u8::try_from(level).ok()),
            content: row.try_get_unchecked::<Option<String>, _>(5)?.unwrap_or_default(),
            context: row.try_get_unchecked(8)?,
            lines: number(9)?.zip(number(10)?).map(|(start, end)| LineRange { start, end }),
            symbol_kind: row.try_get_unchecked(11)?,
            table_rows: table_rows.as_deref().map(spans).unwrap_or_default(),
        },
        token_count: number(6)?.unwrap_or(0),
        quality: quality(row.try_get_unchecked(7)?),
    })
}

/// A stored quality; a chunk that was never scored is worth finding.
#[expect(clippy::cast_possible_truncation, reason = "a quality lies between 0 and 1")]
pub(super) fn quality(stored: Option<f64>) -> f32 {
    stored.map_or(1.0, |quality| quality as f32)
}

/// Writes spans as JSON, none as nothing.
pub(super) fn json_spans(spans: &[Span]) -> Option<String> {
    let pair = |span: &Span| serde_json::Value::from(vec![span.start, span.end]);
    (!spans.is_empty())
        .then(|| serde_json::Value::Array(spans.iter().map(pair).collect()).to_string())
}

fn spans(json: &str) -> Vec<Span> {
    let pairs: Vec<(usize, usize)> = serde_json::from_str(json).unwrap_or_default();
    pairs.into_iter().map(|(start, end)| Span { start, end }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_survive_being_stored() {
        let rows = vec![Span { start: 0, end: 4 }, Span { start: 5, end: 9 }];
        assert_eq!(json_spans(&rows).map(|json| spans(&json)), Some(rows));
        assert_eq!(json_spans(&[]), None);
        assert_eq!(spans("not json"), []);
    }

    // SRCH-98
    #[test]
    fn a_tag_list_is_read_only_if_it_is_a_list_of_words() {
        let tags = vec!["a\"b".to_owned(), "日本".to_owned(), String::new()];
        assert_eq!(words(&json_words(&tags)), Some(tags));
        for broken in ["", "a,b", "[1]", "{}", "[\"a\"", "null"] {
            assert_eq!(words(broken), None, "{broken:?}");
        }
    }
}
