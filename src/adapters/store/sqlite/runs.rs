//! Telling other processes that a run is on.
//!
//! Each run has a small file beside the index, which it keeps locked: the
//! operating system gives the lock back when the process dies, so that what is
//! left over of it counts for nothing.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::adapters::store::sqlite::open::with_suffix;
use crate::adapters::store::sqlite::unavailable;
use crate::ports::chunk_store::{AnnouncedRun, RunUnderWay, StoreError};

/// What the name of such a file has behind the index's own.
const INFIX: &str = ".run-";

/// How often at most a run writes down how far it is.
const PAUSE: Duration = Duration::from_millis(500);

/// Announces a run over an index.
pub(super) fn announce(index: &Path, since: &str) -> Result<Box<dyn AnnouncedRun>, StoreError> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = with_suffix(index, &format!("{INFIX}{}-{number}", process::id()));
    let cannot = |error: io::Error| unavailable(format!("write {}", path.display()), error);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).map_err(cannot)?;
    file.try_lock().map_err(|error| cannot(error.into()))?;
    let own = OwnRun {
        path: path.clone(),
        since: since.to_owned(),
        file: Mutex::new((file, Instant::now())),
    };
    own.write(0, 0).map_err(cannot)?;
    Ok(Box::new(own))
}

/// The runs whose processes live, the oldest first. What dead ones left is
/// removed.
pub(super) fn under_way(index: &Path) -> Vec<RunUnderWay> {
    let (Some(folder), Some(name)) = (index.parent(), index.file_name().and_then(OsStr::to_str))
    else {
        return Vec::new();
    };
    let prefix = format!("{name}{INFIX}");
    let mut runs = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else {
            continue;
        };
        let path = entry.path();
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() {
            remove(&path);
            continue;
        }
        // Where a lock keeps others from reading, too, the name says enough.
        let process = rest.split('-').next().and_then(|process| process.parse().ok());
        let told = fs::read_to_string(&path).ok().and_then(|text| read(&text));
        let (since, done, total) = told.unwrap_or_default();
        runs.push(RunUnderWay { process: process.unwrap_or(0), since, done, total });
    }
    runs.sort_by(|a, b| a.since.cmp(&b.since).then(a.process.cmp(&b.process)));
    runs
}

fn read(text: &str) -> Option<(String, usize, usize)> {
    let mut words = text.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(path = %path.display(), %error, "cannot remove what a run left");
    }
}

/// A run of this process.
struct OwnRun {
    path: PathBuf,
    since: String,
    /// Locked; with the time before which it is not written again.
    file: Mutex<(File, Instant)>,
}

impl OwnRun {
    fn write(&self, done: usize, total: usize) -> io::Result<()> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, due) = &mut *held;
        if Instant::now() < *due {
            return Ok(());
        }
        *due = Instant::now() + PAUSE;
        let text = format!("{} {done} {total}\n", self.since);
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)
    }
}

impl AnnouncedRun for OwnRun {
    fn advanced(&self, done: usize, total: usize) {
        if let Err(error) = self.write(done, total) {
            tracing::debug!(%error, "cannot tell how far the run is");
        }
    }
}

impl Drop for OwnRun {
    fn drop(&mut self) {
        remove(&self.path);
    }
}
