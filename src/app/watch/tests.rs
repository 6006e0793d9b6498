use std::sync::atomic::Ordering;

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use tokio::task::JoinHandle;

use super::*;
use crate::app::testing::Bench;
use crate::domain::document::DocumentPath;
use crate::ports::chunk_store::StoredChunk;
use crate::ports::document_source::{DocumentSource as _, SizeCap};

const DEBOUNCE: Duration = Duration::from_millis(20);

/// A bench that is watched.
struct Watched {
    bench: Bench,
    task: JoinHandle<()>,
}

impl Watched {
    async fn new(documents: &[(&str, &str)]) -> Self {
        let bench = Bench::new(documents);
        bench.run().await;
        bench.embedded();
        let watcher = Watcher {
            indexer: bench.indexer.clone(),
            place: "memory".to_owned(),
            debounce: DEBOUNCE,
        };
        let task = tokio::spawn(watcher.run());
        while bench.source.watch_count() == 0 {
            sleep(DEBOUNCE).await;
        }
        Self { bench, task }
    }

    /// Waits until the index is as it should be.
    async fn until(&self, what: &str, is_so: impl AsyncFn(&Bench) -> bool) {
        for _ in 0..1000 {
            if is_so(&self.bench).await {
                return;
            }
            sleep(DEBOUNCE).await;
        }
        panic!("{what} never came to be");
    }

    /// Waits until the index holds these paths.
    async fn holds(&self, paths: &[&str]) {
        self.until(&format!("{paths:?}"), async |bench| bench.paths().await == paths).await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// IDX-152a IDX-156
#[tokio::test]
async fn what_is_made_changed_and_removed_is_followed() {
    let watched = Watched::new(&[("a.md", "Some text about tides.")]).await;
    watched.bench.source.put("b/c.md", "Some text about harbours.");
    watched.holds(&["a.md", "b/c.md"]).await;
    watched.bench.source.put("a.md", "Other words, about the moon.");
    watched
        .until("the new text", async |bench| {
            bench.chunks_of("a.md").await[0].chunk.content.contains("moon")
        })
        .await;
    watched.bench.source.remove("a.md");
    watched.holds(&["b/c.md"]).await;
}

// IDX-B22 IDX-153
#[tokio::test]
async fn a_folder_that_is_moved_takes_its_rows_along() {
    let watched = Watched::new(&[
        ("old/a.md", "Some text about tides."),
        ("old/b/c.md", "Some text about harbours."),
        ("z.md", "Some text about rope."),
    ])
    .await;
    for (from, to, text) in [
        ("old/a.md", "new/a.md", "Some text about tides."),
        ("old/b/c.md", "new/b/c.md", "Some text about harbours."),
    ] {
        watched.bench.source.remove(from);
        watched.bench.source.put(to, text);
    }
    watched.holds(&["new/a.md", "new/b/c.md", "z.md"]).await;
    assert_eq!(watched.bench.embedded(), 0);
}

// IDX-147
#[tokio::test]
async fn changes_that_come_together_are_taken_together() {
    let watched = Watched::new(&[("a.md", "Some text about tides.")]).await;
    let before = watched.bench.summary().await.generation;
    for number in 0..4 {
        watched.bench.source.put(format!("{number}.md"), "Some text about tides.");
    }
    watched.holds(&["0.md", "1.md", "2.md", "3.md", "a.md"]).await;
    // One commit of texts and one of vectors.
    assert_eq!(watched.bench.summary().await.generation, before + 2);
}

// IDX-156
#[tokio::test]
async fn what_fails_is_tried_again() {
    let watched = Watched::new(&[]).await;
    watched.bench.counting.fail_next();
    watched.bench.source.put("a.md", "Some text about tides.");
    watched.holds(&["a.md"]).await;
    assert_eq!(watched.bench.counting.loads.load(Ordering::Relaxed), 1);
}

// IDX-155 IDX-151
#[tokio::test]
async fn an_ignore_file_holds_for_what_comes_after_it() {
    let watched = Watched::new(&[("drafts/a.md", "Some text about tides.")]).await;
    watched.bench.source.put(".grooveignore", "drafts/\n");
    watched.bench.source.put("drafts/b.md", "Some text about harbours.");
    watched.bench.source.put("c.md", "Some text about rope.");
    watched.holds(&["c.md", "drafts/a.md"]).await;
}

// IDX-B21
#[test]
fn too_many_changes_become_one_of_everything() {
    let mut pending = Pending::default();
    for number in 0..=MOST_PLACES {
        pending.add(SourceChange::At(format!("{number}.md")));
    }
    assert!(pending.everything && pending.places.is_empty());
    pending.add(SourceChange::At("a.md".to_owned()));
    assert!(pending.places.is_empty());
}

/// A change to a few files in a few folders.
#[derive(Clone, Debug)]
enum Step {
    Put { key: usize, text: usize },
    Remove { key: usize },
    Move { from: usize, to: usize },
}

const KEYS: [&str; 6] = ["a.md", "b.md", "n/a.md", "n/b.md", "n/m/c.md", "o/c.md"];
const TEXTS: [&str; 4] = [
    "Some text about tides.",
    "Some text about harbours.",
    "## One\n\nA first section that is long enough to stand alone, by far.\n\n## Two\n\nA second \
     section that is long enough to stand alone as well.\n",
    "",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..KEYS.len(), 0..TEXTS.len()).prop_map(|(key, text)| Step::Put { key, text }),
        (0..KEYS.len()).prop_map(|key| Step::Remove { key }),
        (0..KEYS.len(), 0..KEYS.len()).prop_map(|(from, to)| Step::Move { from, to }),
    ];
    prop::collection::vec(step, 0..6)
}

fn take(bench: &Bench, step: &Step) -> BTreeSet<String> {
    let source = &bench.source;
    match *step {
        Step::Put { key, text } => source.put(KEYS[key], TEXTS[text]),
        Step::Remove { key } => {
            source.remove(KEYS[key]);
        }
        Step::Move { from, to } => {
            let path = DocumentPath::new(KEYS[from]).unwrap();
            if let Ok(content) = source.read(&path, SizeCap(u64::MAX)) {
                source.remove(KEYS[from]);
                source.put(KEYS[to], content.bytes);
            }
        }
    }
    match *step {
        Step::Put { key, .. } | Step::Remove { key } => [KEYS[key].to_owned()].into(),
        Step::Move { from, to } => [KEYS[from].to_owned(), KEYS[to].to_owned()].into(),
    }
}

async fn contents(bench: &Bench) -> Vec<(String, Vec<StoredChunk>)> {
    let mut contents = Vec::new();
    for path in bench.paths().await {
        let mut chunks = bench.chunks_of(&path).await;
        for chunk in &mut chunks {
            chunk.id = crate::domain::chunk::ChunkId(0);
        }
        contents.push((path, chunks));
    }
    contents
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // IDX-152a IDX-153 IDX-B22
    #[test]
    fn catching_up_ends_where_a_fresh_run_does(
        batches in prop::collection::vec((steps(), any::<bool>()), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new(&[("a.md", TEXTS[0]), ("n/a.md", TEXTS[1])]);
            bench.run().await;
            for (steps, whole_folders) in batches {
                let mut part: BTreeSet<String> =
                    steps.iter().flat_map(|step| take(&bench, step)).collect();
                if whole_folders {
                    part = part
                        .iter()
                        .map(|key| key.split('/').next().unwrap_or(key).to_owned())
                        .collect();
                }
                bench.indexer.catch_up(&part, &bench.observer()).await.unwrap();
                let fresh = Bench::new(&[]);
                let listing =
                    bench.source.list().unwrap();
                for found in listing.found {
                    let content = bench.source.read(&found.path, SizeCap(u64::MAX));
                    fresh.source.put(found.path.as_str(), content.unwrap().bytes);
                }
                fresh.run().await;
                assert_eq!(contents(&bench).await, contents(&fresh).await);
            }
        });
    }
}
