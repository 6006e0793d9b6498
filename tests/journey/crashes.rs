//! What a process leaves behind that is killed at any point, and what the next
//! run makes of it.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::contents::{Contents, execute};
use crate::endpoint::Act;
use crate::groove::stderr;
use crate::server::Server;
use crate::site::{Draw, Site, Tree, changes, hits, wait_for, wanted};

/// How often something is killed in all scenarios together, by default: in
/// every run of the tests, and in the long one.
const SOME: u64 = 12;
const MANY: u64 = 240;
const SCENARIOS: u64 = 6;

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after its start.
    After(Duration),
    /// Once it has written so many bytes into the files of the index.
    Written(u64),
}

/// What a run does that nobody disturbs.
#[derive(Clone, Copy, Debug)]
struct Course {
    duration: Duration,
    written: u64,
}

impl Course {
    /// Any point of the run: half of them by the clock, half by what is written,
    /// since most of the time nothing is.
    fn moment(self, draw: &mut Draw) -> Moment {
        if draw.percent(50) || self.written == 0 {
            let micros = u64::try_from(self.duration.as_micros()).unwrap();
            Moment::After(Duration::from_micros(draw.below(micros)))
        } else {
            Moment::Written(draw.below(self.written))
        }
    }
}

/// A process that is going to be killed.
struct Victim {
    child: Child,
    start: Instant,
    before: u64,
    written: u64,
}

impl Victim {
    fn start(site: &Site, mut command: Command) -> Self {
        let log = File::create(site.folder().join("victim.log")).unwrap();
        let before = written(site);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { child, start: Instant::now(), before, written: 0 }
    }

    /// Waits for the moment; tells how the process ended if that was earlier.
    fn wait(&mut self, site: &Site, moment: Moment) -> Option<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            self.written = self.written.max(written(site).saturating_sub(self.before));
            let over = match moment {
                Moment::After(duration) => self.start.elapsed() >= duration,
                Moment::Written(bytes) => self.written > bytes,
            };
            if over {
                return None;
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// How many bytes the files of the index have. Those that come and go meanwhile
/// may be missed.
fn written(site: &Site) -> u64 {
    let entries = fs::read_dir(site.folder()).unwrap().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(".groove.db"))
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}

/// Lets a command run to its end.
fn course(site: &Site, command: Command) -> Course {
    let mut victim = Victim::start(site, command);
    let status = victim.wait(site, Moment::After(Duration::MAX)).unwrap();
    assert!(status.success(), "{}", log(site));
    Course { duration: victim.start.elapsed(), written: victim.written }
}

fn log(site: &Site) -> String {
    fs::read_to_string(site.folder().join("victim.log")).unwrap()
}

/// What came of the kills.
#[derive(Default)]
struct Score {
    killed: u64,
    ended: u64,
    untouched: u64,
    partly: u64,
    complete: u64,
}

/// A command that is killed again and again.
struct Scenario<'a> {
    site: &'a Site,
    /// The index that each attempt begins with, if there is one.
    backup: Option<&'a Path>,
    old: &'a Contents,
    new: &'a Contents,
    /// What is killed; where there is a choice, by what is drawn, else the longest.
    command: &'a dyn Fn(Option<&mut Draw>) -> Command,
    /// What is allowed to be there after a kill.
    allowed: &'a dyn Fn(&Contents),
    /// How long the endpoint takes.
    pause: Duration,
}

impl Scenario<'_> {
    fn run(&self, draw: &mut Draw, name: &str, kills: u64) {
        let start = Instant::now();
        self.site.restore(self.backup);
        self.site.slow(self.pause);
        let course = course(self.site, (self.command)(None));
        self.examine(None);
        let mut score = Score::default();
        let mut attempts = 0;
        while score.killed < kills {
            attempts += 1;
            assert!(attempts < 20 + kills * 10, "hardly any run was still going: {course:?}");
            self.site.restore(self.backup);
            for earlier in 0..=draw.below(3) {
                // Little is left to write where a run has been before.
                let left = if earlier == 0 { course.written } else { 0 };
                let moment = Course { written: left, ..course }.moment(draw);
                self.site.slow(self.pause);
                let mut victim = Victim::start(self.site, (self.command)(Some(draw)));
                let ended = victim.wait(self.site, moment);
                if ended.is_none() {
                    victim.kill();
                }
                self.site.slow(Duration::ZERO);
                match ended {
                    Some(status) => {
                        assert!(status.success(), "{status:?}\n{}", log(self.site));
                        score.ended += 1;
                    }
                    None => score.killed += 1,
                }
                println!("{name}: {moment:?}, ended: {}", ended.is_some());
                self.examine(Some(&mut score));
                // Now and then what a search has repaired is not there.
                if draw.percent(70) {
                    search(self.site);
                }
            }
            repair(self.site, self.new);
        }
        println!(
            "{name}: {} kills in {attempts} attempts over {course:?}: {} left the old, {} a part, \
             {} the new; {} runs ended before; {:?}",
            score.killed,
            score.untouched,
            score.partly,
            score.complete,
            score.ended,
            start.elapsed()
        );
    }

    /// Looks at what is there.
    fn examine(&self, score: Option<&mut Score>) {
        let index = self.site.base.index();
        let there = index.exists();
        assert!(there || self.backup.is_none(), "the index has gone");
        let contents = if there { Contents::of_copy(&index) } else { Contents::default() };
        (self.allowed)(&contents);
        let Some(score) = score else { return };
        if contents.documents == self.new.documents {
            score.complete += 1;
        } else if contents.documents == self.old.documents {
            score.untouched += 1;
        } else {
            score.partly += 1;
        }
    }
}

/// A search answers from whatever is there, or says that nothing is.
fn search(site: &Site) {
    let there = site.base.index().exists();
    let output = site.run("search", &["--", "\"harbour\""]);
    if there {
        assert!(output.status.success(), "{}", stderr(&output));
        drop(hits(&output));
    } else {
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("groove index"), "{}", stderr(&output));
    }
}

/// One more run makes good whatever was left, and leaves nothing lying about.
fn repair(site: &Site, expected: &Contents) {
    site.indexed(&["--quiet"]);
    site.assert_tidy();
    site.contents().assert_same(expected);
    let again = site.indexed(&["--quiet"]);
    assert!(again.contains("(0 updated, 0 renamed, 0 deleted"), "{again}");
}

/// Every document is one of the two versions and whole, except that a document
/// that is new may still wait for its vectors; and none is missing that both
/// have, be it under another key.
pub(crate) fn assert_whole_documents(contents: &Contents, old: &Contents, new: &Contents) {
    assert!(contents.strays.is_empty(), "{:?}", contents.strays);
    for (path, document) in &contents.documents {
        let versions = [old.documents.get(path), new.documents.get(path)];
        let version = versions
            .into_iter()
            .flatten()
            .find(|version| document.says_the_same(version))
            .unwrap_or_else(|| panic!("{path} is neither the old nor the new one: {document:?}"));
        assert!(document.has_the_same_words(version), "{path} has other full-text rows");
        let vectors = if old.documents.contains_key(path) {
            document.has_the_same_vectors(version)
        } else {
            document.has_no_other_vectors(version)
        };
        assert!(vectors, "{path} has not the vectors of its text");
    }
    for (path, document) in &old.documents {
        let moved = new.documents.iter().find(|(_, other)| other.hash() == document.hash());
        let to = if new.documents.contains_key(path) {
            path
        } else {
            moved.map_or(path, |moved| moved.0)
        };
        let has = |path: &String| contents.documents.contains_key(path);
        assert!(has(path) || has(to) || !new.documents.contains_key(to), "{path} has gone");
    }
}

/// A knowledge base at two times, its index at the first, the files at the
/// second.
struct Times {
    site: Site,
    backup: std::path::PathBuf,
    old: Contents,
    new: Contents,
    before: Tree,
    after: Tree,
}

impl Times {
    fn new(draw: &mut Draw, documents: u64, settings: &str) -> Self {
        let site = Site::new();
        site.configure(settings);
        let before = draw.tree(documents);
        let after = draw.later(&before);
        site.arrange(&Tree::new(), &before);
        site.indexed(&["--quiet"]);
        let (old, backup) = (site.contents(), site.backup("before.db"));
        site.arrange(&before, &after);
        let new = site.fresh();
        assert_ne!(old, new);
        Self { site, backup, old, new, before, after }
    }
}

/// With or without contexts as part of what is embedded.
fn settings(draw: &mut Draw) -> &'static str {
    if draw.percent(30) { "[contextual]\nenabled = true\n" } else { "" }
}

fn kill_a_first_run(kills: u64) {
    let mut draw = Draw::new();
    let site = Site::new();
    site.configure(settings(&mut draw));
    site.arrange(&Tree::new(), &draw.tree(300));
    let (old, new) = (Contents::default(), site.fresh());
    let scenario = Scenario {
        site: &site,
        backup: None,
        old: &old,
        new: &new,
        command: &|_| site.command("index", &["--quiet"]),
        allowed: &|contents| assert_whole_documents(contents, &old, &new),
        pause: Duration::from_millis(60),
    };
    scenario.run(&mut draw, "a first run", kills);
}

fn kill_a_later_run(kills: u64) {
    let mut draw = Draw::new();
    let Times { site, backup, old, new, .. } = Times::new(&mut draw, 300, "");
    let scenario = Scenario {
        site: &site,
        backup: Some(&backup),
        old: &old,
        new: &new,
        command: &|_| site.command("index", &["--quiet"]),
        allowed: &|contents| assert_whole_documents(contents, &old, &new),
        pause: Duration::from_millis(60),
    };
    scenario.run(&mut draw, "a run over changes", kills);
}

fn kill_a_forced_run(kills: u64) {
    let mut draw = Draw::new();
    let settings = settings(&mut draw);
    let Times { site, backup, old, new, .. } = Times::new(&mut draw, 300, settings);
    let scenario = Scenario {
        site: &site,
        backup: Some(&backup),
        old: &old,
        new: &new,
        command: &|_| site.command("index", &["--quiet", "--force"]),
        allowed: &|contents| {
            assert!(
                *contents == old || *contents == new,
                "neither the old nor the new index: from the old one\n{}from the new one\n{}",
                contents.difference(&old),
                contents.difference(&new)
            );
        },
        pause: Duration::from_millis(40),
    };
    scenario.run(&mut draw, "a forced run", kills);
}

/// Lays an index out as an early version did: no sizes, no declared fields, a
/// full text of two columns, no index over the chunks.
fn age(index: &Path, aged: &Path) {
    fs::write(aged, "").unwrap();
    execute(
        aged,
        &format!(
            "PRAGMA journal_mode = wal;
            ATTACH '{}' AS today;
            BEGIN;
            CREATE TABLE documents (
                id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, title TEXT,
                topic TEXT, category TEXT, depth TEXT, tags TEXT NOT NULL DEFAULT '[]', date TEXT,
                content_hash TEXT NOT NULL, last_indexed TEXT NOT NULL);
            INSERT INTO documents SELECT id, path, title, topic, category, depth, tags, date,
                content_hash, last_indexed FROM today.documents;
            CREATE TABLE chunks (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
                chunk_index INTEGER NOT NULL, heading TEXT, level INTEGER, content TEXT NOT NULL,
                token_count INTEGER, quality_score REAL NOT NULL DEFAULT 1.0,
                start_line INTEGER, end_line INTEGER);
            INSERT INTO chunks SELECT id, document_id, chunk_index, heading, level, content,
                token_count, quality_score, start_line, end_line FROM today.chunks;
            CREATE TABLE index_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
            INSERT INTO index_meta SELECT key, value FROM today.index_meta
                WHERE key IN ('embedding_model', 'embedding_dim');
            CREATE VIRTUAL TABLE vec_chunks USING vec0(
                chunk_id INTEGER PRIMARY KEY, embedding float[{}]);
            INSERT INTO vec_chunks SELECT chunk_id, embedding FROM today.vec_chunks;
            CREATE VIRTUAL TABLE fts_chunks USING fts5(
                heading, content, content='', contentless_delete=1,
                tokenize='trigram remove_diacritics 1 case_sensitive 0');
            INSERT INTO fts_chunks (rowid, heading, content)
                SELECT id, heading, content FROM chunks;
            COMMIT;
            DETACH today;
            PRAGMA wal_checkpoint(TRUNCATE);",
            index.display(),
            crate::endpoint::DIMENSION
        ),
    );
}

fn kill_a_migration(kills: u64) {
    let mut draw = Draw::new();
    let site = Site::new();
    site.arrange(&Tree::new(), &draw.tree(300));
    site.indexed(&["--quiet"]);
    let new = site.contents();
    let aged = site.folder().join("aged.db");
    age(&site.base.index(), &aged);
    site.restore(Some(&aged));
    let old = Contents::of_copy(&site.base.index());
    assert!(!old.full_text_of_today);
    let scenario = Scenario {
        site: &site,
        backup: Some(&aged),
        old: &old,
        new: &new,
        command: &|draw| {
            // Whoever opens the file brings it up to date.
            if draw.is_some_and(|draw| draw.percent(30)) {
                site.command("status", &[])
            } else {
                site.command("index", &["--quiet"])
            }
        },
        allowed: &|contents| {
            let version = if contents.full_text_of_today { &new } else { &old };
            assert_eq!(contents.documents.len(), version.documents.len());
            for (path, document) in &contents.documents {
                let expected = &version.documents[path];
                assert!(document.says_the_same(expected), "{path} has other text");
                assert!(document.has_the_same_words(expected), "{path} has other full-text rows");
                assert!(document.has_the_same_vectors(expected), "{path} has other vectors");
                let measured = document.size_bytes;
                assert!(measured.is_none() || measured == new.documents[path].size_bytes);
            }
            assert!(contents.strays.is_empty());
        },
        pause: Duration::ZERO,
    };
    scenario.run(&mut draw, "a migration", kills);
}

/// A file that is no index is moved aside, and a new one made in its place.
fn kill_a_replacement(kills: u64) {
    let mut draw = Draw::new();
    let site = Site::new();
    site.arrange(&Tree::new(), &draw.tree(150));
    let new = site.fresh();
    let junk = "this is no database".repeat(5000);
    let damaged = site.folder().join("damaged");
    fs::write(&damaged, &junk).unwrap();
    let forced = || site.command("index", &["--quiet", "--force"]);
    site.restore(Some(&damaged));
    let course = course(&site, forced());
    site.assert_tidy();
    let (mut killed, mut untouched) = (0, 0);
    while killed < kills {
        site.restore(Some(&damaged));
        let mut still_damaged = true;
        for _ in 0..=draw.below(3) {
            // Most of what is peculiar to it happens at the start.
            let time = if draw.percent(50) { course.duration / 6 } else { course.duration };
            let moment = Course { duration: time, written: 0 }.moment(&mut draw);
            let mut victim = Victim::start(&site, forced());
            if let Some(status) = victim.wait(&site, moment) {
                assert!(status.success(), "{status:?}\n{}", log(&site));
            } else {
                victim.kill();
                killed += 1;
            }
            let index = site.base.index();
            still_damaged = index.exists() && fs::read(&index).unwrap() == junk.as_bytes();
            if still_damaged {
                untouched += 1;
            } else if index.exists() {
                let contents = Contents::of_copy(&index);
                assert_whole_documents(&contents, &Contents::default(), &new);
                search(&site);
            }
        }
        let arguments: &[&str] = if still_damaged { &["--quiet", "--force"] } else { &["--quiet"] };
        site.indexed(arguments);
        repair(&site, &new);
    }
    println!("a replacement: {killed} kills over {course:?}, {untouched} left the damaged file");
}

fn kill_a_server(kills: u64) {
    let mut draw = Draw::new();
    let Times { site, backup, old, new, before, after } = Times::new(&mut draw, 150, "");
    // What is added comes before what goes, so that nothing is away for a while.
    let mut all = changes(&before, &after);
    all.sort_by_key(|(_, text)| text.is_none());
    let bursts: Vec<_> = all.chunks(all.len().div_ceil(8)).collect();
    let pause = Duration::from_millis(30);
    let begin = || {
        fs::remove_dir_all(site.base.kb()).unwrap();
        fs::create_dir_all(site.base.kb()).unwrap();
        site.arrange(&Tree::new(), &before);
        site.restore(Some(&backup));
        site.slow(pause);
    };
    begin();
    let mut server = Server::start(&site);
    let start = Instant::now();
    for burst in &bursts {
        burst.iter().for_each(|(path, text)| site.replace(path, text.as_deref()));
        thread::sleep(Duration::from_millis(60));
    }
    wait_for("the server has followed all changes", || site.contents() == new);
    let duration = start.elapsed();
    server.kill();
    let (mut killed, mut partly) = (0, 0);
    while killed < kills {
        begin();
        let mut server = Server::start(&site);
        let moment = duration.mul_f64(draw.below(1000) as f64 / 1000.0);
        println!("a server: after {moment:?} of {duration:?}");
        thread::scope(|scope| {
            scope.spawn(|| {
                for burst in &bursts {
                    burst.iter().for_each(|(path, text)| site.replace(path, text.as_deref()));
                    thread::sleep(Duration::from_millis(60));
                }
            });
            thread::sleep(moment);
            server.assert_runs();
            server.kill();
        });
        killed += 1;
        site.slow(Duration::ZERO);
        let contents = Contents::of_copy(&site.base.index());
        assert_whole_documents(&contents, &old, &new);
        partly += u32::from(contents.documents != old.documents && contents != new);
        search(&site);
        repair(&site, &new);
    }
    println!("a server: {killed} kills over {duration:?}, {partly} of which left a part");
}

// IDX-59 IDX-B10
#[test]
fn what_follows_from_the_key_of_a_moved_document_is_made_good_by_the_next_run() {
    for more in ["", "[contextual]\nenabled = true\n"] {
        let site = Site::new();
        site.configure(more);
        site.base.write("sea/north/rope.md", "A bowline holds under load and is easy to untie.\n");
        site.indexed(&[]);
        let kb = site.base.kb();
        fs::create_dir_all(kb.join("land/south")).unwrap();
        fs::rename(kb.join("sea/north/rope.md"), kb.join("land/south/knot.md")).unwrap();
        site.base.write("a.md", "This one has to be embedded, and comes before the other.\n");
        site.fake.always(Some(Act::Answer(401, "", String::new())));
        assert_eq!(site.run("index", &[]).status.code(), Some(1));
        site.slow(Duration::ZERO);
        repair(&site, &site.fresh());
    }
}

/// What one scenario kills of what all of them are to kill.
fn share(otherwise: u64) -> u64 {
    wanted("GROOVE_TEST_KILLS", otherwise).div_ceil(SCENARIOS)
}

// IDX-02 IDX-07 IDX-17 IDX-111
#[test]
fn a_first_run_may_be_killed_at_any_point() {
    kill_a_first_run(share(SOME));
}

// IDX-07 IDX-17 IDX-58 IDX-111
#[test]
fn a_run_over_changes_may_be_killed_at_any_point() {
    kill_a_later_run(share(SOME));
}

// IDX-08 IDX-17 IDX-B03
#[test]
fn a_forced_run_may_be_killed_at_any_point() {
    kill_a_forced_run(share(SOME));
}

// IDX-04 IDX-140
#[test]
fn the_step_from_an_older_layout_may_be_killed_at_any_point() {
    kill_a_migration(share(SOME));
}

// IDX-07 IDX-152a
#[test]
fn a_server_that_follows_its_files_may_be_killed_at_any_point() {
    kill_a_server(share(SOME));
}

// IDX-05 IDX-06 IDX-B02 OPS-42
#[test]
fn a_run_that_replaces_a_damaged_file_may_be_killed_at_any_point() {
    kill_a_replacement(share(SOME));
}

mod with_patience {
    use super::*;

    // IDX-02 IDX-07 IDX-17 IDX-111
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_first_run_may_be_killed_at_any_point() {
        kill_a_first_run(share(MANY));
    }

    // IDX-07 IDX-17 IDX-58 IDX-111
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_run_over_changes_may_be_killed_at_any_point() {
        kill_a_later_run(share(MANY));
    }

    // IDX-08 IDX-17 IDX-B03
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_forced_run_may_be_killed_at_any_point() {
        kill_a_forced_run(share(MANY));
    }

    // IDX-04 IDX-140
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn the_step_from_an_older_layout_may_be_killed_at_any_point() {
        kill_a_migration(share(MANY));
    }

    // IDX-07 IDX-152a
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_server_that_follows_its_files_may_be_killed_at_any_point() {
        kill_a_server(share(MANY));
    }

    // IDX-05 IDX-06 IDX-B02 OPS-42
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_run_that_replaces_a_damaged_file_may_be_killed_at_any_point() {
        kill_a_replacement(share(MANY));
    }
}
