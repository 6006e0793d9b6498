//! The sessions of clients that open one, and how many there may be.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

tokio::task_local! {
    /// The seat of the session that the task at hand opens.
    static OPENING: RefCell<Option<Opening>>;
}

/// The right to be a session, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat(
    #[expect(dead_code, reason = "held, not used")] Option<OwnedSemaphorePermit>,
);

/// A session that is being opened.
#[derive(Clone)]
struct Opening {
    seat: Arc<Mutex<Option<Seat>>>,
    id: Arc<Mutex<Option<SessionId>>>,
}

/// All sessions. A session lives until its client ends it, or nobody has used it
/// for a while; one with a call or a stream in progress is in use.
pub(super) struct Sessions {
    inner: LocalSessionManager,
    live: Arc<Mutex<HashMap<SessionId, Live>>>,
    seats: Option<Arc<Semaphore>>,
    idle: Duration,
}

#[derive(Debug)]
struct Live {
    _seat: Seat,
    used: Instant,
    /// Streams that are open.
    streams: usize,
}

/// Why there is no session, or nothing from it.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("no session can be opened here")]
    NoSeat,
    #[error(transparent)]
    Inner(#[from] LocalSessionManagerError),
}

impl Sessions {
    /// - `most`: how many there may be at a time.
    /// - `idle`: how long one is kept that nobody uses.
    pub(super) fn new(most: Option<usize>, idle: Duration) -> Self {
        let mut inner = LocalSessionManager::default();
        let mut config = SessionConfig::default();
        // What counts as idle is decided here.
        config.keep_alive = None;
        inner.session_config = config;
        let seats = most.map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        Self { inner, live: Arc::default(), seats, idle }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.live().len()
    }

    /// Takes a seat, if one is free.
    pub(super) fn seat(&self) -> Option<Seat> {
        match &self.seats {
            None => Some(Seat(None)),
            Some(seats) => Some(Seat(Some(Arc::clone(seats).try_acquire_owned().ok()?))),
        }
    }

    /// Runs what opens a session, which takes the seat. If `work` is dropped, or
    /// does not say that the client has its session, the session is ended.
    pub(super) async fn opened<T>(
        self: &Arc<Self>,
        seat: Seat,
        work: impl Future<Output = T>,
        is_open: impl FnOnce(&T) -> bool,
    ) -> T {
        let opening =
            Opening { seat: Arc::new(Mutex::new(Some(seat))), id: Arc::new(Mutex::new(None)) };
        let id = Arc::clone(&opening.id);
        let mut unheard = Unheard { sessions: Arc::clone(self), id, workers: Handle::current() };
        let outcome = OPENING.scope(RefCell::new(Some(opening)), work).await;
        if is_open(&outcome) {
            unheard.id = Arc::default();
        }
        outcome
    }

    /// Ends what nobody has used for a while.
    pub(super) async fn end_idle(&self) {
        let idle: Vec<SessionId> = self
            .live()
            .iter()
            .filter(|(_, live)| live.streams == 0 && live.used.elapsed() >= self.idle)
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for id in idle {
            if let Err(error) = self.close_session(&id).await {
                tracing::debug!(%error, "an idle session could not be ended");
            }
        }
    }

    /// How long to wait between two looks for idle sessions.
    pub(super) fn look_every(&self) -> Duration {
        (self.idle / 10).clamp(Duration::from_millis(50), Duration::from_secs(10))
    }

    fn touch(&self, id: &SessionId) {
        if let Some(live) = self.live().get_mut(id) {
            live.used = Instant::now();
        }
    }

    fn in_use(&self, id: &SessionId) -> InUse {
        if let Some(live) = self.live().get_mut(id) {
            live.streams += 1;
        }
        InUse { live: Arc::clone(&self.live), id: Arc::clone(id) }
    }
}

/// Ends a session that its client never heard of.
struct Unheard {
    sessions: Arc<Sessions>,
    id: Arc<Mutex<Option<SessionId>>>,
    workers: Handle,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let id = self.id.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(id) = id else { return };
        let sessions = Arc::clone(&self.sessions);
        self.workers.spawn(async move {
            if let Err(error) = sessions.close_session(&id).await {
                tracing::debug!(%error, "a session that nobody heard of could not be ended");
            }
        });
    }
}

/// Keeps a session in use for as long as a stream of it is open.
struct InUse {
    live: Arc<Mutex<HashMap<SessionId, Live>>>,
    id: SessionId,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut all = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = all.get_mut(&self.id) {
            live.streams -= 1;
            live.used = Instant::now();
        }
    }
}

fn held<S>(stream: S, in_use: InUse) -> impl Stream<Item = S::Item> + Send + Sync + 'static
where
    S: Stream + Send + Sync + 'static,
{
    stream.map(move |item| {
        let _in_use = &in_use;
        item
    })
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let opening = OPENING.try_with(|opening| opening.borrow_mut().take()).ok().flatten();
        let Some(Opening { seat, id: place }) = opening else { return Err(SessionsError::NoSeat) };
        let seat = seat.lock().unwrap_or_else(PoisonError::into_inner).take();
        let seat = seat.ok_or(SessionsError::NoSeat)?;
        let (id, transport) = self.inner.create_session().await?;
        self.live().insert(Arc::clone(&id), Live { _seat: seat, used: Instant::now(), streams: 0 });
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&id));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.touch(id);
        Ok(self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let outcome = self.inner.close_session(id).await;
        // The seat is free only once the session has gone.
        let gone = self.live().remove(id);
        drop(gone);
        Ok(outcome?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let in_use = self.in_use(id);
        Ok(held(self.inner.create_stream(id, message).await?, in_use))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let in_use = self.in_use(id);
        Ok(held(self.inner.create_standalone_stream(id).await?, in_use))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let in_use = self.in_use(id);
        Ok(held(self.inner.resume(id, last_event_id).await?, in_use))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Arc<Sessions> {
        Arc::new(Sessions::new(Some(1), Duration::from_mins(5)))
    }

    async fn until_free(sessions: &Sessions) {
        let free = async {
            while sessions.count() > 0 || sessions.seat().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let patience = Duration::from_secs(30);
        assert!(tokio::time::timeout(patience, free).await.is_ok(), "the seat is never free");
    }

    // HTTP-65
    #[tokio::test]
    async fn a_request_that_is_dropped_or_panics_gives_its_seat_back() {
        for panics in [false, true] {
            let sessions = one();
            let seat = sessions.seat().unwrap();
            assert!(sessions.seat().is_none(), "a seat counts before there is a session");
            let all = Arc::clone(&sessions);
            let opening = tokio::spawn(async move {
                let manager = Arc::clone(&all);
                let work = async move {
                    let session = manager.create_session().await.unwrap();
                    assert!(!panics, "on purpose");
                    std::future::pending::<()>().await;
                    drop(session);
                };
                all.opened(seat, work, |()| true).await;
            });
            while !panics && sessions.count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(panics || sessions.seat().is_none());
            if !panics {
                opening.abort();
            }
            assert!(opening.await.is_err());
            until_free(&sessions).await;
        }
    }

    // HTTP-64 HTTP-65
    #[tokio::test]
    async fn a_session_keeps_the_seat_that_it_was_opened_with() {
        let sessions = one();
        let none = sessions.create_session().await.err();
        assert!(matches!(none, Some(SessionsError::NoSeat)), "no seat, no session");
        let seat = sessions.seat().unwrap();
        let manager = Arc::clone(&sessions);
        let work = async move { manager.create_session().await.unwrap() };
        let (id, _transport) = sessions.opened(seat, work, |_| true).await;
        assert_eq!((sessions.count(), sessions.seat().is_none()), (1, true));
        sessions.close_session(&id).await.unwrap();
        assert_eq!((sessions.count(), sessions.seat().is_some()), (0, true));
        // What nobody was told of is ended.
        let seat = sessions.seat().unwrap();
        let manager = Arc::clone(&sessions);
        let work = async move { manager.create_session().await.unwrap() };
        let _unheard = sessions.opened(seat, work, |_| false).await;
        until_free(&sessions).await;
    }
}
