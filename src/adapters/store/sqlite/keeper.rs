//! Who keeps the copy in memory up to date.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::adapters::store::sqlite::delta::Delta;
use crate::adapters::store::sqlite::resident::Resident;

/// After a load the next one waits this many times as long as the load took.
const REST: u32 = 4;

/// Holds the newest copy. Its lock is held for moments only: copies are made
/// outside of it and put in place whole.
#[derive(Default)]
pub(super) struct Keeper {
    kept: Mutex<Kept>,
    /// Told whenever another copy is held or none is being made any more.
    changed: Notify,
}

#[derive(Default)]
struct Kept {
    current: Option<Arc<Resident>>,
    /// The one before, for who looks at the state before the newest commit.
    previous: Option<Arc<Resident>>,
    loading: bool,
    /// Commits that the copy, or the one under way, has still to take over.
    commits: VecDeque<(u64, Arc<Delta>)>,
    /// Whether somebody is making the next copy.
    patching: bool,
    rest_until: Option<Instant>,
}

impl Keeper {
    /// The copy of one generation, if it is held.
    pub(super) fn fitting(&self, generation: u64) -> Option<Arc<Resident>> {
        self.lock().fitting(generation)
    }

    /// The copy of one generation, if it is held or about to be made of the one
    /// before it, which takes far less time than to do without.
    pub(super) async fn arriving(&self, generation: u64) -> Option<Arc<Resident>> {
        loop {
            let changed = self.changed.notified();
            let mut changed = pin!(changed);
            changed.as_mut().enable();
            {
                let kept = self.lock();
                if let Some(resident) = kept.fitting(generation) {
                    return Some(resident);
                }
                if !kept.is_catching_up(generation) {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Notes what this process committed. [`catch_up`](Self::catch_up) is to
    /// follow.
    pub(super) fn committed(&self, generation: u64, delta: Delta) {
        let mut kept = self.lock();
        if kept.current.is_some() || kept.loading {
            kept.commits.push_back((generation, Arc::new(delta)));
        }
    }

    /// Makes the copy take over the commits that were noted, unless somebody is
    /// at it. May take long, so it belongs on a thread that may block.
    pub(super) fn catch_up(&self) {
        let Some(patching) = Patching::begin(self) else { return };
        loop {
            let mut kept = self.lock();
            let Some((current, generation, delta)) = kept.next() else {
                // Whoever notes a commit from here on goes on by himself.
                kept.patching = false;
                drop(kept);
                std::mem::forget(patching);
                self.changed.notify_waiters();
                return;
            };
            drop(kept);
            let patched = Arc::new(current.patched(generation, &delta));
            let mut kept = self.lock();
            // Another copy may have been loaded or adopted meanwhile.
            if kept.current.as_ref().is_some_and(|held| Arc::ptr_eq(held, &current)) {
                kept.current = Some(patched);
                kept.previous = (!delta.emptied).then_some(current);
            }
            drop(kept);
            self.changed.notify_waiters();
        }
    }

    /// Whether the caller is to load a copy: none that is at least as new is
    /// there or on its way, and the last load is long enough ago.
    pub(super) fn may_load(&self, generation: u64) -> bool {
        let mut kept = self.lock();
        let resting = kept.rest_until.is_some_and(|until| Instant::now() < until);
        let fits = kept.current.as_ref().is_some_and(|current| current.generation() >= generation);
        if kept.loading || resting || fits || kept.is_catching_up(generation) {
            return false;
        }
        kept.loading = true;
        true
    }

    /// Whether a copy is held.
    pub(super) fn has_copy(&self) -> bool {
        self.lock().current.is_some()
    }

    /// Takes over the copy of a store whose contents become this one's, under
    /// the generation that they have here.
    pub(super) fn adopt(&self, other: &Self, generation: u64) {
        let Some(resident) = other.lock().current.take() else { return };
        let resident = resident.of_generation(generation);
        let mut kept = self.lock();
        if kept.current.as_ref().is_none_or(|held| held.generation() < generation) {
            kept.hold(resident);
        }
        drop(kept);
        self.changed.notify_waiters();
    }

    /// Begins the load that was allowed.
    pub(super) fn loading(&self) -> Loading<'_> {
        Loading { keeper: self, start: Instant::now(), resident: None }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A load under way. It ends however the load does.
pub(super) struct Loading<'a> {
    keeper: &'a Keeper,
    start: Instant,
    resident: Option<Resident>,
}

impl Loading<'_> {
    /// Hands the copy over.
    pub(super) fn done(mut self, resident: Resident) {
        self.resident = Some(resident);
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.keeper.lock().loaded(self.resident.take(), self.start.elapsed());
        self.keeper.changed.notify_waiters();
    }
}

impl Kept {
    fn loaded(&mut self, resident: Option<Resident>, took: Duration) {
        self.loading = false;
        self.rest_until = Some(Instant::now() + took * REST);
        let Some(resident) = resident else { return };
        let held = self.current.as_ref();
        if held.is_none_or(|held| held.generation() < resident.generation()) {
            self.hold(resident);
        }
    }

    /// Holds a copy that was not made of the one before.
    fn hold(&mut self, resident: Resident) {
        self.current = Some(Arc::new(resident));
        self.previous = None;
    }

    fn fitting(&self, generation: u64) -> Option<Arc<Resident>> {
        let mut held = self.current.iter().chain(&self.previous);
        held.find(|resident| resident.generation() == generation).cloned()
    }

    /// Whether commits up to this one are being taken over.
    fn is_catching_up(&self, generation: u64) -> bool {
        let older = self.current.as_ref().is_some_and(|held| held.generation() < generation);
        older && (self.patching || !self.commits.is_empty()) && !self.loading
    }

    /// The next commit that the copy can take over. Commits that it holds
    /// already are forgotten, and so are those that follow on one which it
    /// cannot take over, unless a copy that can is on its way.
    fn next(&mut self) -> Option<(Arc<Resident>, u64, Arc<Delta>)> {
        if let Some(current) = &self.current {
            let held = current.generation();
            while self.commits.front().is_some_and(|(generation, _)| *generation <= held) {
                self.commits.pop_front();
            }
            let follows = |(generation, delta): &mut (u64, Arc<Delta>)| {
                *generation == held + 1 && !delta.void
            };
            if let Some((generation, delta)) = self.commits.pop_front_if(follows) {
                return Some((Arc::clone(current), generation, delta));
            }
        }
        if !self.loading {
            self.commits.clear();
        }
        None
    }
}

/// Making copies, of which one at a time is made.
struct Patching<'a>(&'a Keeper);

impl<'a> Patching<'a> {
    fn begin(keeper: &'a Keeper) -> Option<Self> {
        let mut kept = keeper.lock();
        let begun = !std::mem::replace(&mut kept.patching, true);
        begun.then_some(Self(keeper))
    }
}

impl Drop for Patching<'_> {
    fn drop(&mut self) {
        self.0.lock().patching = false;
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::store::sqlite::delta::Added;
    use crate::adapters::store::sqlite::resident::testing::{document, empty, vector};

    #[test]
    fn commits_during_a_load_are_made_up_for() {
        let keeper = Keeper::default();
        let delta = |id| {
            let mut delta = Delta { dimension: Some(2), ..Delta::default() };
            delta.documents.insert(1, Some(document(1)));
            delta.add(Added { id, owner: 1, quality: 1.0, vector: Some(vector(1)) });
            delta
        };
        assert!(keeper.may_load(0));
        assert!(!keeper.may_load(0), "one load at a time");
        let loading = keeper.loading();
        for generation in 1..4 {
            keeper.committed(generation, delta(10));
            keeper.catch_up();
        }
        // The load saw the first commit already.
        loading.done(empty().of_generation(1));
        assert!(keeper.fitting(1).is_some(), "the load alone takes nothing over");
        keeper.catch_up();
        let resident = keeper.fitting(3).unwrap();
        assert!(resident.vector(10).is_some());
        assert!(keeper.fitting(1).is_none());
        keeper.committed(4, delta(11));
        keeper.catch_up();
        assert!(keeper.fitting(4).is_some());
        // A commit of another process came between.
        keeper.committed(6, delta(12));
        keeper.catch_up();
        assert!(keeper.fitting(6).is_none());
    }

    // SRCH-B01
    #[tokio::test]
    async fn who_comes_while_a_commit_is_taken_over_waits_for_the_copy() {
        let keeper = Arc::new(Keeper::default());
        assert!(keeper.may_load(0));
        keeper.loading().done(empty());
        let mut delta = Delta { dimension: Some(2), ..Delta::default() };
        delta.documents.insert(1, Some(document(1)));
        delta.add(Added { id: 7, owner: 1, quality: 1.0, vector: Some(vector(1)) });
        keeper.committed(1, delta);
        assert!(!keeper.may_load(1), "it is on its way");
        let waiting = tokio::spawn({
            let keeper = Arc::clone(&keeper);
            async move { keeper.arriving(1).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        keeper.catch_up();
        assert!(waiting.await.unwrap().unwrap().vector(7).is_some());
        assert!(keeper.arriving(0).await.unwrap().vector(7).is_none(), "the one before is held");
        assert!(keeper.arriving(2).await.is_none(), "nobody is making that one");
    }

    #[test]
    fn a_load_that_fails_may_be_tried_again() {
        let keeper = Keeper::default();
        assert!(keeper.may_load(1));
        drop(keeper.loading());
        std::thread::sleep(Duration::from_millis(5));
        assert!(keeper.may_load(1));
    }
}
