//! Texts that are longer than the model's window.

use super::*;
use crate::app::testing::WINDOW_WORDS;
use crate::domain::embedding::Embedding;
use crate::ports::chunk_store::{Document, NewChunk, StoredChunk};
use crate::ports::embedder::Embedder;

fn long(word: &str) -> String {
    format!("## {word}\n\n{}\n", format!("{word} ").repeat(WINDOW_WORDS + 1))
}

/// A vector that nothing gives.
fn cut_off(bench: &Bench) -> Embedding {
    let mut values = vec![0.0; bench.indexer.model.identity().dimension];
    values[0] = 1.0;
    Embedding::from_stored(values)
}

/// Makes an index of it as a program left it that cut long texts off and recorded
/// less.
async fn age(bench: &mut Bench) {
    let cut_off = cut_off(bench);
    let summary = bench.summary().await;
    let mut changes = vec![
        // Forgets what an earlier program did not know.
        Change::Empty(summary.identity.unwrap()),
        Change::UseContext(summary.context_mode.unwrap()),
        Change::Declare(summary.declared_fields),
    ];
    let snapshot = bench.indexer.store.snapshot().await.unwrap();
    for document in snapshot.documents().await.unwrap() {
        let stored = snapshot.chunks_of(&document.path).await.unwrap();
        let ids: Vec<_> = stored.iter().map(|chunk| chunk.id).collect();
        let vectors = snapshot.embeddings(&ids).await.unwrap();
        let chunk = |(stored, vector): (StoredChunk, Option<Embedding>)| {
            let is_long = stored.chunk.content.split_whitespace().count() > WINDOW_WORDS;
            let embedding = if is_long { Some(cut_off.clone()) } else { vector };
            NewChunk { chunk: stored.chunk, quality: stored.quality, embedding }
        };
        let chunks = stored.into_iter().zip(vectors).map(chunk).collect();
        let document = Document { recipe: None, ..(*document).clone() };
        changes.push(Change::Put { document, chunks });
    }
    bench.indexer.store.apply(changes).await.unwrap();
    assert_eq!(bench.summary().await.long_texts, None);
    bench.embedded();
    bench.log.take();
    bench.restart();
}

/// Whether each chunk has the vector of its text.
async fn assert_is_right(bench: &Bench) {
    for path in bench.paths().await {
        for stored in bench.chunks_of(&path).await {
            let snapshot = bench.indexer.store.snapshot().await.unwrap();
            let vector = snapshot.embeddings(&[stored.id]).await.unwrap().remove(0);
            let text = stored.chunk.embedding_text();
            let expected = bench.counting.embed_query(&text).await.unwrap();
            assert_eq!(vector, Some(expected), "{path}");
        }
    }
}

fn notes(bench: &Bench) -> Vec<String> {
    bench.log.take().into_iter().filter(|line| line.contains("window")).collect()
}

const IN_PARTS: &str =
    "chunk(s) are longer than the model's window of 200 tokens and were embedded in parts";
const AGAIN: &str =
    "chunk(s) were cut off at the model's window when they were embedded, and are embedded again";

// IDX-B23
#[tokio::test]
async fn a_run_tells_how_many_chunks_were_embedded_in_parts() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", &long("tide")), ("c.md", &long("moon"))]);
    bench.run().await;
    assert_eq!(notes(&bench), [format!("note: 2 {IN_PARTS}")]);
    bench.run().await;
    assert_eq!(notes(&bench), [""; 0]);
    bench.run_forced().await;
    assert_eq!(notes(&bench), [format!("note: 2 {IN_PARTS}")]);
}

// IDX-B23
#[tokio::test]
async fn what_an_earlier_program_cut_off_is_embedded_again_once_and_nothing_else() {
    let mut bench = Bench::new(&[("a.md", LONG), ("b.md", &format!("{LONG}{}", long("tide")))]);
    bench.run().await;
    age(&mut bench).await;
    // Whoever takes over the vector of a like text must not get the one cut off.
    bench.source.put("c.md", long("tide"));
    let report = bench.run().await;
    assert_eq!((report.documents, bench.embedded()), (3, 1));
    assert_eq!(notes(&bench), [format!("note: 1 {AGAIN}"), format!("note: 1 {IN_PARTS}")]);
    assert_is_right(&bench).await;

    bench.restart();
    bench.run().await;
    assert_eq!((bench.embedded(), bench.counting.loads.load(Ordering::Relaxed)), (0, 0));
    assert_eq!(notes(&bench), [""; 0]);
}

// IDX-B23
#[tokio::test]
async fn a_run_that_stops_before_all_is_embedded_again_is_gone_on_with() {
    let mut bench = Bench::new(&[("a.md", LONG), ("b.md", &long("tide")), ("c.md", &long("moon"))]);
    bench.run().await;
    age(&mut bench).await;
    bench.counting.fail_next();
    bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    bench.run().await;
    assert_eq!(bench.embedded(), 2);
    assert_is_right(&bench).await;
}

// IDX-B23
#[tokio::test]
async fn a_model_that_cannot_be_loaded_leaves_the_vectors_as_they_are() {
    let mut bench = Bench::new(&[("a.md", &long("tide"))]);
    bench.run().await;
    age(&mut bench).await;
    *bench.counting.broken.lock().unwrap() = true;
    bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    assert_eq!(bench.summary().await.pending_chunks, 0);
    *bench.counting.broken.lock().unwrap() = false;
    bench.run().await;
    assert_is_right(&bench).await;
}

// IDX-B23
#[tokio::test]
async fn the_window_of_an_endpoint_is_not_known() {
    let mut bench = Bench::new(&[("a.md", &long("tide"))]);
    bench.run().await;
    age(&mut bench).await;
    bench.restart_remote();
    bench.run().await;
    assert_eq!((bench.embedded(), bench.counting.loads.load(Ordering::Relaxed)), (0, 0));
}
