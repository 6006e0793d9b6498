//! Folders and files by path, where the system offers no handles to start from.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::adapters::source::filesystem::entry::{Entry, Facts, Kind, Stamp};

/// A folder by its path.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Takes a folder that exists.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if fs::metadata(path)?.is_dir() {
            Ok(Self(path.to_owned()))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    /// Takes a folder below this one, by a key or by the empty path.
    ///
    /// A link on the way is an error for which [`is_link_on_the_way`] holds.
    pub(super) fn below(&self, key: &str) -> io::Result<Self> {
        let segments = key.split('/').filter(|segment| !segment.is_empty());
        let path = segments.fold(self.0.clone(), |path, segment| path.join(segment));
        if path.canonicalize()? == path { Self::open(&path) } else { Err(link_on_the_way()) }
    }

    /// As [`below`](Self::below), for a folder whose [`entries`](Self::entries)
    /// are wanted.
    pub(super) fn below_to_list(&self, key: &str) -> io::Result<Self> {
        self.below(key)
    }

    /// Lists the folder, in the order of the file system.
    pub(super) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
        Ok(fs::read_dir(&self.0)?.map(|entry| {
            let entry = entry?;
            Ok(Entry { name: entry.file_name(), kind: entry.file_type().ok().map(kind) })
        }))
    }

    /// Looks at an entry without following a link.
    pub(super) fn facts(&self, name: &OsStr) -> io::Result<Facts> {
        let metadata = fs::symlink_metadata(self.0.join(name))?;
        let has_other_names =
            metadata.is_file() && self.open_file(name).is_ok_and(|file| has_other_names(&file));
        Ok(facts(&metadata, has_other_names))
    }

    /// Opens a file of this folder.
    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        File::open(self.0.join(name))
    }
}

/// Looks at an open file.
pub(super) fn facts_of_handle(file: &File) -> io::Result<Facts> {
    Ok(facts(&file.metadata()?, has_other_names(file)))
}

/// Tells whether an error says that a part of a path is a link, or a file where
/// a folder should be.
pub(super) fn is_link_on_the_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory
}

fn link_on_the_way() -> io::Error {
    io::ErrorKind::NotADirectory.into()
}

fn facts(metadata: &Metadata, has_other_names: bool) -> Facts {
    let since_1970 = |time: SystemTime| match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(0),
        Err(error) => -i128::try_from(error.duration().as_nanos()).unwrap_or(0),
    };
    Facts {
        kind: kind(metadata.file_type()),
        size_bytes: metadata.len(),
        has_other_names,
        is_others: false,
        stamp: Stamp {
            modified_ns: metadata.modified().map_or(0, since_1970),
            changed_ns: 0,
            size_bytes: metadata.len(),
        },
    }
}

fn kind(file_type: fs::FileType) -> Kind {
    if file_type.is_symlink() {
        Kind::Link
    } else if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}

#[cfg(windows)]
fn has_other_names(file: &File) -> bool {
    winapi_util::file::information(file).is_ok_and(|facts| facts.number_of_links() > 1)
}

#[cfg(not(windows))]
fn has_other_names(_file: &File) -> bool {
    false
}
