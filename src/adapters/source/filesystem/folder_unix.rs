//! Folders and files by handle: nothing below a folder is reached through a
//! link.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::adapters::source::filesystem::entry::{Entry, Facts, Kind, Stamp};

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

/// How a folder is opened to start from. On Linux that needs no right to read it.
#[cfg(target_os = "linux")]
const START: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const START: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// How a folder is opened to list what is in it.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How a file is opened: a link fails, and a pipe that nobody writes to does not
/// wait.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl Folder {
    /// Opens a folder, through links if need be.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        open_at(CWD, path.as_os_str(), START).map(Self).map_err(io::Error::from)
    }

    /// Opens a folder below this one, by a key or by the empty path.
    ///
    /// A link on the way is an error for which [`is_link_on_the_way`] holds.
    pub(super) fn below(&self, key: &str) -> io::Result<Self> {
        beneath(&self.0, key, START).map(Self).map_err(io::Error::from)
    }

    /// As [`below`](Self::below), for a folder whose [`entries`](Self::entries)
    /// are wanted.
    pub(super) fn below_to_list(&self, key: &str) -> io::Result<Self> {
        beneath(&self.0, key, LIST).map(Self).map_err(io::Error::from)
    }

    /// Lists the folder, without `.` and `..`, in the order of the file system.
    pub(super) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
        let entries = Dir::new(self.0.try_clone()?)?;
        Ok(entries.filter_map(|entry| match entry {
            Ok(entry) => match entry.file_name().to_bytes() {
                b"." | b".." => None,
                name => Some(Ok(Entry {
                    name: OsStr::from_bytes(name).to_owned(),
                    kind: kind(entry.file_type()),
                })),
            },
            Err(error) => Some(Err(error.into())),
        }))
    }

    /// Looks at an entry without opening it or following a link.
    pub(super) fn facts(&self, name: &OsStr) -> io::Result<Facts> {
        let stat = retry_on_intr(|| rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW))?;
        Ok(facts(&stat))
    }

    /// Opens a file of this folder; never waits, and never follows a link.
    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        Ok(File::from(open_at(&self.0, name, READ)?))
    }
}

/// Looks at an open file.
pub(super) fn facts_of_handle(file: &File) -> io::Result<Facts> {
    Ok(facts(&retry_on_intr(|| rustix::fs::fstat(file))?))
}

/// Tells whether an error says that a part of a path is a link, or a file where
/// a folder should be.
pub(super) fn is_link_on_the_way(error: &io::Error) -> bool {
    let found = Errno::from_io_error(error);
    [Errno::LOOP, Errno::NOTDIR, Errno::XDEV].into_iter().any(|code| found == Some(code))
}

fn open_at(folder: impl std::os::fd::AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(&folder, name, flags, Mode::empty()))
}

/// Lets the kernel see to it that no part of the path is a link, and goes step
/// by step where it cannot.
#[cfg(target_os = "linux")]
fn beneath(folder: &OwnedFd, key: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;

    let path = if key.is_empty() { "." } else { key };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match retry_on_intr(|| rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve)) {
        // Too old a kernel, or a sandbox that does not let the call through.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG) => {
            step_by_step(folder, key, flags)
        }
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn beneath(folder: &OwnedFd, key: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    step_by_step(folder, key, flags)
}

/// Opens each folder of the path from the one before it, none through a link.
fn step_by_step(folder: &OwnedFd, key: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let open = |folder: &OwnedFd, segment: &str, flags: OFlags| {
        open_at(folder, OsStr::new(segment), flags.union(OFlags::NOFOLLOW))
    };
    let Some((parents, last)) = key.rsplit_once('/') else {
        return open(folder, if key.is_empty() { "." } else { key }, flags);
    };
    let mut segments = parents.split('/');
    let first = segments.next().unwrap_or(".");
    let mut reached = open(folder, first, START)?;
    for segment in segments {
        reached = open(&reached, segment, START)?;
    }
    open(&reached, last, flags)
}

fn facts(stat: &Stat) -> Facts {
    Facts {
        kind: kind(FileType::from_raw_mode(stat.st_mode)).unwrap_or(Kind::Other),
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        has_other_names: stat.st_nlink > 1,
        is_others: stat.st_uid != rustix::process::geteuid().as_raw(),
        stamp: Stamp {
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        },
    }
}

/// The fields are as wide as the system has them.
fn nanoseconds(seconds: impl TryInto<i128>, rest: impl TryInto<i128>) -> i128 {
    seconds.try_into().unwrap_or(0) * 1_000_000_000 + rest.try_into().unwrap_or(0)
}

fn kind(file_type: FileType) -> Option<Kind> {
    match file_type {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Folder),
        FileType::Symlink => Some(Kind::Link),
        FileType::Unknown => None,
        _ => Some(Kind::Other),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn a_tree() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("root/a/b")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("root/file"), "text").unwrap();
        symlink("a", place.path().join("root/inward")).unwrap();
        symlink("../outside", place.path().join("root/outward")).unwrap();
        let folder = Folder::open(&place.path().join("root")).unwrap();
        (place, folder)
    }

    // IDX-B07
    #[test]
    fn both_ways_of_opening_agree() {
        let (_place, Folder(root)) = a_tree();
        for key in ["", "a", "a/b"] {
            assert!(
                beneath(&root, key, START).is_ok() && step_by_step(&root, key, LIST).is_ok(),
                "{key}"
            );
        }
        for key in ["inward", "inward/b", "outward", "file", "file/a"] {
            let kernel = beneath(&root, key, START).unwrap_err().into();
            let steps = step_by_step(&root, key, LIST).unwrap_err().into();
            assert!(is_link_on_the_way(&kernel) && is_link_on_the_way(&steps), "{key}");
        }
        for key in ["c", "a/c", "c/a"] {
            assert_eq!(beneath(&root, key, START).unwrap_err(), Errno::NOENT, "{key}");
            assert_eq!(step_by_step(&root, key, LIST).unwrap_err(), Errno::NOENT, "{key}");
        }
    }

    // IDX-40
    #[test]
    fn a_link_is_not_opened_and_a_pipe_does_not_wait() {
        let (place, folder) = a_tree();
        symlink("file", place.path().join("root/link")).unwrap();
        assert!(folder.open_file(OsStr::new("link")).is_err());

        let made =
            std::process::Command::new("mkfifo").arg(place.path().join("root/pipe")).status();
        assert!(made.unwrap().success());
        let pipe = folder.open_file(OsStr::new("pipe")).unwrap();
        assert_eq!(facts_of_handle(&pipe).unwrap().kind, Kind::Other);
    }
}
