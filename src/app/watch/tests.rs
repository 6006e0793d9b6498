use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use tokio::task::JoinHandle;

use super::*;
use crate::adapters::source::memory::MemorySource;
use crate::app::search::Patience;
use crate::app::testing::Bench;
use crate::domain::document::DocumentPath;
use crate::domain::exclusion::ExclusionRules;
use crate::domain::search::SearchRequest;
use crate::ports::chunk_store::StoredChunk;
use crate::ports::document_source::{
    Content, DocumentSource, Listing, PollingReason, ReportChange, SizeCap,
};

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
        let watched = Self::unarmed(bench);
        while watched.bench.source.watch_count() == 0 {
            sleep(DEBOUNCE).await;
        }
        watched
    }

    fn unarmed(bench: Bench) -> Self {
        let task = tokio::spawn(watcher(&bench).run());
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

    /// Waits until the index holds these paths, and all of their vectors.
    async fn holds(&self, paths: &[&str]) {
        let holds = async |bench: &Bench| {
            bench.paths().await == paths && bench.summary().await.pending_chunks == 0
        };
        self.until(&format!("{paths:?}"), holds).await;
    }
}

fn watcher(bench: &Bench) -> Watcher {
    Watcher {
        indexer: bench.indexer.clone(),
        place: "memory".to_owned(),
        debounce: DEBOUNCE,
        news: Arc::default(),
    }
}

/// What the tasks of a test write to the log while it lives.
struct Log {
    said: Arc<Mutex<Vec<u8>>>,
    _default: tracing::subscriber::DefaultGuard,
}

/// The end of a log that is written to.
struct Pen(Arc<Mutex<Vec<u8>>>);

impl io::Write for Pen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn new() -> Self {
        let said = Arc::<Mutex<Vec<u8>>>::default();
        let pen = Arc::clone(&said);
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || Pen(Arc::clone(&pen)))
            .with_ansi(false)
            .finish();
        Self { said, _default: tracing::subscriber::set_default(subscriber) }
    }

    fn text(&self) -> String {
        String::from_utf8(self.said.lock().unwrap().clone()).unwrap()
    }

    /// Waits for a line that holds all of these.
    async fn line(&self, parts: &[&str]) -> String {
        for _ in 0..1000 {
            let text = self.text();
            let line = text.lines().find(|line| parts.iter().all(|part| line.contains(part)));
            if let Some(line) = line {
                return line.to_owned();
            }
            sleep(DEBOUNCE).await;
        }
        panic!("{parts:?} was never said: {}", self.text());
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

// IDX-B22 IDX-153 IDX-154
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

// IDX-148 IDX-B20
#[test]
fn the_line_of_a_watch_says_how_it_polls_if_it_does() {
    let watcher = Watcher { debounce: Duration::from_millis(500), ..watcher(&Bench::new(&[])) };
    assert_eq!(watcher.armed(None), "watcher: watching memory (debounce 500ms)");
    let polling = |reason| Some(Polling { interval: Duration::from_secs(5), reason });
    assert_eq!(
        watcher.armed(polling(PollingReason::NetworkFileSystem)),
        "watcher: watching memory (debounce 500ms, polling every 5000ms: network file system)"
    );
    assert_eq!(
        watcher.armed(polling(PollingReason::Configured)),
        "watcher: watching memory (debounce 500ms, polling every 5000ms: as configured)"
    );
}

// IDX-148 IDX-149
#[tokio::test]
async fn a_watch_is_announced_once_it_is_armed_and_not_before() {
    let log = Log::new();
    let bench = Bench::new(&[]);
    bench.run().await;
    bench.source.close("", "permission denied");
    let watched = Watched::unarmed(bench);
    log.line(&["WARN", "cannot watch", "permission denied"]).await;
    assert!(!log.text().contains("watching memory"), "{}", log.text());
    watched.bench.source.put("a.md", "Some text about tides.");
    assert!(watched.bench.source.reopen(""));
    log.line(&["INFO", "watcher: watching memory (debounce 20ms)"]).await;
    // What came while nobody watched is found all the same.
    watched.holds(&["a.md"]).await;
}

// IDX-150 IDX-B21
#[tokio::test]
async fn changes_that_nobody_can_count_are_found_by_comparing_everything() {
    let log = Log::new();
    let watched = Watched::new(&[("a.md", "Some text about tides.")]).await;
    let source = Arc::clone(&watched.bench.source);
    for number in 0..=MOST_PLACES {
        source.remove(&format!("never there/{number}.md"));
    }
    source.put("b.md", "Some text about harbours.");
    source.remove("a.md");
    watched.holds(&["b.md"]).await;
    log.line(&["changes were lost, so all documents are compared"]).await;
    // The next change is one of its own again.
    let said = log.text().matches("changes were lost").count();
    source.put("c.md", "Some text about rope.");
    watched.holds(&["b.md", "c.md"]).await;
    assert_eq!(log.text().matches("changes were lost").count(), said);
}

// IDX-152 IDX-22
#[tokio::test]
async fn a_document_that_is_moved_to_a_name_that_is_no_key_leaves_the_index() {
    let watched = Watched::new(&[("a.md", "Some text about tides."), ("b.md", "Some rope.")]).await;
    watched.bench.source.remove("a.md");
    watched.bench.source.put("a\0.md", "Some text about tides.");
    watched.holds(&["b.md"]).await;
    // And comes back under one that is.
    watched.bench.source.remove("a\0.md");
    watched.bench.source.put("c.md", "Some text about tides.");
    watched.holds(&["b.md", "c.md"]).await;
}

// IDX-157
#[tokio::test]
async fn a_change_of_the_schema_or_the_configuration_waits_for_a_full_run() {
    let text = "---\nowner: ann\n---\nSome text about tides.";
    let watched = Watched::new(&[("a.md", text)]).await;
    let before = watched.bench.summary().await;
    let source = &watched.bench.source;
    source.put("groove-schema.toml", "[fields.owner]\ntype = \"string\"\n");
    source.put("groove.toml", "model = \"bge-m3\"\n");
    source.put("grammars/x.so", "bytes");
    source.put("b.md", "Some text about harbours.");
    watched.holds(&["a.md", "b.md"]).await;
    let after = watched.bench.summary().await;
    assert_eq!(after.declared_fields, before.declared_fields);
    assert_eq!(after.generation, before.generation + 2, "only b.md was written");
    watched.bench.run().await;
    assert_ne!(watched.bench.summary().await.declared_fields, before.declared_fields);
}

// IDX-107
#[tokio::test]
async fn changes_wait_for_the_run_that_is_on() {
    let watched = Watched::new(&[]).await;
    let run = Arc::clone(&watched.bench.indexer.turn).lock_owned().await;
    watched.bench.source.put("a.md", "Some text about tides.");
    sleep(DEBOUNCE * PATIENCE * 2).await;
    assert_eq!(watched.bench.paths().await, Vec::<String>::new());
    drop(run);
    watched.holds(&["a.md"]).await;
}

// IDX-109 IDX-B17
#[tokio::test]
async fn a_search_waits_neither_for_the_run_that_is_on_nor_for_the_batch_behind_it() {
    let text = "The tide is the rise and fall of the sea under the pull of the moon and the sun, \
                twice a day on most coasts, once a day on some.";
    let watched = Watched::new(&[("a.md", text)]).await;
    let _run = Arc::clone(&watched.bench.indexer.turn).lock_owned().await;
    watched.bench.source.put("b.md", "Some text about tides, too.");
    sleep(DEBOUNCE * PATIENCE).await;
    let request = SearchRequest { query: "tide".to_owned(), ..SearchRequest::default() };
    let searcher = watched.bench.searcher();
    let answer = timeout(PROBE, searcher.search(&request, Patience::Wait)).await.unwrap();
    assert_eq!(answer.unwrap().hits[0].path, "a.md");
}

/// A source that notes the threads it works on, and panics when it is told to.
#[derive(Default)]
struct Probed {
    source: Arc<MemorySource>,
    threads: Mutex<BTreeMap<&'static str, ThreadId>>,
    panics: AtomicBool,
}

impl Probed {
    fn at(&self, what: &'static str) {
        self.threads.lock().unwrap().insert(what, std::thread::current().id());
    }
}

impl DocumentSource for Probed {
    fn name(&self) -> String {
        self.source.name()
    }

    fn has_neighbour(&self, name: &str) -> bool {
        self.source.has_neighbour(name)
    }

    fn list(&self) -> Result<Listing, SourceError> {
        self.at("list");
        self.source.list()
    }

    fn list_below(&self, keys: &BTreeSet<String>) -> Result<Listing, SourceError> {
        self.at("list_below");
        assert!(!self.panics.swap(false, Ordering::Relaxed), "it was told to");
        self.source.list_below(keys)
    }

    fn read(&self, path: &DocumentPath, cap: SizeCap) -> Result<Content, SourceError> {
        self.at("read");
        self.source.read(path, cap)
    }

    fn read_aside(&self, name: &str, cap: SizeCap) -> Result<Content, SourceError> {
        self.at("read_aside");
        self.source.read_aside(name, cap)
    }

    fn exclusions(&self) -> ExclusionRules {
        self.source.exclusions()
    }

    fn watch(&self, report: ReportChange) -> Result<Box<dyn Watch>, SourceError> {
        self.at("watch");
        self.source.watch(report)
    }
}

fn probed() -> (Bench, Arc<Probed>) {
    let mut bench = Bench::new(&[]);
    let source = Arc::clone(&bench.source);
    let probed = Arc::new(Probed { source, ..Probed::default() });
    bench.indexer.source = Arc::clone(&probed) as Arc<_>;
    (bench, probed)
}

// IDX-108
#[tokio::test]
async fn the_source_is_never_asked_on_the_threads_that_answer_clients() {
    let (bench, probed) = probed();
    let watched = Watched::unarmed(bench);
    while watched.bench.source.watch_count() == 0 {
        sleep(DEBOUNCE).await;
    }
    watched.bench.source.put("a.md", "Some text about tides.");
    watched.holds(&["a.md"]).await;
    watched.bench.source.put("a.md", "Some text about harbours.");
    watched
        .until("the new text", async |bench| {
            bench.chunks_of("a.md").await[0].chunk.content.contains("harbours")
        })
        .await;
    let threads = probed.threads.lock().unwrap();
    let asked: Vec<&str> = threads.keys().copied().collect();
    assert_eq!(asked, ["list_below", "read", "read_aside", "watch"]);
    // The test runs on the one thread that this runtime has for tasks.
    let here = std::thread::current().id();
    assert!(threads.values().all(|thread| *thread != here), "{threads:?} {here:?}");
}

/// A watch that tells the thread it is asked on.
struct OnThread(Mutex<Option<ThreadId>>);

impl Watch for OnThread {
    fn is_alive(&self) -> bool {
        *self.0.lock().unwrap() = Some(std::thread::current().id());
        true
    }
}

// IDX-108 IDX-149
#[tokio::test]
async fn the_root_is_not_looked_for_on_the_threads_that_answer_clients() {
    let asked = Arc::new(OnThread(Mutex::default()));
    let watch: Arc<dyn Watch> = Arc::clone(&asked) as Arc<_>;
    assert!(is_alive(&watch).await);
    let thread = asked.0.lock().unwrap().unwrap();
    assert_ne!(thread, std::thread::current().id());
}

// IDX-110 IDX-156
#[tokio::test]
async fn a_panic_in_a_batch_does_not_end_the_watcher() {
    let log = Log::new();
    let (bench, probed) = probed();
    let watched = Watched::unarmed(bench);
    while watched.bench.source.watch_count() == 0 {
        sleep(DEBOUNCE).await;
    }
    probed.panics.store(true, Ordering::Relaxed);
    watched.bench.source.put("a.md", "Some text about tides.");
    watched.holds(&["a.md"]).await;
    assert!(!probed.panics.load(Ordering::Relaxed));
    log.line(&["ERROR", "watcher: failed"]).await;
}

// IDX-110
#[test]
fn a_panic_while_changes_are_noted_loses_none() {
    let inbox = Arc::new(Inbox::default());
    inbox.add(SourceChange::At("a.md".to_owned()));
    let other = Arc::clone(&inbox);
    let panicked = std::thread::spawn(move || {
        let _held = other.pending.lock().unwrap();
        panic!("in the middle");
    });
    assert!(panicked.join().is_err());
    inbox.add(SourceChange::At("b.md".to_owned()));
    let pending = inbox.take();
    assert_eq!(pending.places, ["a.md".to_owned(), "b.md".to_owned()].into());
}

// IDX-156 IDX-43
#[tokio::test]
async fn a_name_with_control_characters_stays_on_one_line() {
    let log = Log::new();
    let watched = Watched::new(&[]).await;
    let name = "a\nINFO watcher: all is well\r\x1b[2J\t.md";
    let shown = "a\\nINFO watcher: all is well\\r\\u{1b}[2J\\t.md";
    let source = &watched.bench.source;
    source.put(name, "Some text about tides.");
    log.line(&["re-indexed", shown]).await;
    source.put_failing(name);
    log.line(&["skipped", shown]).await;
    source.put(name, "---\n[\n---\nSome text about tides.");
    log.line(&["frontmatter", shown]).await;
    source.remove(name);
    source.put(format!("b/{name}"), "---\n[\n---\nSome text about tides.");
    log.line(&["renamed", shown]).await;
    source.close("b", "a reason\non two lines");
    log.line(&["the folder b cannot be read", "a reason\\non two lines"]).await;
    assert!(source.reopen("b"));
    source.remove(&format!("b/{name}"));
    log.line(&["deleted", shown]).await;
    let text = log.text();
    assert!(text.lines().all(|line| line.contains("grooveseek::app::watch")), "{text}");
}

// IDX-25 IDX-B05
#[tokio::test]
async fn a_folder_that_becomes_unreadable_keeps_its_rows_and_is_followed_afterwards() {
    let log = Log::new();
    let watched =
        Watched::new(&[("a/b.md", "Some text about tides."), ("c.md", "Some rope.")]).await;
    watched.bench.source.close("a", "permission denied");
    log.line(&["WARN", "the folder a cannot be read (permission denied)", "kept"]).await;
    watched.bench.source.remove("c.md");
    watched.holds(&["a/b.md"]).await;
    watched.bench.source.put("a/d.md", "Some text about harbours.");
    assert!(watched.bench.source.reopen("a"));
    watched.holds(&["a/b.md", "a/d.md"]).await;
}

// IDX-B21 IDX-150
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
