//! Building an index beside the one that serves.
//!
//! The new index grows in a file of its own and is copied over the old one
//! page by page, in one transaction: the file stays the same to everyone who
//! has it open, in this process and in others, and whatever breaks off leaves
//! it as it was.

use std::ffi::{OsStr, c_int};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use libsqlite3_sys::{
    SQLITE_BUSY, SQLITE_DONE, SQLITE_LOCKED, SQLITE_OK, sqlite3, sqlite3_backup_finish,
    sqlite3_backup_init, sqlite3_backup_step, sqlite3_errstr,
};
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::adapters::store::sqlite::open::{self, Writer, with_suffix};
use crate::adapters::store::sqlite::write::{self, Checkpoint};
use crate::adapters::store::sqlite::{
    Attached, Shared, SqliteStore, cannot_read, cannot_write, meta, unavailable,
};
use crate::domain::embedding::ModelIdentity;
use crate::ports::chunk_store::{Change, ChunkStore, Replacement, StoreError};

/// What the name of a file under construction has behind the index's own.
const INFIX: &str = ".rebuild-";

/// What the name of its lock has behind that.
const LOCK: &str = ".lock";

/// How far a replacement counts ahead: further than another process can come
/// with commits of its own between a look at the counters and the copy.
const GENERATIONS_AHEAD: i64 = 1 << 16;
const CHUNKS_AHEAD: i64 = 1 << 32;

/// How long a copy waits for another process's commit, and between attempts.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// An index under construction in a file beside the one that it replaces.
pub(super) struct SqliteReplacement {
    original: Arc<Shared>,
    writer: Arc<Mutex<Writer>>,
    store: Arc<SqliteStore>,
    scrap: Scrap,
}

impl SqliteReplacement {
    /// Begins with a copy of the original, emptied: what other programs keep in
    /// the file is then in the new one too.
    pub(super) async fn begin(
        original: &Attached,
        identity: ModelIdentity,
    ) -> Result<Self, StoreError> {
        let path = &original.shared.path;
        remove_leftovers(path);
        let scrap = Scrap::reserve(path)?;
        let mut reader = original.shared.readers.acquire().await.map_err(cannot_read)?;
        let mut target = open::connect(&scrap.path).await?;
        // The copy runs on a thread of its own, to which it takes both along.
        let (copied, target) = tokio::task::spawn_blocking(move || {
            let copied = Handle::current().block_on(copy(&mut reader, &mut target));
            (copied, target)
        })
        .await
        .map_err(|error| cannot_build(&scrap.path, error))?;
        copied.map_err(|error| cannot_build(&scrap.path, error))?;
        target.close().await.map_err(|error| cannot_build(&scrap.path, error))?;

        let store = open::scratch(&scrap.path).await?;
        store.apply(vec![Change::Empty(identity)]).await?;
        if original.shared.keeper.has_copy() {
            // Every commit keeps it up to date, so that no search after the
            // replacement has to wait for a load.
            store.load_vectors().await?;
        }
        let own = Arc::clone(&store.attached().writer);
        let mut own = own.lock().await;
        let connection = own.open().await?;
        let last = meta::number(connection, meta::LAST_CHUNK).await.map_err(cannot_read)?;
        let ahead = last.saturating_add(CHUNKS_AHEAD).to_string();
        meta::set(connection, meta::LAST_CHUNK, &ahead).await.map_err(cannot_write)?;
        drop(own);
        Ok(Self {
            original: Arc::clone(&original.shared),
            writer: Arc::clone(&original.writer),
            store: Arc::new(store),
            scrap,
        })
    }
}

#[async_trait]
impl Replacement for SqliteReplacement {
    fn store(&self) -> Arc<dyn ChunkStore> {
        Arc::clone(&self.store) as Arc<dyn ChunkStore>
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { original, writer, store, scrap } = *self;
        let path = original.path.clone();
        let built = store.attached();
        let mut target = writer.lock_owned().await;
        let mut source = Arc::clone(&built.writer).lock_owned().await;
        let (to, from) = (target.open().await?, source.open().await?);
        let generation = meta::number(to, meta::GENERATION).await.map_err(cannot_read)?;
        let own = meta::number(from, meta::GENERATION).await.map_err(cannot_read)?;
        let generation = generation.max(own).saturating_add(GENERATIONS_AHEAD);
        meta::set(from, meta::GENERATION, &generation.to_string()).await.map_err(cannot_write)?;
        let (copied, mut target, source) = tokio::task::spawn_blocking(move || {
            let copied = Handle::current().block_on(async {
                copy(source.open().await?, target.open().await?).await.map_err(|error| {
                    let what = format!("put the new index in place at {}", path.display());
                    unavailable(what, error)
                })
            });
            (copied, target, source)
        })
        .await
        .map_err(|error| cannot_build(&original.path, error))?;
        drop(source);
        copied?;
        original.keeper.adopt(&built.shared.keeper, generation.unsigned_abs());
        // The log holds the whole index now. What a reader keeps there is moved
        // into the file later.
        if let Err(error) = write::checkpoint(target.open().await?, Checkpoint::Passing).await {
            tracing::debug!(%error, "the log stays beside the index");
        }
        drop(target);
        open::forget_damaged(&original.path);
        built.shared.readers.close().await;
        drop(scrap);
        Ok(())
    }
}

/// Copies a whole database over another, in one transaction of the latter.
async fn copy(from: &mut SqliteConnection, to: &mut SqliteConnection) -> Result<(), CopyError> {
    let mut from = from.lock_handle().await.map_err(CopyError::Handle)?;
    let mut to = to.lock_handle().await.map_err(CopyError::Handle)?;
    let start = Instant::now();
    loop {
        match copy_now(from.as_raw_handle().as_ptr(), to.as_raw_handle().as_ptr()) {
            SQLITE_OK => return Ok(()),
            SQLITE_BUSY | SQLITE_LOCKED if start.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            code => return Err(CopyError::Sqlite { code, reason: describe(code) }),
        }
    }
}

/// Copies once; returns SQLite's number for what came of it.
fn copy_now(from: *mut sqlite3, to: *mut sqlite3) -> c_int {
    const MAIN: &std::ffi::CStr = c"main";
    #[expect(unsafe_code, reason = "the copy of a database is a C interface")]
    // SAFETY: both connections are open, and locked by the caller, so that no
    // other thread uses them meanwhile. The backup is finished before either
    // is given back, and used by this function alone.
    unsafe {
        let backup = sqlite3_backup_init(to, MAIN.as_ptr(), from, MAIN.as_ptr());
        if backup.is_null() {
            return libsqlite3_sys::sqlite3_errcode(to) & 0xff;
        }
        let stepped = sqlite3_backup_step(backup, -1) & 0xff;
        let finished = sqlite3_backup_finish(backup) & 0xff;
        if stepped == SQLITE_DONE || stepped == SQLITE_OK { finished } else { stepped }
    }
}

fn describe(code: c_int) -> String {
    #[expect(unsafe_code, reason = "the text of a result code is a C interface")]
    // SAFETY: the function takes any number and returns a static string.
    let text = unsafe { std::ffi::CStr::from_ptr(sqlite3_errstr(code)) };
    text.to_string_lossy().into_owned()
}

/// Why a database could not be copied.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error("the connection cannot be used")]
    Handle(#[source] sqlx::Error),
    #[error("{reason} (code {code})")]
    Sqlite { code: c_int, reason: String },
}

/// The files of an index under construction, which go when this does. The
/// operating system gives the lock back if the process dies first.
struct Scrap {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl Scrap {
    fn reserve(index: &Path) -> Result<Self, StoreError> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = with_suffix(index, &format!("{INFIX}{}-{number}", process::id()));
        let lock_path = with_suffix(&path, LOCK);
        let lock = private_file().open(&lock_path);
        let lock = lock.map_err(|error| cannot_build(&path, error))?;
        lock.try_lock().map_err(|error| cannot_build(&path, io::Error::from(error)))?;
        let scrap = Self { path, lock_path, _lock: lock };
        // A process of the same number may have left a file.
        remove_database(&scrap.path);
        private_file().open(&scrap.path).map_err(|error| cannot_build(&scrap.path, error))?;
        Ok(scrap)
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        remove_database(&self.path);
        remove(&self.lock_path);
    }
}

/// Removes what processes that died have left under construction.
pub(super) fn remove_leftovers(index: &Path) {
    let (Some(folder), Some(name)) = (index.parent(), index.file_name().and_then(OsStr::to_str))
    else {
        return;
    };
    let prefix = format!("{name}{INFIX}");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let lock_path = entry.path();
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let Some(name) = name.strip_suffix(LOCK).filter(|name| name.starts_with(&prefix)) else {
            continue;
        };
        let Ok(lock) = OpenOptions::new().write(true).open(&lock_path) else { continue };
        if lock.try_lock().is_ok() {
            let path = folder.join(name);
            tracing::info!(path = %path.display(), "removing an index that was never completed");
            remove_database(&path);
            remove(&lock_path);
        }
    }
}

fn remove_database(path: &Path) {
    for side in ["", "-wal", "-shm", "-journal"] {
        remove(&with_suffix(path, side));
    }
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove a temporary file");
        }
        _ => {}
    }
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn cannot_build(path: &Path, source: impl Into<crate::ports::Cause>) -> StoreError {
    unavailable(format!("build a new index at {}", path.display()), source)
}
