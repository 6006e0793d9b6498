//! Documents as files below a folder.

mod entry;
mod network;
mod poll;
mod read;
mod walk;
mod watch;

#[cfg(unix)]
#[path = "folder_unix.rs"]
mod folder;
#[cfg(not(unix))]
#[path = "folder_other.rs"]
mod folder;

#[cfg(test)]
#[cfg(unix)]
mod tests;

pub use read::read_alone;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::adapters::source::filesystem::entry::Terms;
use crate::adapters::source::filesystem::folder::Folder;
use crate::adapters::source::filesystem::watch::FilesystemWatch;
use crate::adapters::source::ignore_file;
use crate::domain::document::DocumentPath;
use crate::domain::exclusion::ExclusionRules;
use crate::domain::format::EnabledFormats;
use crate::ports::document_source::{
    Content, DocumentSource, Listing, Note, ReportChange, SizeCap, SourceError, Watch, WatchMode,
};

/// Files below a folder, none of them reached through a link.
///
/// A file is opened once, from a handle of its folder, and every decision about
/// it is taken from the handle that its bytes are read from. On Unix no link
/// below the root is followed, neither as the last part of a path nor on the way
/// there, even if it is put there while the source is at work.
#[derive(Clone, Debug)]
pub struct FilesystemSource {
    root: PathBuf,
    /// The root as it was given, links and all.
    given: PathBuf,
    formats: EnabledFormats,
    rules: ExclusionRules,
    own_only: bool,
    watch_mode: WatchMode,
    poll_interval: Duration,
}

/// How long a watch that polls waits unless it is told otherwise.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Why a path is no root of a knowledge base.
#[derive(Debug, thiserror::Error)]
enum UnusableRoot {
    #[error(transparent)]
    Unreachable(io::Error),
    #[error("it is not a folder")]
    NotAFolder,
    #[error("a whole file system cannot be a knowledge base, since the index lies beside it")]
    FileSystemRoot,
}

impl FilesystemSource {
    /// Takes a folder as the root of a knowledge base.
    ///
    /// - `root`: may lead to the folder through links; below it, none is
    ///   followed.
    /// - `formats`: what a listing looks for; reading is not bounded by it.
    /// - `exclude_dirs`: names of directories that a listing does not enter, in
    ///   addition to those that it never enters.
    ///
    /// # Errors
    ///
    /// [`SourceError::Unavailable`], naming the path and the remedy, if nothing
    /// is there, if it is not a folder, or if it is the root of a file system.
    pub fn new<Name: AsRef<str>>(
        root: &Path,
        formats: EnabledFormats,
        exclude_dirs: &[Name],
    ) -> Result<Self, SourceError> {
        let rules = ExclusionRules::new(exclude_dirs);
        match usable(root) {
            Ok(resolved) => Ok(Self {
                root: resolved,
                given: root.to_owned(),
                formats,
                rules,
                own_only: false,
                watch_mode: WatchMode::Auto,
                poll_interval: POLL_INTERVAL,
            }),
            Err(reason) => Err(SourceError::Unavailable {
                what: format!(
                    "the knowledge base {}; name an existing folder with --kb-path or kb_path",
                    root.display()
                ),
                source: reason.into(),
            }),
        }
    }

    /// Sets how changes are found.
    ///
    /// - `poll_interval`: how long to wait between two looks, where it polls.
    ///
    /// By itself it polls on file systems of the network, every 5 s.
    #[must_use]
    pub fn watched_by(self, mode: WatchMode, poll_interval: Duration) -> Self {
        Self { watch_mode: mode, poll_interval, ..self }
    }

    /// Sets whether files of other users than the one who runs this are refused.
    /// Holds on Unix alone; elsewhere files have no such owner.
    #[must_use]
    pub fn requiring_owner(self, own_only: bool) -> Self {
        Self { own_only, ..self }
    }

    /// The rules with the ignore file as it is now.
    fn rules_now(&self) -> (ExclusionRules, Vec<Note>) {
        let place = self.root.display().to_string();
        ignore_file::with_ignore_file(self, self.rules.clone(), &place)
    }

    fn open_root(&self) -> Result<Folder, SourceError> {
        Folder::open(&self.root).map_err(|error| unavailable("", error))
    }
}

fn usable(root: &Path) -> Result<PathBuf, UnusableRoot> {
    let root = root.canonicalize().map_err(UnusableRoot::Unreachable)?;
    if !root.metadata().map_err(UnusableRoot::Unreachable)?.is_dir() {
        return Err(UnusableRoot::NotAFolder);
    }
    if root.parent().is_none() {
        return Err(UnusableRoot::FileSystemRoot);
    }
    Ok(root)
}

impl DocumentSource for FilesystemSource {
    fn name(&self) -> String {
        let named = if self.given.file_name().is_some() { &self.given } else { &self.root };
        named.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn has_neighbour(&self, name: &str) -> bool {
        let named = if self.given.file_name().is_some() { &self.given } else { &self.root };
        name != self.name()
            && Path::new(name).components().count() == 1
            && named.parent().is_some_and(|parent| parent.join(name).is_dir())
    }

    fn list(&self) -> Result<Listing, SourceError> {
        let root = self.open_root()?;
        let (rules, notes) = self.rules_now();
        Ok(Listing { notes, ..walk::walk(&root, &self.formats, &rules)? })
    }

    fn list_below(&self, keys: &BTreeSet<String>) -> Result<Listing, SourceError> {
        let root = self.open_root()?;
        let (rules, notes) = self.rules_now();
        Ok(Listing { notes, ..walk::walk_below(&root, keys, &self.formats, &rules)? })
    }

    fn exclusions(&self) -> ExclusionRules {
        self.rules_now().0
    }

    fn watch(&self, report: ReportChange) -> Result<Box<dyn Watch>, SourceError> {
        Ok(Box::new(FilesystemWatch::begin(self.clone(), report)?))
    }

    fn read(&self, path: &DocumentPath, cap: SizeCap) -> Result<Content, SourceError> {
        let terms = Terms { cap, own_only: self.own_only };
        read::read(&self.open_root()?, &self.root, path, terms)
    }

    fn read_aside(&self, name: &str, cap: SizeCap) -> Result<Content, SourceError> {
        match DocumentPath::new(name) {
            Ok(path) if path.category().is_none() => self.read(&path, cap),
            _ => Err(SourceError::NotFound { path: name.to_owned() }),
        }
    }
}

/// A failure, named by key: what is told to clients holds no path of this
/// machine.
fn unavailable(key: &str, error: io::Error) -> SourceError {
    let what = match key {
        "" => "the root of the knowledge base".to_owned(),
        _ => key.to_owned(),
    };
    SourceError::Unavailable { what, source: error.into() }
}
