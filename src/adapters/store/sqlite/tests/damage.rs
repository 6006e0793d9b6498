//! Damage that only another program can do to a file.

use super::*;
use crate::ports::chunk_store::{Damage, Fault};

async fn damage(store: &SqliteStore, fault: Fault) -> Damage {
    store.snapshot().await.unwrap().damage(fault).await.unwrap()
}

fn found(count: u64, samples: &[&str]) -> Damage {
    Damage { count, samples: samples.iter().map(|&name| name.to_owned()).collect() }
}

/// An index of two documents, the second of which waits for two vectors.
async fn two_documents(path: &Path) -> SqliteStore {
    let store = created(path).await;
    let identity = ModelIdentity { model: "m".to_owned(), dimension: 2 };
    store
        .apply(vec![
            Change::Empty(identity),
            put("b.md", &["one", "two"], &[1.0, 0.0]),
            put("a.md", &["three", "four"], &[]),
        ])
        .await
        .unwrap();
    store
}

// OPS-60
#[tokio::test]
async fn lost_vectors_are_told_from_those_that_are_still_to_come() {
    let (_folder, path) = index_file();
    let store = two_documents(&path).await;
    assert_eq!(damage(&store, Fault::LostVector).await, Damage::default());
    execute(&path, "DELETE FROM vec_chunks WHERE chunk_id = 2").await;
    assert_eq!(damage(&store, Fault::LostVector).await, found(1, &["b.md"]));
    execute(&path, "UPDATE documents SET pending = 1 WHERE path = 'a.md'").await;
    assert_eq!(damage(&store, Fault::LostVector).await, found(2, &["a.md", "b.md"]));
    store.repair().await.unwrap();
    assert_eq!(damage(&store, Fault::LostVector).await, Damage::default());
}

// OPS-60a
#[tokio::test]
async fn a_vector_table_that_is_gone_is_missed_by_every_chunk() {
    let (_folder, path) = index_file();
    let store = two_documents(&path).await;
    assert_eq!(damage(&store, Fault::NoVectors).await, Damage::default());
    execute(&path, "DROP TABLE vec_chunks").await;
    assert_eq!(damage(&store, Fault::NoVectors).await, found(4, &[]));
    for other in [Fault::LostVector, Fault::OrphanVector] {
        assert_eq!(damage(&store, other).await, Damage::default(), "{other:?}");
    }
    execute(&path, "DELETE FROM chunks; DELETE FROM documents").await;
    assert_eq!(damage(&store, Fault::NoVectors).await, Damage::default());
}

// OPS-61
#[tokio::test]
async fn chunks_whose_words_were_never_counted_are_missing_in_the_full_text() {
    let (_folder, path) = index_file();
    let store = two_documents(&path).await;
    // As a program does that knows nothing of words.
    execute(
        &path,
        "INSERT INTO chunks (id, document_id, chunk_index, content) VALUES (9, 1, 2, 'five');
         INSERT INTO fts_chunks (rowid, heading, context, content) VALUES (9, '', '', 'five');",
    )
    .await;
    assert_eq!(damage(&store, Fault::LostText).await, found(1, &[]));
    assert!(store.repair().await.unwrap().texts > 0);
    assert_eq!(damage(&store, Fault::LostText).await, Damage::default());
}

// OPS-65w IDX-22
#[tokio::test]
async fn a_document_whose_name_is_no_key_is_removed_by_a_repair() {
    let (_folder, path) = index_file();
    let store = two_documents(&path).await;
    assert_eq!(damage(&store, Fault::NoKey).await, Damage::default());
    execute(&path, "UPDATE documents SET path = '../a.md' WHERE path = 'a.md'").await;
    assert_eq!(damage(&store, Fault::NoKey).await, found(1, &["../a.md"]));
    store.repair().await.unwrap();
    for fault in Fault::ALL {
        assert_eq!(damage(&store, fault).await, Damage::default(), "{fault:?}");
    }
    let summary = store.snapshot().await.unwrap().summary().await.unwrap();
    assert_eq!((summary.documents, summary.chunks, summary.pending_chunks), (1, 2, 0));
}

// OPS-74
#[tokio::test]
async fn a_record_of_fields_that_is_no_list_of_words_is_damage() {
    let (_folder, path) = index_file();
    let store = two_documents(&path).await;
    store.apply(vec![Change::Declare(Some(["a".to_owned()].into()))]).await.unwrap();
    assert_eq!(damage(&store, Fault::UnreadableFields).await, Damage::default());
    for value in ["", "a", "{}", "[1]", "null"] {
        let statement =
            format!("UPDATE index_meta SET value = '{value}' WHERE key = 'declared_fields'");
        execute(&path, &statement).await;
        assert_eq!(damage(&store, Fault::UnreadableFields).await, found(1, &[]), "{value}");
    }
}

// OPS-75
#[tokio::test]
async fn damage_of_which_nothing_can_be_told_is_an_error() {
    let (_folder, path) = index_file();
    let store = two_documents(&path).await;
    execute(&path, "DROP TABLE fts_chunks_docsize").await;
    let snapshot = store.snapshot().await.unwrap();
    for fault in [Fault::LostText, Fault::OrphanText] {
        let error = snapshot.damage(fault).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
}
