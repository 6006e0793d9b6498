//! How the service is, for whoever watches it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::app::config::WatchSettings;
use crate::app::model::Model;
use crate::app::pulse::Pulse;
use crate::ports::chunk_store::ChunkStore;
use crate::ports::monitor::{Monitor, ServiceStatus};

/// How often the index is counted while somebody looks.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long after a look somebody counts as looking.
const ATTENTION: Duration = Duration::from_secs(15);

/// How often the index is counted while nobody looks.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);

/// Tells how the service is from what it keeps at hand: a task of its own counts
/// the index, so that nobody who asks waits for it.
pub struct ServiceMonitor {
    pub(crate) store: Arc<dyn ChunkStore>,
    pub(crate) model: Arc<Model>,
    pub(crate) reranker: Option<String>,
    pub(crate) watch: WatchSettings,
    pub(crate) config_source: String,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) counts: Mutex<Option<Counts>>,
    pub(crate) looked: Notify,
}

/// Documents and chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    documents: u64,
    chunks: u64,
}

impl fmt::Debug for ServiceMonitor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServiceMonitor").field("watch", &self.watch).finish_non_exhaustive()
    }
}

impl ServiceMonitor {
    /// Counts the index again and again, for as long as it is polled.
    pub async fn follow(&self) {
        let mut last_look: Option<Instant> = None;
        loop {
            self.count().await;
            let attentive = last_look.is_some_and(|look| look.elapsed() < ATTENTION);
            let pause = if attentive { INTERVAL } else { IDLE_INTERVAL };
            if timeout(pause, self.looked.notified()).await.is_ok() {
                last_look = Some(Instant::now());
                sleep(INTERVAL).await;
            }
        }
    }

    /// Counts the index once.
    pub async fn count(&self) {
        let summary = async { self.store.snapshot().await?.summary().await };
        match summary.await {
            Ok(summary) => {
                let counts = Counts { documents: summary.documents, chunks: summary.chunks };
                *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
            }
            Err(error) => tracing::debug!(%error, "the index cannot be counted"),
        }
    }
}

impl Monitor for ServiceMonitor {
    fn status(&self) -> ServiceStatus {
        self.looked.notify_one();
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (run, last_run) = self.pulse.runs_now();
        ServiceStatus {
            ready: self.model.if_loaded().is_some(),
            run,
            last_run,
            watching: self.watch.enabled,
            debounce: self.watch.debounce,
            documents: counts.map(|counts| counts.documents),
            chunks: counts.map(|counts| counts.chunks),
            model: Some(without_path(self.model.name())),
            reranker: self.reranker.as_deref().map(without_path),
            config_source: self.config_source.clone(),
        }
    }
}

/// The name of a model; of a folder only that it is one.
fn without_path(name: &str) -> String {
    if name.starts_with("dir:") { "a local folder".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // HTTP-78
    #[test]
    fn a_model_in_a_folder_is_shown_without_its_path() {
        assert_eq!(without_path("all-minilm-l6-v2"), "all-minilm-l6-v2");
        assert_eq!(without_path("org/model"), "org/model");
        assert_eq!(without_path("dir:/home/me/model"), "a local folder");
    }
}
