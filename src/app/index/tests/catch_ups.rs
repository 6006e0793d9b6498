//! Indexes that an earlier program, other settings or another place have made.

use super::LONG;
use crate::app::error::AppError;
use crate::app::testing::Bench;
use crate::domain::chunk::{Chunk, ContextMode, LineRange};
use crate::domain::document::{ContentHash, DocumentPath};
use crate::ports::chunk_store::{Change, Document, NewChunk, StoredChunk};

// IDX-62
#[tokio::test]
async fn what_is_known_of_a_chunk_besides_its_text_follows_without_embedding() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.embedded();
    let stored = bench.chunks_of("a.md").await;
    let ids: Vec<_> = stored.iter().map(|chunk| chunk.id).collect();
    let snapshot = bench.indexer.store.snapshot().await.unwrap();
    let vectors = snapshot.embeddings(&ids).await.unwrap();
    drop(snapshot);
    let elsewhere = |(stored, embedding): (&StoredChunk, _)| {
        let chunk = Chunk { lines: Some(LineRange { start: 7, end: 8 }), ..stored.chunk.clone() };
        NewChunk { chunk, quality: 1.0, embedding }
    };
    let chunks = stored.iter().zip(vectors).map(elsewhere).collect();
    let document = (*stored[0].document).clone();
    bench.indexer.store.apply(vec![Change::Put { document, chunks }]).await.unwrap();
    bench.source.put("a.md", format!("---\ntitle: New\n---\n{LONG}"));
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (1, 0));
    let plain = |chunks: &[StoredChunk]| -> Vec<Chunk> {
        chunks.iter().map(|chunk| chunk.chunk.clone()).collect()
    };
    assert_eq!(plain(&bench.chunks_of("a.md").await), plain(&stored));
}

// IDX-B14 IDX-B19 IDX-73
#[tokio::test]
async fn other_settings_cut_unchanged_documents_anew_and_embed_what_is_new() {
    let mut bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    bench.embedded();
    bench.indexer.exclude_headings = vec!["Two".into()];
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (1, 0));
    assert_eq!(bench.chunks_of("a.md").await.len(), 1);
    assert!(bench.log.take().contains(&"recutting 2".to_owned()));
    // Once is enough.
    let before = bench.summary().await.generation;
    assert_eq!(bench.run().await.updated, 0);
    assert_eq!(bench.summary().await.generation, before, "nothing is written");
    bench.indexer.exclude_headings = Vec::new();
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (1, 1));
}

/// Makes the rows what an earlier program would have written.
async fn age(bench: &Bench) {
    let snapshot = bench.indexer.store.snapshot().await.unwrap();
    let mut changes = Vec::new();
    for document in snapshot.documents().await.unwrap() {
        let mut document = (*document).clone();
        document.recipe = None;
        document.tags.retain(|tag| tag != "frontmatter:unparsed");
        document.indexed_at = "2020-01-01T00:00:00Z".to_owned();
        changes.push(Change::Describe(document));
    }
    bench.indexer.store.apply(changes).await.unwrap();
}

// IDX-141 IDX-90 IDX-B19 CLI-57
#[tokio::test]
async fn an_index_of_an_earlier_program_is_looked_through_once() {
    let bench = Bench::new(&[
        ("a.md", &format!("---\ntags: [x\n---\n{LONG}")),
        ("b.md", "Some text about tides."),
        ("c.md", "Some text about harbours."),
    ]);
    bench.run().await;
    age(&bench).await;
    bench.embedded();
    bench.log.take();
    // A file that cannot be read is looked at another time.
    bench.source.put_failing("c.md");
    let report = bench.run().await;
    assert_eq!((report.updated, report.frontmatter_unparsed, report.skipped), (0, 1, 1));
    assert_eq!(bench.embedded(), 0);
    assert_eq!(bench.chunks_of("a.md").await[0].document.tags, ["frontmatter:unparsed"]);
    assert_eq!(bench.chunks_of("b.md").await[0].document.indexed_at, "2020-01-01T00:00:00Z");
    let log = bench.log.take();
    assert!(log.contains(&"recutting 2".to_owned()), "{log:?}");
    assert!(log.iter().any(|line| line.starts_with("note: Tagged 1 unchanged")), "{log:?}");

    bench.source.put("c.md", "Some text about harbours.");
    let report = bench.run().await;
    assert_eq!((report.updated, report.frontmatter_unparsed), (0, 0));
    assert!(bench.log.take().contains(&"recutting 1".to_owned()));
    let before = bench.summary().await.generation;
    bench.run().await;
    assert_eq!(bench.summary().await.generation, before, "nothing is written");
}

// QUA-20 QUA-21 QUA-22 QUA-23 QUA-B02
#[tokio::test]
async fn scores_follow_the_rules_without_embedding() {
    let mut bench = Bench::new(&[("a.md", "3100 is the port of it"), ("b.md", LONG)]);
    let template = {
        bench.run().await;
        bench.chunks_of("b.md").await.remove(0)
    };
    // What an earlier program wrote: everything counts full, also of a format
    // that is switched off.
    let put = |path: &str, symbol_kind: Option<&str>| Change::Put {
        document: Document {
            path: DocumentPath::new(path).unwrap(),
            ..(*template.document).clone()
        },
        chunks: vec![NewChunk {
            chunk: Chunk {
                content: "TODO".into(),
                symbol_kind: symbol_kind.map(str::to_owned),
                ..Chunk::default()
            },
            quality: 1.0,
            embedding: None,
        }],
    };
    let changes = vec![put("x.pdf", None), put("y.py", Some("constant")), put("a.md", None)];
    bench.indexer.store.apply(changes).await.unwrap();
    bench.indexer.store.apply(vec![Change::Judge("earlier".into())]).await.unwrap();
    bench.embedded();
    bench.log.take();
    let observer = bench.observer();
    bench.indexer.refresh_scores(Some("earlier"), &observer).await.unwrap();
    for (path, quality) in [("x.pdf", 0.5), ("y.py", 0.5), ("a.md", 0.0), ("b.md", 0.7)] {
        let stored = bench.chunks_of(path).await[0].quality;
        assert!((stored - quality).abs() < 1e-5, "{path}: {stored}");
    }
    assert_eq!(bench.log.take(), ["note: scored 3 chunk(s) anew"]);
    let rules = bench.summary().await.quality_rules;
    assert_eq!(rules, Some(bench.indexer.settings.quality.generation()));

    // Other rules, other scores; the same ones cost nothing.
    bench.indexer.settings.quality.extra_boilerplate = vec!["3100 is the port of it".into()];
    bench.source.put("a.md", "3100 is the port of it");
    bench.run().await;
    let before = bench.summary().await.generation;
    bench.run().await;
    assert_eq!(bench.summary().await.generation, before, "nothing is written");
    assert!(bench.chunks_of("a.md").await[0].quality < 1e-5);
    bench.indexer.settings.quality.extra_boilerplate = Vec::new();
    bench.embedded();
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (0, 0));
    assert!((bench.chunks_of("a.md").await[0].quality - 0.1).abs() < 1e-5);
}

// IDX-146
#[tokio::test]
async fn following_changes_catches_nothing_up_elsewhere() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    age(&bench).await;
    bench.source.put("b.md", "Some text about the moon.");
    let part = ["b.md".to_owned()].into();
    bench.indexer.catch_up(&part, &bench.observer()).await.unwrap();
    assert_eq!(bench.chunks_of("a.md").await[0].document.recipe, None);
    assert!(bench.chunks_of("b.md").await[0].document.recipe.is_some());
}

// IDX-09 IDX-B04
#[tokio::test]
async fn an_index_of_another_knowledge_base_beside_this_one_is_left_alone() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.source.rename("notes");
    bench.run().await;
    assert_eq!(bench.summary().await.root.as_deref(), Some("notes"));
    bench.source.rename("journal");
    bench.source.put("b.md", "Some text about tides.");
    bench.source.put_neighbour("notes");
    let error = bench.indexer.run(false, &bench.observer()).await.unwrap_err();
    assert!(matches!(error, AppError::OtherRoot { .. }), "{error}");
    for fact in ["\"notes\"", "\"journal\"", "--force"] {
        assert!(error.to_string().contains(fact), "{error}");
    }
    assert_eq!(bench.paths().await, ["a.md"]);
    let part = ["b.md".to_owned()].into();
    let error = bench.indexer.catch_up(&part, &bench.observer()).await.unwrap_err();
    assert!(matches!(error, AppError::OtherRoot { .. }), "{error}");
    bench.run_forced().await;
    assert_eq!(bench.summary().await.root.as_deref(), Some("journal"));
    assert_eq!(bench.run().await.documents, 2);
}

// IDX-B04
#[tokio::test]
async fn a_knowledge_base_that_was_renamed_keeps_its_index() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.embedded();
    bench.source.rename("elsewhere");
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (0, 0));
    assert_eq!(bench.summary().await.root.as_deref(), Some("elsewhere"));
}

// IDX-66 IDX-B12
#[tokio::test]
async fn a_sweep_of_most_of_the_index_is_announced() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    let template = (*bench.chunks_of("a.md").await[0].document).clone();
    let put = |path: &str| Change::Put {
        document: Document { path: DocumentPath::new(path).unwrap(), ..template.clone() },
        chunks: Vec::new(),
    };
    bench.indexer.store.apply(vec![put("x.pdf"), put("y.pdf")]).await.unwrap();
    bench.log.take();
    let report = bench.run().await;
    assert_eq!((report.deleted, report.documents), (2, 1));
    let log = bench.log.take();
    let warning = log.iter().find(|line| line.starts_with("warning: 2 of 3 documents"));
    assert!(warning.is_some_and(|line| line.contains("[parsers].enabled")), "{log:?}");
    let swept = log.iter().position(|line| line == "deleted x.pdf").unwrap();
    assert!(log.iter().position(|line| line.starts_with("warning: 2 of 3")).unwrap() < swept);
    bench.source.remove("a.md");
    bench.run().await;
    assert!(!bench.log.take().iter().any(|line| line.starts_with("warning")));
}

// IDX-61 IDX-142
#[tokio::test]
async fn a_row_that_waits_to_be_read_again_is_read_like_a_changed_one() {
    let bench = Bench::new(&[("a.md", LONG), ("b.md", "Some text about tides.")]);
    bench.run().await;
    // What another program leaves behind where it could not settle a document.
    let mark = async |path: &str| {
        let row = (*bench.chunks_of(path).await[0].document).clone();
        let row = Document { hash: ContentHash::from_text("awaiting-reparse"), ..row };
        bench.indexer.store.apply(vec![Change::Describe(row)]).await.unwrap();
    };
    mark("a.md").await;
    bench.embedded();
    let report = bench.run().await;
    assert_eq!((report.updated, bench.embedded()), (1, 0));
    assert_ne!(bench.chunks_of("a.md").await[0].document.hash.as_str(), "awaiting-reparse");
    // Its hash is that of no file, so a move of it is not known as one.
    mark("b.md").await;
    bench.source.remove("b.md");
    bench.source.put("c.md", "Some text about tides.");
    let report = bench.run().await;
    assert_eq!((report.renamed, report.updated, report.deleted), (0, 1, 1));
}

// IDX-142 IDX-64 IDX-B11 IDX-B19
#[tokio::test]
async fn a_document_that_comes_to_nothing_under_other_settings_loses_its_row() {
    let mut bench = Bench::new(&[("a.md", "## Draft\n\nSome text about tides, and so on.\n")]);
    bench.run().await;
    bench.indexer.exclude_headings = vec!["Draft".into()];
    let report = bench.run().await;
    assert_eq!((report.skipped, report.documents), (1, 0));
}

// IDX-122 IDX-121
#[tokio::test]
async fn following_changes_keeps_to_the_recorded_context_mode() {
    let mut bench = Bench::new(&[("notes/a.md", LONG)]);
    bench.indexer.settings.context_mode = ContextMode::Static;
    bench.run().await;
    bench.indexer.settings.context_mode = ContextMode::Off;
    bench.source.put("notes/b.md", LONG);
    let part = ["notes/b.md".to_owned()].into();
    bench.indexer.catch_up(&part, &bench.observer()).await.unwrap();
    let chunk = bench.chunks_of("notes/b.md").await.remove(0).chunk;
    assert_eq!(chunk.context.as_deref(), Some("b > One"));
}

// IDX-75 IDX-76 IDX-77 IDX-78 IDX-79 IDX-95
#[tokio::test]
async fn a_row_holds_what_the_frontmatter_says_and_else_what_the_key_says() {
    let front = "---\ntitle: A title\ntopic: own\ndate: 2026-04-16\ndepth: 3\ntags: [x, y]\n\
                 status: draft\n---\n";
    let bench = Bench::new(&[
        ("notes/sea/a.md", &format!("{front}{LONG}")),
        ("notes/sea/b.md", "Some text about tides."),
    ]);
    bench.source.put("groove-schema.toml", "[fields.status]\n");
    bench.run().await;
    let a = bench.chunks_of("notes/sea/a.md").await.remove(0).document;
    let told = (a.title.as_deref(), a.topic.as_deref(), a.date.as_deref(), a.depth.as_deref());
    assert_eq!(told, (Some("A title"), Some("own"), Some("2026-04-16"), Some("3")));
    assert_eq!(
        (a.category.as_deref(), &a.tags[..]),
        (Some("notes"), &["x".into(), "y".into()][..])
    );
    assert_eq!(a.fields["status"], ["draft"]);
    let b = bench.chunks_of("notes/sea/b.md").await.remove(0).document;
    assert_eq!((b.title.as_deref(), b.topic.as_deref()), (None, Some("sea")));
    assert_eq!((b.date.as_deref(), b.depth.as_deref(), b.tags.len()), (None, None, 0));
    assert!(b.fields.is_empty());
}

// IDX-26 IDX-149
#[tokio::test]
async fn nobody_but_a_person_empties_an_index() {
    let bench = Bench::new(&[("a.md", LONG)]);
    bench.run().await;
    bench.source.remove("a.md");
    bench.log.take();
    let report = bench.indexer.reconcile(&bench.observer()).await.unwrap();
    assert_eq!((report.documents, report.deleted), (1, 0));
    let log = bench.log.take();
    assert!(log.iter().any(|line| line.starts_with("warning: there is no document")), "{log:?}");
    bench.source.put("b.md", "Some text about tides.");
    assert_eq!(bench.indexer.reconcile(&bench.observer()).await.unwrap().deleted, 1);
    bench.source.remove("b.md");
    assert_eq!(bench.run().await.documents, 0);
}
