//! Opening, creating and replacing the file.

use std::ffi::{OsString, c_char, c_int};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use libsqlite3_sys::{
    SQLITE_BUSY, SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_ERROR, SQLITE_NOTADB, SQLITE_OK,
    SQLITE_READONLY,
};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::adapters::store::sqlite::keeper::Keeper;
use crate::adapters::store::sqlite::replacement;
use crate::adapters::store::sqlite::schema::{self, Tables};
use crate::adapters::store::sqlite::snapshot::Newest;
use crate::adapters::store::sqlite::{Attached, Shared, SqliteStore, unavailable};
use crate::ports::chunk_store::StoreError;

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The most snapshots at a time.
const READERS: u32 = 256;

/// Memory for pages, in KiB below zero: of the writer, which changes blocks of
/// vectors and merges words, and of each reader.
const WRITER_CACHE: &str = "-16384";
const READER_CACHE: &str = "-4096";

/// Pages that the write-ahead log gathers before they are copied into the file.
const CHECKPOINT: &str = "4000";

/// How long a reader that nobody needs is kept.
const READER_IDLE: Duration = Duration::from_mins(1);

/// Opens what exists.
pub(super) async fn existing(path: &Path) -> Result<Option<SqliteStore>, StoreError> {
    let path = absolute(path)?;
    if !is_there(&path)? {
        return Ok(None);
    }
    let attached = attach(&path, Opening::AsItIs).await?;
    Ok(Some(SqliteStore::new(path, attached)))
}

/// Opens what exists, else a new file.
pub(super) async fn created(path: &Path) -> Result<SqliteStore, StoreError> {
    let path = absolute(path)?;
    create(&path)?;
    replacement::remove_leftovers(&path);
    ReplaceLock::remove_leftover(&path);
    let attached = attach(&path, Opening::AsItIs).await?;
    Ok(SqliteStore::new(path, attached))
}

/// Opens what has the name of an index that was open before, else a new file.
pub(super) async fn anew(path: &Path) -> Result<Attached, StoreError> {
    create(path)?;
    attach(path, Opening::AsItIs).await
}

/// Opens what exists if it is ours, else a new file in its place.
pub(super) async fn replaced(path: &Path) -> Result<SqliteStore, StoreError> {
    let path = absolute(path)?;
    create(&path)?;
    ReplaceLock::remove_leftover(&path);
    let attached = match attach(&path, Opening::ToRebuild).await {
        Err(StoreError::Damaged { .. } | StoreError::Foreign { .. }) => replace(&path).await?,
        other => other?,
    };
    Ok(SqliteStore::new(path, attached))
}

/// Moves a file that is no index aside and opens a new one in its place.
async fn replace(path: &Path) -> Result<Attached, StoreError> {
    let lock = ReplaceLock::take(path)?;
    // Another process may have replaced the file before the lock was taken.
    let (suffix, reason) = match attach(path, Opening::ToRebuild).await {
        Err(StoreError::Damaged { reason, .. }) => (".damaged", reason),
        Err(StoreError::Foreign { reason, .. }) => (".foreign", reason),
        other => return other,
    };
    let aside = move_aside(path, suffix)?;
    tracing::warn!(
        path = %path.display(),
        aside = %aside.display(),
        reason,
        "replacing a file that is not a usable index"
    );
    create(path)?;
    let attached = attach(path, Opening::ToRebuild).await;
    drop(lock);
    attached
}

/// Removes what a replacement moved aside, now that the index is whole again.
pub(super) fn forget_damaged(path: &Path) {
    for side in ["", "-wal", "-shm"] {
        let aside = with_suffix(path, &format!(".damaged{side}"));
        match std::fs::remove_file(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %aside.display(), %error, "cannot remove a replaced index");
            }
            _ => {}
        }
    }
}

/// Opens a file of this program's own making whose loss would not matter, and
/// so is not waited for to reach the disk.
pub(super) async fn scratch(path: &Path) -> Result<SqliteStore, StoreError> {
    let attached = attach(path, Opening::ToFill).await?;
    sqlx::raw_sql("PRAGMA synchronous = OFF")
        .execute(attached.writer.lock().await.open().await?)
        .await
        .map_err(|error| cannot_open(path, error))?;
    Ok(SqliteStore::new(path.to_owned(), attached))
}

/// Connects to a file whatever it holds.
pub(super) async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    options(path).connect().await.map_err(|error| cannot_open(path, error))
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// To be used with what it holds.
    AsItIs,
    /// To be emptied and filled anew, for which all of it must be sound.
    ToRebuild,
    /// The same, where it is known to be sound.
    ToFill,
}

async fn attach(path: &Path, opening: Opening) -> Result<Attached, StoreError> {
    register_vectors(path)?;
    let runtime = Handle::try_current().map_err(|error| cannot_open(path, error))?;
    let path_text = path.display().to_string();
    if path.is_dir() {
        return Err(cannot_open(path, io::Error::from(io::ErrorKind::IsADirectory)));
    }
    if !path.is_file() {
        return Err(cannot_open(path, io::Error::other("it is not a regular file")));
    }
    let identity = FileIdentity::of(path);
    let (looked, access) = look(path).await.map_err(|error| classify(path, error))?;
    match looked.tables {
        Tables::Foreign(reason) => {
            return Err(StoreError::Foreign { path: path_text, reason });
        }
        Tables::Ours(dimensions) if opening == Opening::AsItIs => dimensions.check()?,
        Tables::Ours(_) if opening == Opening::ToRebuild => verify(path).await?,
        Tables::Ours(_) | Tables::Empty => {}
    }
    let mut writer = Writer { path: path.to_owned(), connection: None };
    if !looked.settled || access == Access::Logless {
        schema::settle(writer.open().await?).await.map_err(|error| cannot_open(path, error))?;
    }
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .idle_timeout(READER_IDLE)
        .test_before_acquire(false)
        .connect_lazy_with(access.reading(path).pragma("cache_size", READER_CACHE));
    Ok(Attached {
        identity,
        shared: Arc::new(Shared {
            path: path.to_owned(),
            readers,
            keeper: Keeper::default(),
            summaries: Newest::default(),
            vocabularies: Newest::default(),
            spreads_between: Newest::default(),
            runtime,
        }),
        writer: Arc::new(Mutex::new(writer)),
    })
}

/// Looks at every page of a file that is to be emptied: damage in any table
/// would stop that half way.
async fn verify(path: &Path) -> Result<(), StoreError> {
    let damaged = |reason: String| StoreError::Damaged { path: path.display().to_string(), reason };
    let check = async {
        let mut connection = options(path).read_only(true).connect().await?;
        let said: String =
            sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(said)
    };
    match check.await {
        Ok(said) if said == "ok" => Ok(()),
        Ok(said) => Err(damaged(said)),
        // A virtual table whose own tables are broken is a plain error.
        Err(error) if matches!(code(&error), Some(SQLITE_ERROR)) => Err(damaged(error.to_string())),
        Err(error) => Err(classify(path, error)),
    }
}

/// How a file can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Beside writers.
    Shared,
    /// The same, but it has no write-ahead log yet, which readers need.
    Logless,
    /// As it is: neither it nor its folder can be written, so that it does not
    /// change, and the files that readers share cannot be made.
    Immutable,
}

impl Access {
    fn reading(self, path: &Path) -> SqliteConnectOptions {
        options(path).read_only(true).immutable(self == Self::Immutable)
    }
}

/// What a first look at a file finds.
struct Looked {
    tables: Tables,
    /// Whether nothing has to be added to it.
    settled: bool,
}

/// Reads the tables without leaving a trace in the file.
async fn look(path: &Path) -> Result<(Looked, Access), sqlx::Error> {
    match look_with(path, Access::Shared).await {
        // A process that died while it made the file has left a change to be
        // undone, for which a reader has no right.
        Err(error) if cannot_share(&error) && has_side_file(path, "-journal") => {
            connect_writer(path).await?.close().await?;
            look_with(path, Access::Shared).await
        }
        // What is still in a log would be missing.
        Err(error) if cannot_share(&error) && !has_side_file(path, "-wal") => {
            tracing::debug!(path = %path.display(), "the index cannot be written; reading it as it is");
            look_with(path, Access::Immutable).await
        }
        other => other,
    }
}

/// Whether the files that readers share could not be made.
fn cannot_share(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(SQLITE_CANTOPEN | SQLITE_READONLY))
}

fn has_side_file(path: &Path, suffix: &str) -> bool {
    std::fs::metadata(with_suffix(path, suffix)).is_ok_and(|metadata| metadata.len() > 0)
}

async fn look_with(path: &Path, access: Access) -> Result<(Looked, Access), sqlx::Error> {
    let mut connection = access.reading(path).connect().await?;
    let looked = async {
        let tables = Tables::read(&mut connection).await?;
        let ours = matches!(tables, Tables::Ours(_));
        let settled = ours && schema::is_settled(&mut connection).await?;
        let mode: String =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await?;
        let logless = access == Access::Shared && mode != "wal";
        let access = if logless { Access::Logless } else { access };
        Ok((Looked { tables, settled }, access))
    }
    .await;
    connection.close().await?;
    looked
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}

/// The connection that writes, opened when it is first needed.
pub(super) struct Writer {
    path: PathBuf,
    connection: Option<SqliteConnection>,
}

impl Writer {
    /// The connection.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the file cannot be written.
    pub(super) async fn open(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                connect_writer(&self.path).await.map_err(|error| cannot_open(&self.path, error))?
            }
        };
        Ok(self.connection.insert(connection))
    }

    /// Closes the connection; the last one of all takes the files beside the
    /// index away.
    pub(super) async fn close(&mut self) {
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "the index was not closed");
        }
    }

    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.connection.is_some()
    }
}

/// Tells a file from another one that has its name later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity(Option<(u64, u64)>);

impl FileIdentity {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        Self(std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino())))
    }

    #[cfg(unix)]
    fn of_open(file: &File) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        Self(file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino())))
    }

    /// Where an open file keeps its name, there is nothing to tell apart.
    #[cfg(not(unix))]
    pub(super) fn of(_: &Path) -> Self {
        Self(None)
    }

    #[cfg(not(unix))]
    fn of_open(_: &File) -> Self {
        Self(None)
    }
}

/// Connects the writer. The change to a write-ahead log needs the file for
/// itself and does not wait for it, unlike all else.
async fn connect_writer(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .pragma("cache_size", WRITER_CACHE)
        .pragma("wal_autocheckpoint", CHECKPOINT);
    let start = Instant::now();
    loop {
        match options.connect().await {
            Err(error) if code(&error) == Some(SQLITE_BUSY) && start.elapsed() < BUSY_TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

fn classify(path: &Path, error: sqlx::Error) -> StoreError {
    match code(&error) {
        Some(SQLITE_NOTADB | SQLITE_CORRUPT) => StoreError::Damaged {
            path: path.display().to_string(),
            reason: match error {
                sqlx::Error::Database(error) => error.message().to_owned(),
                other => other.to_string(),
            },
        },
        _ => cannot_open(path, error),
    }
}

/// SQLite's own number for a failure, without the details.
pub(super) fn code(error: &sqlx::Error) -> Option<c_int> {
    let code: c_int = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

fn cannot_open(path: &Path, source: impl Into<crate::ports::Cause>) -> StoreError {
    unavailable(format!("open the index at {}", path.display()), source)
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| cannot_open(path, error))
}

fn is_there(path: &Path) -> Result<bool, StoreError> {
    path.try_exists().map_err(|error| cannot_open(path, error))
}

/// Makes an empty file if there is none; its side files get the same mode.
fn create(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(cannot_open(path, error)),
        _ => Ok(()),
    }
}

/// A path beside another, whose name goes on.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Moves a file and its side files out of the way. An earlier damaged file is
/// overwritten, another program's never.
fn move_aside(path: &Path, suffix: &str) -> Result<PathBuf, StoreError> {
    let mut aside = with_suffix(path, suffix);
    let mut attempt = 1;
    while suffix != ".damaged" && is_there(&aside)? {
        aside = with_suffix(path, &format!("{suffix}.{attempt}"));
        attempt += 1;
    }
    for side in ["-wal", "-shm", ""] {
        match std::fs::rename(with_suffix(path, side), with_suffix(&aside, side)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unavailable(format!("move {} aside", path.display()), error));
            }
            _ => {}
        }
    }
    Ok(aside)
}

/// Held while a file is replaced. The operating system gives the lock back if
/// the process dies; a file that is left over locks nothing.
struct ReplaceLock {
    path: PathBuf,
    file: File,
}

impl ReplaceLock {
    fn take(index: &Path) -> Result<Self, StoreError> {
        let path = with_suffix(index, ".replace-lock");
        let what = || format!("replace {}: {} is held", index.display(), path.display());
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(|error| unavailable(what(), error))?;
            match file.try_lock() {
                // Whoever held it may have removed it since it was opened.
                Ok(()) if FileIdentity::of_open(&file) != FileIdentity::of(&path) => {}
                Ok(()) => return Ok(Self { path, file }),
                Err(TryLockError::WouldBlock) => {
                    return Err(unavailable(
                        what(),
                        "another process is replacing the index; wait for it and try again",
                    ));
                }
                Err(TryLockError::Error(error)) => return Err(unavailable(what(), error)),
            }
        }
    }

    /// Removes the file that a process has left which died with the lock.
    fn remove_leftover(index: &Path) {
        let path = with_suffix(index, ".replace-lock");
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { return };
        if file.try_lock().is_ok() && FileIdentity::of_open(&file) == FileIdentity::of(&path) {
            drop(Self { path, file });
        }
    }
}

impl Drop for ReplaceLock {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path).and_then(|()| self.file.unlock()) {
            tracing::warn!(path = %self.path.display(), %error, "cannot give the lock back");
        }
    }
}

/// The entry point of an extension, as SQLite calls it.
type EntryPoint = unsafe extern "C" fn(
    *mut libsqlite3_sys::sqlite3,
    *mut *mut c_char,
    *const libsqlite3_sys::sqlite3_api_routines,
) -> c_int;

/// Makes every connection that is opened from now on know vector tables.
fn register_vectors(path: &Path) -> Result<(), StoreError> {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    let result = *REGISTERED.get_or_init(|| {
        #[expect(unsafe_code, reason = "an extension is registered by its C entry point")]
        // SAFETY: `sqlite3_vec_init` is declared without its arguments, but it
        // is a C function of exactly the type `EntryPoint`, linked statically
        // and so valid for ever. `sqlite3_auto_extension` only stores it.
        unsafe {
            let entry = std::mem::transmute::<unsafe extern "C" fn(), EntryPoint>(
                sqlite_vec::sqlite3_vec_init,
            );
            libsqlite3_sys::sqlite3_auto_extension(Some(entry))
        }
    });
    if result == SQLITE_OK {
        Ok(())
    } else {
        Err(cannot_open(path, format!("vector tables could not be registered ({result})")))
    }
}
