//! Documents held in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use sha2::{Digest as _, Sha256};

use crate::adapters::source::admission::admits;
use crate::adapters::source::ignore_file;
use crate::domain::document::{ContentHash, DocumentPath};
use crate::domain::exclusion::{DEFAULT_EXCLUDE_DIRS, ExclusionRules, IGNORE_FILE_NAME};
use crate::domain::format::EnabledFormats;
use crate::ports::document_source::{
    Content, DocumentSource, Found, LeftOut, LeftOutReason, Listing, Refusal, ReportChange,
    SizeCap, SourceChange, SourceError, Unreadable, Watch,
};

/// Documents that live as long as the process.
///
/// It follows every rule that files follow: formats, exclusion, the ignore file,
/// size caps. What only a disk has, such as a second name or a failure, can be
/// put in by hand. Documents may be put in and taken out while others read.
///
/// ```
/// use grooveseek::adapters::source::memory::MemorySource;
/// use grooveseek::ports::document_source::DocumentSource as _;
///
/// let source = MemorySource::default();
/// source.put("notes/a.md", "# A");
/// source.put("node_modules/b.md", "# B");
///
/// let listing = source.list().unwrap();
/// assert_eq!(listing.found.len(), 1);
/// assert_eq!(listing.found[0].path.as_str(), "notes/a.md");
/// ```
pub struct MemorySource {
    formats: EnabledFormats,
    rules: ExclusionRules,
    files: RwLock<BTreeMap<String, File>>,
    /// Folders that cannot be listed, each with the reason.
    closed: RwLock<BTreeMap<String, String>>,
    watches: Mutex<Vec<Weak<ReportChange>>>,
    name: RwLock<String>,
    neighbours: RwLock<BTreeSet<String>>,
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemorySource").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
enum File {
    Bytes(Vec<u8>),
    Refused(Refusal),
    Failing,
}

impl MemorySource {
    /// Makes a source without documents.
    ///
    /// - `formats`: what a listing looks for.
    /// - `exclude_dirs`: names of directories whose documents are not listed, in
    ///   addition to those that never are.
    pub fn new<Name: AsRef<str>>(formats: EnabledFormats, exclude_dirs: &[Name]) -> Self {
        let rules = ExclusionRules::new(exclude_dirs);
        Self {
            formats,
            rules,
            files: RwLock::default(),
            closed: RwLock::default(),
            watches: Mutex::default(),
            name: RwLock::new("memory".to_owned()),
            neighbours: RwLock::default(),
        }
    }

    /// Gives the place another name.
    pub fn rename(&self, name: &str) {
        name.clone_into(&mut self.name.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Puts another place beside this one.
    pub fn put_neighbour(&self, name: &str) {
        let mut neighbours = self.neighbours.write().unwrap_or_else(PoisonError::into_inner);
        neighbours.insert(name.to_owned());
    }

    /// Puts a file in, in place of one that has the same key.
    pub fn put(&self, key: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.insert(&key.into(), File::Bytes(bytes.into()));
    }

    /// Takes a file out, and tells whether it was there.
    pub fn remove(&self, key: &str) -> bool {
        let was_there = self.write().remove(key).is_some();
        self.report(key);
        was_there
    }

    /// Puts something in that is there and must not be read.
    ///
    /// A listing treats it as it would a file that deserves the refusal: one with
    /// a second name is left out, a link is not even mentioned.
    pub fn put_refused(&self, key: impl Into<String>, reason: Refusal) {
        self.insert(&key.into(), File::Refused(reason));
    }

    /// Puts a file in that is listed, but cannot be read.
    pub fn put_failing(&self, key: impl Into<String>) {
        self.insert(&key.into(), File::Failing);
    }

    /// Makes a folder one that cannot be read, nor anything in it.
    ///
    /// - `folder`: its key; the empty one is the root.
    /// - `reason`: what is told of it.
    pub fn close(&self, folder: impl Into<String>, reason: impl Into<String>) {
        let folder = folder.into();
        let mut closed = self.closed.write().unwrap_or_else(PoisonError::into_inner);
        closed.insert(folder.clone(), reason.into());
        drop(closed);
        self.report(&folder);
    }

    /// Makes a folder readable again, and tells whether it was not.
    pub fn reopen(&self, folder: &str) -> bool {
        let mut closed = self.closed.write().unwrap_or_else(PoisonError::into_inner);
        let was_closed = closed.remove(folder).is_some();
        drop(closed);
        self.report(folder);
        was_closed
    }

    /// The outermost folder above a key, or at it, that cannot be read.
    fn closed_above(&self, key: &str) -> Option<Unreadable> {
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        let mut above = std::iter::once("").chain(folders(key)).chain([key]);
        above.find_map(|folder| {
            let reason = closed.get(folder)?.clone();
            Some(Unreadable { key: folder.to_owned(), reason })
        })
    }

    fn check_root(&self) -> Result<(), SourceError> {
        match self.closed_above("") {
            Some(Unreadable { reason, .. }) => Err(SourceError::Unavailable {
                what: "the root of the knowledge base".to_owned(),
                source: reason.into(),
            }),
            None => Ok(()),
        }
    }

    /// How many watches are on.
    pub fn watch_count(&self) -> usize {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.iter().filter(|watch| watch.strong_count() > 0).count()
    }

    fn insert(&self, key: &str, file: File) {
        self.write().insert(key.to_owned(), file);
        self.report(key);
    }

    /// Tells every watch that is left of a change.
    fn report(&self, key: &str) {
        let change = match key {
            IGNORE_FILE_NAME => SourceChange::Rules,
            _ => SourceChange::At(key.to_owned()),
        };
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|watch| match watch.upgrade() {
            Some(report) => {
                report(change.clone());
                true
            }
            None => false,
        });
    }

    fn files(&self) -> RwLockReadGuard<'_, BTreeMap<String, File>> {
        // A map is whole after any of the calls above, so a panic elsewhere leaves nothing half done.
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, File>> {
        self.files.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, key: &str, cap: SizeCap) -> Result<Content, SourceError> {
        let refused = |reason| Err(SourceError::Refused { path: key.to_owned(), reason });
        if let Some(Unreadable { reason, .. }) = self.closed_above(key) {
            return Err(SourceError::Unavailable { what: key.to_owned(), source: reason.into() });
        }
        let files = self.files();
        match files.get(key) {
            Some(File::Bytes(bytes)) if bytes.len() as u64 > cap.0 => {
                let size_bytes = bytes.len() as u64;
                refused(Refusal::TooLarge { size_bytes, cap_bytes: cap.0 })
            }
            Some(File::Bytes(bytes)) => Ok(Content {
                bytes: bytes.clone(),
                hash: ContentHash::from_sha256(Sha256::digest(bytes).into()),
                modified: None,
            }),
            Some(File::Refused(reason)) => refused(*reason),
            Some(File::Failing) => Err(SourceError::Unavailable {
                what: key.to_owned(),
                source: io::Error::other("reading it fails").into(),
            }),
            None if is_folder(&files, key) => refused(Refusal::NotRegular),
            None => Err(SourceError::NotFound { path: key.to_owned() }),
        }
    }
}

impl Default for MemorySource {
    /// Markdown, and the directories that are excluded by default.
    fn default() -> Self {
        Self::new(EnabledFormats::default(), &DEFAULT_EXCLUDE_DIRS)
    }
}

impl DocumentSource for MemorySource {
    fn name(&self) -> String {
        self.name.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_neighbour(&self, name: &str) -> bool {
        self.neighbours.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    fn list(&self) -> Result<Listing, SourceError> {
        self.check_root()?;
        let (rules, notes) = ignore_file::with_ignore_file(self, self.rules.clone(), "memory");
        let mut found = Vec::new();
        let mut left_out = BTreeMap::new();
        let mut pruned = BTreeSet::new();
        let mut unreadable = BTreeMap::new();
        for (key, file) in self.files().iter() {
            match folders(key).find(|folder| rules.excludes_dir(folder) || !is_nameable(folder)) {
                Some(folder) if rules.excludes_dir(folder) => continue,
                Some(folder) => {
                    pruned.insert(folder.to_owned());
                    continue;
                }
                None => {}
            }
            if let Some(Unreadable { key, reason }) = self.closed_above(key) {
                unreadable.insert(key, reason);
                continue;
            }
            let name = key.rsplit('/').next().unwrap_or(key);
            if !admits(&self.formats, name) || rules.excludes_file(key) {
                continue;
            }
            let size_bytes = match file {
                File::Refused(Refusal::SymbolicLink | Refusal::NotRegular | Refusal::Outside) => {
                    continue;
                }
                File::Bytes(bytes) => bytes.len() as u64,
                File::Refused(Refusal::TooLarge { size_bytes, .. }) => *size_bytes,
                File::Refused(Refusal::MultipleLinks | Refusal::OtherOwner) | File::Failing => 0,
            };
            match DocumentPath::new(key.as_str()) {
                Err(_) => {
                    left_out.insert(key.clone(), LeftOutReason::NotNameable);
                }
                Ok(_) if matches!(file, File::Refused(Refusal::MultipleLinks)) => {
                    left_out.insert(key.clone(), LeftOutReason::MultipleLinks);
                }
                Ok(path) => found.push(Found { path, size_bytes }),
            }
        }
        left_out.extend(pruned.into_iter().map(|folder| (folder, LeftOutReason::NotNameable)));
        let left_out =
            left_out.into_iter().map(|(name, reason)| LeftOut { name, reason }).collect();
        let unreadable =
            unreadable.into_iter().map(|(key, reason)| Unreadable { key, reason }).collect();
        Ok(Listing { found, left_out, unreadable, notes })
    }

    fn list_below(&self, keys: &BTreeSet<String>) -> Result<Listing, SourceError> {
        let mut listing = self.list()?;
        listing.found.retain(|found| found.path.is_below_any(keys));
        listing.left_out.clear();
        listing.unreadable.retain(|part| {
            keys.contains("") || folders(&part.key).chain([&*part.key]).any(|at| keys.contains(at))
        });
        for key in keys.iter().filter(|key| is_nameable(key)) {
            if let Some(Unreadable { reason, .. }) = self.closed_above(key)
                && !listing.unreadable.iter().any(|part| part.key == *key)
            {
                listing.unreadable.push(Unreadable { key: key.clone(), reason });
            }
        }
        listing.unreadable.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listing)
    }

    fn exclusions(&self) -> ExclusionRules {
        ignore_file::with_ignore_file(self, self.rules.clone(), "memory").0
    }

    fn watch(&self, report: ReportChange) -> Result<Box<dyn Watch>, SourceError> {
        self.check_root()?;
        let watch = MemoryWatch(Arc::new(report));
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.push(Arc::downgrade(&watch.0));
        Ok(Box::new(watch))
    }

    fn read(&self, path: &DocumentPath, cap: SizeCap) -> Result<Content, SourceError> {
        self.file(path.as_str(), cap)
    }

    fn read_aside(&self, name: &str, cap: SizeCap) -> Result<Content, SourceError> {
        match DocumentPath::new(name) {
            Ok(path) if path.category().is_none() => self.read(&path, cap),
            _ => Err(SourceError::NotFound { path: name.to_owned() }),
        }
    }
}

/// Holds what its source calls.
struct MemoryWatch(Arc<ReportChange>);

impl Watch for MemoryWatch {
    fn is_alive(&self) -> bool {
        true
    }
}

/// The folders above a file, from the root downwards.
fn folders(key: &str) -> impl Iterator<Item = &str> {
    key.match_indices('/').map(|(end, _)| &key[..end])
}

fn is_nameable(key: &str) -> bool {
    DocumentPath::new(key).is_ok()
}

fn is_folder(files: &BTreeMap<String, File>, key: &str) -> bool {
    let inside = format!("{key}/");
    files.range(inside.clone()..).next().is_some_and(|(other, _)| other.starts_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    // IDX-22
    #[test]
    fn a_name_that_is_no_key_is_left_out_once_a_file_or_a_folder() {
        let source = MemorySource::default();
        for key in ["a\0.md", "b\0/c.md", "b\0/d/e.md", "f.md", "g\0.txt", "target/h\0.md"] {
            source.put(key, "text");
        }
        let listing = source.list().unwrap();
        let left_out: Vec<&str> =
            listing.left_out.iter().map(|left_out| left_out.name.as_str()).collect();
        assert_eq!(left_out, ["a\0.md", "b\0"]);
        assert!(listing.left_out.iter().all(|one| one.reason == LeftOutReason::NotNameable));
        assert_eq!(listing.found.len(), 1);
    }

    // IDX-42
    #[test]
    fn a_failure_is_not_a_refusal() {
        let source = MemorySource::default();
        source.put_failing("a.md");
        assert_eq!(source.list().unwrap().found.len(), 1);
        let error = source.read(&DocumentPath::new("a.md").unwrap(), SizeCap(1)).unwrap_err();
        assert!(matches!(error, SourceError::Unavailable { .. }));
    }

    #[test]
    fn what_is_too_large_is_listed_and_refused() {
        let source = MemorySource::default();
        let reason = Refusal::TooLarge { size_bytes: 9, cap_bytes: 3 };
        source.put_refused("a.md", reason);
        assert_eq!(source.list().unwrap().found[0].size_bytes, 9);
        let error = source.read(&DocumentPath::new("a.md").unwrap(), SizeCap(99)).unwrap_err();
        assert!(matches!(error, SourceError::Refused { reason: found, .. } if found == reason));
    }
}
