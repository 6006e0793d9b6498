//! What files promise beyond the contract: links, pipes, races, odd names.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::ports::document_source::{
    Found, LeftOut, LeftOutReason, Polling, PollingReason, Refusal, SourceChange,
};

const NO_CAP: SizeCap = SizeCap(u64::MAX);

/// A knowledge base in `root`, and beside it `outside/secret.md`.
struct Place {
    folder: TempDir,
    source: FilesystemSource,
}

impl Place {
    fn new(keys: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret.md"), "secret").unwrap();
        let source = source(&folder.path().join("root")).unwrap();
        let place = Self { folder, source };
        for key in keys {
            let path = place.root().join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn keys(&self) -> Vec<String> {
        let found = self.source.list().unwrap().found;
        found.iter().map(|found| found.path.as_str().to_owned()).collect()
    }

    fn read(&self, key: &str) -> Result<Content, SourceError> {
        self.source.read(&DocumentPath::new(key).unwrap(), NO_CAP)
    }
}

fn source(root: &Path) -> Result<FilesystemSource, SourceError> {
    FilesystemSource::new::<&str>(root, EnabledFormats::default(), &[])
}

fn left_out(name: &str, reason: LeftOutReason) -> LeftOut {
    LeftOut { name: name.to_owned(), reason }
}

fn terms(cap: SizeCap) -> Terms {
    Terms { cap, own_only: false }
}

#[track_caller]
fn assert_refused(answer: &Result<Content, SourceError>, expected: Refusal) {
    assert!(
        matches!(answer, Err(SourceError::Refused { reason, .. }) if *reason == expected),
        "{answer:?}"
    );
}

// IDX-10
#[test]
fn a_root_that_is_no_folder_is_named_with_a_remedy() {
    let place = Place::new(&["a.md"]);
    let unusable = [place.root().join("missing"), place.root().join("a.md"), PathBuf::from("/")];
    for root in unusable {
        let SourceError::Unavailable { what, .. } = source(&root).unwrap_err() else {
            panic!("{}", root.display());
        };
        assert!(what.contains(root.to_str().unwrap()) && what.contains("--kb-path"), "{what}");
    }
}

// IDX-18
#[test]
fn the_root_may_be_reached_through_a_link() {
    let place = Place::new(&["a.md"]);
    let link = place.folder.path().join("link");
    symlink("root", &link).unwrap();
    let listing = source(&link).unwrap().list().unwrap();
    assert_eq!(listing.found.len(), 1);
    assert_eq!(source(&link.join("../root/.")).unwrap().root, place.root().canonicalize().unwrap());
}

// IDX-25
#[test]
fn a_root_that_has_vanished_is_not_an_empty_one() {
    let place = Place::new(&["a.md"]);
    fs::rename(place.root(), place.folder.path().join("elsewhere")).unwrap();
    assert!(matches!(place.source.list(), Err(SourceError::Unavailable { .. })));
    assert!(matches!(place.read("a.md"), Err(SourceError::Unavailable { .. })));
    fs::rename(place.folder.path().join("elsewhere"), place.root()).unwrap();
    assert_eq!(place.keys(), ["a.md"]);
}

// IDX-18
#[test]
fn neither_linked_files_nor_linked_folders_are_listed() {
    let place = Place::new(&["a/b.md"]);
    let root = place.root();
    symlink("a", root.join("inward")).unwrap();
    symlink("../outside", root.join("outward")).unwrap();
    symlink("../outside/secret.md", root.join("secret.md")).unwrap();
    symlink("nowhere.md", root.join("dangling.md")).unwrap();
    symlink(".", root.join("a/loop")).unwrap();
    assert_eq!(place.keys(), ["a/b.md"]);
    assert_eq!(place.source.list().unwrap().left_out, []);
}

// IDX-40 IDX-B07
#[test]
fn nothing_is_read_through_a_link_wherever_in_the_path_it_stands() {
    let place = Place::new(&["a/b.md"]);
    let root = place.root();
    symlink("a", root.join("inward")).unwrap();
    symlink("../outside", root.join("outward")).unwrap();
    symlink("../outside/secret.md", root.join("secret.md")).unwrap();
    symlink("nowhere.md", root.join("dangling.md")).unwrap();
    assert_refused(&place.read("secret.md"), Refusal::SymbolicLink);
    assert_refused(&place.read("dangling.md"), Refusal::SymbolicLink);
    assert_refused(&place.read("outward/secret.md"), Refusal::Outside);
    assert_refused(&place.read("outward/missing.md"), Refusal::Outside);
    // Another spelling of `a/b.md`.
    assert!(matches!(place.read("inward/b.md"), Err(SourceError::NotFound { .. })));
}

// IDX-40 IDX-41
#[test]
fn pipes_and_sockets_are_neither_listed_nor_waited_for() {
    let place = Place::new(&["a.md"]);
    let pipe = place.root().join("pipe.md");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = UnixListener::bind(place.root().join("socket.md")).unwrap();
    assert_eq!(place.keys(), ["a.md"]);

    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for key in ["pipe.md", "socket.md"] {
            sender.send(place.read(key)).unwrap();
        }
    });
    for _ in 0..2 {
        let answer = receiver.recv_timeout(Duration::from_secs(20)).expect("reading waits");
        assert_refused(&answer, Refusal::NotRegular);
    }
}

// IDX-39 IDX-41
#[test]
fn the_handle_decides_and_not_what_was_there_before() {
    let place = Place::new(&["a.md"]);
    let file = File::open(place.root().join("a.md")).unwrap();
    assert_eq!(read::read_handle(&file, "a.md", terms(SizeCap(4))).unwrap().bytes, b"text");

    let folder = File::open(place.root()).unwrap();
    assert_refused(&read::read_handle(&folder, "a.md", terms(NO_CAP)), Refusal::NotRegular);

    let mut writer = OpenOptions::new().append(true).open(place.root().join("a.md")).unwrap();
    writer.write_all(b"!").unwrap();
    let too_large = Refusal::TooLarge { size_bytes: 5, cap_bytes: 4 };
    assert_refused(&read::read_handle(&file, "a.md", terms(SizeCap(4))), too_large);

    fs::hard_link(place.root().join("a.md"), place.root().join("b.md")).unwrap();
    assert_refused(&read::read_handle(&file, "a.md", terms(SizeCap(4))), Refusal::MultipleLinks);
}

// IDX-41
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_yields_more_than_its_length_is_too_large() {
    // The kernel gives these files a length of 0 and makes up their bytes when they are read.
    let source = source(Path::new("/proc/self")).unwrap();
    let status = DocumentPath::new("status").unwrap();
    assert!(source.read(&status, NO_CAP).unwrap().bytes.len() > 11);
    let answer = source.read(&status, SizeCap(10));
    assert_refused(&answer, Refusal::TooLarge { size_bytes: 11, cap_bytes: 10 });
}

// IDX-39 IDX-B07
#[test]
fn swapping_a_file_or_a_folder_for_a_link_never_hands_out_what_is_outside() {
    let place = Place::new(&["a/secret.md", "b/secret.md"]);
    let root = place.root();
    symlink("../outside", root.join("link")).unwrap();
    symlink("../../outside/secret.md", root.join("b/link.md")).unwrap();
    let stop = AtomicBool::new(false);
    let swap = |one: &str, other: &str| {
        let [one, other, aside] = [one, other, "aside"].map(|key| root.join(key));
        while !stop.load(Ordering::Relaxed) {
            fs::rename(&one, &aside).unwrap();
            fs::rename(&other, &one).unwrap();
            fs::rename(&aside, &other).unwrap();
        }
    };
    let read_all = |key: &str| {
        let mut read = 0;
        for _ in 0..3_000 {
            if let Ok(content) = place.read(key) {
                assert_eq!(content.bytes, b"text", "{key}");
                read += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(read > 0, "{key} was never there");
    };
    for (key, one, other) in
        [("a/secret.md", "a", "link"), ("b/secret.md", "b/secret.md", "b/link.md")]
    {
        stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| swap(one, other));
            read_all(key);
        });
    }
}

// IDX-22 IDX-23
#[test]
fn names_that_are_not_utf_8_are_left_out_and_never_guessed() {
    let place = Place::new(&["a.md", "a\u{FFFD}.md"]);
    let root = place.root();
    fs::create_dir(root.join(OsStr::from_bytes(b"folder\xFF"))).unwrap();
    fs::create_dir(root.join("target")).unwrap();
    for name in [
        &b"a\xFF.md"[..],
        b"a\xFE.md",
        b"folder\xFF/b.md",
        b"folder\xFF/c.md",
        b"d\xFF.txt",
        b"~$\xFF.md",
        b"target/e\xFF.md",
    ] {
        fs::write(root.join(OsStr::from_bytes(name)), "text").unwrap();
    }
    let listing = FilesystemSource::new(&root, EnabledFormats::default(), &["target"])
        .unwrap()
        .list()
        .unwrap();
    let names = ["a\u{FFFD}.md", "a\u{FFFD}.md", "folder\u{FFFD}"];
    assert_eq!(listing.left_out, names.map(|name| left_out(name, LeftOutReason::NotNameable)));
    assert_eq!(place.keys(), ["a.md", "a\u{FFFD}.md"]);
}

// IDX-22 IDX-23
#[test]
fn a_backslash_is_part_of_a_name_unless_it_could_climb() {
    let place = Place::new(&["a\\b.md", "a/b.md", "c\\..\\d.md", "e\\../f.md", "g\\../h.txt"]);
    assert_eq!(place.keys(), ["a/b.md", "a\\b.md"]);
    assert_eq!(place.read("a\\b.md").unwrap().bytes, b"text");
    let names = ["c\\..\\d.md", "e\\..", "g\\.."];
    let expected = names.map(|name| left_out(name, LeftOutReason::NotNameable));
    assert_eq!(place.source.list().unwrap().left_out, expected);
}

#[test]
fn an_excluded_entry_with_an_odd_name_is_not_mentioned() {
    let place = Place::new(&["drafts\\../a.md", "b\\..\\c.md"]);
    fs::write(place.root().join(".grooveignore"), "drafts*\n/b*\n").unwrap();
    assert_eq!(place.source.list().unwrap().left_out, []);
}

// IDX-18
#[test]
fn a_deep_tree_needs_no_deep_stack() {
    let place = Place::new(&[]);
    let deepest = vec!["d"; 600].join("/") + "/a.md";
    fs::create_dir_all(place.root().join(&deepest).parent().unwrap()).unwrap();
    fs::write(place.root().join(&deepest), "text").unwrap();
    let list = || {
        assert_eq!(place.keys(), [deepest.as_str()]);
        assert_eq!(place.read(&deepest).unwrap().bytes, b"text");
    };
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(32 * 1024);
        small.spawn_scoped(scope, list).unwrap().join().unwrap();
    });
    // The standard library keeps a folder open for each level that it removes.
    assert!(Command::new("rm").arg("-rf").arg(place.root()).status().unwrap().success());
}

// IDX-22
#[test]
fn a_folder_whose_key_is_too_long_to_open_is_left_out() {
    let place = Place::new(&["a.md"]);
    let name = "n".repeat(250);
    let mut folder = File::open(place.root()).unwrap();
    for _ in 0..17 {
        rustix::fs::mkdirat(&folder, name.as_str(), rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        let mode = rustix::fs::Mode::empty();
        folder = rustix::fs::openat(&folder, name.as_str(), flags, mode).unwrap().into();
    }
    let listing = place.source.list().unwrap();
    assert_eq!(listing.found.len(), 1);
    assert_eq!(listing.left_out.len(), 1);
    assert_eq!(listing.left_out[0].reason, LeftOutReason::NotNameable);
    let too_long = vec![name.as_str(); 17].join("/") + "/a.md";
    assert!(matches!(place.read(&too_long), Err(SourceError::NotFound { .. })));
}

/// Runs the test of this name once more in a process of a user whom permission
/// bits bind, if they do not bind this one.
fn bound_by_permissions(test: &str, body: fn()) {
    if !rustix::process::geteuid().is_root() {
        return body();
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let nobody = 65_534;
    let output = Command::new(program)
        .args([&name, "--exact", "--nocapture"])
        .uid(nobody)
        .gid(nobody)
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complaint}");
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

// IDX-25 IDX-B05
#[test]
fn a_folder_that_cannot_be_read_is_told_of_unless_it_is_excluded() {
    bound_by_permissions("a_folder_that_cannot_be_read_is_told_of_unless_it_is_excluded", || {
        let place = Place::new(&["a.md", "b/closed/c.md", "target/d.md"]);
        chmod(&place.root().join("b/closed"), 0o000);
        let listing = place.source.list().unwrap();
        assert_eq!(listing.unreadable.len(), 1);
        assert_eq!(listing.unreadable[0].key, "b/closed");
        assert!(listing.unreadable[0].reason.contains("denied"), "{:?}", listing.unreadable);
        fs::write(place.root().join(".grooveignore"), "closed/").unwrap();
        assert_eq!(place.keys(), ["a.md", "target/d.md"]);
        assert_eq!(place.source.list().unwrap().unreadable, []);
        chmod(&place.root().join("b/closed"), 0o755);
    });
}

// IDX-42
#[test]
fn a_file_that_cannot_be_read_is_listed_and_is_a_failure_instead_of_a_refusal() {
    let test = "a_file_that_cannot_be_read_is_listed_and_is_a_failure_instead_of_a_refusal";
    bound_by_permissions(test, || {
        let place = Place::new(&["a.md", "b/c.md"]);
        chmod(&place.root().join("a.md"), 0o000);
        // Its names can be listed, but what they lead to cannot be looked at.
        chmod(&place.root().join("b"), 0o444);
        assert_eq!(place.keys(), ["a.md", "b/c.md"]);
        for key in ["a.md", "b/c.md"] {
            let answer = place.read(key);
            assert!(
                matches!(&answer, Err(SourceError::Unavailable { what, .. }) if what == key),
                "{answer:?}"
            );
        }
        chmod(&place.root().join("b"), 0o755);
    });
}

// IDX-44
#[test]
fn a_file_over_the_cap_is_not_even_opened() {
    bound_by_permissions("a_file_over_the_cap_is_not_even_opened", || {
        let place = Place::new(&["a.md"]);
        chmod(&place.root().join("a.md"), 0o000);
        let answer = place.source.read(&DocumentPath::new("a.md").unwrap(), SizeCap(3));
        assert_refused(&answer, Refusal::TooLarge { size_bytes: 4, cap_bytes: 3 });
    });
}

// IDX-35
#[test]
fn an_ignore_file_that_cannot_be_read_is_a_warning() {
    bound_by_permissions("an_ignore_file_that_cannot_be_read_is_a_warning", || {
        let place = Place::new(&["a.md"]);
        fs::write(place.root().join(".grooveignore"), "*").unwrap();
        chmod(&place.root().join(".grooveignore"), 0o000);
        assert_eq!(place.keys(), ["a.md"]);
        assert_eq!(place.source.list().unwrap().notes.len(), 1);
    });
}

// IDX-43
#[test]
fn what_is_said_of_a_document_holds_its_key_and_no_path_of_this_machine() {
    let place = Place::new(&["a.md"]);
    symlink("a.md", place.root().join("link.md")).unwrap();
    fs::hard_link(place.root().join("a.md"), place.root().join("twice.md")).unwrap();
    for key in ["link.md", "twice.md", "missing.md"] {
        let message = place.read(key).unwrap_err().to_string();
        assert!(message.contains(key), "{message}");
        assert!(!message.contains(place.folder.path().to_str().unwrap()), "{message}");
    }
}

// IDX-35
#[test]
fn the_note_of_an_ignore_file_in_force_names_the_root() {
    let place = Place::new(&["a.md"]);
    fs::write(place.root().join(".grooveignore"), "b.md\n").unwrap();
    let notes = place.source.list().unwrap().notes;
    let root = place.root().canonicalize().unwrap();
    assert!(notes[0].text.contains(root.to_str().unwrap()), "{notes:?}");
    assert!(notes[0].text.contains("1 pattern"), "{notes:?}");
}

/// A source that refuses files of others, and a key in it that is one.
fn with_a_file_of_another_user() -> (Option<Place>, FilesystemSource, &'static str) {
    if rustix::process::geteuid().is_root() {
        let place = Place::new(&["a.md", "others.md"]);
        std::os::unix::fs::chown(place.root().join("others.md"), Some(12_345), None).unwrap();
        let source = place.source.clone().requiring_owner(true);
        (Some(place), source, "others.md")
    } else {
        (None, source(Path::new("/etc")).unwrap().requiring_owner(true), "passwd")
    }
}

// IDX-B07
#[test]
fn a_file_of_another_user_is_refused_where_that_is_asked_for() {
    let (place, source, key) = with_a_file_of_another_user();
    let path = DocumentPath::new(key).unwrap();
    let answer = source.read(&path, NO_CAP);
    assert_refused(&answer, Refusal::OtherOwner);
    assert!(answer.unwrap_err().to_string().contains("[index].require_owner"));
    assert!(source.clone().requiring_owner(false).read(&path, NO_CAP).is_ok());
    // The handle decides this, too.
    let file = File::open(source.root.join(key)).unwrap();
    let own_only = Terms { cap: NO_CAP, own_only: true };
    assert_refused(&read::read_handle(&file, key, own_only), Refusal::OtherOwner);

    let own = Place::new(&["b.md"]);
    let source = own.source.clone().requiring_owner(true);
    assert_eq!(source.read(&DocumentPath::new("b.md").unwrap(), NO_CAP).unwrap().bytes, b"text");
    drop(place);
}

// IDX-B07 IDX-35
#[test]
fn an_ignore_file_of_another_user_is_passed_over_with_a_warning() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new(&["a.md"]);
    let ignore_file = place.root().join(".grooveignore");
    fs::write(&ignore_file, "*").unwrap();
    std::os::unix::fs::chown(&ignore_file, Some(12_345), None).unwrap();
    assert_eq!(place.source.list().unwrap().found.len(), 0);
    let listing = place.source.clone().requiring_owner(true).list().unwrap();
    assert_eq!(listing.found.len(), 1);
    assert!(listing.notes[0].text.contains("another user"), "{:?}", listing.notes);
}

// IDX-B20
#[test]
fn a_watch_polls_where_it_is_told_to_and_says_how_often() {
    let place = Place::new(&["a.md"]);
    let polling = |mode| {
        let source = place.source.clone().watched_by(mode, Duration::from_millis(700));
        source.watch(Box::new(|_| {})).unwrap().polling()
    };
    let interval = Duration::from_millis(700);
    let reason = PollingReason::Configured;
    assert_eq!(polling(WatchMode::Poll), Some(Polling { interval, reason }));
    assert_eq!(polling(WatchMode::Events), None);
    assert_eq!(polling(WatchMode::Auto), None, "the place of temporary files is local");
}

// IDX-55 IDX-B20
#[test]
fn times_of_files_neither_hide_a_change_nor_make_one_up() {
    let place = Place::new(&["a.md"]);
    let path = place.root().join("a.md");
    let read = || place.read("a.md").unwrap().hash;
    let before = read();
    for seconds in [0, 4_000_000_000] {
        let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(place.keys(), ["a.md"]);
        assert_eq!(read(), before);
    }
    fs::write(&path, "TEXT").unwrap();
    let time = std::time::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert_ne!(read(), before);
}

// IDX-B20
#[test]
fn a_watch_that_polls_sees_the_bytes_change_under_the_same_time_and_length() {
    let place = Place::new(&["a.md"]);
    let path = place.root().join("a.md");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let source = place.source.clone().watched_by(WatchMode::Poll, Duration::from_millis(10));
    let (sender, receiver) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let _watch = source.watch(Box::new(move |change| {
        sender.lock().unwrap().send(change).unwrap();
    }));
    fs::write(&path, "TEXT").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let change = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(change, SourceChange::At("a.md".to_owned()));
}

// IDX-B20 IDX-149
#[test]
fn a_watch_that_polls_does_not_take_another_folder_for_this_one() {
    let place = Place::new(&["a.md"]);
    let source = place.source.clone().watched_by(WatchMode::Poll, Duration::from_millis(10));
    let (sender, receiver) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let watch =
        source.watch(Box::new(move |change| sender.lock().unwrap().send(change).unwrap())).unwrap();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(place.folder.path().join("empty")).unwrap();
    fs::rename(place.root(), &elsewhere).unwrap();
    fs::rename(place.folder.path().join("empty"), place.root()).unwrap();
    assert!(!watch.is_alive());
    std::thread::sleep(Duration::from_millis(100));
    fs::remove_dir(place.root()).unwrap();
    fs::rename(&elsewhere, place.root()).unwrap();
    assert!(watch.is_alive());
    fs::write(place.root().join("b.md"), "text").unwrap();
    let change = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(change, SourceChange::At("b.md".to_owned()), "a.md was there all the time");
}

// IDX-45 IDX-42
#[test]
fn a_file_that_had_a_second_name_once_is_one_like_any_other() {
    let place = Place::new(&["a.md"]);
    let second = place.folder.path().join("second");
    fs::hard_link(place.root().join("a.md"), &second).unwrap();
    assert_refused(&place.read("a.md"), Refusal::MultipleLinks);
    fs::remove_file(&second).unwrap();
    assert_eq!(place.read("a.md").unwrap().bytes, b"text");
    assert_eq!(place.keys(), ["a.md"]);
}

// IDX-39 IDX-41 IDX-57
#[test]
fn what_becomes_of_a_file_between_listing_and_reading_is_told_and_never_guessed() {
    let place =
        Place::new(&["fifo.md", "folder.md", "gone.md", "grown.md", "link.md", "shrunk.md"]);
    let root = place.root();
    assert_eq!(place.source.list().unwrap().found.len(), 6);
    for name in ["fifo.md", "folder.md", "gone.md", "link.md"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    assert!(Command::new("mkfifo").arg(root.join("fifo.md")).status().unwrap().success());
    fs::create_dir(root.join("folder.md")).unwrap();
    symlink("link.md", root.join("link.md")).unwrap();
    fs::write(root.join("grown.md"), "longer text").unwrap();
    fs::write(root.join("shrunk.md"), "").unwrap();
    let read = |key: &str| place.source.read(&DocumentPath::new(key).unwrap(), SizeCap(5));
    assert_refused(&read("fifo.md"), Refusal::NotRegular);
    assert_refused(&read("folder.md"), Refusal::NotRegular);
    assert!(matches!(read("gone.md"), Err(SourceError::NotFound { .. })));
    assert_refused(&read("link.md"), Refusal::SymbolicLink);
    assert_refused(&read("grown.md"), Refusal::TooLarge { size_bytes: 11, cap_bytes: 5 });
    assert_eq!(read("shrunk.md").unwrap().bytes, b"");
}

// IDX-18 IDX-B05
#[test]
fn a_folder_that_was_replaced_by_a_link_to_itself_is_gone() {
    let place = Place::new(&["a.md", "b/c.md"]);
    fs::remove_dir_all(place.root().join("b")).unwrap();
    symlink("b", place.root().join("b")).unwrap();
    let whole = place.source.list().unwrap();
    let part = place.source.list_below(&["b".to_owned(), "b/c.md".to_owned()].into()).unwrap();
    assert_eq!((whole.found.len(), whole.unreadable), (1, vec![]));
    assert_eq!((part.found, part.unreadable), (vec![], vec![]));
    assert!(matches!(place.read("b/c.md"), Err(SourceError::NotFound { .. })));
}

// IDX-18 IDX-B05 IDX-B07
#[test]
fn a_folder_that_is_swapped_for_a_link_while_it_is_listed_hides_nothing_and_leads_nowhere() {
    let place = Place::new(&["a/b/c.md", "d.md"]);
    let root = place.root();
    symlink("../outside", root.join("link")).unwrap();
    let stop = AtomicBool::new(false);
    let part = ["a".to_owned(), "a/b".to_owned(), "a/secret.md".to_owned()].into();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let [one, other, aside] = ["a", "link", "aside"].map(|key| root.join(key));
            while !stop.load(Ordering::Relaxed) {
                fs::rename(&one, &aside).unwrap();
                fs::rename(&other, &one).unwrap();
                fs::rename(&aside, &other).unwrap();
            }
        });
        let mut seen = 0;
        for _ in 0..1_000 {
            for listing in [place.source.list(), place.source.list_below(&part)] {
                let listing = listing.unwrap();
                assert_eq!(listing.unreadable, [], "what has gone is not unreadable");
                let is_inside = |found: &Found| {
                    ["a/b/c.md", "link/b/c.md", "aside/b/c.md", "d.md"]
                        .contains(&found.path.as_str())
                };
                assert!(listing.found.iter().all(is_inside), "{listing:?}");
                seen += listing.found.len();
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(seen > 0);
    });
}

// IDX-B20 IDX-25
#[test]
fn a_watch_that_polls_waits_for_a_root_that_cannot_be_read() {
    bound_by_permissions("a_watch_that_polls_waits_for_a_root_that_cannot_be_read", || {
        let place = Place::new(&["a.md"]);
        let source = place.source.clone().watched_by(WatchMode::Poll, Duration::from_millis(10));
        let (sender, receiver) = mpsc::channel();
        let sender = std::sync::Mutex::new(sender);
        let _watch = source
            .watch(Box::new(move |change| sender.lock().unwrap().send(change).unwrap()))
            .unwrap();
        chmod(&place.root(), 0o000);
        std::thread::sleep(Duration::from_millis(100));
        chmod(&place.root(), 0o755);
        fs::write(place.root().join("b.md"), "text").unwrap();
        let change = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(change, SourceChange::At("b.md".to_owned()), "a.md was there all the time");
    });
}
