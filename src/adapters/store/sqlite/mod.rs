//! One SQLite file: tables of words and of their places, FTS5 for what has to be
//! found as it stands, sqlite-vec for vectors.

mod meta;
mod open;
mod schema;

mod statistics;
mod write;

mod damage;
mod repair;
mod replacement;
mod runs;

mod matching;
mod nearest;
mod rows;
mod snapshot;

mod admission;
mod delta;
mod keeper;
mod matrix;
mod resident;
mod scan;
mod segment;
mod vectors;

mod postings;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqlitePool;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::adapters::store::sqlite::keeper::Keeper;
use crate::adapters::store::sqlite::open::{FileIdentity, Writer};
use crate::adapters::store::sqlite::replacement::SqliteReplacement;
use crate::adapters::store::sqlite::snapshot::{Newest, SqliteSnapshot};
use crate::adapters::store::sqlite::words::Vocabulary;
use crate::adapters::store::sqlite::write::Checkpoint;
use crate::domain::embedding::ModelIdentity;
use crate::domain::evidence::Spread;
use crate::ports::Cause;
use crate::ports::chunk_store::{
    AnnouncedRun, Change, ChunkStore, Repairs, Replacement, RunUnderWay, Snapshot, StoreError,
    Summary,
};

/// How often closing tries to empty the log, and how long it waits in between.
const CHECKPOINT_ATTEMPTS: u32 = 20;
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(10);

/// A store in one SQLite file.
///
/// Writes go through one connection, one after the other; it is opened by the
/// first of them. Every snapshot has a connection of its own for as long as it
/// lives, out of at most 256; a task may hold several at once, and one more
/// than 256 waits for its turn.
///
/// Vectors are kept in memory as well, from the first search on: a snapshot
/// that this copy fits is answered from it, any other one from the file, with
/// the same result. Commits of this store keep the copy up to date; after a
/// commit of another process it is loaded anew beside the searches.
///
/// A file that is deleted or exchanged for another under a running process is
/// noticed by the next use, which opens what is there then, or begins anew.
pub struct SqliteStore {
    path: PathBuf,
    /// The file that is open now.
    attached: RwLock<Arc<Attached>>,
    /// Held by whoever opens another one.
    reopening: Mutex<()>,
}

/// A file that is open.
struct Attached {
    identity: FileIdentity,
    shared: Arc<Shared>,
    writer: Arc<Mutex<Writer>>,
}

/// What the snapshots of a file have in common.
struct Shared {
    path: PathBuf,
    readers: SqlitePool,
    keeper: Keeper,
    summaries: Newest<Summary>,
    vocabularies: Newest<Option<Arc<Vocabulary>>>,
    /// How vectors are spread among one another.
    spreads_between: Newest<Option<Spread>>,
    /// Snapshots may be dropped outside of the runtime.
    runtime: Handle,
}

impl SqliteStore {
    /// Opens an index that exists; none if there is no file.
    ///
    /// Tables and columns that are missing are added, what is unknown is left
    /// alone.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if the file is no usable database,
    /// [`StoreError::Foreign`] if its tables are not those of an index,
    /// [`StoreError::WrongDimension`] if the recorded dimension is not the one
    /// of the vector table, and [`StoreError::Unavailable`] for anything else.
    /// Nothing was changed in the first three cases.
    pub async fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        open::existing(path).await
    }

    /// Opens an index and creates it first if there is no file, readable by its
    /// owner only.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        open::created(path).await
    }

    /// Opens an index whatever there is, for a run that starts from nothing.
    ///
    /// A damaged file is moved aside under the suffix `.damaged`, which the
    /// first complete run removes; another program's database is moved aside
    /// under `.foreign` and stays. A lock file `<name>.replace-lock` keeps two
    /// processes from replacing at once. An index of another dimension opens.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the file cannot be opened for any other
    /// reason, or if another process holds the lock, which is named then.
    /// Nothing was changed.
    pub async fn open_or_replace(path: &Path) -> Result<Self, StoreError> {
        open::replaced(path).await
    }

    /// Ends all reading and moves what is in the write-ahead log into the file,
    /// as far as no other process keeps it from that. Snapshots must be gone.
    pub async fn close(&self) {
        let attached = self.attached();
        attached.shared.readers.close().await;
        let mut writer = attached.writer.lock().await;
        // Only who may write can take the files away that readers share.
        let Ok(connection) = writer.open().await else { return };
        // Whoever writes meanwhile is not waited for.
        if let Err(error) = sqlx::raw_sql("PRAGMA busy_timeout = 0").execute(&mut *connection).await
        {
            tracing::debug!(%error, "the log stays beside the index");
            return;
        }
        // A reader of this process may still be on its way out. What another one
        // keeps in the log is moved by whoever opens the file next.
        for _ in 0..CHECKPOINT_ATTEMPTS {
            match write::checkpoint(connection, Checkpoint::Emptying).await {
                Ok(false) => break,
                Ok(true) => tokio::time::sleep(CHECKPOINT_PAUSE).await,
                Err(error) => {
                    tracing::debug!(%error, "the log stays beside the index");
                    break;
                }
            }
        }
        writer.close().await;
    }

    /// Loads the vectors into memory now, so that the first search need not
    /// read them from the file. Nothing waits for it, and nothing needs it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the index cannot be read.
    pub async fn load_vectors(&self) -> Result<(), StoreError> {
        let attached = self.current().await?;
        snapshot::load_resident(&attached.shared).await.map_err(cannot_read)
    }

    fn new(path: PathBuf, attached: Attached) -> Self {
        let attached = RwLock::new(Arc::new(attached));
        Self { path, attached, reopening: Mutex::default() }
    }

    /// Says which file could not be used.
    fn name(&self, error: StoreError) -> StoreError {
        let StoreError::Unavailable { what, source } = error else { return error };
        let path = self.path.display().to_string();
        let known = what.contains(&path);
        let named = format!("the index at {path}");
        let what = if known { what } else { what.replacen("the index", &named, 1) };
        StoreError::Unavailable { what, source }
    }

    fn attached(&self) -> Arc<Attached> {
        Arc::clone(&self.attached.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The file that has the index's name now.
    async fn current(&self) -> Result<Arc<Attached>, StoreError> {
        let attached = self.attached();
        if attached.identity == FileIdentity::of(&self.path) {
            return Ok(attached);
        }
        let _one_reopens = self.reopening.lock().await;
        let attached = self.attached();
        if attached.identity == FileIdentity::of(&self.path) {
            return Ok(attached);
        }
        let path = self.path.display();
        tracing::warn!(%path, "the index file was removed or exchanged; opening it anew");
        let attached = Arc::new(open::anew(&self.path).await?);
        *self.attached.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&attached);
        Ok(attached)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChunkStore for SqliteStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        let attached = self.current().await?;
        let opened = SqliteSnapshot::open(Arc::clone(&attached.shared)).await;
        Ok(Box::new(opened.map_err(|error| self.name(error))?))
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let completed = changes.iter().any(|change| matches!(change, Change::Declare(Some(_))));
        let attached = self.current().await?;
        let mut writer = attached.writer.lock().await;
        let applied = write::apply(writer.open().await?, changes).await;
        let (generation, delta) = applied.map_err(|error| self.name(error))?;
        attached.shared.keeper.committed(generation, delta);
        // Whoever writes next waits, so that no commit overtakes another.
        if let Err(error) = snapshot::catch_up(&attached.shared).await {
            tracing::warn!(%error, "the vectors in memory lag behind; they are loaded anew");
        }
        if completed {
            open::forget_damaged(&self.path);
        }
        Ok(())
    }

    async fn replacement(
        &self,
        identity: ModelIdentity,
    ) -> Result<Box<dyn Replacement>, StoreError> {
        let attached = self.current().await?;
        let begun = SqliteReplacement::begin(&attached, identity).await;
        Ok(Box::new(begun.map_err(|error| self.name(error))?))
    }

    async fn repair(&self) -> Result<Repairs, StoreError> {
        let attached = self.current().await?;
        let mut reader = attached.shared.readers.acquire().await.map_err(cannot_read)?;
        if !repair::is_needed(&mut reader).await.map_err(cannot_read)? {
            return Ok(Repairs::default());
        }
        drop(reader);
        let mut writer = attached.writer.lock().await;
        repair::repair(writer.open().await?).await.map_err(cannot_write)
    }

    async fn runs(&self) -> Result<Vec<RunUnderWay>, StoreError> {
        Ok(runs::under_way(&self.path))
    }

    async fn announce(&self, since: &str) -> Result<Box<dyn AnnouncedRun>, StoreError> {
        runs::announce(&self.path, since)
    }
}

/// Wraps a failure of the technology.
fn unavailable(what: impl Into<String>, source: impl Into<Cause>) -> StoreError {
    StoreError::Unavailable { what: what.into(), source: source.into() }
}

/// What a failing read was about.
fn cannot_read(source: sqlx::Error) -> StoreError {
    unavailable(format!("read the index{}", remedy(&source)), source)
}

/// What a failing write was about.
fn cannot_write(source: sqlx::Error) -> StoreError {
    unavailable(format!("write to the index{}", remedy(&source)), source)
}

/// What to do about a file that turns out to be damaged while it is used.
fn remedy(error: &sqlx::Error) -> &'static str {
    match open::code(error) {
        Some(libsqlite3_sys::SQLITE_CORRUPT | libsqlite3_sys::SQLITE_NOTADB) => {
            ", which is damaged; delete it and run `groove index`, or run `groove index --force`"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
