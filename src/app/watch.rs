//! Following the changes of a knowledge base while it is served.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::app::error::{AppError, chain};
use crate::app::index::{IndexEvent, Indexer, Observer, Report};
use crate::app::line::on_one_line;
use crate::app::news::{NewsDesk, Telling};
use crate::ports::document_source::{Polling, Severity, SourceChange, SourceError, Watch};

/// Changes at more places than this are taken as one of everything.
const MOST_PLACES: usize = 4096;

/// Changes that go on are not waited for longer than this many times the
/// debounce.
const PATIENCE: u32 = 10;

/// How often the root is looked for.
const PROBE: Duration = Duration::from_secs(30);

/// How long to wait before trying again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The use case of keeping an index up to date as its source changes.
pub struct Watcher {
    /// What indexes.
    pub indexer: Indexer,
    /// What people call the source.
    pub place: String,
    /// How long to wait for more changes before acting.
    pub debounce: Duration,
    /// Who passes on what has changed.
    pub news: Arc<NewsDesk>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watcher").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Changes that nobody has acted on yet.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pending {
    places: BTreeSet<String>,
    rules: bool,
    everything: bool,
}

impl Pending {
    fn add(&mut self, change: SourceChange) {
        match change {
            SourceChange::At(_) if self.everything => {}
            SourceChange::At(key) => {
                self.places.insert(key);
                if self.places.len() > MOST_PLACES {
                    self.add(SourceChange::Unknown);
                }
            }
            SourceChange::Rules => self.rules = true,
            SourceChange::Unknown => {
                self.places.clear();
                self.everything = true;
            }
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a watch leaves what it sees.
#[derive(Default)]
struct Inbox {
    pending: std::sync::Mutex<Pending>,
    news: Notify,
}

impl Inbox {
    fn add(&self, change: SourceChange) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).add(change);
        self.news.notify_one();
    }

    fn take(&self) -> Pending {
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts back what could not be acted on.
    fn put_back(&self, undone: Pending) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let places = undone.places.into_iter().map(SourceChange::At);
        let everything = undone.everything.then_some(SourceChange::Unknown);
        places.chain(everything).for_each(|change| pending.add(change));
    }
}

impl Watcher {
    /// Follows changes for as long as it is polled. No failure ends it: what
    /// could not be indexed is tried again, and what cannot be watched, too.
    pub async fn run(self) {
        let inbox = Arc::new(Inbox::default());
        let mut pause = FIRST_PAUSE;
        self.look_at_groups().await;
        loop {
            match self.arm(&inbox).await {
                Ok(watch) => {
                    pause = FIRST_PAUSE;
                    tracing::info!("{}", on_one_line(&self.armed(watch.polling())));
                    self.follow(&inbox, &Arc::from(watch)).await;
                    let place = on_one_line(&self.place);
                    tracing::warn!("watcher: {place} has gone; waiting for it");
                }
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(error, retry_in_s = pause.as_secs(), "watcher: cannot watch");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            // What happened meanwhile was not seen.
            inbox.add(SourceChange::Unknown);
        }
    }

    /// What is said once a watch is on.
    fn armed(&self, polling: Option<Polling>) -> String {
        let polling = polling.map_or_else(String::new, |Polling { interval, reason }| {
            format!(", polling every {}ms: {reason}", interval.as_millis())
        });
        format!(
            "watcher: watching {} (debounce {}ms{polling})",
            self.place,
            self.debounce.as_millis()
        )
    }

    async fn arm(&self, inbox: &Arc<Inbox>) -> Result<Box<dyn Watch>, SourceError> {
        let (source, inbox) = (Arc::clone(&self.indexer.source), Arc::clone(inbox));
        let armed = tokio::task::spawn_blocking(move || {
            source.watch(Box::new(move |change| inbox.add(change)))
        });
        armed.await.map_err(|error| SourceError::Unavailable {
            what: "the changes of the knowledge base".to_owned(),
            source: error.into(),
        })?
    }

    /// Acts on changes until what is watched has gone.
    async fn follow(&self, inbox: &Inbox, watch: &Arc<dyn Watch>) {
        let mut pause = FIRST_PAUSE;
        loop {
            if timeout(PROBE, inbox.news.notified()).await.is_err() {
                if !is_alive(watch).await {
                    return;
                }
                continue;
            }
            self.settle(inbox).await;
            let pending = inbox.take();
            if pending.is_empty() {
                continue;
            }
            match self.act(&pending).await {
                Ok(()) => pause = FIRST_PAUSE,
                Err(error) => {
                    let error = chain(&error);
                    tracing::error!(error, retry_in_s = pause.as_secs(), "watcher: failed");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    inbox.put_back(pending);
                    inbox.news.notify_one();
                }
            }
        }
    }

    /// Waits until no more changes come for a while.
    async fn settle(&self, inbox: &Inbox) {
        let last = Instant::now() + self.debounce * PATIENCE;
        loop {
            let until = (Instant::now() + self.debounce).min(last);
            tokio::select! {
                () = sleep_until(until) => return,
                () = inbox.news.notified() => {}
            }
        }
    }

    async fn act(&self, pending: &Pending) -> Result<(), AppError> {
        if pending.rules {
            self.tell_of_rules().await?;
        }
        let desk = Some(Arc::clone(&self.news));
        let observer: Arc<dyn Observer> = Arc::new(Telling { desk, next: Arc::new(Lines) });
        let report = if pending.everything {
            tracing::info!("watcher: changes were lost, so all documents are compared");
            self.indexer.reconcile(&observer).await?
        } else if pending.places.is_empty() {
            return Ok(());
        } else {
            self.indexer.catch_up(&pending.places, &observer).await?
        };
        tell(&report);
        self.look_at_groups().await;
        Ok(())
    }

    /// Tells of groups that have come or gone. Whoever does not hear of it sees
    /// it in the next list.
    async fn look_at_groups(&self) {
        if let Err(error) = self.news.look_at_groups(&*self.indexer.store).await {
            tracing::debug!(error = chain(&error), "watcher: the groups could not be looked at");
        }
    }

    /// Says what is in force of an ignore file that was changed.
    async fn tell_of_rules(&self) -> Result<(), AppError> {
        let source = Arc::clone(&self.indexer.source);
        let listed = tokio::task::spawn_blocking(move || source.list_below(&BTreeSet::new())).await;
        let listing = listed.map_err(|_| AppError::Interrupted { what: "reading the rules" })??;
        let stay = "documents that are indexed already stay until a full run of `groove index`";
        if listing.notes.is_empty() {
            tracing::info!("watcher: the ignore file has gone; {stay}");
        }
        for note in &listing.notes {
            match note.severity {
                Severity::Note => tracing::info!("watcher: {}; {stay}", on_one_line(&note.text)),
                Severity::Warning => tracing::warn!("watcher: {}", on_one_line(&note.text)),
            }
        }
        Ok(())
    }
}

/// Looks for what is watched where that may block: the server of a network file
/// system may not answer.
async fn is_alive(watch: &Arc<dyn Watch>) -> bool {
    let watch = Arc::clone(watch);
    tokio::task::spawn_blocking(move || watch.is_alive()).await.unwrap_or(false)
}

fn tell(report: &Report) {
    tracing::debug!(
        updated = report.updated,
        renamed = report.renamed,
        deleted = report.deleted,
        skipped = report.skipped,
        duration_ms = report.duration.as_millis(),
        "watcher: caught up"
    );
}

/// Says in the log what came of each document.
struct Lines;

impl Observer for Lines {
    fn event(&self, event: IndexEvent<'_>) {
        let is_warning = !matches!(
            event,
            IndexEvent::Indexed { .. }
                | IndexEvent::Described { .. }
                | IndexEvent::Renamed { .. }
                | IndexEvent::Deleted { .. }
        );
        let text = match event {
            IndexEvent::Indexed { path, chunks } => format!("re-indexed {path} ({chunks} chunks)"),
            IndexEvent::Described { path } => format!("re-indexed {path}"),
            IndexEvent::Renamed { from, to } => format!("renamed {from} -> {to}"),
            IndexEvent::Deleted { path } => format!("deleted {path}"),
            IndexEvent::Skipped { path, reason } => format!("skipped {path}: {reason}"),
            IndexEvent::Rejected { path, reason, .. } => {
                format!("skipped {path}: the embedding endpoint rejected the input ({reason})")
            }
            IndexEvent::FrontmatterUnparsed { path, reason } => {
                format!("{path}: failed to parse YAML frontmatter: {reason}")
            }
            IndexEvent::Warning(text) => text.to_owned(),
            IndexEvent::Note(text) => {
                tracing::debug!("watcher: {}", on_one_line(text));
                return;
            }
            _ => return,
        };
        let text = on_one_line(&text);
        if is_warning {
            tracing::warn!("watcher: {text}");
        } else {
            tracing::info!("watcher: {text}");
        }
    }
}

#[cfg(test)]
mod tests;
