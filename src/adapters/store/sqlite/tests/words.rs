//! The words that a file keeps.

use std::collections::BTreeMap;
use std::path::Path;

use super::{connect, index_file, put};
use crate::adapters::store::sqlite::SqliteStore;
use crate::domain::document::DocumentPath;
use crate::ports::chunk_store::{Change, ChunkStore as _};

/// Every place of every word, however it is cut into blocks.
async fn places(path: &Path) -> BTreeMap<String, Vec<(i64, [u32; 3], u32)>> {
    let mut connection = connect(path).await;
    let rows: Vec<(String, i64, i64, Vec<u8>)> = sqlx::query_as(
        "SELECT word, first, places, postings FROM chunk_words ORDER BY word, first",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let mut places: BTreeMap<String, Vec<(i64, [u32; 3], u32)>> = BTreeMap::new();
    for (word, first, count, bytes) in rows {
        let mut postings = Vec::new();
        super::super::postings::read(&bytes, first, &mut postings);
        assert_eq!(i64::try_from(postings.len()), Ok(count), "{word}");
        assert!(bytes.len() < 1000, "{word}: {}", bytes.len());
        let of_word = places.entry(word).or_default();
        of_word.extend(postings.iter().map(|place| (place.id, place.counts, place.length)));
        assert!(of_word.is_sorted_by(|a, b| a.0 < b.0));
    }
    places
}

#[tokio::test]
async fn words_that_were_kept_up_to_date_are_those_that_are_counted_afresh() {
    let (_folder, path) = index_file();
    let store = SqliteStore::open_or_create(&path).await.unwrap();
    let document = |number: usize, round: usize| {
        let content = |place: usize| format!("common words of {number} in {round} and {place}");
        let contents: Vec<String> = (0..90).map(content).collect();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        put(&format!("d{number}.md"), &contents, &[1.0, 0.0])
    };
    for number in 0..12 {
        store.apply(vec![document(number, 0)]).await.unwrap();
    }
    let name = |number: usize| DocumentPath::new(format!("d{number}.md")).unwrap();
    let renamed = DocumentPath::new("early/name.md").unwrap();
    store
        .apply(vec![
            Change::Remove(name(3)),
            document(5, 1),
            document(5, 2),
            Change::Rename { from: name(0), to: renamed.clone() },
        ])
        .await
        .unwrap();
    let snapshot = store.snapshot().await.unwrap();
    let mut described =
        (**snapshot.documents_at(&[name(7)]).await.unwrap()[0].as_ref().unwrap()).clone();
    described.title = Some("Another title".to_owned());
    drop(snapshot);
    store.apply(vec![Change::Describe(described), Change::Remove(name(11))]).await.unwrap();

    let kept = places(&path).await;
    assert_eq!(kept["common"].len(), 10 * 90);
    assert_eq!(kept["anoth"].len(), 90);
    let mut connection = connect(&path).await;
    assert!(super::super::words::are_current(&mut connection).await.unwrap());
    sqlx::query("DELETE FROM index_meta WHERE key = 'word_rules'")
        .execute(&mut connection)
        .await
        .unwrap();
    drop(connection);
    drop(store);
    // Words by unknown rules are counted anew when the index is opened to be written.
    let store = SqliteStore::open_or_create(&path).await.unwrap();
    store.repair().await.unwrap();
    assert_eq!(places(&path).await, kept);

    // So are words that do not fit the chunks.
    let mut connection = connect(&path).await;
    sqlx::query("DELETE FROM chunks WHERE id IN (SELECT min(id) FROM chunks)")
        .execute(&mut connection)
        .await
        .unwrap();
    assert!(!super::super::words::are_current(&mut connection).await.unwrap());
    store.repair().await.unwrap();
    assert!(super::super::words::are_current(&mut connection).await.unwrap());
    assert_eq!(places(&path).await["common"].len(), 10 * 90 - 1);
}

#[tokio::test]
async fn a_table_of_words_that_is_gone_is_made_again_from_the_chunks() {
    let (_folder, path) = index_file();
    let store = SqliteStore::open_or_create(&path).await.unwrap();
    store.apply(vec![put("a.md", &["some words", "more words"], &[1.0, 0.0])]).await.unwrap();
    let kept = places(&path).await;
    drop(store);
    let mut connection = connect(&path).await;
    sqlx::query("DROP TABLE chunk_words").execute(&mut connection).await.unwrap();
    drop(connection);
    drop(SqliteStore::open_or_create(&path).await.unwrap());
    assert_eq!(places(&path).await, kept);
}
