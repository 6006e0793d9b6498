//! Turns the progress of a long call into notifications, not too many of them.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;

use crate::ports::transport::Progress;

/// The least time between two notifications of one call.
const INTERVAL: Duration = Duration::from_millis(100);

/// How far a call has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// Steps that are done.
    pub(super) done: u64,
    /// Steps in all, as far as is known; 0 if it is not.
    pub(super) total: u64,
}

/// Keeps the latest progress for whoever reports it.
pub(super) struct Latest(watch::Sender<Steps>);

/// Makes the two ends: one to be told, one to report from.
pub(super) fn channel() -> (Latest, watch::Receiver<Steps>) {
    let (sender, receiver) = watch::channel(Steps::default());
    (Latest(sender), receiver)
}

impl Progress for Latest {
    fn advance(&self, done: u64, total: u64) {
        self.0.send_modify(|steps| {
            steps.done = steps.done.max(done);
            steps.total = steps.total.max(total);
        });
    }
}

/// Waits for `work` and reports its progress meanwhile: each time more steps
/// than before, at most ten times a second, and the last ones in any case
/// before the work counts as done.
pub(super) async fn reported<T, Report: Future<Output = ()>>(
    work: impl Future<Output = T>,
    mut latest: watch::Receiver<Steps>,
    report: impl Fn(Steps) -> Report,
) -> T {
    let mut work = pin!(work);
    let mut reported = None;
    let outcome = loop {
        tokio::select! {
            outcome = &mut work => break outcome,
            () = changed(&mut latest) => {}
        }
        report_more(&mut reported, &mut latest, &report).await;
        tokio::select! {
            outcome = &mut work => break outcome,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    };
    if latest.has_changed().unwrap_or(true) {
        report_more(&mut reported, &mut latest, &report).await;
    }
    outcome
}

/// Completes when there is news; never, once nobody can have any.
async fn changed(latest: &mut watch::Receiver<Steps>) {
    if latest.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn report_more<Report: Future<Output = ()>>(
    reported: &mut Option<u64>,
    latest: &mut watch::Receiver<Steps>,
    report: &impl Fn(Steps) -> Report,
) {
    let steps = *latest.borrow_and_update();
    // Nothing was reported yet, and nothing is done yet: that is no news.
    if steps.done > reported.unwrap_or(0) {
        *reported = Some(steps.done);
        report(steps).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    async fn steps_reported(work: impl AsyncFnOnce(&Latest)) -> Vec<Steps> {
        let (latest, receiver) = channel();
        let seen = RefCell::new(Vec::new());
        reported(work(&latest), receiver, async |steps| seen.borrow_mut().push(steps)).await;
        seen.into_inner()
    }

    // MCP-B11
    #[tokio::test]
    async fn a_burst_is_thinned_out_and_its_end_is_told() {
        let seen = steps_reported(async |latest| {
            for done in 1..=1000 {
                latest.advance(done, 1000);
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(seen.len() < 20, "{} notifications", seen.len());
        assert!(seen.is_sorted_by(|a, b| a.done < b.done));
        assert_eq!(seen.last(), Some(&Steps { done: 1000, total: 1000 }));
    }

    // MCP-B11
    #[tokio::test]
    async fn progress_never_falls() {
        let seen = steps_reported(async |latest| {
            for (done, total) in [(2, 5), (1, 5), (3, 4)] {
                latest.advance(done, total);
                tokio::time::sleep(INTERVAL * 2).await;
            }
        })
        .await;
        assert_eq!(seen, [Steps { done: 2, total: 5 }, Steps { done: 3, total: 5 }]);
    }

    #[tokio::test]
    async fn work_without_progress_reports_none() {
        let seen = steps_reported(async |latest| latest.advance(0, 10)).await;
        assert_eq!(seen, []);
    }
}
