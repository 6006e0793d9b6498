//! What a transport may ask of the service at any time, without waiting.

use std::time::Duration;

/// Tells how the service is.
pub trait Monitor: Send + Sync {
    /// How the service is now. Returns at once, whatever else is under way:
    /// what cannot be told without waiting is left out.
    fn status(&self) -> ServiceStatus;
}

/// How a service is. Holds no path of the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Whether the model is loaded, so that searches use it.
    pub ready: bool,
    /// The index run under way.
    pub run: Option<RunStatus>,
    /// The index run that ended last.
    pub last_run: Option<LastRun>,
    /// Whether changes on disk are followed.
    pub watching: bool,
    /// How long the watcher waits for more changes.
    pub debounce: Duration,
    /// Documents in the index.
    pub documents: Option<u64>,
    /// Chunks in the index.
    pub chunks: Option<u64>,
    /// The embedding model.
    pub model: Option<String>,
    /// The reranker, if there is one.
    pub reranker: Option<String>,
    /// Where the configuration came from.
    pub config_source: String,
}

/// An index run under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStatus {
    /// When it began, as `YYYY-MM-DDTHH:MM:SSZ`.
    pub started_at: String,
    /// Steps that are done, and steps in all, once they are known.
    pub progress: Option<(u64, u64)>,
}

/// An index run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastRun {
    /// When it began, as `YYYY-MM-DDTHH:MM:SSZ`.
    pub started_at: String,
    /// When it ended, likewise.
    pub finished_at: String,
    /// Files written, moved, removed and left out; none if it failed.
    pub counts: Option<RunCounts>,
}

/// What an index run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Files written.
    pub updated: u64,
    /// Keys moved.
    pub renamed: u64,
    /// Documents removed.
    pub deleted: u64,
    /// Files that were not indexed.
    pub skipped: u64,
}
