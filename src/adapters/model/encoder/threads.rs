//! Work that is split among threads that may block.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::try_join_all;
use tokio::sync::Semaphore;

use crate::ports::Cause;

/// Threads for one kind of work, over all calls together.
#[derive(Debug)]
pub(crate) struct Threads {
    permits: Arc<Semaphore>,
    count: usize,
    /// Calls that are not done.
    calls: Arc<AtomicUsize>,
}

/// Why a piece of work came to nothing.
#[derive(Debug)]
pub(crate) enum Failure<E> {
    /// It says so itself.
    Own(E),
    /// The thread did not come to an end.
    Thread(Cause),
}

/// Items that several threads take from, each the next that is left.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    items: Vec<T>,
    /// The first that nobody has taken yet.
    next: AtomicUsize,
}

impl<T> Queue<T> {
    pub(crate) fn new(items: Vec<T>) -> Self {
        Self { items, next: AtomicUsize::new(0) }
    }

    /// Takes the next item, with its place among all.
    pub(crate) fn take(&self) -> Option<(usize, &T)> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        self.items.get(place).map(|item| (place, item))
    }
}

impl Threads {
    /// Keeps all of them at work until what is returned is dropped.
    #[cfg(test)]
    pub(crate) async fn occupied(&self) -> tokio::sync::OwnedSemaphorePermit {
        let count = u32::try_from(self.count).unwrap();
        Arc::clone(&self.permits).acquire_many_owned(count).await.unwrap()
    }

    /// As many as the processor runs at once.
    pub(crate) fn new() -> Self {
        let count = available_threads();
        Self { permits: Arc::new(Semaphore::new(count)), count, calls: Arc::default() }
    }

    /// Lets threads take from a queue until nothing is left.
    ///
    /// - `step`: takes a few items and returns what they give, with their
    ///   places; nothing once none is left.
    /// - Returns what all items give, in their order, and whether no other call
    ///   was left to be done.
    pub(crate) async fn drain<T, R, E, F>(
        &self,
        items: Vec<T>,
        step: F,
    ) -> Result<(Vec<R>, bool), Failure<E>>
    where
        T: Send + Sync + 'static,
        R: Send + 'static,
        E: Send + 'static,
        F: Fn(&Queue<T>) -> Result<Vec<(usize, R)>, E> + Send + Sync + 'static,
    {
        let workers = self.count.min(items.len());
        let work = Arc::new((Queue::new(items), step));
        let call = Call::begin(&self.calls);
        let parts = try_join_all((0..workers).map(|_| self.work(Arc::clone(&work)))).await?;
        let is_last = call.end();
        let mut all: Vec<(usize, R)> = parts.into_iter().flatten().collect();
        all.sort_by_key(|(place, _)| *place);
        Ok((all.into_iter().map(|(_, result)| result).collect(), is_last))
    }

    async fn work<T, R, E, F>(
        &self,
        work: Arc<(Queue<T>, F)>,
    ) -> Result<Vec<(usize, R)>, Failure<E>>
    where
        T: Send + Sync + 'static,
        R: Send + 'static,
        E: Send + 'static,
        F: Fn(&Queue<T>) -> Result<Vec<(usize, R)>, E> + Send + Sync + 'static,
    {
        let mut done = Vec::new();
        loop {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit = permit.map_err(|error| Failure::Thread(error.into()))?;
            let work = Arc::clone(&work);
            let some = on_blocking_thread(move || {
                let (queue, step) = &*work;
                let some = step(queue);
                drop(permit);
                some
            });
            let some = some.await?;
            if some.is_empty() {
                return Ok(done);
            }
            done.extend(some);
        }
    }
}

/// A call that counts until it is done or given up.
struct Call<'a>(&'a AtomicUsize);

impl<'a> Call<'a> {
    fn begin(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::AcqRel);
        Self(calls)
    }

    /// Whether it was the last.
    fn end(self) -> bool {
        let calls = self.0;
        std::mem::forget(self);
        calls.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How many threads the processor runs at once.
pub(crate) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs work on a thread that may block.
pub(crate) async fn on_blocking_thread<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Failure<E>> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Failure::Own),
        Err(error) => Err(Failure::Thread(error.into())),
    }
}
