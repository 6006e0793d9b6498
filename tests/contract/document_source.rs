//! The contract of the source port.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test puts its files on disk itself, and fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use grooveseek::adapters::source::filesystem::FilesystemSource;
use grooveseek::adapters::source::memory::MemorySource;
use grooveseek::domain::document::DocumentPath;
use grooveseek::domain::exclusion::EntryKind;
use grooveseek::domain::format::EnabledFormats;
use grooveseek::ports::document_source::{
    Content, DocumentSource, LeftOut, LeftOutReason, Listing, Note, Refusal, Severity, SizeCap,
    SourceChange, SourceError, Watch, WatchMode,
};

macro_rules! document_source_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            an_empty_source_lists_nothing,
            lists_each_document_once_in_ascending_order,
            lists_the_enabled_formats_and_no_lock_files,
            does_not_list_what_is_excluded_but_reads_it,
            tells_what_stays_out_as_a_listing_has_it,
            lists_what_is_there_now,
            an_ignore_file_is_in_force_from_the_next_listing_on,
            only_the_ignore_file_in_the_root_counts,
            a_wrong_line_of_an_ignore_file_is_a_warning,
            an_ignore_file_over_its_cap_is_passed_over_with_a_warning,
            an_ignore_file_that_is_refused_is_passed_over_with_a_warning,
            a_document_with_a_second_name_is_left_out_and_refused,
            a_link_is_not_listed_and_refused,
            reads_back_the_exact_bytes_and_their_hash,
            any_key_names_one_document,
            a_document_of_exactly_the_cap_is_read_and_a_longer_one_refused,
            a_missing_document_is_not_found,
            a_folder_is_refused,
            reads_a_file_of_the_service_in_the_root,
            nothing_outside_the_root_is_read_aside,
            reads_and_listings_from_many_threads_agree,
            a_listing_below_keys_holds_what_the_whole_one_has_there,
            a_listing_below_keys_follows_every_rule,
            a_watch_reports_what_was_made_changed_and_removed,
            a_watch_reports_a_folder_that_was_moved_or_removed,
            a_watch_reports_a_change_of_the_rules,
            a_watch_reports_nothing_once_it_is_dropped,
        }
    };
}

document_source_contract! { memory = super::in_memory }
document_source_contract! { filesystem = super::on_disk }
// IDX-B20
document_source_contract! { filesystem_polling = super::on_disk_polling }

/// The cases in which a folder cannot be read, which a test can bring about
/// where permissions are bits.
#[cfg(unix)]
macro_rules! closed_folder_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            a_folder_that_cannot_be_read_is_named_and_hides_nothing_else,
            a_listing_below_keys_names_what_it_could_not_look_into,
            a_root_that_cannot_be_read_is_an_error,
            a_folder_that_is_readable_again_is_reported,
        }
    };
}

#[cfg(unix)]
closed_folder_contract! { memory_closed = super::in_memory }
#[cfg(unix)]
closed_folder_contract! { filesystem_closed = super::on_disk }
#[cfg(unix)]
closed_folder_contract! { filesystem_polling_closed = super::on_disk_polling }

/// A source and a way to change what is in it.
trait Place: Sync {
    fn source(&self) -> &dyn DocumentSource;
    fn put(&self, key: &str, bytes: &[u8]);
    fn remove(&self, key: &str);
    fn move_folder(&self, from: &str, to: &str);
    fn remove_folder(&self, key: &str);
    fn put_with_second_name(&self, key: &str);
    fn put_link_to(&self, target: &str, key: &str);
    /// Makes a folder unreadable, or readable again. On disk it is so for threads
    /// that [`bound_by_permissions`] started.
    #[cfg(unix)]
    fn close(&self, folder: &str);
    #[cfg(unix)]
    fn reopen(&self, folder: &str);
}

type Make = fn() -> Box<dyn Place>;

const EXCLUDED: [&str; 1] = ["Build"];
const NO_CAP: SizeCap = SizeCap(u64::MAX);

struct InMemory(MemorySource);

fn in_memory() -> Box<dyn Place> {
    Box::new(InMemory(MemorySource::new(EnabledFormats::default(), &EXCLUDED)))
}

impl Place for InMemory {
    fn source(&self) -> &dyn DocumentSource {
        &self.0
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        self.0.put(key, bytes);
    }

    fn remove(&self, key: &str) {
        assert!(self.0.remove(key));
    }

    fn move_folder(&self, from: &str, to: &str) {
        for key in keys(self).iter().filter(|key| path(key).is_at_or_below(from)) {
            let bytes = read(self, key).unwrap().bytes;
            self.remove(key);
            self.put(&key.replacen(from, to, 1), &bytes);
        }
    }

    fn remove_folder(&self, folder: &str) {
        for key in keys(self).iter().filter(|key| path(key).is_at_or_below(folder)) {
            self.remove(key);
        }
    }

    fn put_with_second_name(&self, key: &str) {
        self.0.put_refused(key, Refusal::MultipleLinks);
    }

    fn put_link_to(&self, _target: &str, key: &str) {
        self.0.put_refused(key, Refusal::SymbolicLink);
    }

    #[cfg(unix)]
    fn close(&self, folder: &str) {
        self.0.close(folder, "permission denied");
    }

    #[cfg(unix)]
    fn reopen(&self, folder: &str) {
        assert!(self.0.reopen(folder));
    }
}

struct OnDisk {
    source: FilesystemSource,
    root: PathBuf,
    outside: PathBuf,
    _folder: tempfile::TempDir,
}

fn on_disk() -> Box<dyn Place> {
    on_disk_watched_by(WatchMode::Events)
}

fn on_disk_polling() -> Box<dyn Place> {
    on_disk_watched_by(WatchMode::Poll)
}

fn on_disk_watched_by(mode: WatchMode) -> Box<dyn Place> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let outside = folder.path().join("outside");
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(folder.path().join("secret.md"), "secret").unwrap();
    let source = FilesystemSource::new(&root, EnabledFormats::default(), &EXCLUDED)
        .unwrap()
        .watched_by(mode, Duration::from_millis(20));
    Box::new(OnDisk { source, root, outside, _folder: folder })
}

impl OnDisk {
    fn place(&self, key: &str) -> PathBuf {
        let path = self.root.join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

impl Place for OnDisk {
    fn source(&self) -> &dyn DocumentSource {
        &self.source
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        fs::write(self.place(key), bytes).unwrap();
    }

    fn remove(&self, key: &str) {
        fs::remove_file(self.root.join(key)).unwrap();
    }

    fn move_folder(&self, from: &str, to: &str) {
        fs::rename(self.root.join(from), self.place(to)).unwrap();
    }

    fn remove_folder(&self, key: &str) {
        fs::remove_dir_all(self.root.join(key)).unwrap();
    }

    fn put_with_second_name(&self, key: &str) {
        let first = self.outside.join("first name");
        fs::write(&first, "text").unwrap();
        fs::hard_link(first, self.place(key)).unwrap();
    }

    fn put_link_to(&self, target: &str, key: &str) {
        link(&self.root.join(target), &self.place(key));
    }

    #[cfg(unix)]
    fn close(&self, folder: &str) {
        set_mode(&self.root.join(folder), 0o000);
    }

    #[cfg(unix)]
    fn reopen(&self, folder: &str) {
        set_mode(&self.root.join(folder), 0o755);
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;

    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Does something on a thread that permission bits bind even if the user is one
/// whom they do not bind.
#[cfg(unix)]
fn bound_by_permissions(body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let bound = scope.spawn(|| {
            #[cfg(target_os = "linux")]
            {
                use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

                let none = CapabilitySet::empty();
                let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
                set_capabilities(None, sets).unwrap();
            }
            body();
        });
        if let Err(panic) = bound.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[cfg(unix)]
fn link(target: &Path, link: &Path) {
    std::os::unix::fs::symlink(target, link).unwrap();
}

#[cfg(windows)]
fn link(target: &Path, link: &Path) {
    std::os::windows::fs::symlink_file(target, link).unwrap();
}

fn path(key: &str) -> DocumentPath {
    DocumentPath::new(key).unwrap()
}

fn list(place: &dyn Place) -> Listing {
    place.source().list().unwrap()
}

fn keys(place: &dyn Place) -> Vec<String> {
    list(place).found.iter().map(|found| found.path.as_str().to_owned()).collect()
}

fn read(place: &dyn Place, key: &str) -> Result<Content, SourceError> {
    place.source().read(&path(key), NO_CAP)
}

/// The reason of a refusal, and nothing else.
fn refusal(answer: &Result<Content, SourceError>) -> Refusal {
    match answer {
        Err(SourceError::Refused { reason, .. }) => *reason,
        other => panic!("{other:?} is no refusal"),
    }
}

#[track_caller]
fn assert_not_found(answer: &Result<Content, SourceError>, key: &str) {
    assert!(
        matches!(answer, Err(SourceError::NotFound { path }) if path == key),
        "{key:?}: {answer:?}"
    );
}

fn warnings(listing: &Listing) -> Vec<&Note> {
    listing.notes.iter().filter(|note| note.severity == Severity::Warning).collect()
}

// IDX-26
fn an_empty_source_lists_nothing(make: Make) {
    assert_eq!(list(&*make()), Listing::default());
}

// IDX-18 IDX-24 IDX-23w
fn lists_each_document_once_in_ascending_order(make: Make) {
    let place = make();
    for key in ["b.md", "a/z.md", "a/b/c/d.md", "a0.md", "a.md", "a-b/x.md", "é.md"] {
        place.put(key, key.as_bytes());
    }
    let expected = ["a-b/x.md", "a.md", "a/b/c/d.md", "a/z.md", "a0.md", "b.md", "é.md"];
    let listing = list(&*place);
    let sizes: Vec<(&str, u64)> =
        listing.found.iter().map(|found| (found.path.as_str(), found.size_bytes)).collect();
    assert_eq!(sizes, expected.map(|key| (key, key.len() as u64)));
    assert_eq!((listing.left_out, listing.notes), (vec![], vec![]));
}

// IDX-19 IDX-20
fn lists_the_enabled_formats_and_no_lock_files(make: Make) {
    let place = make();
    let listed = [".hidden.md", "Read.MD", "a.md", "b/.c/d.Md"];
    let passed_over = ["a.txt", "b/e", ".md", "~$a.md", "b/.~lock.a.md#", "f.md.bak"];
    for key in listed.iter().chain(&passed_over) {
        place.put(key, b"text");
    }
    assert_eq!(keys(&*place), listed);
}

// IDX-27 IDX-28 IDX-37
fn does_not_list_what_is_excluded_but_reads_it(make: Make) {
    let place = make();
    place.put(".grooveignore", b"drafts/");
    let excluded = [".git/a.md", "b/node_modules/c/d.md", "build/e.md", "drafts/f.md"];
    for key in excluded.iter().chain(&["g.md", "g.txt"]) {
        place.put(key, b"text");
    }
    assert_eq!(keys(&*place), ["g.md"]);
    for key in excluded.iter().chain(&["g.txt"]) {
        assert_eq!(read(&*place, key).unwrap().bytes, b"text", "{key}");
    }
}

fn tells_what_stays_out_as_a_listing_has_it(make: Make) {
    let place = make();
    place.put(".grooveignore", b"drafts/\n*.tmp.md\n");
    let all = [".git/a.md", "b/Build/c.md", "drafts/d.md", "e.tmp.md", "f.md", "g/h.md"];
    for key in all {
        place.put(key, b"text");
    }
    let rules = place.source().exclusions();
    let kept = all.into_iter().filter(|key| !rules.excludes(key, EntryKind::File));
    assert_eq!(keys(&*place), kept.collect::<Vec<_>>());
    place.remove(".grooveignore");
    assert!(!place.source().exclusions().excludes("drafts/d.md", EntryKind::File));
}

fn lists_what_is_there_now(make: Make) {
    let place = make();
    place.put("a.md", b"text");
    assert_eq!(keys(&*place), ["a.md"]);
    place.put("b/c.md", b"text");
    place.remove("a.md");
    assert_eq!(keys(&*place), ["b/c.md"]);
    assert_not_found(&read(&*place, "a.md"), "a.md");
}

// IDX-31 IDX-35 IDX-36
fn an_ignore_file_is_in_force_from_the_next_listing_on(make: Make) {
    let place = make();
    for key in ["drafts/a.md", "b.TMP.md", "c.md"] {
        place.put(key, b"text");
    }
    assert_eq!(keys(&*place), ["b.TMP.md", "c.md", "drafts/a.md"]);

    place.put(".grooveignore", b"# unfinished\r\n/drafts\r\n*.tmp.md\r\n");
    assert_eq!(keys(&*place), ["c.md"]);
    let notes = list(&*place).notes;
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].severity, Severity::Note);
    assert!(notes[0].text.contains("2 patterns"), "{notes:?}");

    place.put(".grooveignore", b"c.md");
    assert_eq!(keys(&*place), ["b.TMP.md", "drafts/a.md"]);

    place.remove(".grooveignore");
    assert_eq!(keys(&*place), ["b.TMP.md", "c.md", "drafts/a.md"]);
    assert_eq!(list(&*place).notes, []);
}

// IDX-31
fn only_the_ignore_file_in_the_root_counts(make: Make) {
    let place = make();
    for key in ["a/.grooveignore", "a/.gitignore", ".gitignore", ".ignore"] {
        place.put(key, b"*");
    }
    place.put("a/b.md", b"text");
    assert_eq!(keys(&*place), ["a/b.md"]);
    assert_eq!(list(&*place).notes, []);
}

// IDX-34
fn a_wrong_line_of_an_ignore_file_is_a_warning(make: Make) {
    let place = make();
    place.put(".grooveignore", b"a.md\n[z-a].md\nb.md\n");
    for key in ["a.md", "b.md", "c.md"] {
        place.put(key, b"text");
    }
    let listing = list(&*place);
    assert_eq!(keys(&*place), ["c.md"]);
    let warnings = warnings(&listing);
    assert_eq!(warnings.len(), 1, "{:?}", listing.notes);
    assert!(warnings[0].text.contains("line 2"), "{}", warnings[0].text);
}

// IDX-34 IDX-35
fn an_ignore_file_over_its_cap_is_passed_over_with_a_warning(make: Make) {
    let place = make();
    place.put("a.md", b"text");
    let mut file = b"a.md\n".to_vec();
    file.resize(64 * 1024, b'\n');
    place.put(".grooveignore", &file);
    assert_eq!(keys(&*place), Vec::<String>::new());

    file.push(b'\n');
    place.put(".grooveignore", &file);
    let listing = list(&*place);
    assert_eq!(keys(&*place), ["a.md"]);
    assert_eq!((warnings(&listing).len(), listing.notes.len()), (1, 1));
}

// IDX-35
fn an_ignore_file_that_is_refused_is_passed_over_with_a_warning(make: Make) {
    let refused: [fn(&dyn Place); 3] = [
        |place| place.put_with_second_name(".grooveignore"),
        |place| place.put_link_to("a.md", ".grooveignore"),
        |place| place.put(".grooveignore/b.txt", b"a folder"),
    ];
    for put in refused {
        let place = make();
        place.put("a.md", b"*");
        put(&*place);
        let listing = list(&*place);
        assert_eq!(keys(&*place), ["a.md"]);
        assert_eq!((warnings(&listing).len(), listing.notes.len()), (1, 1));
    }
}

// IDX-21 IDX-41
fn a_document_with_a_second_name_is_left_out_and_refused(make: Make) {
    let place = make();
    place.put("a.md", b"text");
    place.put_with_second_name("b/twice.md");
    let listing = list(&*place);
    assert_eq!(keys(&*place), ["a.md"]);
    let reason = LeftOutReason::MultipleLinks;
    assert_eq!(listing.left_out, [LeftOut { name: "b/twice.md".to_owned(), reason }]);
    assert!(reason.to_string().contains("copy"));
    assert_eq!(refusal(&read(&*place, "b/twice.md")), Refusal::MultipleLinks);
}

// IDX-18 IDX-40
fn a_link_is_not_listed_and_refused(make: Make) {
    let place = make();
    place.put("a.md", b"text");
    place.put_link_to("a.md", "link.md");
    assert_eq!(keys(&*place), ["a.md"]);
    assert_eq!(list(&*place).left_out, []);
    assert_eq!(refusal(&read(&*place, "link.md")), Refusal::SymbolicLink);
}

// IDX-55
fn reads_back_the_exact_bytes_and_their_hash(make: Make) {
    let place = make();
    let all: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    place.put("all.md", &all);
    place.put("abc.md", b"abc");
    place.put("empty.md", b"");
    assert_eq!(read(&*place, "all.md").unwrap().bytes, all);
    let hash = |key| read(&*place, key).unwrap().hash;
    assert_eq!(
        hash("abc.md").as_str(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        hash("empty.md").as_str(),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

fn any_key_names_one_document(make: Make) {
    let place = make();
    let keys = ["日本/語 メモ.md", "e\u{301}.md", "é.md", "..a/b..md", "a'b`$(c).md"];
    for key in keys {
        place.put(key, key.as_bytes());
    }
    assert_eq!(list(&*place).found.len(), keys.len());
    for key in keys {
        assert_eq!(read(&*place, key).unwrap().bytes, key.as_bytes(), "{key}");
    }
}

// IDX-41
fn a_document_of_exactly_the_cap_is_read_and_a_longer_one_refused(make: Make) {
    let place = make();
    place.put("a.md", b"12345");
    let read = |cap| place.source().read(&path("a.md"), SizeCap(cap));
    assert_eq!(read(5).unwrap().bytes, b"12345");
    let too_large = Refusal::TooLarge { size_bytes: 5, cap_bytes: 4 };
    assert_eq!(refusal(&read(4)), too_large);
    let message = read(4).unwrap_err().to_string();
    assert!(["a.md", "5", "4"].iter().all(|part| message.contains(part)), "{message}");
    place.put("a.md", b"");
    assert_eq!(read(0).unwrap().bytes, b"");
    assert_eq!(list(&*place).found.len(), 1);
}

// IDX-42
fn a_missing_document_is_not_found(make: Make) {
    let place = make();
    place.put("a.md", b"text");
    place.put("b/c.md", b"text");
    let long = "x".repeat(5_000) + ".md";
    for key in ["z.md", "y/z.md", "b/z.md", "a.md/z.md", "b/c.md/y/z.md", &long] {
        assert_not_found(&read(&*place, key), key);
    }
}

// IDX-41
fn a_folder_is_refused(make: Make) {
    let place = make();
    place.put("a/b.md/c.md", b"text");
    for key in ["a", "a/b.md"] {
        assert_eq!(refusal(&read(&*place, key)), Refusal::NotRegular, "{key}");
    }
    assert_eq!(keys(&*place), ["a/b.md/c.md"]);
}

// IDX-39
fn reads_a_file_of_the_service_in_the_root(make: Make) {
    let place = make();
    let aside = |cap| place.source().read_aside("groove-schema.toml", SizeCap(cap));
    assert_not_found(&aside(9), "groove-schema.toml");
    place.put("groove-schema.toml", b"[fields]");
    assert_eq!(aside(8).unwrap().bytes, b"[fields]");
    assert!(matches!(refusal(&aside(7)), Refusal::TooLarge { .. }));
    place.remove("groove-schema.toml");
    place.put_with_second_name("groove-schema.toml");
    assert_eq!(refusal(&aside(9)), Refusal::MultipleLinks);
}

fn nothing_outside_the_root_is_read_aside(make: Make) {
    let place = make();
    place.put("a/b.md", b"text");
    for name in ["../secret.md", "a/b.md", "/etc/passwd", "..", ".", "", "a/../../secret.md"] {
        assert_not_found(&place.source().read_aside(name, NO_CAP), name);
    }
}

fn reads_and_listings_from_many_threads_agree(make: Make) {
    let place = make();
    for number in 0..50 {
        place.put(&format!("{}/{number}.md", number % 7), number.to_string().as_bytes());
    }
    let expected = list(&*place);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(list(&*place), expected);
                for found in &expected.found {
                    let bytes = place.source().read(&found.path, NO_CAP).unwrap().bytes;
                    let name = found.path.file_name().strip_suffix(".md").unwrap().as_bytes();
                    assert_eq!(bytes, name);
                }
            });
        }
    });
}

fn below(place: &dyn Place, keys: &[&str]) -> Listing {
    place.source().list_below(&keys.iter().map(|&key| key.to_owned()).collect()).unwrap()
}

fn a_listing_below_keys_holds_what_the_whole_one_has_there(make: Make) {
    let place = make();
    for key in ["a.md", "a/b.md", "a/b/c.md", "ab/d.md", "e.txt", "f/g/h.md"] {
        place.put(key, b"text");
    }
    let whole = place.source().list().unwrap();
    for keys in [
        &["a"][..],
        &["a.md", "ab/d.md"],
        &["a/b", "a", "f/g/h.md"],
        &[""],
        &["e.txt", "gone.md", "gone/deep", "a.md/x"],
        &[],
    ] {
        let expected: Vec<_> = whole
            .found
            .iter()
            .filter(|found| keys.iter().any(|key| found.path.is_at_or_below(key)))
            .cloned()
            .collect();
        assert_eq!(below(&*place, keys).found, expected, "{keys:?}");
    }
}

// IDX-151
fn a_listing_below_keys_follows_every_rule(make: Make) {
    let place = make();
    for key in ["a.md", "build/b.md", "build/c/d.md", "drafts/e.md", "x/node_modules/f.md"] {
        place.put(key, b"text");
    }
    place.put_link_to("a.md", "link.md");
    place.put_with_second_name("twice.md");
    place.put(".grooveignore", b"drafts/\n");
    let keys = [
        "build",
        "build/b.md",
        "build/c/d.md",
        "drafts",
        "drafts/e.md",
        "x/node_modules/f.md",
        "x",
        "link.md",
        "twice.md",
        "../a.md",
        "/a.md",
        ".grooveignore",
    ];
    let listing = below(&*place, &keys);
    assert!(listing.found.is_empty(), "{:?}", listing.found);
    assert!(listing.notes[0].text.contains("1 pattern"), "{:?}", listing.notes);
}

#[cfg(unix)]
fn unreadable(listing: &Listing) -> Vec<&str> {
    listing.unreadable.iter().map(|part| part.key.as_str()).collect()
}

// IDX-25 IDX-B05
#[cfg(unix)]
fn a_folder_that_cannot_be_read_is_named_and_hides_nothing_else(make: Make) {
    bound_by_permissions(|| {
        let place = make();
        for key in ["a.md", "b/c.md", "b/closed/d.md", "b/closed/e/f.md", "z/g.md", "build/h.md"] {
            place.put(key, b"text");
        }
        place.close("b/closed");
        place.close("z");
        place.close("build");
        let listing = list(&*place);
        assert_eq!(unreadable(&listing), ["b/closed", "z"]);
        assert!(listing.unreadable.iter().all(|part| !part.reason.is_empty()));
        assert_eq!(keys(&*place), ["a.md", "b/c.md"]);
        assert!(matches!(read(&*place, "z/g.md"), Err(SourceError::Unavailable { .. })));
        for folder in ["b/closed", "z", "build"] {
            place.reopen(folder);
        }
        let listing = list(&*place);
        assert_eq!(unreadable(&listing), [""; 0]);
        assert_eq!(listing.found.len(), 5);
    });
}

// IDX-25 IDX-B05 IDX-151
#[cfg(unix)]
fn a_listing_below_keys_names_what_it_could_not_look_into(make: Make) {
    bound_by_permissions(|| {
        let place = make();
        for key in ["a/b.md", "a/closed/c/d.md", "closed/e.md", "f.md"] {
            place.put(key, b"text");
        }
        place.close("a/closed");
        place.close("closed");
        for (asked, expected) in [
            (&["a", "f.md"][..], &["a/closed"][..]),
            (&["a/closed", "closed"], &["a/closed", "closed"]),
            (&["a/closed/c", "closed/e.md"], &["a/closed/c", "closed/e.md"]),
            (&["a/b.md", "gone"], &[]),
            (&[""], &["a/closed", "closed"]),
        ] {
            assert_eq!(unreadable(&below(&*place, asked)), expected, "{asked:?}");
        }
        assert_eq!(below(&*place, &["a", "f.md"]).found.len(), 2);
        place.reopen("a/closed");
        place.reopen("closed");
    });
}

// IDX-25
#[cfg(unix)]
fn a_root_that_cannot_be_read_is_an_error(make: Make) {
    bound_by_permissions(|| {
        let place = make();
        place.put("a.md", b"text");
        place.close("");
        let listed = place.source().list();
        place.reopen("");
        assert!(matches!(listed, Err(SourceError::Unavailable { .. })), "{listed:?}");
        assert_eq!(keys(&*place), ["a.md"]);
    });
}

// IDX-25 IDX-B05
#[cfg(unix)]
fn a_folder_that_is_readable_again_is_reported(make: Make) {
    bound_by_permissions(|| {
        let place = make();
        for key in ["a/b.md", "closed/c/d.md"] {
            place.put(key, b"text");
        }
        place.close("closed");
        let reported = Reported::default();
        let _watch = reported.watch(&*place);
        place.put("a/b.md", b"other text");
        reported.wait_for("a/b.md");
        place.reopen("closed");
        reported.wait_for("closed");
        place.put("closed/c/d.md", b"other text");
        reported.wait_for("closed/c/d.md");
    });
}

/// What a watch reported, for a case that waits for it.
#[derive(Clone, Default)]
struct Reported(Arc<(Mutex<BTreeSet<SourceChange>>, Condvar)>);

impl Reported {
    fn watch(&self, place: &dyn Place) -> Box<dyn Watch> {
        let reported = self.clone();
        let watch = place.source().watch(Box::new(move |change| {
            let (changes, news) = &*reported.0;
            changes.lock().unwrap().insert(change);
            news.notify_all();
        }));
        let watch = watch.unwrap();
        assert!(watch.is_alive());
        watch
    }

    /// Waits until something at a key, or above it, was reported.
    fn wait_for(&self, wanted: &str) {
        self.wait_for_all(&[wanted]);
    }

    fn wait_for_all(&self, wanted: &[&str]) {
        let hit = |wanted: &str, change: &SourceChange| match change {
            SourceChange::At(key) => {
                key == wanted
                    || wanted.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('/'))
            }
            SourceChange::Rules => wanted == ".grooveignore",
            SourceChange::Unknown => true,
        };
        let is_missing = |changes: &mut BTreeSet<SourceChange>| {
            !wanted.iter().all(|wanted| changes.iter().any(|change| hit(wanted, change)))
        };
        let (changes, news) = &*self.0;
        let waiting = changes.lock().unwrap();
        let patience = Duration::from_secs(20);
        let (mut changes, waited) = news.wait_timeout_while(waiting, patience, is_missing).unwrap();
        assert!(!waited.timed_out(), "{wanted:?} was not reported: {changes:?}");
        changes.clear();
    }
}

// IDX-149 IDX-152a
fn a_watch_reports_what_was_made_changed_and_removed(make: Make) {
    let place = make();
    place.put("old/a.md", b"text");
    let reported = Reported::default();
    let _watch = reported.watch(&*place);
    place.put("b.md", b"text");
    reported.wait_for("b.md");
    place.put("old/a.md", b"other text");
    reported.wait_for("old/a.md");
    place.put("new/deep/c.md", b"text");
    reported.wait_for("new/deep/c.md");
    place.put("new/deep/c.md", b"other text");
    reported.wait_for("new/deep/c.md");
    place.remove("b.md");
    reported.wait_for("b.md");
}

// IDX-152a IDX-154 IDX-B22
fn a_watch_reports_a_folder_that_was_moved_or_removed(make: Make) {
    let place = make();
    place.put("old/a.md", b"text");
    place.put("old/b/c.md", b"text");
    let reported = Reported::default();
    let _watch = reported.watch(&*place);
    place.move_folder("old", "x/new");
    reported.wait_for_all(&["old/a.md", "old/b/c.md", "x/new/a.md", "x/new/b/c.md"]);
    // It is followed under its new name.
    place.put("x/new/b/c.md", b"other text");
    reported.wait_for("x/new/b/c.md");
    place.remove_folder("x/new/b");
    reported.wait_for("x/new/b/c.md");
    place.remove_folder("x");
    reported.wait_for("x/new/a.md");
}

// IDX-155
fn a_watch_reports_a_change_of_the_rules(make: Make) {
    let place = make();
    let reported = Reported::default();
    let _watch = reported.watch(&*place);
    place.put(".grooveignore", b"drafts/\n");
    reported.wait_for(".grooveignore");
}

fn a_watch_reports_nothing_once_it_is_dropped(make: Make) {
    let place = make();
    let (dropped, kept) = (Reported::default(), Reported::default());
    let watch = dropped.watch(&*place);
    let _kept = kept.watch(&*place);
    drop(watch);
    place.put("a.md", b"text");
    kept.wait_for("a.md");
    assert!(dropped.0.0.lock().unwrap().is_empty());
}
