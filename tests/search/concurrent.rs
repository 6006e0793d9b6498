//! Many searches at once, and writers beside them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use grooveseek::adapters::json;
use grooveseek::adapters::store::sqlite::SqliteStore;
use grooveseek::app::error::AppError;
use grooveseek::domain::document::DocumentPath;
use grooveseek::domain::search::SearchRequest;
use grooveseek::ports::chunk_store::{Change, ChunkStore};
use sqlx::{Connection as _, SqliteConnection};

use crate::{Site, document, put, query, run, search, searcher};

const DOCUMENTS: usize = 8;
const CHUNKS: usize = 3;

/// Everything as it is in one state; none of it in every fifth, which has not
/// recorded its fields either.
async fn state(number: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    for place in 0..DOCUMENTS {
        let key = format!("{place}.md");
        if number.is_multiple_of(5) {
            changes.push(Change::Remove(DocumentPath::new(key).unwrap()));
            continue;
        }
        let mut document = document(&key);
        document.fields.insert("state".to_owned(), vec![number.to_string()]);
        let texts: Vec<String> = (0..CHUNKS)
            .map(|chunk| format!("common words of state {number}, {place} and {chunk}"))
            .collect();
        changes.push(put(document, &texts).await);
    }
    let fields = (!number.is_multiple_of(5)).then(|| BTreeSet::from(["state".to_owned()]));
    changes.push(Change::Declare(fields));
    changes
}

/// Whether an answer comes from one state, whole; an index that has not recorded
/// its fields says so.
async fn is_whole(store: &Arc<SqliteStore>) -> bool {
    let request = SearchRequest {
        limit: Some(100),
        fields_not: [("other".to_owned(), vec!["x".to_owned()])].into(),
        ..query("common words")
    };
    match search(&searcher(store), &request).await {
        Ok(answer) => {
            let of = |content: &str| content.split(',').next().unwrap().to_owned();
            let states: BTreeSet<String> = answer.hits.iter().map(|hit| of(&hit.content)).collect();
            assert_eq!(states.len(), 1, "{states:?}");
            assert_eq!(answer.hits.len(), DOCUMENTS * CHUNKS);
            assert!(answer.hits.iter().all(|hit| hit.matched_by == ["vector", "fulltext"]));
            true
        }
        Err(AppError::Invalid(text)) => {
            assert!(text.contains("groove index"), "{text}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

// SRCH-80 SRCH-107 SRCH-B01
#[test]
fn each_search_sees_one_committed_state_while_others_are_written() {
    run(4, async {
        let site = Site::new();
        let writing = site.open().await;
        writing.apply(state(0).await).await.unwrap();
        assert!(!is_whole(&writing).await);
        writing.apply(state(1).await).await.unwrap();
        let following = site.open().await;
        let unloaded = site.open().await;
        for store in [&writing, &following] {
            store.load_vectors().await.unwrap();
        }
        let done = Arc::new(AtomicBool::new(false));
        let stores = [&writing, &writing, &following, &unloaded].map(Arc::clone);
        let searches = stores.map(|store| {
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                let mut whole = 0;
                while !done.load(Ordering::Relaxed) {
                    whole += usize::from(is_whole(&store).await);
                }
                whole
            })
        });
        for number in 2..42 {
            writing.apply(state(number).await).await.unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for whole in join_all(searches).await {
            assert!(whole.unwrap() > 0);
        }
        for store in [&writing, &following, &unloaded] {
            assert!(is_whole(store).await);
        }
    });
}

// SRCH-B01
#[test]
fn a_search_does_not_wait_for_a_commit_in_the_making() {
    run(1, async {
        let site = Site::new();
        let store = site.open().await;
        store.apply(state(1).await).await.unwrap();
        let url = format!("sqlite://{}", site.path().display());
        let mut writer = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("BEGIN IMMEDIATE; DELETE FROM index_meta; DELETE FROM chunks")
            .execute(&mut writer)
            .await
            .unwrap();
        for loaded in [false, true] {
            if loaded {
                store.load_vectors().await.unwrap();
            }
            assert!(is_whole(&store).await);
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut writer).await.unwrap();
    });
}

fn requests() -> Vec<SearchRequest> {
    let all = |text: &str| SearchRequest { limit: Some(1000), ..query(text) };
    vec![
        query("common words"),
        all("state words -\"number 3\""),
        all("ab"),
        SearchRequest { mmr: Some(true), mmr_lambda: Some(0.4), ..all("words of state") },
        SearchRequest { parent_retriever: Some(true), ..query("number 7") },
        SearchRequest {
            path_globs: Some(vec!["*1.md".to_owned(), "!11.md".to_owned()]),
            min_quality: Some(0.5),
            ..all("common number")
        },
        SearchRequest { limit: Some(u32::MAX), ..query("nothing of the kind") },
    ]
}

async fn answers(store: &Arc<SqliteStore>) -> Vec<String> {
    let searcher = searcher(store);
    let mut answers = Vec::new();
    for request in requests() {
        let answer = search(&searcher, &request).await.unwrap();
        answers.push(json::pretty(&json::search_answer(&answer)));
    }
    answers
}

// SRCH-190 SRCH-191 SRCH-89
#[test]
fn the_same_request_gives_the_same_bytes_however_it_is_answered() {
    let site = Site::new();
    run(1, async {
        let store = site.open().await;
        // Many chunks are alike, so that only their numbers tell them apart.
        for place in 0..30_usize {
            let texts: Vec<String> = (0..40_usize)
                .map(|chunk| format!("common words of state, number {}", (place * chunk) % 9))
                .collect();
            let change = put(document(&format!("{place}.md")), &texts).await;
            store.apply(vec![change]).await.unwrap();
        }
        store.close().await;
    });
    let expected = run(1, async {
        let store = site.open().await;
        let first = answers(&store).await;
        assert!(first.iter().all(|answer| answer.contains("\"path\"")));
        first
    });
    for threads in [1, 4] {
        run(threads, async {
            let store = site.open().await;
            assert_eq!(answers(&store).await, expected, "from the file");
            store.load_vectors().await.unwrap();
            assert_eq!(answers(&store).await, expected, "from memory");
            let together = (0..8).map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { answers(&store).await })
            });
            for answers in join_all(together).await {
                assert_eq!(answers.unwrap(), expected, "eight at once");
            }
        });
    }
}
