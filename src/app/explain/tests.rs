//! Tests of explaining a path.

use super::*;
use crate::app::testing::Bench;
use crate::ports::document_source::SizeCap;

fn explainer(bench: &Bench) -> Explainer {
    Explainer::new(
        Arc::clone(&bench.indexer.source),
        bench.indexer.registry.clone(),
        bench.indexer.settings.clone(),
        &SearchSettings::default(),
        bench.indexer.exclude_headings.clone(),
    )
}

async fn explain(bench: &Bench, path: &str) -> Explanation {
    let snapshot = bench.indexer.store.snapshot().await.unwrap();
    explainer(bench).explain(path, Some(&*snapshot)).await.unwrap()
}

async fn reason(bench: &Bench, path: &str) -> String {
    match explain(bench, path).await.fate {
        Fate::LeftOut { reason } => reason,
        other => panic!("{path}: {other:?}"),
    }
}

#[tokio::test]
async fn the_rule_that_leaves_a_file_out_is_named() {
    let mut bench = Bench::new(&[
        (".grooveignore", "# drafts\ndrafts/\n"),
        ("drafts/a.md", "text"),
        ("a/.git/b.md", "text"),
        ("a/target/c.md", "text"),
        ("d.rst", "text"),
        ("e", "text"),
        ("~$f.md", "text"),
        ("g.md", "0123456789"),
    ]);
    bench.source.put("h.md", b"\xff\xfa \xff".to_vec());
    bench.source.put_refused("i.md", Refusal::MultipleLinks);
    bench.source.put_refused("j.md", Refusal::SymbolicLink);
    bench.source.put_failing("k.md");
    bench.indexer.settings.max_text_file_size = Some(9);
    for (path, told) in [
        ("drafts/a.md", "line 2 of .grooveignore leaves out drafts"),
        ("drafts", "line 2 of .grooveignore"),
        ("a/.git/b.md", "a/.git is left out"),
        ("a/target/c.md", "exclude_dirs leaves out the folder a/target"),
        ("d.rst", "no parser is switched on for .rst; files that are read: .md"),
        ("e", "no extension"),
        ("~$f.md", "lock file"),
        ("g.md", "10 bytes exceed the text file size limit of 9 bytes; raise [index].max_text"),
        ("h.md", "UTF-8"),
        ("i.md", "hard link"),
        ("j.md", "symbolic link"),
        ("k.md", "cannot be read"),
        ("../x.md", "cannot be a key"),
        ("/x.md", "cannot be a key"),
    ] {
        let reason = reason(&bench, path).await;
        assert!(reason.contains(told), "{path}: {reason}");
    }
    assert_eq!(explain(&bench, "gone.md").await.fate, Fate::Missing);
}

/// Whatever a listing finds and a parser reads is explained as indexed, and
/// nothing else is.
#[tokio::test]
async fn what_is_explained_as_indexed_is_what_a_run_indexes() {
    let bench = Bench::new(&[
        (".grooveignore", "*.tmp.md\n!keep.tmp.md\n"),
        ("a.md", "text"),
        ("b/c.MD", "text"),
        ("x.tmp.md", "text"),
        ("keep.tmp.md", "text"),
        ("node_modules/d.md", "text"),
        ("e.txt", "text"),
        ("bad.md", "text"),
    ]);
    bench.source.put("bad.md", b"\xff\xfe\xfa bytes \xff".to_vec());
    bench.run().await;
    let all = ["a.md", "b/c.MD", "x.tmp.md", "keep.tmp.md", "node_modules/d.md", "e.txt", "bad.md"];
    let indexed = bench.paths().await;
    for path in all {
        let explanation = explain(&bench, path).await;
        let is_indexed = indexed.iter().any(|row| row == path);
        assert_eq!(explanation.fate == Fate::Indexed, is_indexed, "{path}");
        assert_eq!(explanation.stored.is_some(), is_indexed, "{path}");
    }
    assert_eq!(explain(&bench, "b").await.fate, Fate::Folder { documents: 1 });
}

#[tokio::test]
async fn what_the_index_has_is_compared_with_the_file_of_now() {
    let mut bench = Bench::new(&[("a.md", "# A\n\ntext"), ("b.md", "# B\n\ntext")]);
    bench.run().await;
    let state = |explanation: Explanation| explanation.stored.unwrap().state;
    assert_eq!(state(explain(&bench, "a.md").await), State::Current);
    bench.source.put("a.md", "# A\n\nother text");
    assert_eq!(state(explain(&bench, "a.md").await), State::Changed);
    bench.indexer.exclude_headings.push("Private".to_owned());
    assert_eq!(state(explain(&bench, "b.md").await), State::CutOtherwise);
    assert!(bench.source.remove("b.md"));
    let gone = explain(&bench, "b.md").await;
    assert_eq!((&gone.fate, state(gone.clone())), (&Fate::Missing, State::Leaving));
    let cap = SizeCap(u64::MAX);
    assert!(bench.source.read(&DocumentPath::new("a.md").unwrap(), cap).is_ok());
    let unseen = explainer(&bench).explain("a.md", None).await.unwrap();
    assert_eq!((unseen.fate, unseen.stored), (Fate::Indexed, None));
}

// QUA-B06
#[tokio::test]
async fn hidden_chunks_are_told_with_what_lowers_them() {
    let bench = Bench::new(&[("a.md", "## Todo\n\nTODO\n")]);
    bench.run().await;
    let stored = explain(&bench, "a.md").await.stored.unwrap();
    assert_eq!((stored.chunks, stored.pending, stored.hidden.len()), (1, 0, 1));
    let hidden = &stored.hidden[0];
    assert_eq!(hidden.chunk.chunk.heading.as_deref(), Some("Todo"));
    assert!(hidden.penalties.contains(&Penalty::Boilerplate));
    let mut lenient = explainer(&bench);
    lenient.min_quality = 0.0;
    let snapshot = bench.indexer.store.snapshot().await.unwrap();
    let shown = lenient.explain("a.md", Some(&*snapshot)).await.unwrap().stored.unwrap();
    assert!(shown.hidden.is_empty());
}
