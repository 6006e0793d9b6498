//! Requests that arrive together and are served together.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::adapters::model::encoder::threads::Failure;

/// The most requests that are served in one go, so that none waits for many.
const MOST_TOGETHER: usize = 16;

/// Serves requests on a few threads that may block.
///
/// One that comes while a thread is free is served at once and alone. Those that
/// come while all are at work wait, and are then shared out among the threads,
/// each of which serves its share in one go.
pub(crate) struct Gather<T, R, E> {
    threads: usize,
    state: Mutex<State<T, R, E>>,
}

struct State<T, R, E> {
    waiting: VecDeque<Request<T, R, E>>,
    at_work: usize,
}

struct Request<T, R, E> {
    item: T,
    answer: oneshot::Sender<Result<R, E>>,
}

impl<T, R, E> Gather<T, R, E>
where
    T: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    /// Serves on at most so many threads at once, at least one.
    pub(crate) fn new(threads: usize) -> Self {
        let state = State { waiting: VecDeque::new(), at_work: 0 };
        Self { threads: threads.max(1), state: Mutex::new(state) }
    }

    /// Serves an item, perhaps together with others.
    ///
    /// - `serve`: gives one result for each item, in order.
    pub(crate) async fn ask<F>(self: &Arc<Self>, item: T, serve: F) -> Result<R, Failure<E>>
    where
        F: Fn(&[T]) -> Vec<Result<R, E>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut state = self.lock();
            state.waiting.push_back(Request { item, answer });
            let begins = state.at_work < self.threads;
            state.at_work += usize::from(begins);
            begins
        };
        if begins {
            let gather = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || gather.work(serve)));
        }
        match answered.await {
            Ok(result) => result.map_err(Failure::Own),
            Err(error) => Err(Failure::Thread(error.into())),
        }
    }

    /// Serves until nothing waits.
    fn work(&self, serve: impl Fn(&[T]) -> Vec<Result<R, E>>) {
        while let Some(share) = self.share() {
            let (items, answers): (Vec<T>, Vec<_>) =
                share.into_iter().map(|request| (request.item, request.answer)).unzip();
            // Whoever is not answered learns of it, and the others are served.
            let results = catch_unwind(AssertUnwindSafe(|| serve(&items))).unwrap_or_default();
            for (answer, result) in answers.into_iter().zip(results) {
                // Who has gone meanwhile needs no answer.
                drop(answer.send(result));
            }
        }
    }

    /// Takes this thread's share of what waits; none ends its work.
    fn share(&self) -> Option<Vec<Request<T, R, E>>> {
        let mut state = self.lock();
        state.waiting.retain(|request| !request.answer.is_closed());
        let count = state.waiting.len().div_ceil(self.threads).min(MOST_TOGETHER);
        if count == 0 {
            state.at_work -= 1;
            return None;
        }
        Some(state.waiting.drain(..count).collect())
    }

    fn lock(&self) -> MutexGuard<'_, State<T, R, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::future::join_all;

    use super::*;

    type Numbers = Gather<u32, u32, String>;

    #[tokio::test]
    async fn what_comes_while_the_threads_are_at_work_is_served_together() {
        let gather = Arc::new(Numbers::new(1));
        let (release, held) = mpsc::channel::<()>();
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let first = tokio::spawn({
            let (gather, sizes) = (Arc::clone(&gather), Arc::clone(&sizes));
            let held = Mutex::new(held);
            async move {
                gather
                    .ask(0, move |items| {
                        if items == [0] {
                            held.lock().unwrap().recv().unwrap();
                        }
                        sizes.lock().unwrap().push(items.len());
                        items.iter().map(|item| Ok(item * 10)).collect()
                    })
                    .await
            }
        });
        while gather.lock().at_work == 0 || !gather.lock().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        let unused = |_: &[u32]| unreachable!("the first thread goes on with the others");
        let others: Vec<_> = (1..=20)
            .map(|item| {
                let gather = Arc::clone(&gather);
                tokio::spawn(async move { gather.ask(item, unused).await })
            })
            .collect();
        while gather.lock().waiting.len() < 20 {
            tokio::task::yield_now().await;
        }
        // One of them does not wait for the answer.
        others[19].abort();
        while !others[19].is_finished() {
            tokio::task::yield_now().await;
        }
        release.send(()).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), 0);
        let answers = join_all(others).await;
        for (item, answer) in (1..20).zip(answers) {
            assert_eq!(answer.unwrap().unwrap(), item * 10);
        }
        assert_eq!(*sizes.lock().unwrap(), [1, 16, 3]);
    }

    #[tokio::test]
    async fn one_that_comes_alone_is_served_at_once_and_alone() {
        let gather = Arc::new(Numbers::new(2));
        for item in 0..5 {
            let serve = |items: &[u32]| {
                assert_eq!(items.len(), 1);
                items.iter().map(|&item| Ok(item)).collect()
            };
            assert_eq!(gather.ask(item, serve).await.unwrap(), item);
        }
    }

    #[tokio::test]
    async fn a_failure_and_a_panic_reach_those_who_asked_and_nobody_else() {
        let gather = Arc::new(Numbers::new(1));
        let refuse = |items: &[u32]| items.iter().map(|_| Err("no".to_owned())).collect();
        let refused = gather.ask(1, refuse).await.unwrap_err();
        assert!(matches!(refused, Failure::Own(reason) if reason == "no"));
        // The thread that answered may still look for more to do.
        while gather.lock().at_work > 0 {
            tokio::task::yield_now().await;
        }
        let broken = gather.ask(1, |_| unreachable!("on purpose")).await.unwrap_err();
        assert!(matches!(broken, Failure::Thread(_)));
        while gather.lock().at_work > 0 {
            tokio::task::yield_now().await;
        }
        let served = gather.ask(1, |items| items.iter().map(|&item| Ok(item)).collect()).await;
        assert_eq!(served.unwrap(), 1);
    }
}
