//! Texts before vectors, and runs beside one another.

use std::sync::Arc;

use super::LONG;
use crate::app::index::{Indexer, Observer};
use crate::app::search::Patience;
use crate::app::testing::{Bench, Log};
use crate::domain::embedding::ModelIdentity;
use crate::domain::search::SearchRequest;
use crate::ports::chunk_store::Change;

// IDX-02 IDX-13
#[tokio::test]
async fn new_documents_are_found_by_their_text_before_a_model_is_there() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides and the moon.")]);
    *bench.counting.broken.lock().unwrap() = true;
    bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    let summary = bench.summary().await;
    assert_eq!((summary.documents, summary.pending_chunks, summary.has_vectors), (2, 3, false));
    assert!(summary.declared_fields.is_some(), "all that a filter asks for is there");
    let request = SearchRequest { query: "tides".into(), ..SearchRequest::default() };
    let answer = bench.searcher().search(&request, Patience::AnswerFromText).await.unwrap();
    assert_eq!(answer.hits[0].path, "b.md");
    assert_eq!(answer.pending_chunks, 3);

    *bench.counting.broken.lock().unwrap() = false;
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.updated, report.documents, bench.embedded()), (2, 2, 3));
    assert_eq!(bench.summary().await.pending_chunks, 0);
    let log = bench.log.take();
    assert!(log.contains(&"indexed a.md (2)".to_owned()), "{log:?}");
    assert_eq!(log.last().unwrap(), "2/2");
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (0, 0));
}

#[tokio::test]
async fn an_index_without_a_vector_takes_on_another_model() {
    let bench = Bench::new(&[("a.md", LONG)]);
    *bench.counting.broken.lock().unwrap() = true;
    bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    let other = ModelIdentity { model: "other".into(), dimension: 3 };
    bench.indexer.store.apply(vec![Change::Identify(other)]).await.unwrap();
    *bench.counting.broken.lock().unwrap() = false;
    assert_eq!(bench.run().await.updated, 1);
    assert_eq!(bench.summary().await.identity.unwrap().model, "hashing");
}

/// So many documents of about 2 KiB each, all different.
fn many(count: usize) -> Vec<(String, String)> {
    let text = |number: usize| format!("Number {number}. {}", format!("tide{number} ").repeat(250));
    (0..count).map(|number| (format!("{number:04}.md"), text(number))).collect()
}

// IDX-07 IDX-17
#[tokio::test]
async fn vectors_that_were_made_before_a_failure_are_not_made_again() {
    let bench = Bench::new(&[]);
    for (path, text) in many(100) {
        bench.source.put(path, text);
    }
    let counting = Arc::clone(&bench.counting);
    bench.log.when("indexed 0000.md (1)", move || counting.fail_next());
    bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    let made = bench.embedded();
    let left = bench.summary().await.pending_chunks;
    assert!(made > 0 && left > 0, "{made} made, {left} left");
    assert_eq!(made as u64 + left, 100);
    bench.run().await;
    assert_eq!(bench.embedded() as u64, left);
}

// IDX-B17
#[tokio::test(flavor = "multi_thread")]
async fn a_change_need_not_wait_for_a_run_to_end() {
    let bench = Bench::new(&[]);
    for (path, text) in many(200) {
        bench.source.put(path, text);
    }
    let (indexer, observer) = (bench.indexer.clone(), bench.observer());
    let source = Arc::clone(&bench.source);
    let runtime = tokio::runtime::Handle::current();
    bench.log.when("text 200/200", move || {
        source.put("new.md", "Some text about harbours.");
        runtime.spawn(async move {
            let part = ["new.md".to_owned()].into();
            indexer.catch_up(&part, &observer).await.unwrap();
        });
    });
    bench.run().await;
    let log = bench.log.take();
    let at = |line: &str| log.iter().position(|told| told == line);
    assert!(at("indexed new.md (1)").unwrap() < at("indexed 0199.md (1)").unwrap(), "{log:?}");
}

// IDX-62
#[tokio::test]
async fn a_text_that_stands_elsewhere_already_is_not_embedded_again() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.embedded();
    bench.source.put("copy.md", LONG);
    bench
        .source
        .put("b.md", format!("{LONG}\n## Three\n\nA third section, long enough as well.\n"));
    bench.source.put("c.md", "Text about tides, twice.");
    bench.source.put("d.md", "Text about tides, twice.");
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (4, 2));
    assert_eq!(bench.summary().await.pending_chunks, 0);
    // The same for a document that is changed.
    bench.source.put("c.md", LONG);
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (1, 0));
}

// IDX-B18 IDX-111
#[tokio::test]
async fn a_run_beside_another_one_says_so_and_goes_on() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    let other = bench.indexer.store.announce("2026-04-16T09:00:00Z").await.unwrap();
    other.advanced(3, 7);
    let report = bench.run().await;
    assert_eq!((report.updated, report.documents), (2, 2));
    let log = bench.log.take();
    assert!(log[0].starts_with("warning: another run"), "{log:?}");
    for fact in ["2026-04-16T09:00:00Z", "3 of 7", &std::process::id().to_string()] {
        assert!(log[0].contains(fact), "{log:?}");
    }
    drop(other);
    assert_eq!(bench.indexer.store.runs().await.unwrap(), []);
}

// IDX-B18 IDX-111
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_another_process_finishes_meanwhile_is_taken_over() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    // The other one has indexed all of it between our plan and our writing.
    let other = Indexer { turn: Arc::default(), ..bench.indexer.clone() };
    let quiet: Arc<dyn Observer> = Arc::new(Log::default());
    bench.log.when("0/2", move || {
        futures::executor::block_on(other.run(false, &quiet)).unwrap();
    });
    let report = bench.run().await;
    assert_eq!((report.documents, report.updated), (2, 0));
    assert_eq!(bench.embedded(), 3, "each text once");
    assert_eq!(bench.summary().await.pending_chunks, 0);
    assert!(bench.log.take().contains(&"2/2".to_owned()));
}
