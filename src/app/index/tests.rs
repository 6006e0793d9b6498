mod catch_ups;
mod long;
mod pending;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::app::error::AppError;
use crate::app::testing::Bench;
use crate::domain::chunk::ContextMode;
use crate::domain::embedding::ModelIdentity;
use crate::ports::chunk_store::Change;
use crate::ports::document_source::Refusal;
use crate::ports::embedder::EmbedError;

const LONG: &str = "## One\n\nA first section that is long enough to stand alone, by far.\n\n\
                    ## Two\n\nA second section that is long enough to stand alone as well.\n";

#[tokio::test]
async fn a_first_run_indexes_everything_and_says_so() {
    let bench = Bench::new(&[("a.md", LONG), ("b/c.md", "Some text about tides.")]);
    let report = bench.run().await;
    assert_eq!((report.documents, report.updated, report.chunks), (2, 2, 3));
    assert_eq!(bench.embedded(), 3);
    let log = bench.log.take();
    assert_eq!(log[..3], ["started", "found 2", "0/2"]);
    assert!(log.contains(&"indexed a.md (2)".to_owned()), "{log:?}");
    assert_eq!(log.last().unwrap(), "2/2");
}

// IDX-55
#[tokio::test]
async fn a_second_run_embeds_nothing_and_loads_no_model() {
    let mut bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    bench.embedded();
    bench.restart();
    let before = bench.summary().await.generation;
    let report = bench.run().await;
    assert_eq!((report.updated, report.skipped, report.documents), (0, 0, 2));
    assert_eq!(bench.embedded(), 0);
    assert_eq!(bench.counting.loads.load(Ordering::Relaxed), 0);
    assert_eq!(bench.summary().await.generation, before, "nothing is written");
}

// IDX-62 IDX-63
#[tokio::test]
async fn an_edited_section_alone_is_embedded_again() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.embedded();
    bench.source.put("a.md", LONG.replace("as well", "too, says the editor"));
    let report = bench.run().await;
    assert_eq!(report.updated, 1);
    assert_eq!(bench.embedded(), 1);
    assert!(bench.chunks_of("a.md").await[1].chunk.content.contains("too, says the editor"));
}

// IDX-62
#[tokio::test]
async fn new_frontmatter_over_the_same_text_embeds_nothing() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.embedded();
    bench.source.put("a.md", format!("---\ntitle: New\ntags: [x]\n---\n{LONG}"));
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (1, 0));
    let chunks = bench.chunks_of("a.md").await;
    assert_eq!(chunks[0].document.title.as_deref(), Some("New"));
    assert_eq!(chunks[0].document.tags, ["x"]);
}

// IDX-58 IDX-59 IDX-60 IDX-B10
#[tokio::test]
async fn a_moved_file_keeps_its_vectors_and_takes_its_new_place() {
    let bench = Bench::new(&[("old/a.md", LONG)]);
    bench.run().await;
    bench.embedded();
    let ids: Vec<_> = bench.chunks_of("old/a.md").await.iter().map(|chunk| chunk.id).collect();
    bench.source.remove("old/a.md");
    bench.source.put("new/sub/a.md", LONG);
    let report = bench.run().await;
    assert_eq!((report.renamed, report.updated, report.deleted), (1, 0, 0));
    assert_eq!(bench.embedded(), 0);
    let chunks = bench.chunks_of("new/sub/a.md").await;
    assert_eq!(chunks.iter().map(|chunk| chunk.id).collect::<Vec<_>>(), ids);
    assert_eq!(chunks[0].document.category.as_deref(), Some("new"));
    assert_eq!(chunks[0].document.topic.as_deref(), Some("sub"));
    assert!(bench.log.take().contains(&"renamed old/a.md -> new/sub/a.md".to_owned()));
}

// IDX-58
#[tokio::test]
async fn of_several_moved_copies_each_new_name_is_taken_once_in_order() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", LONG), ("c.md", LONG)]);
    bench.run().await;
    for path in ["a.md", "b.md", "c.md"] {
        bench.source.remove(path);
    }
    bench.source.put("x.md", LONG);
    bench.source.put("y.md", LONG);
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.renamed, report.deleted), (2, 1));
    let log = bench.log.take();
    for line in ["renamed a.md -> x.md", "renamed b.md -> y.md", "deleted c.md"] {
        assert!(log.contains(&line.to_owned()), "{log:?}");
    }
}

// IDX-65
#[tokio::test]
async fn what_has_gone_is_removed() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    bench.source.remove("b.md");
    let report = bench.run().await;
    assert_eq!((report.deleted, report.documents), (1, 1));
    assert_eq!(bench.paths().await, ["a.md"]);
}

// IDX-25 IDX-B05 IDX-58 IDX-65
#[tokio::test]
async fn documents_in_a_folder_that_cannot_be_read_are_kept_and_not_taken_for_moved() {
    let documents =
        [("a.md", "Some text about ropes."), ("shut/in/b.md", LONG), ("shutter.md", "Some text.")];
    let bench = Bench::new(&documents);
    bench.run().await;
    bench.source.close("shut", "permission denied");
    bench.source.remove("shutter.md");
    // The same bytes elsewhere are another document, since nobody knows that it has moved.
    bench.source.put("c.md", LONG);
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.renamed, report.deleted, report.updated, report.documents), (0, 1, 1, 3));
    assert_eq!(bench.paths().await, ["a.md", "c.md", "shut/in/b.md"]);
    let log = bench.log.take();
    let told = |line: &String| {
        ["shut ", "permission denied", "kept"].iter().all(|part| line.contains(part))
    };
    assert_eq!(log.iter().filter(|line| told(line)).count(), 1, "{log:?}");

    // A part of it, too.
    let part = ["shut/in/b.md".to_owned(), "a.md".to_owned()].into();
    bench.source.remove("a.md");
    let report = bench.indexer.catch_up(&part, &bench.observer()).await.unwrap();
    assert_eq!(
        (report.deleted, bench.paths().await),
        (1, vec!["c.md".to_owned(), "shut/in/b.md".to_owned()])
    );

    assert!(bench.source.reopen("shut"));
    bench.source.remove("shut/in/b.md");
    let report = bench.run().await;
    assert_eq!((report.deleted, report.documents), (1, 1));
}

// IDX-25 IDX-B05
#[tokio::test]
async fn a_forced_run_does_not_lose_what_lies_in_a_folder_that_cannot_be_read() {
    let bench = Bench::new(&[("a.md", LONG), ("shut/b.md", "Some text about ropes.")]);
    bench.source.close("shut", "permission denied");
    let report = bench.run_forced().await;
    assert_eq!(report.documents, 1, "nothing was indexed yet that could be lost");
    assert!(bench.source.reopen("shut"));
    bench.run().await;

    bench.source.close("shut", "permission denied");
    let error = bench.indexer.run(true, &bench.observer()).await.unwrap_err().to_string();
    for part in ["1 document", ": shut;", ".grooveignore"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("denied"), "clients see this: {error}");
    let log = bench.log.take();
    let told = "warning: the folder shut cannot be read (permission denied)";
    assert!(log.iter().any(|line| line == told), "{log:?}");
    assert_eq!(bench.paths().await, ["a.md", "shut/b.md"]);
    bench.source.put(".grooveignore", "shut/\n");
    assert_eq!(bench.run_forced().await.documents, 1);
}

// IDX-25
#[tokio::test]
async fn a_root_that_cannot_be_read_stops_the_run() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.source.close("", "input/output error");
    let error = bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    // The schema is the first thing that is read there.
    assert!(matches!(error, AppError::Schema { .. }), "{error}");
    assert!(error.to_string().contains("input/output error"), "{error}");
    assert_eq!(bench.paths().await, ["a.md"]);
}

// IDX-57 IDX-65 IDX-100
#[tokio::test]
async fn a_file_that_cannot_be_read_keeps_what_the_index_has_of_it() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    bench.source.put_failing("a.md");
    let report = bench.run().await;
    assert_eq!((report.skipped, report.deleted, report.documents), (1, 0, 2));
}

// IDX-46 IDX-50 IDX-54
#[tokio::test]
async fn a_file_over_the_cap_is_skipped_with_the_limit_and_the_key() {
    let mut bench = Bench::new(&[("a.md", "Some text about tides.")]);
    bench.run().await;
    bench.indexer.settings.max_text_file_size = Some(30);
    bench.source.put("a.md", LONG);
    bench.source.put("new.md", LONG);
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.skipped, report.documents), (2, 1));
    let log = bench.log.take();
    let line = log.iter().find(|line| line.starts_with("skipped a.md")).unwrap();
    for fact in [&LONG.len().to_string(), "30 bytes", "text", "max_text_file_size"] {
        assert!(line.contains(fact), "{line}");
    }
    let size = bench.chunks_of("a.md").await[0].document.size_bytes;
    assert_eq!(size, Some(LONG.len() as u64), "the measured size is recorded");
}

// IDX-52
#[tokio::test]
async fn a_lower_cap_removes_nothing_and_what_is_over_it_keeps_its_old_text() {
    let mut bench = Bench::new(&[("a.md", LONG), ("b.md", LONG)]);
    bench.run().await;
    bench.indexer.settings.max_text_file_size = Some(60);
    let report = bench.run().await;
    assert_eq!((report.skipped, report.deleted, report.documents), (2, 0, 2));
    bench.source.put("a.md", LONG.replace("as well", "too, says the editor"));
    assert_eq!(bench.run().await.updated, 0);
    assert!(bench.chunks_of("a.md").await[1].chunk.content.contains("as well"));
    bench.source.put("a.md", "Some text about tides.");
    assert_eq!(bench.run().await.updated, 1);
    assert!(bench.chunks_of("a.md").await[0].chunk.content.contains("tides"));
    assert_eq!(bench.run_forced().await.documents, 1, "b.md is over the cap");
}

// IDX-B07 IDX-100
#[tokio::test]
async fn a_file_of_another_user_is_skipped_with_the_key_and_keeps_its_row() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.source.put_refused("a.md", Refusal::OtherOwner);
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.skipped, report.documents), (1, 1));
    let log = bench.log.take();
    let told = |line: &String| line.starts_with("skipped a.md") && line.contains("require_owner");
    assert!(log.iter().any(told), "{log:?}");
}

// IDX-99 IDX-100
#[tokio::test]
async fn bytes_that_are_no_text_are_skipped_and_the_run_goes_on() {
    let bench = Bench::new(&[("z.md", "Some text about tides.")]);
    bench.source.put("a.md", b"caf\xe9".to_vec());
    let report = bench.run().await;
    assert_eq!((report.skipped, report.documents), (1, 1));
    let log = bench.log.take();
    assert!(
        log.iter().any(|line| line.starts_with("skipped a.md") && line.contains("UTF-8")),
        "{log:?}"
    );
}

// IDX-64 IDX-B11
#[tokio::test]
async fn a_file_that_is_emptied_loses_its_row_and_counts_as_skipped() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.source.put("a.md", "---\ntitle: Only this\n---\n");
    let report = bench.run().await;
    assert_eq!((report.skipped, report.documents), (1, 0));
    assert!(bench.paths().await.is_empty());
}

// IDX-88 IDX-90 IDX-91
#[tokio::test]
async fn broken_frontmatter_is_counted_once_and_the_body_indexed() {
    let bench = Bench::new(&[("a.md", &format!("---\ntags: [x\n---\n{LONG}"))]);
    let report = bench.run().await;
    assert_eq!((report.frontmatter_unparsed, report.updated), (1, 1));
    assert_eq!(bench.chunks_of("a.md").await[0].document.tags, ["frontmatter:unparsed"]);
    assert!(bench.log.take().contains(&"unparsed a.md".to_owned()));
    assert_eq!(bench.run().await.frontmatter_unparsed, 0);
}

// IDX-92
#[tokio::test]
async fn broken_frontmatter_fails_the_run_only_when_asked() {
    let mut bench = Bench::new(&[("a.md", &format!("---\ntags: [x\n---\n{LONG}"))]);
    bench.indexer.settings.fail_on_frontmatter_error = true;
    let report = bench.run().await;
    assert!(report.failure.unwrap().contains("fail_on_frontmatter_error"));
    assert_eq!(bench.paths().await, ["a.md"], "the index is written all the same");
}

// IDX-94 IDX-96 IDX-97
#[tokio::test]
async fn a_newly_declared_field_is_read_from_unchanged_files() {
    let bench = Bench::new(&[("a.md", &format!("---\nstatus: draft\n---\n{LONG}"))]);
    bench.run().await;
    bench.embedded();
    assert!(bench.chunks_of("a.md").await[0].document.fields.is_empty());
    bench.source.put("groove-schema.toml", "[fields.status]\n[fields.title]\n");
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (0, 0));
    assert_eq!(bench.chunks_of("a.md").await[0].document.fields["status"], ["draft"]);
    let declared = bench.summary().await.declared_fields.unwrap();
    assert_eq!(declared.into_iter().collect::<Vec<_>>(), ["status"]);
}

#[tokio::test]
async fn a_schema_that_does_not_load_stops_the_run_before_anything_is_touched() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.source.put("groove-schema.toml", "[fields.status]\nkind = 3\n");
    let error = bench.indexer.run(true, &bench.observer()).await.unwrap_err();
    assert!(error.to_string().contains("groove-schema.toml"), "{error}");
    assert_eq!(bench.summary().await.documents, 0);
}

// IDX-112 IDX-113
#[tokio::test]
async fn an_index_of_another_model_is_refused_with_the_remedy() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    let mut bench = bench;
    bench.restart();
    let other = ModelIdentity { model: "other".into(), dimension: 64 };
    bench.indexer.store.apply(vec![Change::Identify(other)]).await.unwrap();
    let error = bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    let text = error.to_string();
    for fact in ["other", "hashing", "dimension 64", "--force --model hashing", "--model other"] {
        assert!(text.contains(fact), "{text}");
    }
    assert_eq!(bench.counting.loads.load(Ordering::Relaxed), 0);
    // Forced, it takes the new model on.
    let report = bench.run_forced().await;
    assert_eq!((report.updated, report.documents), (1, 1));
    assert_eq!(bench.summary().await.identity.unwrap().model, "hashing");
}

// IDX-40 CLI-40
#[tokio::test]
async fn a_forced_run_embeds_every_file_again() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.embedded();
    let report = bench.run_forced().await;
    assert_eq!((report.updated, bench.embedded()), (1, 2));
}

// IDX-B03
#[tokio::test]
async fn a_forced_run_that_breaks_off_leaves_the_index_as_it_was() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    let before = (bench.summary().await, bench.chunks_of("a.md").await);
    bench.source.put("b.md", "More text about the sea, long enough to be found.");
    bench.counting.fail_next();
    bench.indexer.run(true, &bench.observer()).await.unwrap_err();
    assert_eq!((bench.summary().await, bench.chunks_of("a.md").await), before);
    let report = bench.run_forced().await;
    assert_eq!((report.updated, report.documents), (2, 2));
}

// IDX-B03
#[tokio::test]
async fn a_forced_run_serves_the_old_index_until_it_is_done() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    let other = ModelIdentity { model: "other".into(), dimension: 64 };
    bench.indexer.store.apply(vec![Change::Identify(other)]).await.unwrap();
    let before = bench.summary().await;
    let seen = Arc::new(Mutex::new(None));
    let (store, noted) = (Arc::clone(&bench.indexer.store), Arc::clone(&seen));
    bench.log.when("indexed b.md (1)", move || {
        let summary = async { store.snapshot().await.unwrap().summary().await.unwrap() };
        *noted.lock().unwrap() = Some(futures::executor::block_on(summary));
    });
    bench.run_forced().await;
    assert_eq!(seen.lock().unwrap().take(), Some(before));
    assert_eq!(bench.summary().await.identity.unwrap().model, "hashing");
    assert_eq!(bench.paths().await, ["a.md", "b.md"]);
}

// IDX-B03
#[tokio::test]
async fn what_changes_during_a_forced_run_is_in_the_index_after_it() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    let source = Arc::clone(&bench.source);
    bench.log.when("indexed b.md (1)", move || {
        source.remove("a.md");
        source.put("b.md", "Some text about the moon instead.");
        source.put("c.md", "Some text about harbours.");
    });
    let report = bench.run_forced().await;
    assert_eq!(bench.paths().await, ["b.md", "c.md"]);
    assert!(bench.chunks_of("b.md").await[0].chunk.content.contains("moon"));
    assert_eq!((report.documents, report.deleted), (2, 1));
    let again = bench.run().await;
    assert_eq!((again.updated, again.deleted), (0, 0));
}

#[tokio::test]
async fn a_forced_run_without_a_working_model_removes_nothing() {
    let mut bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.restart();
    *bench.counting.broken.lock().unwrap() = true;
    let error = bench.indexer.run(true, &bench.observer()).await.unwrap_err();
    assert!(matches!(error, AppError::EmbedDocuments(_)), "{error}");
    assert_eq!(bench.paths().await, ["a.md"]);
}

// IDX-168
#[tokio::test]
async fn a_document_that_the_model_refuses_is_skipped_alone() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    *bench.counting.refused.lock().unwrap() = Some("tides".into());
    let report = bench.run().await;
    assert_eq!((report.skipped, report.updated), (1, 1));
    assert_eq!(bench.paths().await, ["a.md"]);
}

// IDX-168 IDX-171 CLI-56
#[tokio::test]
async fn a_document_that_is_refused_keeps_what_the_index_had() {
    let bench = Bench::new(&[("a.md", "Some text about tides."), ("b.md", LONG)]);
    bench.run().await;
    *bench.counting.refused.lock().unwrap() = Some("moon".into());
    bench.source.put("a.md", "Some text about the moon.");
    bench.source.put("c.md", "Some text about harbours.");
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.updated, report.skipped, report.failure), (1, 1, None));
    let line = "rejected a.md: HTTP 413; the index keeps what it had".to_owned();
    assert!(bench.log.take().contains(&line));
    assert!(bench.chunks_of("a.md").await[0].chunk.content.contains("tides"));
}

// IDX-104
#[tokio::test]
async fn a_run_of_which_nothing_was_accepted_fails() {
    let bench = Bench::new(&[("a.md", "Some text about tides."), ("b.md", "Other tides.")]);
    *bench.counting.refused.lock().unwrap() = Some("tides".into());
    let report = bench.run().await;
    assert_eq!((report.documents, report.skipped), (0, 2));
    let failure = report.failure.unwrap();
    assert!(failure.contains("accepted no input") && !failure.contains(';'), "{failure}");
}

// IDX-170 IDX-104
#[tokio::test]
async fn a_file_of_which_a_batch_was_accepted_shows_that_the_endpoint_works() {
    let bench = Bench::new(&[("a.md", "Some text about tides.")]);
    *bench.counting.refused.lock().unwrap() = Some("tides".into());
    bench.counting.accepted_others.store(true, Ordering::Relaxed);
    let report = bench.run().await;
    assert_eq!((report.skipped, report.failure), (1, None));
}

// IDX-104 IDX-171 IDX-92
#[tokio::test]
async fn a_forced_run_that_leaves_a_file_out_fails() {
    let mut bench = Bench::new(&[
        ("a.md", "Some text about tides."),
        ("b.md", "---\ntags: [x\n---\nSome text about harbours."),
    ]);
    bench.indexer.settings.fail_on_frontmatter_error = true;
    bench.run().await;
    *bench.counting.refused.lock().unwrap() = Some("tides".into());
    bench.log.take();
    let report = bench.run_forced().await;
    assert_eq!((report.documents, report.skipped), (1, 1));
    assert_eq!(bench.paths().await, ["b.md"]);
    let failure = report.failure.unwrap();
    let (rejected, frontmatter) = failure.split_once("; ").unwrap();
    assert!(rejected.contains("1 document(s) that the embedding endpoint rejected"), "{failure}");
    assert!(frontmatter.contains("frontmatter"), "{failure}");
    let line = "rejected a.md: HTTP 413; the file is not in the index".to_owned();
    assert!(bench.log.take().contains(&line));
}

// IDX-B03 IDX-104
#[tokio::test]
async fn a_forced_run_of_which_nothing_was_accepted_replaces_nothing() {
    let bench = Bench::new(&[("a.md", "Some text about tides.")]);
    bench.run().await;
    *bench.counting.refused.lock().unwrap() = Some("tides".into());
    let report = bench.run_forced().await;
    assert_eq!((report.documents, bench.paths().await), (1, vec!["a.md".to_owned()]));
    assert!(report.failure.unwrap().contains("accepted no input at all"));
}

// IDX-176
#[tokio::test]
async fn a_forced_run_over_an_endpoint_sends_one_probe_first() {
    let mut bench = Bench::new(&[("a.md", "Some text about tides.")]);
    bench.run().await;
    bench.restart_remote();
    bench.embedded();
    *bench.counting.refused.lock().unwrap() = Some("probe".into());
    let error = bench.indexer.run(true, &bench.observer()).await.unwrap_err();
    assert!(matches!(error, AppError::Probe(EmbedError::Refused { .. })), "{error}");
    assert!(error.to_string().contains("nothing was removed"), "{error}");
    assert_eq!(bench.paths().await, ["a.md"]);
    *bench.counting.refused.lock().unwrap() = None;
    bench.run_forced().await;
    assert_eq!(*bench.counting.first.lock().unwrap(), ["GrooveSeek endpoint probe"]);
    assert_eq!(bench.embedded(), 2);
    bench.source.put("b.md", "Some text about harbours.");
    bench.run().await;
    assert_eq!(bench.embedded(), 1, "a run that is not forced sends none");
}

// IDX-113
#[tokio::test]
async fn the_way_back_to_a_folder_can_be_typed() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    let other = ModelIdentity { model: "dir:mini@f46ebe17810c6ed9".into(), dimension: 64 };
    bench.indexer.store.apply(vec![Change::Identify(other)]).await.unwrap();
    let text = bench.indexer.run(false, &bench.observer()).await.unwrap_err().to_string();
    assert!(text.contains("--model dir: and the path of the folder mini"), "{text}");
}

// IDX-113
#[tokio::test]
async fn the_remedy_for_an_endpoint_names_its_configuration() {
    let mut bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.restart_remote();
    let other = ModelIdentity { model: "openai-compatible:a|b:0123".into(), dimension: 64 };
    bench.indexer.store.apply(vec![Change::Identify(other)]).await.unwrap();
    let text = bench.indexer.run(false, &bench.observer()).await.unwrap_err().to_string();
    assert!(text.contains("groove --config <cfg> index --kb-path <path> --force"), "{text}");
    assert!(!text.contains("--model"), "{text}");
}

// IDX-119 IDX-120 IDX-121 CLI-60
#[tokio::test]
async fn contexts_are_kept_in_static_mode_and_the_recorded_mode_wins() {
    let mut bench = Bench::new(&[("notes/a.md", LONG)]);
    bench.indexer.settings.context_mode = ContextMode::Static;
    bench.run().await;
    assert_eq!(bench.chunks_of("notes/a.md").await[0].chunk.context.as_deref(), Some("a > One"));
    bench.indexer.settings.context_mode = ContextMode::Off;
    bench.log.take();
    bench.run().await;
    assert_eq!(bench.summary().await.context_mode, Some(ContextMode::Static));
    assert!(
        bench
            .log
            .take()
            .iter()
            .any(|line| line.starts_with("warning: ") && line.contains("--force"))
    );
    bench.run_forced().await;
    assert_eq!(bench.summary().await.context_mode, Some(ContextMode::Off));
    assert_eq!(bench.chunks_of("notes/a.md").await[0].chunk.context, None);
}

// IDX-17 SRCH-107
#[tokio::test]
async fn a_run_that_stops_records_no_declared_fields_and_the_next_one_goes_on() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.source.put("groove-schema.toml", "[fields.status]\n");
    bench.source.put("a.md", LONG.replace("first", "other"));
    bench.counting.fail_next();
    bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    assert_eq!(bench.summary().await.declared_fields, None);
    assert_eq!(bench.run().await.updated, 1);
    assert!(bench.summary().await.declared_fields.is_some());
}

/// A run that waits for itself never ends; this says so instead.
async fn run_within_a_minute(bench: &Bench) -> crate::app::index::Report {
    tokio::time::timeout(std::time::Duration::from_mins(1), bench.run())
        .await
        .expect("the run waits for itself")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_larger_than_the_memory_in_flight_does_not_stop_a_run() {
    let mut bench = Bench::new(&[("a.md", LONG)]);
    bench.indexer.in_flight_kib = 8;
    bench.source.put("b.md", "word ".repeat(7 * 1024));
    bench.source.put("c.md", LONG);
    let report = run_within_a_minute(&bench).await;
    assert_eq!((report.documents, report.skipped), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_documents_with_little_to_embed_do_not_stop_a_run() {
    let text = |end: &str| {
        let section = |number: usize| format!("## {number}\n\n{}\n\n", "tide ".repeat(100));
        (0..4).map(section).collect::<String>() + end
    };
    let mut bench = Bench::new(&[]);
    bench.indexer.in_flight_kib = 16;
    for number in 0..44 {
        bench.source.put(format!("{number}.md"), text(""));
    }
    run_within_a_minute(&bench).await;
    bench.embedded();
    for number in 0..44 {
        let end = "## New\n\nA paragraph at the end, long enough to stand alone as a chunk.\n";
        bench.source.put(format!("{number}.md"), text(end));
    }
    let report = run_within_a_minute(&bench).await;
    assert_eq!((report.updated, bench.embedded()), (44, 1), "all have the same end");
}

// IDX-56 IDX-59
#[tokio::test]
async fn an_edit_between_hashing_and_reading_is_not_lost() {
    let bench = Bench::new(&[("a.md", &format!("---\nstatus: draft\n---\n{LONG}"))]);
    bench.run().await;
    bench.source.put("groove-schema.toml", "[fields.status]\n");
    // The file changes once it has been hashed, before it is read again.
    bench.log.when("0/1", {
        let source = std::sync::Arc::clone(&bench.source);
        move || {
            let edited = LONG.replace("first", "edited");
            source.put("a.md", format!("---\nstatus: final\n---\n{edited}"));
        }
    });
    bench.run().await;
    let chunks = bench.chunks_of("a.md").await;
    assert!(chunks[0].chunk.content.contains("edited section"), "{:?}", chunks[0].chunk);
    assert_eq!(chunks[0].document.fields["status"], ["final"]);
}

// IDX-114
#[tokio::test]
async fn an_index_without_documents_takes_on_another_model() {
    let bench = Bench::new(&[("a.md", LONG)]);
    let other = ModelIdentity { model: "other".into(), dimension: 3 };
    bench.indexer.store.apply(vec![Change::Empty(other)]).await.unwrap();
    assert_eq!(bench.run().await.updated, 1);
    assert_eq!(bench.summary().await.identity.unwrap().model, "hashing");
}

// IDX-26
#[tokio::test]
async fn an_empty_knowledge_base_is_no_error() {
    let report = Bench::new(&[]).run().await;
    assert_eq!((report.documents, report.chunks), (0, 0));
}

// IDX-B16
#[tokio::test]
async fn the_encoding_of_a_file_is_a_tag_and_its_hash_that_of_its_bytes() {
    let bench = Bench::new(&[]);
    let text = "\u{FEFF}## Tides\n\nA section that is long enough to stand alone, by far.\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.source.put("a.md", little.clone());
    bench.run().await;
    let chunks = bench.chunks_of("a.md").await;
    assert_eq!(chunks[0].document.tags, ["encoding:utf-16le"]);
    assert_eq!(chunks[0].document.size_bytes, Some(little.len() as u64));
    assert!(chunks[0].chunk.content.contains("stand alone"));
    bench.embedded();
    // The same text in other bytes is another file: its tags change and no vector.
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    bench.source.put("a.md", big);
    assert_eq!((bench.run().await.updated, bench.embedded()), (1, 0));
    assert_eq!(bench.chunks_of("a.md").await[0].document.tags, ["encoding:utf-16be"]);
    assert_eq!(bench.run().await.updated, 0);
}

// QUA-20
#[tokio::test]
async fn the_configured_rules_score_what_is_indexed_and_a_move_keeps_the_score() {
    let mut bench = Bench::new(&[("a.md", "## Port\n\n3100\n")]);
    bench.indexer.settings.quality.signals.heading = true;
    bench.indexer.settings.quality.extra_boilerplate = vec!["Noch offen".into()];
    bench.source.put("b.md", "- noch offen!");
    bench.run().await;
    let quality = async |path: &str| bench.chunks_of(path).await[0].quality;
    assert!((quality("a.md").await - 0.4).abs() < 1e-5);
    assert!(quality("b.md").await < 1e-5);
    bench.source.remove("b.md");
    bench.source.put("c.md", "- noch offen!");
    assert_eq!(bench.run().await.renamed, 1);
    assert!(quality("c.md").await < 1e-5);
}
