//! How index runs are going, for whoever asks at any time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::app::index::Report;
use crate::ports::monitor::{LastRun, RunCounts, RunStatus};

/// How index runs are going. Each lock in it is held for a few instructions
/// only, and outlives a panic.
#[derive(Debug, Default)]
pub struct Pulse(Mutex<Runs>);

#[derive(Debug, Default)]
struct Runs {
    current: Option<RunStatus>,
    last: Option<LastRun>,
}

impl Pulse {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins.
    pub(crate) fn begin(&self, now: String) {
        self.runs().current = Some(RunStatus { started_at: now, progress: None });
    }

    /// The run under way has come so far.
    pub(crate) fn advance(&self, done: u64, total: u64) {
        if let Some(run) = &mut self.runs().current {
            run.progress = Some((done, total));
        }
    }

    /// The run under way has ended; nothing happens if there is none.
    ///
    /// - `report`: what it did, unless it failed.
    pub(crate) fn end(&self, now: String, report: Option<&Report>) {
        let mut runs = self.runs();
        let Some(run) = runs.current.take() else { return };
        let counts = report.map(|report| RunCounts {
            updated: report.updated,
            renamed: report.renamed,
            deleted: report.deleted,
            skipped: report.skipped,
        });
        runs.last = Some(LastRun { started_at: run.started_at, finished_at: now, counts });
    }

    /// The run under way, and the one that ended last.
    pub fn runs_now(&self) -> (Option<RunStatus>, Option<LastRun>) {
        let runs = self.runs();
        (runs.current.clone(), runs.last.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // HTTP-74 HTTP-B11
    #[test]
    fn a_run_is_seen_while_it_lasts_and_remembered_afterwards() {
        let pulse = Pulse::default();
        pulse.advance(1, 2);
        assert_eq!(pulse.runs_now(), (None, None));
        pulse.begin("a".into());
        assert_eq!(pulse.runs_now().0, Some(RunStatus { started_at: "a".into(), progress: None }));
        pulse.advance(3, 9);
        assert_eq!(pulse.runs_now().0.unwrap().progress, Some((3, 9)));
        pulse.end("b".into(), Some(&Report { updated: 7, ..Report::default() }));
        let (current, last) = pulse.runs_now();
        assert_eq!(current, None);
        let last = last.unwrap();
        assert_eq!((last.started_at.as_str(), last.finished_at.as_str()), ("a", "b"));
        assert_eq!(last.counts.unwrap().updated, 7);
        // The slot of a run is given up after the run has said what it did.
        pulse.end("c".into(), None);
        assert_eq!(pulse.runs_now().1, Some(last));
    }

    // HTTP-79
    #[test]
    fn a_panic_elsewhere_does_not_silence_it() {
        let pulse = Pulse::default();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = pulse.0.lock();
            panic!("on purpose");
        }));
        assert!(outcome.is_err());
        pulse.begin("a".into());
        assert!(pulse.runs_now().0.is_some());
    }
}
