//! Runs in surroundings that work against them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::contents::{Contents, Locked, copy_in_the_middle, execute};
use crate::groove::{stderr, stdout};
use crate::server::Server;
use crate::site::{Draw, Site, Tree, hits};

/// A knowledge base whose files have changed since it was indexed.
struct Changed {
    site: Site,
    backup: PathBuf,
    old: Contents,
    new: Contents,
}

impl Changed {
    fn new(documents: u64) -> Self {
        let mut draw = Draw::new();
        let site = Site::new();
        let before = draw.tree(documents);
        let after = draw.later(&before);
        site.arrange(&Tree::new(), &before);
        site.indexed(&["--quiet"]);
        let (old, backup) = (site.contents(), site.backup("before.db"));
        site.arrange(&before, &after);
        let new = site.fresh();
        Self { site, backup, old, new }
    }
}

/// A run that had to stop says which file is concerned and why, in one line.
fn assert_told(output: &Output, index: &Path, causes: &[&str]) {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let line = told.lines().find(|line| line.contains(&*index.to_string_lossy()));
    let line = line.unwrap_or_else(|| panic!("the index is not named in\n{told}"));
    assert!(causes.iter().any(|cause| line.contains(cause)), "none of {causes:?} is in\n{line}");
}

/// A run that must leave every document whole, and an index that is answered
/// from, whatever became of the run.
fn assert_still_searched(site: &Site, old: &Contents, new: &Contents, forced: bool) {
    let contents = Contents::of_copy(&site.base.index());
    if forced {
        let which = contents == *old || contents == *new;
        assert!(which, "neither of the two:\n{}", contents.difference(old));
    } else {
        crate::crashes::assert_whole_documents(&contents, old, new);
    }
    let output = site.run("search", &["--", "\"harbour\""]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!hits(&output).is_empty());
}

const NO_ROOM: [&str; 3] = ["disk is full", "disk I/O error", "File too large"];

// IDX-07 IDX-B03
#[test]
fn a_file_that_may_not_grow_stops_a_run_and_loses_nothing() {
    let Changed { site, backup, old, new } = Changed::new(120);
    let mut failed = 0;
    for arguments in [&["--quiet"][..], &["--quiet", "--force"]] {
        for blocks in [0, 40, 200, 1000, 3000] {
            site.restore(Some(&backup));
            let run = site.command("index", arguments);
            let mut limited = Command::new("sh");
            limited
                .args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"", "sh"])
                .arg(blocks.to_string())
                .arg(run.get_program())
                .args(run.get_args())
                .current_dir(run.get_current_dir().unwrap())
                .env_clear()
                .envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let output = limited.output().unwrap();
            if !output.status.success() {
                failed += 1;
                assert_told(&output, &site.base.index(), &NO_ROOM);
            }
            assert_still_searched(&site, &old, &new, arguments.len() > 1);
            site.indexed(&["--quiet"]);
            site.contents().assert_same(&new);
            site.assert_tidy();
        }
    }
    assert!(failed > 3, "hardly any run lacked room: {failed}");
}

/// Where this is set, the temporary files are on a disk with little room.
const SMALL_DISK: &str = "GROOVE_TEST_SMALL_DISK";

// IDX-07 IDX-B03
#[test]
fn a_full_disk_stops_a_run_and_loses_nothing() {
    const NAME: &str = "hostile::a_full_disk_stops_a_run_and_loses_nothing";
    if std::env::var_os(SMALL_DISK).is_none() {
        // The same once more, with a small disk that only it sees.
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs -o size=24m none \"$1\" || exit 77
            TMPDIR=\"$1\" {SMALL_DISK}=\"$1\" exec \"$2\" --exact {NAME} --nocapture"
        );
        let again = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"])
            .arg(folder.path())
            .arg(std::env::current_exe().unwrap())
            .output();
        match again {
            Ok(output) if output.status.success() => println!("{}", stdout(&output)),
            Ok(output) if stdout(&output).contains("running 1 test") => {
                panic!("{}\n{}", stdout(&output), stderr(&output))
            }
            other => println!("not asked: no small disk can be had here: {other:?}"),
        }
        return;
    }
    let Changed { site, backup, old, new } = Changed::new(120);
    let ballast = site.folder().join("ballast");
    let mut failed = 0;
    for arguments in [&["--quiet"][..], &["--quiet", "--force"]] {
        for room in [0, 16, 128, 600, 1500, 3000] {
            site.restore(Some(&backup));
            fill(&ballast, room);
            let output = site.run("index", arguments);
            if !output.status.success() {
                failed += 1;
                assert_told(&output, &site.base.index(), &NO_ROOM);
            }
            // A reader needs a little room for what readers share.
            fs::File::options().write(true).open(&ballast).unwrap().set_len(1 << 20).unwrap();
            assert_still_searched(&site, &old, &new, arguments.len() > 1);
            fs::remove_file(&ballast).unwrap();
            site.indexed(&["--quiet"]);
            site.contents().assert_same(&new);
            site.assert_tidy();
        }
    }
    println!("{failed} runs of 12 lacked room");
    assert!(failed > 3, "hardly any run lacked room: {failed}");
}

/// Writes until so many KiB are left.
fn fill(ballast: &Path, kib: u64) {
    use std::io::Write as _;

    let mut file = fs::File::create(ballast).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    let len = file.metadata().unwrap().len();
    file.set_len(len.saturating_sub(kib * 1024)).unwrap();
}

/// A knowledge base that belongs to someone whom permissions bind.
struct Bound {
    site: Site,
    program: PathBuf,
    /// Who runs it, if that is not who runs the tests.
    user: Option<u32>,
}

impl Bound {
    fn new(site: Site) -> Self {
        let probe = site.folder().join("probe");
        fs::create_dir(&probe).unwrap();
        fs::set_permissions(&probe, fs::Permissions::from_mode(0o555)).unwrap();
        let user = fs::write(probe.join("x"), "").is_ok().then_some(65534);
        fs::remove_dir_all(probe).unwrap();
        let program = site.folder().join("groove");
        fs::copy(env!("CARGO_BIN_EXE_groove"), &program).unwrap();
        fs::create_dir_all(site.base.home()).unwrap();
        let bound = Self { site, program, user };
        bound.give(&bound.site.folder());
        bound
    }

    fn give(&self, path: &Path) {
        let Some(user) = self.user else { return };
        chown(path, Some(user), Some(user)).unwrap();
        for entry in fs::read_dir(path).into_iter().flatten() {
            self.give(&entry.unwrap().path());
        }
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Output {
        let as_ever = self.site.command(command, arguments);
        let mut run = Command::new(&self.program);
        run.args(as_ever.get_args())
            .current_dir(as_ever.get_current_dir().unwrap())
            .env_clear()
            .envs(as_ever.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            run.uid(user).gid(user);
        }
        run.output().unwrap()
    }

    fn allow(&self, folder: u32, index: u32) {
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in self.site.index_files() {
            set(&self.site.folder().join(name), index);
        }
        set(&self.site.folder(), folder);
    }
}

// IDX-04 IDX-06
#[test]
fn what_cannot_be_written_is_named_and_still_searched() {
    let site = Site::new();
    site.base.write("sea.md", "Every harbour has its own hour for the tide.\n");
    let bound = Bound::new(site);
    let index = bound.site.base.index();
    bound.allow(0o555, 0o444);
    for arguments in [&[][..], &["--force"]] {
        assert_told(&bound.run("index", arguments), &index, &["Permission denied"]);
    }
    bound.allow(0o755, 0o644);
    assert!(bound.run("index", &[]).status.success());
    let before = bound.site.contents();
    bound.give(&bound.site.folder());
    bound.site.base.write("sea.md", "Every harbour has its own hour for the ferry.\n");
    for (folder, file) in [(0o555, 0o444), (0o555, 0o644), (0o755, 0o444)] {
        bound.allow(folder, file);
        for arguments in [&[][..], &["--force"]] {
            let output = bound.run("index", arguments);
            let causes = ["Permission denied", "readonly database", "unable to open database file"];
            assert_told(&output, &index, &causes);
        }
        let found = bound.run("search", &["--", "\"harbour\""]);
        assert!(found.status.success(), "{}", stderr(&found));
        assert_eq!(hits(&found), ["sea.md"]);
    }
    bound.allow(0o755, 0o644);
    Contents::of_copy(&index).assert_same(&before);
    let after = bound.run("index", &[]);
    assert!(stderr(&after).contains("(1 updated"), "{}", stderr(&after));
}

// IDX-25 IDX-57 IDX-B05
#[test]
fn what_cannot_be_read_keeps_what_the_index_has_of_it() {
    let site = Site::new();
    for path in ["sea/north/a.md", "sea/b.md", "land/c.md"] {
        site.base.write(path, format!("The harbour at {path} has its own hour.\n"));
    }
    let bound = Bound::new(site);
    assert!(bound.run("index", &[]).status.success());
    bound.give(&bound.site.folder());
    let before = bound.site.contents();
    let kb = bound.site.base.kb();
    for (path, open) in [("sea/b.md", 0o644), ("sea/north", 0o755), ("sea", 0o755)] {
        bound.give(&bound.site.folder());
        let set = |mode| {
            fs::set_permissions(kb.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        set(0o000);
        let output = bound.run("index", &[]);
        set(open);
        assert!(stderr(&output).contains(path), "{path} is not named in\n{}", stderr(&output));
        bound.site.contents().assert_same(&before);
    }
    bound.give(&bound.site.folder());
    fs::rename(&kb, bound.site.folder().join("away")).unwrap();
    for arguments in [&["--quiet"][..], &["--quiet", "--force"]] {
        assert_eq!(bound.run("index", arguments).status.code(), Some(1));
        bound.site.contents().assert_same(&before);
    }
}

// IDX-03 IDX-111 OPS-40
#[test]
fn a_run_waits_for_another_writer_and_searches_do_not() {
    let Changed { site, new, .. } = Changed::new(20);
    for arguments in [&["--quiet"][..], &["--quiet", "--force"]] {
        let locked = Locked::new(&site.base.index());
        let mut run = site.command("index", arguments).stderr(Stdio::null()).spawn().unwrap();
        for _ in 0..5 {
            site.found("\"harbour\"");
            thread::sleep(Duration::from_millis(100));
        }
        assert!(run.try_wait().unwrap().is_none(), "it did not wait");
        drop(locked);
        assert!(run.wait().unwrap().success());
        site.contents().assert_same(&new);
    }
}

/// Starts runs over and over, several at a time, on this index or on none.
fn run_together(changed: &Changed, from: Option<&Path>) {
    let Changed { site, new, .. } = changed;
    site.slow(Duration::from_millis(20));
    for forced in [&[false, false][..], &[false, false, false], &[true, false], &[true, true]] {
        site.restore(from);
        let runs = forced.iter().map(|&forced| {
            let arguments: &[&str] = if forced { &["--force"] } else { &[] };
            let mut run = site.command("index", arguments);
            run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let runs: Vec<_> = runs.collect();
        let ended: Vec<Output> =
            runs.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
        for output in ended {
            assert!(output.status.success(), "{forced:?}\n{}", stderr(&output));
        }
        site.contents().assert_same(new);
        site.assert_tidy();
    }
}

// IDX-04 IDX-111 OPS-40 OPS-41
#[test]
fn first_runs_at_the_same_time_do_not_hurt_each_other() {
    run_together(&Changed::new(60), None);
}

// IDX-111 OPS-40 OPS-41
#[test]
fn later_runs_at_the_same_time_do_not_hurt_each_other() {
    let changed = Changed::new(60);
    run_together(&changed, Some(&changed.backup));
}

// IDX-109 IDX-111 IDX-B17 OPS-40
#[test]
fn a_server_answers_every_search_while_others_write() {
    let Changed { site, old, new, .. } = Changed::new(60);
    let mut server = Server::start_with(&site, &["--no-watch"]);
    let query = json!({"query": "\"harbour\" tide", "limit": 5});
    for arguments in [&["--quiet"][..], &["--quiet", "--force"], &["--quiet", "--force"]] {
        let mut run = site.command("index", arguments).stderr(Stdio::null()).spawn().unwrap();
        let mut ended = false;
        for number in 0.. {
            let (found, failed) = server.call("search", &query);
            assert!(!failed, "{found}");
            let hits = found["results"].as_array().unwrap();
            assert!(!hits.is_empty(), "search {number} of {arguments:?} finds nothing: {found}");
            for hit in hits {
                let path = hit["path"].as_str().unwrap();
                let known = [&old, &new].iter().any(|one| one.documents.contains_key(path));
                assert!(known, "{path}");
            }
            if ended {
                break;
            }
            ended = run.try_wait().unwrap().is_some();
        }
        assert!(run.wait().unwrap().success());
    }
    let (built, failed) = server.call("rebuild_index", &json!({"force": true}));
    assert!(!failed, "{built}");
    server.stop();
    site.contents().assert_same(&new);
}

// IDX-41 IDX-42 IDX-56 IDX-57
#[test]
fn files_that_change_while_they_are_read_end_up_as_they_are() {
    let mut draw = Draw::new();
    let site = Site::new();
    let tree = draw.tree(80);
    site.arrange(&Tree::new(), &tree);
    site.slow(Duration::from_millis(15));
    let paths: Vec<String> = tree.into_keys().collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let path = site.base.kb().join(draw.one_of(&paths));
                let text = draw.document(3);
                match draw.below(5) {
                    0 => drop(fs::remove_file(&path)),
                    1 => fs::write(&path, &text).unwrap(),
                    2 => {
                        // It grows bit by bit.
                        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
                            if end % 50 == 0 {
                                fs::write(&path, &text[..end]).unwrap();
                            }
                        }
                    }
                    3 => {
                        drop(fs::remove_file(&path));
                        fs::create_dir(&path).unwrap();
                        fs::remove_dir(&path).unwrap();
                    }
                    _ => {
                        let parent = path.parent().unwrap().to_owned();
                        let aside = parent.with_file_name("aside");
                        if parent != site.base.kb() && fs::rename(&parent, &aside).is_ok() {
                            fs::rename(&aside, &parent).unwrap();
                        }
                    }
                }
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for arguments in [&["--quiet"][..], &["--quiet"], &["--quiet", "--force"], &["--quiet"]]
            {
                let output = site.run("index", arguments);
                assert!(output.status.success(), "{arguments:?}\n{}", stderr(&output));
            }
        }));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    site.indexed(&["--quiet"]);
    site.contents().assert_same(&site.fresh());
}

// IDX-55
#[test]
fn an_edit_is_found_whatever_the_clock_says() {
    let site = Site::new();
    site.base.write("sea.md", "Every harbour has its own hour for the tides.\n");
    let path = site.base.kb().join("sea.md");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    site.indexed(&[]);
    for (text, time) in [
        ("Every harbour has its own hour for the ferry.\n", modified),
        ("Every harbour has its own hour for the storm.\n", std::time::UNIX_EPOCH),
        (
            "Every harbour has its own hour for the pilot.\n",
            modified + Duration::from_hours(90_000),
        ),
    ] {
        site.base.write("sea.md", text);
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        site.indexed(&[]);
        site.contents().assert_same(&site.fresh());
    }
}

// IDX-05 IDX-06 CLI-220
#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let site = Site::new();
    site.base.write("sea.md", "Every harbour has its own hour for the tide.\n");
    let junk = "this is no database".repeat(500);
    fs::write(site.base.index(), &junk).unwrap();
    let commands: [(&str, &[&str]); 4] =
        [("index", &[]), ("search", &["harbour"]), ("serve", &[]), ("status", &[])];
    for (command, arguments) in commands {
        let output = site.run(command, arguments);
        assert_told(&output, &site.base.index(), &["not a usable"]);
        let told = stderr(&output);
        let line = told.lines().find(|line| line.contains("not a usable")).unwrap();
        assert!(line.contains("delete") && line.contains("groove index --force"), "{line}");
        assert_eq!(fs::read_to_string(site.base.index()).unwrap(), junk);
        assert_eq!(site.index_files().len(), 1);
    }
    site.indexed(&["--force"]);
    site.contents().assert_same(&site.fresh());
    site.assert_tidy();
}

// IDX-05 IDX-11
#[test]
fn a_database_of_another_program_is_named_and_left_alone() {
    let site = Site::new();
    site.base.write("sea.md", "Every harbour has its own hour for the tide.\n");
    fs::write(site.base.index(), "").unwrap();
    execute(
        &site.base.index(),
        "CREATE TABLE documents (id INTEGER PRIMARY KEY, path TEXT, body TEXT);
         INSERT INTO documents VALUES (1, 'a', 'precious');",
    );
    let before = fs::read(site.base.index()).unwrap();
    let commands: [(&str, &[&str]); 4] =
        [("index", &[]), ("search", &["harbour"]), ("serve", &[]), ("status", &[])];
    for (command, arguments) in commands {
        let output = site.run(command, arguments);
        assert_told(&output, &site.base.index(), &["did not build"]);
        assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
        assert_eq!(fs::read(site.base.index()).unwrap(), before, "{command} has changed it");
        assert_eq!(site.index_files().len(), 1);
    }
    site.indexed(&["--force"]);
    site.contents().assert_same(&site.fresh());
    let aside = site.folder().join(".groove.db.foreign");
    assert_eq!(fs::read(aside).unwrap(), before, "what another program had is kept");
}

// IDX-11
#[test]
fn what_another_implementation_keeps_in_the_index_stays() {
    let Changed { site, new, .. } = Changed::new(20);
    execute(
        &site.base.index(),
        "CREATE TABLE their_own (words TEXT);
         INSERT INTO their_own VALUES ('stays');
         ALTER TABLE documents ADD COLUMN their_own TEXT;
         INSERT INTO index_meta VALUES ('their_own', 'stays');",
    );
    for arguments in [&["--quiet"][..], &["--quiet", "--force"]] {
        site.indexed(arguments);
        site.contents().assert_same(&new);
        // Either fails if what it names has gone.
        execute(
            &site.base.index(),
            "SELECT their_own FROM documents;
             CREATE TEMP TABLE one (word TEXT UNIQUE NOT NULL CHECK (word = 'stays'));
             INSERT INTO one VALUES ((SELECT words FROM their_own));
             CREATE TEMP TABLE other (word TEXT UNIQUE NOT NULL CHECK (word = 'stays'));
             INSERT INTO other VALUES
                ((SELECT value FROM index_meta WHERE key = 'their_own'));",
        );
    }
}

// IDX-04 IDX-07
#[test]
fn what_a_process_broke_off_is_undone_by_whoever_comes_first() {
    let Changed { site, backup, old, new } = Changed::new(60);
    let aside = site.folder().join("aside.db");
    for (mode, side) in [("delete", "-journal"), ("wal", "-wal")] {
        execute(&backup, &format!("PRAGMA journal_mode = {mode};"));
        let all = "UPDATE chunks SET content = content || 'x'; DELETE FROM documents;";
        copy_in_the_middle(&backup, all, side, &aside);
        let left = aside.with_file_name(format!("aside.db{side}"));
        assert!(fs::metadata(&left).unwrap().len() > 4096, "nothing was left to undo");
        let commands: [(&str, &[&str]); 4] = [
            ("search", &["--", "\"harbour\""]),
            ("status", &[]),
            ("index", &["--quiet"]),
            ("index", &["--quiet", "--force"]),
        ];
        for (command, arguments) in commands {
            site.restore(Some(&aside));
            fs::copy(&left, site.folder().join(format!(".groove.db{side}"))).unwrap();
            let output = site.run(command, arguments);
            assert!(output.status.success(), "{command}, {mode}: {}", stderr(&output));
            site.contents().assert_same(if command == "index" { &new } else { &old });
            site.assert_tidy();
        }
    }
}

// IDX-140
#[test]
fn full_text_rows_that_are_missing_come_back_with_the_next_run() {
    let site = Site::new();
    site.arrange(&Tree::new(), &Draw::new().tree(20));
    site.indexed(&[]);
    let whole = site.contents();
    execute(&site.base.index(), "DELETE FROM fts_chunks WHERE rowid % 3 = 0;");
    site.found("\"harbour\"");
    site.indexed(&[]);
    site.contents().assert_same(&whole);
}

// IDX-13
#[test]
fn vectors_and_full_text_rows_that_are_missing_hurt_no_search() {
    let site = Site::new();
    site.arrange(&Tree::new(), &Draw::new().tree(20));
    site.indexed(&[]);
    execute(
        &site.base.index(),
        "DELETE FROM vec_chunks WHERE chunk_id % 3 = 0; DELETE FROM fts_chunks WHERE rowid % 5 = 0;",
    );
    assert!(!site.found("\"harbour\"").is_empty());
    site.indexed(&[]);
    site.indexed(&["--force"]);
    site.contents().assert_same(&site.fresh());
}

// IDX-140 QUA-21
#[test]
fn scores_that_an_early_version_did_not_have_are_filled_in() {
    let site = Site::new();
    site.arrange(&Tree::new(), &Draw::new().tree(20));
    site.base.write("stub.md", "TBD\n");
    site.indexed(&[]);
    let whole = site.contents();
    execute(
        &site.base.index(),
        "DROP INDEX chunks_by_quality; ALTER TABLE chunks DROP COLUMN quality_score;",
    );
    site.indexed(&[]);
    site.contents().assert_same(&whole);
}

// IDX-02 IDX-01
#[test]
fn an_index_that_was_deleted_is_made_again() {
    let Changed { site, new, .. } = Changed::new(20);
    site.indexed(&[]);
    site.restore(None);
    site.indexed(&[]);
    site.contents().assert_same(&new);
    site.assert_tidy();
}

// IDX-14
#[test]
fn a_run_that_is_refused_at_once_creates_nothing() {
    let site = Site::new();
    site.base.write("sea.md", "Every harbour has its own hour for the tide.\n");
    site.configure("[parsers]\nenabled = ['md', 'no-such-format']\n");
    let output = site.run("index", &[]);
    assert!(!output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("no-such-format"), "{}", stderr(&output));
    assert!(site.index_files().is_empty(), "{:?}", site.index_files());
    assert!(site.fake.take().is_empty(), "the endpoint was asked");
}

// IDX-14 IDX-113
#[test]
fn another_model_is_refused_before_anything_is_asked_of_it() {
    let site = Site::new();
    site.base.write("sea.md", "Every harbour has its own hour for the tide.\n");
    site.indexed(&[]);
    let before = site.contents();
    site.base.write("sea.md", "Every harbour has its own hour for the ferry.\n");
    let output = site.run("index", &["--model", "bge-small-en-v1.5"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("bge-small-en-v1.5"), "{}", stderr(&output));
    site.contents().assert_same(&before);
}

// IDX-16
#[test]
fn a_server_indexes_nothing_at_its_start() {
    let Changed { site, old, .. } = Changed::new(20);
    site.fake.take();
    for arguments in [&["--no-watch"][..], &["--debounce-ms", "30"]] {
        let mut server = Server::start_with(&site, arguments);
        let (found, failed) = server.call("search", &json!({"query": "\"harbour\""}));
        assert!(!failed, "{found}");
        server.stop();
        site.contents().assert_same(&old);
    }
}

// IDX-09 IDX-B04
#[test]
fn two_knowledge_bases_in_one_folder_are_never_mixed() {
    let site = Site::new();
    site.base.write("sea.md", "Every harbour has its own hour for the tide.\n");
    site.base.write("both.md", "What both have, in the words of the first.\n");
    site.indexed(&[]);
    let before = site.contents();
    let other = site.folder().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("land.md"), "The road to the harbour is long.\n").unwrap();
    fs::write(other.join("both.md"), "What both have, in the words of the second.\n").unwrap();
    let config = site.folder().join("named.toml");
    let run = |arguments: &[&str]| {
        let (config, other) = (config.to_str().unwrap(), other.to_str().unwrap());
        let all = [&["--config", config, "index", "--kb-path", other], arguments].concat();
        site.base.bare(&all).output().unwrap()
    };
    let paths = |contents: &Contents| contents.documents.keys().cloned().collect::<Vec<_>>();
    let output = run(&[]);
    if output.status.success() {
        assert_eq!(paths(&site.contents()), ["both.md", "land.md"]);
        site.indexed(&[]);
    } else {
        // Refused, with both of them named.
        let told = stderr(&output);
        assert!(told.contains("kb") && told.contains("other"), "{told}");
    }
    site.contents().assert_same(&before);
    assert!(run(&["--force"]).status.success());
    assert_eq!(paths(&site.contents()), ["both.md", "land.md"]);
    // One that was renamed is not taken for another.
    fs::remove_dir_all(site.base.kb()).unwrap();
    fs::rename(&other, site.base.kb()).unwrap();
    let renamed = site.indexed(&[]);
    assert!(renamed.contains("2 docs (0 updated"), "{renamed}");
}

mod with_patience {
    use super::*;

    // IDX-03 IDX-06
    #[test]
    #[ignore = "takes two minutes; `make crash-test` runs it"]
    fn a_writer_that_never_ends_is_named_in_the_end() {
        let Changed { site, old, new, .. } = Changed::new(20);
        for arguments in [&["--quiet"][..], &["--quiet", "--force"]] {
            let locked = Locked::new(&site.base.index());
            let output = site.run("index", arguments);
            assert_told(&output, &site.base.index(), &["locked"]);
            drop(locked);
            site.contents().assert_same(&old);
        }
        site.indexed(&["--quiet"]);
        site.contents().assert_same(&new);
        site.assert_tidy();
    }
}
