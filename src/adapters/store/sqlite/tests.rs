//! What only a store in a file promises.

mod damage;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use super::{SqliteStore, vectors};
use crate::adapters::store::trigram;
use crate::domain::chunk::{Chunk, ChunkId};
use crate::domain::document::{ContentHash, DocumentPath};
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::domain::query::Phrase;
use crate::ports::chunk_store::{
    Candidate, Change, ChunkStore as _, Document, LexicalQuery, NewChunk, Restriction, Snapshot,
    StoreError,
};

fn index_file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".groove.db");
    (folder, path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    super::open::with_suffix(path, suffix)
}

fn names_in(folder: &TempDir) -> BTreeSet<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A connection as another program would open it.
async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    options.connect().await.unwrap()
}

/// Runs statements as another program would.
async fn execute(path: &Path, statements: &str) {
    let mut connection = connect(path).await;
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn created(path: &Path) -> SqliteStore {
    SqliteStore::open_or_create(path).await.unwrap()
}

async fn existing(path: &Path) -> SqliteStore {
    SqliteStore::open(path).await.unwrap().unwrap()
}

fn put(key: &str, contents: &[&str], vector: &[f32]) -> Change {
    let path = DocumentPath::new(key).unwrap();
    let chunks = contents.iter().map(|&content| NewChunk {
        chunk: Chunk { content: content.to_owned(), ..Chunk::default() },
        quality: 1.0,
        embedding: Embedding::normalised(vector.to_vec()).ok(),
    });
    let document = Document {
        title: None,
        topic: None,
        category: None,
        depth: None,
        tags: vec!["tag".to_owned()],
        date: None,
        fields: [("owner".to_owned(), vec!["zoë".to_owned()])].into(),
        hash: ContentHash::from_text("hash"),
        recipe: None,
        size_bytes: None,
        indexed_at: "2026-11-30T12:00:00Z".to_owned(),
        path,
    };
    Change::Put { document, chunks: chunks.collect() }
}

async fn nearest(snapshot: &dyn Snapshot, vector: &[f32], depth: usize) -> Vec<Candidate> {
    let query = Embedding::normalised(vector.to_vec()).unwrap();
    snapshot.nearest(&query, depth, &Restriction::default()).await.unwrap()
}

async fn matching(snapshot: &dyn Snapshot, text: &str) -> Vec<ChunkId> {
    let verbatim = vec![Phrase::new(text).unwrap()];
    let query = LexicalQuery { verbatim, ..LexicalQuery::default() };
    let found = snapshot.matching(&query, 100, &Restriction::default()).await.unwrap();
    found.candidates.iter().map(|candidate| candidate.chunk).collect()
}

async fn keys(store: &SqliteStore) -> Vec<String> {
    let documents = store.snapshot().await.unwrap().documents().await.unwrap();
    documents.iter().map(|document| document.path.to_string()).collect()
}

// Opening.

// IDX-04
#[tokio::test]
async fn a_missing_file_is_no_index_and_is_not_created() {
    let (folder, path) = index_file();
    assert!(SqliteStore::open(&path).await.unwrap().is_none());
    assert_eq!(names_in(&folder), BTreeSet::new());
}

// IDX-01 IDX-B01
#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let (folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["words"], &[1.0, 0.0])]).await.unwrap();
    let expected = [".groove.db", ".groove.db-shm", ".groove.db-wal"].map(str::to_owned);
    assert_eq!(names_in(&folder), expected.into());
    for name in names_in(&folder) {
        let mode = fs::metadata(folder.path().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

// IDX-03
#[tokio::test]
async fn the_log_the_keys_and_the_patience_are_set() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    let attached = store.attached();
    let mut writer = attached.writer.lock().await;
    let writer = writer.open().await.unwrap();
    let pragma = async |connection: &mut SqliteConnection, name: &str| -> String {
        let statement = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
        let statement = statement.replace("busy_timeout AS", "timeout AS");
        sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(connection).await.unwrap()
    };
    assert_eq!(pragma(writer, "journal_mode").await, "wal");
    assert_eq!(pragma(writer, "synchronous").await, "1");
    let mut reader = attached.shared.readers.acquire().await.unwrap();
    for connection in [writer, &mut *reader] {
        assert_eq!(pragma(connection, "foreign_keys").await, "1");
        assert_eq!(pragma(connection, "busy_timeout").await, "30000");
    }
}

/// Files that are no database, each in its own way.
async fn damaged_files() -> Vec<Vec<u8>> {
    let (_folder, path) = index_file();
    drop(created(&path).await);
    let mut connection = connect(&path).await;
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let whole = fs::read(&path).unwrap();
    let mut header = whole.clone();
    header[..16].copy_from_slice(b"not a database!!");
    let mut root = whole.clone();
    root[100..].fill(0xA5);
    let garbage = b"This is not a SQLite database. ".repeat(64);
    vec![garbage, header, root]
}

// IDX-05 CLI-220
#[tokio::test]
async fn a_file_that_is_no_database_is_reported_and_left_as_it_is() {
    for bytes in damaged_files().await {
        let (folder, path) = index_file();
        fs::write(&path, &bytes).unwrap();
        for _ in 0..2 {
            let opened = SqliteStore::open(&path).await.unwrap_err();
            let created = SqliteStore::open_or_create(&path).await.unwrap_err();
            for error in [opened, created] {
                assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
                let text = error.to_string();
                assert!(text.contains(path.to_str().unwrap()), "{text}");
                assert!(text.contains("not a usable SQLite database"), "{text}");
                assert!(text.contains("`groove index --force`") && !text.contains('\n'), "{text}");
            }
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert!(names_in(&folder).iter().all(|name| !name.contains("damaged")));
    }
}

// IDX-06 IDX-B02
#[tokio::test]
async fn a_damaged_file_is_moved_aside_until_a_run_is_complete() {
    for bytes in damaged_files().await {
        let (folder, path) = index_file();
        fs::write(&path, &bytes).unwrap();
        fs::write(beside(&path, "-wal"), b"left over").unwrap();
        let store = SqliteStore::open_or_replace(&path).await.unwrap();
        assert_eq!(keys(&store).await, [""; 0]);
        assert_eq!(fs::read(beside(&path, ".damaged")).unwrap(), bytes);
        assert!(!beside(&path, ".replace-lock").exists());

        store.apply(vec![put("a.md", &["words"], &[1.0, 0.0])]).await.unwrap();
        store.apply(vec![Change::Declare(None)]).await.unwrap();
        assert!(beside(&path, ".damaged").exists());
        store.apply(vec![Change::Declare(Some(BTreeSet::new()))]).await.unwrap();
        let left = names_in(&folder);
        assert!(left.iter().all(|name| !name.contains("damaged")), "{left:?}");
        drop(store);
        assert_eq!(keys(&existing(&path).await).await, ["a.md"]);
    }
}

// IDX-06 OPS-42 CFG-89b
#[tokio::test]
async fn one_process_at_a_time_replaces_a_file() {
    let (_folder, path) = index_file();
    fs::write(&path, b"garbage, and enough of it to have a header".repeat(8)).unwrap();
    let before = fs::read(&path).unwrap();
    let lock = fs::File::create(beside(&path, ".replace-lock")).unwrap();
    lock.lock().unwrap();
    let error = SqliteStore::open_or_replace(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }));
    assert!(error.to_string().contains(".groove.db.replace-lock"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);

    // What a process that died has left behind locks nothing.
    drop(lock);
    SqliteStore::open_or_replace(&path).await.unwrap();
}

// IDX-06
#[tokio::test]
async fn what_is_usable_is_never_replaced() {
    let (folder, path) = index_file();
    created(&path).await.apply(vec![put("a.md", &["words"], &[1.0, 0.0])]).await.unwrap();
    let store = SqliteStore::open_or_replace(&path).await.unwrap();
    assert_eq!(keys(&store).await, ["a.md"]);
    assert!(names_in(&folder).iter().all(|name| !name.contains("damaged")));
}

// IDX-06
#[tokio::test]
async fn a_folder_in_place_of_the_file_stays() {
    let (_folder, path) = index_file();
    fs::create_dir(&path).unwrap();
    let errors = [
        SqliteStore::open(&path).await.unwrap_err(),
        SqliteStore::open_or_create(&path).await.unwrap_err(),
        SqliteStore::open_or_replace(&path).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    assert!(path.is_dir());
}

// IDX-06
#[tokio::test]
async fn a_file_that_cannot_be_made_is_reported_with_its_name() {
    let (folder, _) = index_file();
    let path = folder.path().join("missing").join(".groove.db");
    let error = SqliteStore::open_or_replace(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

// IDX-11
#[tokio::test]
async fn another_programs_database_is_reported_and_left_as_it_is() {
    let foreign = [
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO notes VALUES (1, 'x')",
        "CREATE TABLE documents (id INTEGER PRIMARY KEY, body TEXT)",
    ];
    for statements in foreign {
        let (folder, path) = index_file();
        execute(&path, statements).await;
        let before = fs::read(&path).unwrap();
        for _ in 0..2 {
            let error = SqliteStore::open_or_create(&path).await.unwrap_err();
            assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
            assert!(error.to_string().contains("`groove index --force`"), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(names_in(&folder).len(), 1);

        let store = SqliteStore::open_or_replace(&path).await.unwrap();
        store.apply(vec![Change::Declare(Some(BTreeSet::new()))]).await.unwrap();
        assert_eq!(fs::read(beside(&path, ".foreign")).unwrap(), before);
    }
}

/// An index with what its first version had, and with more than this one knows.
const ANOTHER: &str = "
    CREATE TABLE documents (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, title TEXT,
        topic TEXT, category TEXT, depth TEXT, tags TEXT, date TEXT, content_hash TEXT NOT NULL,
        last_indexed TEXT NOT NULL, colour TEXT DEFAULT 'red');
    CREATE TABLE chunks (id INTEGER PRIMARY KEY, document_id INTEGER NOT NULL
        REFERENCES documents(id) ON DELETE CASCADE, chunk_index INTEGER NOT NULL, heading TEXT,
        content TEXT NOT NULL, token_count INTEGER);
    CREATE TABLE index_meta (key TEXT, value TEXT);
    CREATE TABLE notes (body TEXT);
    CREATE VIRTUAL TABLE fts_chunks USING fts5(heading, content, content='', tokenize='trigram');
    INSERT INTO documents (id, path, tags, content_hash, last_indexed)
        VALUES (7, 'a.md', '[\"x\"]', 'hash', '2025-01-01T00:00:00Z'),
               (8, '../b.md', NULL, 'hash', '2025-01-01T00:00:00Z');
    INSERT INTO chunks (id, document_id, chunk_index, heading, content)
        VALUES (3, 7, 0, 'Heading', 'old words'), (4, 8, 0, NULL, 'unreachable words');
    INSERT INTO fts_chunks (rowid, heading, content) VALUES (3, 'Heading', 'old words');
    INSERT INTO index_meta VALUES ('embedding_model', 'm'), ('embedding_dim', '2'), ('shade', '1');
    INSERT INTO notes VALUES ('left alone');
";

// IDX-04 IDX-11 IDX-140
#[tokio::test]
async fn an_older_index_of_another_program_opens_and_gets_what_it_lacks() {
    let (_folder, path) = index_file();
    execute(&path, ANOTHER).await;
    for _ in 0..2 {
        let (first, second) = tokio::join!(existing(&path), existing(&path));
        for store in [first, second] {
            let snapshot = store.snapshot().await.unwrap();
            // A path that could not be opened again is left out.
            assert_eq!(keys(&store).await, ["a.md"]);
            assert_eq!(matching(&*snapshot, "words").await, [ChunkId(3)]);
            let chunks = snapshot.chunks(&[ChunkId(3)]).await.unwrap();
            assert_eq!(chunks[0].token_count, 0);
            assert!((chunks[0].quality - 1.0).abs() < f32::EPSILON);
            assert_eq!(chunks[0].document.tags, ["x"]);
            let identity = ModelIdentity { model: "m".to_owned(), dimension: 2 };
            assert_eq!(snapshot.summary().await.unwrap().identity, Some(identity));
        }
    }
    let store = existing(&path).await;
    store.apply(vec![put("c.md", &["new words"], &[1.0, 0.0])]).await.unwrap();
    store.apply(vec![put("a.md", &["newer words"], &[1.0, 0.0])]).await.unwrap();
    let snapshot = store.snapshot().await.unwrap();
    assert_eq!(matching(&*snapshot, "words").await.len(), 2);
    let mut connection = connect(&path).await;
    let left: (String, String, String) = sqlx::query_as(
        "SELECT (SELECT body FROM notes), (SELECT colour FROM documents WHERE path = 'a.md'),
            (SELECT value FROM index_meta WHERE key = 'shade')",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(left, ("left alone".to_owned(), "red".to_owned(), "1".to_owned()));
}

// IDX-115
#[tokio::test]
async fn a_vector_table_of_another_dimension_stops_all_but_a_forced_run() {
    let (_folder, path) = index_file();
    let identity = ModelIdentity { model: "m".to_owned(), dimension: 2 };
    created(&path).await.apply(vec![Change::Empty(identity)]).await.unwrap();
    execute(&path, "UPDATE index_meta SET value = '3' WHERE key = 'embedding_dim'").await;
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::WrongDimension { expected: 2, actual: 3 }), "{error:?}");
    assert!(error.to_string().contains("`groove index --force`"), "{error}");
    let store = SqliteStore::open_or_replace(&path).await.unwrap();
    let identity = ModelIdentity { model: "m".to_owned(), dimension: 3 };
    store.apply(vec![Change::Empty(identity)]).await.unwrap();
    existing(&path).await;
}

// Several at once, and none to the end.

// IDX-07
#[tokio::test]
async fn a_process_that_is_killed_leaves_every_commit_and_nothing_else() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    for number in 0..5 {
        let key = format!("{number}.md");
        store.apply(vec![put(&key, &["some words", "more"], &[1.0, 0.0])]).await.unwrap();
        let attached = store.attached();
        let mut writer = attached.writer.lock().await;
        let writer = writer.open().await.unwrap();
        let mut unfinished = writer.begin_with("BEGIN IMMEDIATE").await.unwrap();
        // More than fits into memory, so that some of it reaches the disk.
        sqlx::raw_sql(
            "PRAGMA cache_size = 1;
             DELETE FROM chunks;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                INSERT INTO documents (path, content_hash, last_indexed)
                SELECT 'x' || i, hex(randomblob(500)), '' FROM n;",
        )
        .execute(&mut *unfinished)
        .await
        .unwrap();

        // What a killed process leaves: the file and the log, as they are.
        let (_copies, copy) = index_file();
        for side in ["", "-wal"] {
            fs::copy(beside(&path, side), beside(&copy, side)).unwrap();
        }
        let copied = existing(&copy).await;
        assert_eq!(keys(&copied).await.len(), number + 1);
        let snapshot = copied.snapshot().await.unwrap();
        assert_eq!(matching(&*snapshot, "some words").await.len(), number + 1);
        assert_eq!(nearest(&*snapshot, &[1.0, 0.0], 100).await.len(), 2 * (number + 1));
        unfinished.rollback().await.unwrap();
    }
}

// IDX-111 OPS-40
#[tokio::test]
async fn two_stores_on_one_file_see_each_others_commits() {
    let (_folder, path) = index_file();
    let (first, second) = tokio::join!(created(&path), created(&path));
    for store in [&first, &second] {
        store.load_vectors().await.unwrap();
    }
    for number in 0..6_usize {
        let (writer, reader) = if number % 2 == 0 { (&first, &second) } else { (&second, &first) };
        let before = reader.snapshot().await.unwrap();
        let key = format!("{number}.md");
        writer.apply(vec![put(&key, &["words"], &[1.0, 0.0])]).await.unwrap();
        assert_eq!(nearest(&*before, &[1.0, 0.0], 100).await.len(), number);
        let after = reader.snapshot().await.unwrap();
        assert_eq!(nearest(&*after, &[1.0, 0.0], 100).await.len(), number + 1);
        assert_eq!(matching(&*after, "words").await.len(), number + 1);
        let generation = after.summary().await.unwrap().generation;
        assert!(generation > before.summary().await.unwrap().generation);
    }
}

// IDX-111 SRCH-B01
#[tokio::test]
async fn a_reader_does_not_wait_for_a_writer() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["words"], &[1.0, 0.0])]).await.unwrap();
    let attached = store.attached();
    let mut writer = attached.writer.lock().await;
    let writer = writer.open().await.unwrap();
    let mut unfinished = writer.begin_with("BEGIN IMMEDIATE").await.unwrap();
    sqlx::raw_sql("DELETE FROM fts_chunks; DELETE FROM vec_chunks; DELETE FROM documents")
        .execute(&mut *unfinished)
        .await
        .unwrap();
    let reading = async {
        let snapshot = store.snapshot().await.unwrap();
        assert_eq!(matching(&*snapshot, "words").await.len(), 1);
        assert_eq!(nearest(&*snapshot, &[1.0, 0.0], 5).await.len(), 1);
        assert_eq!(snapshot.summary().await.unwrap().documents, 1);
    };
    tokio::time::timeout(Duration::from_secs(10), reading).await.unwrap();
}

#[test]
fn a_snapshot_may_be_dropped_outside_of_the_runtime() {
    let (_folder, path) = index_file();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(created(&path));
    let snapshot = runtime.block_on(store.snapshot()).unwrap();
    drop(snapshot);
    runtime.block_on(store.apply(vec![put("a.md", &["words"], &[1.0, 0.0])])).unwrap();
    assert_eq!(runtime.block_on(keys(&store)), ["a.md"]);
}

// Tables that do not agree.

// SRCH-98 IDX-12
#[tokio::test]
async fn tags_that_cannot_be_read_count_as_none_and_are_counted() {
    let (_folder, path) = index_file();
    let changes = ["a.md", "b.md", "c.md"].map(|key| put(key, &["words"], &[1.0, 0.0]));
    created(&path).await.apply(changes.to_vec()).await.unwrap();
    execute(
        &path,
        "UPDATE documents SET tags = 'x, y' WHERE path = 'a.md';
         UPDATE documents SET tags = '[1]' WHERE path = 'b.md'",
    )
    .await;
    let snapshot = existing(&path).await.snapshot().await.unwrap();
    assert_eq!(snapshot.statistics().await.unwrap().unreadable_tags, 2);
    let documents = snapshot.documents().await.unwrap();
    let tags: Vec<usize> = documents.iter().map(|document| document.tags.len()).collect();
    assert_eq!(tags, [0, 0, 1]);
}

// IDX-13
#[tokio::test]
async fn rows_that_are_missing_or_left_over_are_no_error() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    let contents = ["one words", "two words", "three words", "four words"];
    store.apply(vec![put("a.md", &contents, &[1.0, 0.0])]).await.unwrap();
    let attached = store.attached();
    let mut writer = attached.writer.lock().await;
    let writer = writer.open().await.unwrap();
    sqlx::raw_sql(
        "DELETE FROM fts_chunks WHERE rowid = 1;
         DELETE FROM vec_chunks WHERE chunk_id = 2;
         DELETE FROM chunks WHERE id = 3",
    )
    .execute(&mut *writer)
    .await
    .unwrap();
    for loaded in [false, true] {
        if loaded {
            store.load_vectors().await.unwrap();
        }
        let snapshot = store.snapshot().await.unwrap();
        assert_eq!(matching(&*snapshot, "words").await, [2, 4].map(ChunkId));
        let near: Vec<i64> =
            nearest(&*snapshot, &[1.0, 0.0], 9).await.iter().map(|found| found.chunk.0).collect();
        assert_eq!(near, [1, 4]);
        let ids = [1, 2, 3].map(ChunkId);
        let embeddings = snapshot.embeddings(&ids).await.unwrap();
        let there: Vec<bool> = embeddings.iter().map(Option::is_some).collect();
        assert_eq!(there, [true, false, false]);
        assert_eq!(snapshot.chunks(&ids).await.unwrap().len(), 2);
    }
}

// The engines that are relied upon.

// SRCH-74
#[tokio::test]
async fn the_nearest_chunks_are_those_of_the_vector_tables_own_search() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    // Directions that spread over the plane without repeating.
    let changes: Vec<Change> = (0..60_u8)
        .map(|number| {
            let vectors = (0..40_u8).map(|step| {
                let angle = f32::from(number) * 2.4 + f32::from(step) * 0.061_7;
                [angle.cos(), angle.sin(), (angle * 1.7).sin()]
            });
            let Change::Put { document, mut chunks } =
                put(&format!("{number}.md"), &["words"; 40], &[1.0, 0.0, 0.0])
            else {
                unreachable!("a put is a put")
            };
            for (chunk, vector) in chunks.iter_mut().zip(vectors) {
                chunk.embedding = Embedding::normalised(vector.to_vec()).ok();
            }
            Change::Put { document, chunks }
        })
        .collect();
    store.apply(changes).await.unwrap();
    let removed = DocumentPath::new("7.md").unwrap();
    store.apply(vec![Change::Remove(removed)]).await.unwrap();
    let query = Embedding::normalised(vec![0.3, -0.8, 0.4]).unwrap();
    let reference: Vec<i64> = sqlx::query_scalar(
        "SELECT chunk_id FROM vec_chunks WHERE embedding MATCH ? AND k = 50 ORDER BY distance",
    )
    .bind(vectors::encode(query.as_slice()))
    .fetch_all(store.attached().writer.lock().await.open().await.unwrap())
    .await
    .unwrap();
    for loaded in [false, true] {
        if loaded {
            store.load_vectors().await.unwrap();
        }
        let snapshot = store.snapshot().await.unwrap();
        let found = nearest(&*snapshot, query.as_slice(), 50).await;
        let found: Vec<i64> = found.iter().map(|candidate| candidate.chunk.0).collect();
        assert_eq!(found, reference);
    }
}

// SRCH-63
#[tokio::test]
async fn the_full_text_index_folds_every_character_as_the_table_says() {
    let (_folder, path) = index_file();
    drop(created(&path).await);
    let mut connection = connect(&path).await;
    sqlx::raw_sql(
        "CREATE VIRTUAL TABLE temp.folded USING fts5(text,
            tokenize='trigram remove_diacritics 1 case_sensitive 0');
         CREATE VIRTUAL TABLE temp.terms USING fts5vocab(temp, folded, instance);",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    // Beyond the basic plane only the Deseret letters have cases that it knows;
    // a few others stand for the rest.
    let codes = (1..=0xffff_u32).chain(0x1_0400..0x1_0450).chain([0x1_f600, 0x2_0000, 0x10_ffff]);
    let characters: Vec<char> = codes.filter_map(char::from_u32).collect();
    let texts: Vec<String> = characters.iter().map(|character| format!("{character}zz")).collect();
    sqlx::query("INSERT INTO temp.folded (rowid, text) SELECT key + 1, value FROM json_each(?)")
        .bind(super::rows::json_words(&texts))
        .execute(&mut connection)
        .await
        .unwrap();
    let terms: Vec<(i64, String)> = sqlx::query_as("SELECT doc, term FROM temp.terms ORDER BY doc")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let expected: Vec<(i64, String)> = (1..)
        .zip(&texts)
        .map(|(row, text)| (row, trigram::fold(text)))
        .filter(|(_, folded)| trigram::tokens(folded) > 0)
        .collect();
    assert_eq!(terms.len(), expected.len());
    for (term, expected) in terms.iter().zip(&expected) {
        assert_eq!(term, expected);
    }
}

// IDX-B03
#[tokio::test]
async fn a_replacement_leaves_one_file_and_what_others_keep_in_it() {
    let (folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["old words"], &[1.0, 0.0])]).await.unwrap();
    execute(&path, "CREATE TABLE guest (x); INSERT INTO guest VALUES (7);").await;
    for committed in [false, true] {
        let identity = ModelIdentity { model: "other".into(), dimension: 3 };
        let replacement = store.replacement(identity).await.unwrap();
        let new = put("b.md", &["new words"], &[1.0, 0.0, 0.0]);
        replacement.store().apply(vec![new]).await.unwrap();
        assert!(names_in(&folder).iter().any(|name| name.contains(".rebuild-")));
        if committed {
            replacement.commit().await.unwrap();
        } else {
            drop(replacement);
        }
        let left = names_in(&folder);
        assert!(!left.iter().any(|name| name.contains(".rebuild-")), "{left:?}");
    }
    store.close().await;
    drop(store);
    let mut connection = connect(&path).await;
    let guest: i64 =
        sqlx::query_scalar("SELECT x FROM guest").fetch_one(&mut connection).await.unwrap();
    assert_eq!(guest, 7);
    let said: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
    assert_eq!(said, "ok");
    let key: String =
        sqlx::query_scalar("SELECT path FROM documents").fetch_one(&mut connection).await.unwrap();
    assert_eq!(key, "b.md");
}

// IDX-B03
#[tokio::test]
async fn what_a_dead_process_left_under_construction_is_removed() {
    let (folder, path) = index_file();
    drop(created(&path).await);
    for suffix in [".rebuild-1-0", ".rebuild-1-0-wal", ".rebuild-1-0.lock"] {
        fs::write(beside(&path, suffix), "half").unwrap();
    }
    let held = fs::File::create(beside(&path, ".rebuild-2-0.lock")).unwrap();
    held.lock().unwrap();
    fs::write(beside(&path, ".rebuild-2-0"), "still going").unwrap();
    drop(created(&path).await);
    let left = names_in(&folder);
    assert!(!left.iter().any(|name| name.contains(".rebuild-1-")), "{left:?}");
    assert!(left.contains(".groove.db.rebuild-2-0"), "{left:?}");
}

// IDX-B03 IDX-111
#[tokio::test]
async fn a_reader_of_another_process_sees_the_old_index_and_then_the_new_one() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["old words"], &[1.0, 0.0])]).await.unwrap();
    let other = existing(&path).await;
    other.load_vectors().await.unwrap();
    let before = other.snapshot().await.unwrap();
    let identity = ModelIdentity { model: "m".into(), dimension: 2 };
    let replacement = store.replacement(identity).await.unwrap();
    replacement.store().apply(vec![put("b.md", &["new words"], &[0.0, 1.0])]).await.unwrap();
    replacement.commit().await.unwrap();
    assert_eq!(before.documents().await.unwrap()[0].path.as_str(), "a.md");
    let after = other.snapshot().await.unwrap();
    assert_eq!(after.documents().await.unwrap()[0].path.as_str(), "b.md");
    other.apply(vec![put("c.md", &["more words"], &[1.0, 1.0])]).await.unwrap();
    assert_eq!(store.snapshot().await.unwrap().summary().await.unwrap().documents, 2);
}

/// What a server notices of its file.
async fn paths(store: &SqliteStore) -> Vec<String> {
    let documents = store.snapshot().await.unwrap().documents().await.unwrap();
    documents.iter().map(|document| document.path.to_string()).collect()
}

#[cfg(unix)]
#[tokio::test]
async fn an_index_that_is_removed_or_exchanged_under_a_server_is_opened_anew() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["words"], &[1.0, 0.0])]).await.unwrap();
    store.load_vectors().await.unwrap();
    let before = store.snapshot().await.unwrap();
    for side in ["", "-wal", "-shm"] {
        fs::remove_file(beside(&path, side)).unwrap();
    }
    assert!(paths(&store).await.is_empty());
    assert_eq!(before.documents().await.unwrap().len(), 1);
    store.apply(vec![put("b.md", &["words"], &[1.0, 0.0])]).await.unwrap();
    assert_eq!(paths(&existing(&path).await).await, ["b.md"]);

    let (_other_folder, other) = index_file();
    let another = created(&other).await;
    another.apply(vec![put("c.md", &["words"], &[1.0, 0.0, 0.0])]).await.unwrap();
    another.close().await;
    drop((another, before));
    store.close().await;
    for side in ["-wal", "-shm"] {
        drop(fs::remove_file(beside(&path, side)));
    }
    fs::rename(&other, &path).unwrap();
    assert_eq!(paths(&store).await, ["c.md"]);
}

#[tokio::test]
async fn reading_opens_no_connection_that_writes() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["words"], &[1.0, 0.0])]).await.unwrap();
    let reading = existing(&path).await;
    assert_eq!(paths(&reading).await, ["a.md"]);
    assert!(!reading.attached().writer.lock().await.is_open());
}

// IDX-175
#[tokio::test]
async fn vectors_that_were_stored_at_another_length_still_score_at_most_one() {
    let (_folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["one words", "two words"], &[1.0, 0.0])]).await.unwrap();
    let attached = store.attached();
    let mut writer = attached.writer.lock().await;
    for (chunk, vector) in [(1, [30.0, 40.0]), (2, [0.004, -0.003])] {
        sqlx::query("UPDATE vec_chunks SET embedding = ? WHERE chunk_id = ?")
            .bind(vectors::encode(&vector))
            .bind(chunk)
            .execute(writer.open().await.unwrap())
            .await
            .unwrap();
    }
    drop(writer);
    drop((attached, store));
    let store = existing(&path).await;
    for loaded in [false, true] {
        if loaded {
            store.load_vectors().await.unwrap();
        }
        let snapshot = store.snapshot().await.unwrap();
        let near = nearest(&*snapshot, &[0.6, 0.8], 9).await;
        let ids: Vec<i64> = near.iter().map(|found| found.chunk.0).collect();
        assert_eq!(ids, [1, 2]);
        assert!((0.999..=1.0).contains(&near[0].score), "{near:?}");
        assert!(near[1].score.abs() < 1e-3, "{near:?}");
    }
}

#[tokio::test]
async fn who_only_reads_leaves_one_file_as_well() {
    let (folder, path) = index_file();
    let store = created(&path).await;
    store.apply(vec![put("a.md", &["words"], &[1.0, 0.0])]).await.unwrap();
    store.close().await;
    drop(store);
    assert_eq!(names_in(&folder).len(), 1);
    let reading = existing(&path).await;
    assert_eq!(paths(&reading).await, ["a.md"]);
    reading.close().await;
    assert_eq!(names_in(&folder).len(), 1);
}
