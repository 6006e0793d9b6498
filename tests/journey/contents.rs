//! What an index holds, by meaning: the same for any two indexes of the same
//! files, whatever ids and times their rows have and however they are laid out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use grooveseek::adapters::store::sqlite::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use tokio::runtime::{Builder, Runtime};

/// What is compared of a document and of a chunk, in this order.
const OF_DOCUMENTS: [&str; 7] =
    ["title", "topic", "category", "depth", "tags", "date", "content_hash"];
const OF_CHUNKS: [&str; 8] = [
    "heading",
    "level",
    "content",
    "context_text",
    "quality_score",
    "start_line",
    "end_line",
    "symbol_kind",
];

/// What an index holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Contents {
    pub(crate) documents: BTreeMap<String, Document>,
    /// Vectors and full-text rows of no chunk, and chunks of no document.
    pub(crate) strays: Vec<String>,
    /// Whether the full text has the columns of today.
    pub(crate) full_text_of_today: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The columns of [`OF_DOCUMENTS`].
    pub(crate) about: Vec<Option<String>>,
    pub(crate) size_bytes: Option<i64>,
    /// Values of declared fields.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) chunks: Vec<Chunk>,
}

impl Document {
    pub(crate) fn hash(&self) -> &str {
        self.about[6].as_deref().unwrap()
    }

    /// Whether another document has the same metadata and text.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.about == other.about
            && self.fields == other.fields
            && self.chunks.len() == other.chunks.len()
            && self.chunks.iter().zip(&other.chunks).all(|(one, other)| one.text == other.text)
    }

    pub(crate) fn has_the_same_words(&self, other: &Self) -> bool {
        self.chunks.iter().zip(&other.chunks).all(|(one, other)| one.words == other.words)
    }

    pub(crate) fn has_the_same_vectors(&self, other: &Self) -> bool {
        self.chunks.iter().zip(&other.chunks).all(|(one, other)| one.vectors == other.vectors)
    }

    /// Whether nothing but vectors is missing.
    pub(crate) fn has_no_other_vectors(&self, other: &Self) -> bool {
        self.chunks
            .iter()
            .zip(&other.chunks)
            .all(|(one, other)| one.vectors.is_empty() || one.vectors == other.vectors)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    /// The columns of [`OF_CHUNKS`].
    pub(crate) text: Vec<Option<String>>,
    /// Its vectors, of which there should be one.
    pub(crate) vectors: Vec<Vec<u8>>,
    /// What the full text knows of it: per column, how many places, and a digest
    /// of what stands where; nothing if it has no row.
    pub(crate) words: Option<Vec<(String, i64, i64)>>,
}

impl Contents {
    /// Of an index that may be in use. If it is not, reading it leaves one file.
    pub(crate) fn of(index: &Path) -> Self {
        runtime().block_on(async {
            let mut connection = connect(index).await;
            let contents = read(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            contents
        })
    }

    /// The same with what SQLite itself says against the file, of a copy of an
    /// index that nobody has open: reading completes what a process has left in
    /// the log, and the next one is to find that as it was left.
    pub(crate) fn of_copy(index: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.db");
        fs::copy(index, &copy).unwrap();
        for side in ["-wal", "-journal"] {
            let from = index.with_file_name(format!(".groove.db{side}"));
            if from.exists() {
                fs::copy(from, folder.path().join(format!("copy.db{side}"))).unwrap();
            }
        }
        runtime().block_on(async {
            let mut connection = connect(&copy).await;
            let found: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check")
                .fetch_all(&mut connection)
                .await
                .unwrap();
            assert_eq!(found, ["ok"], "the file is not sound");
            let orphans = sqlx::query("PRAGMA foreign_key_check")
                .fetch_all(&mut connection)
                .await
                .unwrap()
                .len();
            assert_eq!(orphans, 0, "rows refer to rows that are not there");
            let contents = read(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            contents
        })
    }

    /// What differs, document by document, for a person to read.
    pub(crate) fn difference(&self, other: &Self) -> String {
        let mut text = String::new();
        if (&self.strays, self.full_text_of_today) != (&other.strays, other.full_text_of_today) {
            writeln!(text, "strays: {:?} {:?}", self.strays, other.strays).unwrap();
        }
        let paths = self.documents.keys().chain(other.documents.keys());
        let mut paths: Vec<&String> = paths.collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let (one, other) = (self.documents.get(path), other.documents.get(path));
            if one == other {
                continue;
            }
            let (Some(one), Some(other)) = (one, other) else {
                let side = if one.is_some() { "not expected" } else { "missing" };
                writeln!(text, "{path}: {side}").unwrap();
                continue;
            };
            writeln!(
                text,
                "{path}: text {}, words {}, vectors {}, chunks {} and {}, sizes {:?} and {:?}, \
                 about {:?} and {:?}",
                one.says_the_same(other),
                one.has_the_same_words(other),
                one.has_the_same_vectors(other),
                one.chunks.len(),
                other.chunks.len(),
                one.size_bytes,
                other.size_bytes,
                one.about,
                other.about,
            )
            .unwrap();
        }
        text
    }

    /// Fails if another index holds anything else.
    pub(crate) fn assert_same(&self, expected: &Self) {
        assert!(self == expected, "the index holds something else:\n{}", self.difference(expected));
    }
}

/// Executes statements on a file that is no longer, or not yet, in use.
pub(crate) fn execute(index: &Path, statements: &str) {
    runtime().block_on(async {
        let mut connection = connect(index).await;
        let statements = AssertSqlSafe(statements.to_owned());
        sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

/// Copies an index with its side files as they are in the middle of these
/// statements, which it does not keep.
pub(crate) fn copy_in_the_middle(index: &Path, statements: &str, side: &str, copy: &Path) {
    runtime().block_on(async {
        let mut connection = connect(index).await;
        let begin = format!("PRAGMA cache_size = 1; BEGIN IMMEDIATE; {statements}");
        sqlx::raw_sql(AssertSqlSafe(begin)).execute(&mut connection).await.unwrap();
        for side in ["", side] {
            let name = |path: &Path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                path.with_file_name(format!("{name}{side}"))
            };
            fs::copy(name(index), name(copy)).unwrap();
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

/// Holds the one lock that lets nobody else write, until it is dropped.
pub(crate) struct Locked(Option<SqliteConnection>);

impl Locked {
    pub(crate) fn new(index: &Path) -> Self {
        runtime().block_on(async {
            let mut connection = connect(index).await;
            sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut connection).await.unwrap();
            Self(Some(connection))
        })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let connection = self.0.take();
        runtime().block_on(async { connection.unwrap().close().await.unwrap() });
    }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        // Whoever opens an index teaches SQLite what vector tables are.
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let store = SqliteStore::open_or_create(&folder.path().join("x.db")).await.unwrap();
            store.close().await;
        });
        runtime
    })
}

async fn connect(index: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(index)
        .foreign_keys(true)
        .busy_timeout(std::time::Duration::from_mins(1))
        .disable_statement_logging()
        .connect()
        .await
        .unwrap()
}

async fn read(connection: &mut SqliteConnection) -> Result<Contents, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let connection = &mut *transaction;
    let mut contents = Contents::default();
    if columns(connection, "documents").await?.is_empty() {
        return Ok(contents);
    }
    let mut ids = BTreeMap::new();
    let what = selected(connection, "documents", &OF_DOCUMENTS).await?;
    let size = selected(connection, "documents", &["size_bytes"]).await?;
    let rows = query(
        connection,
        format!("SELECT id, path, CAST({size} AS INTEGER), {what} FROM documents"),
    );
    for row in rows.await? {
        let path: String = row.get(1);
        ids.insert(row.get::<i64, _>(0), path.clone());
        let document = Document {
            about: texts(&row, 3, OF_DOCUMENTS.len()),
            size_bytes: row.get(2),
            fields: Vec::new(),
            chunks: Vec::new(),
        };
        contents.documents.insert(path, document);
    }
    if !columns(connection, "document_fields").await?.is_empty() {
        let statement =
            "SELECT document_id, key, value FROM document_fields ORDER BY key, value".to_owned();
        for row in query(connection, statement).await? {
            match ids.get(&row.get::<i64, _>(0)) {
                Some(path) => {
                    let fields = &mut contents.documents.get_mut(path).unwrap().fields;
                    fields.push((row.get(1), row.get(2)));
                }
                None => contents.strays.push("a value of a field".to_owned()),
            }
        }
    }

    let mut vectors = vectors(connection).await?;
    let mut words = words(connection, &mut contents).await?;
    let what = selected(connection, "chunks", &OF_CHUNKS).await?;
    let statement =
        format!("SELECT id, document_id, {what} FROM chunks ORDER BY document_id, chunk_index");
    for row in query(connection, statement).await? {
        let id: i64 = row.get(0);
        let chunk = Chunk {
            text: texts(&row, 2, OF_CHUNKS.len()),
            vectors: vectors.remove(&id).unwrap_or_default(),
            words: words.remove(&id),
        };
        match ids.get(&row.get::<i64, _>(1)) {
            Some(path) => contents.documents.get_mut(path).unwrap().chunks.push(chunk),
            None => contents.strays.push(format!("chunk {id}")),
        }
    }
    contents.strays.extend(vectors.keys().map(|id| format!("vector of chunk {id}")));
    contents.strays.extend(words.keys().map(|id| format!("full-text row of chunk {id}")));
    transaction.rollback().await?;
    Ok(contents)
}

async fn vectors(
    connection: &mut SqliteConnection,
) -> Result<BTreeMap<i64, Vec<Vec<u8>>>, sqlx::Error> {
    let mut vectors: BTreeMap<i64, Vec<Vec<u8>>> = BTreeMap::new();
    if columns(connection, "vec_chunks").await?.is_empty() {
        return Ok(vectors);
    }
    let statement = "SELECT chunk_id, embedding FROM vec_chunks".to_owned();
    for row in query(connection, statement).await? {
        vectors.entry(row.get(0)).or_default().push(row.get(1));
    }
    Ok(vectors)
}

/// What the full text knows, by chunk.
async fn words(
    connection: &mut SqliteConnection,
    contents: &mut Contents,
) -> Result<BTreeMap<i64, Vec<(String, i64, i64)>>, sqlx::Error> {
    let mut words: BTreeMap<i64, Vec<(String, i64, i64)>> = BTreeMap::new();
    let columns = columns(connection, "fts_chunks").await?;
    if columns.is_empty() {
        return Ok(words);
    }
    contents.full_text_of_today = columns.iter().any(|column| column == "context");
    for row in query(connection, "SELECT rowid FROM fts_chunks".to_owned()).await? {
        words.insert(row.get(0), Vec::new());
    }
    let table =
        "CREATE VIRTUAL TABLE temp.places USING fts5vocab('main', 'fts_chunks', 'instance')";
    sqlx::raw_sql(table).execute(&mut *connection).await?;
    let statement = "SELECT doc, col, count(*), sum((unicode(term) * 65599
            + coalesce(unicode(substr(term, 2)), 0) * 257
            + coalesce(unicode(substr(term, 3)), 0)) * (offset + 1))
        FROM temp.places GROUP BY doc, col ORDER BY doc, col"
        .to_owned();
    for row in query(connection, statement).await? {
        words.entry(row.get(0)).or_default().push((row.get(1), row.get(2), row.get(3)));
    }
    sqlx::raw_sql("DROP TABLE temp.places").execute(&mut *connection).await?;
    Ok(words)
}

async fn query(
    connection: &mut SqliteConnection,
    statement: String,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    sqlx::query(AssertSqlSafe(statement)).fetch_all(connection).await
}

async fn columns(
    connection: &mut SqliteConnection,
    table: &str,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT name FROM pragma_table_info(?)")
        .bind(table)
        .fetch_all(connection)
        .await
}

/// These columns as texts, and nothing in place of those that are not there.
async fn selected(
    connection: &mut SqliteConnection,
    table: &str,
    wanted: &[&str],
) -> Result<String, sqlx::Error> {
    let there = columns(connection, table).await?;
    let wanted = wanted.iter().map(|column| {
        let known = there.iter().any(|name| name == column);
        if known { format!("CAST({column} AS TEXT)") } else { "CAST(NULL AS TEXT)".to_owned() }
    });
    Ok(wanted.collect::<Vec<_>>().join(", "))
}

fn texts(row: &SqliteRow, from: usize, count: usize) -> Vec<Option<String>> {
    (from..from + count).map(|place| row.get(place)).collect()
}
