//! Takes connections and looks after them, on a thread of its own.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::adapters::transport::http::listener::{Accepting, Connection, Listener};
use crate::adapters::transport::http::patient::Patient;
use crate::adapters::transport::http::refusals::Group;
use crate::adapters::transport::http::routes;
use crate::adapters::transport::http::state::State;

/// The most bytes of a request's head.
const HEAD_BYTES: usize = 32 * 1024;

/// The most header fields of a request.
const HEADERS: usize = 64;

/// How long to wait when the system has no more descriptors.
const BREATHER: Duration = Duration::from_millis(50);

/// What the thread works with.
pub(super) struct Front {
    pub(super) listener: Listener,
    pub(super) state: Arc<State>,
    pub(super) stopping: CancellationToken,
}

impl Front {
    /// Serves until it is to stop and what was in flight is answered, or has had
    /// its time.
    pub(super) fn run(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> io::Result<()> {
        let Self { listener, state, stopping } = self;
        let listener = listener.open()?;
        let connections = TaskTracker::new();
        let most = state.options.max_connections.unwrap_or(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(most));
        let accept = async {
            while let Ok(place) = Arc::clone(&places).acquire_owned().await {
                let (stream, peer) = next(&listener, &state).await;
                let (state, stopping) = (Arc::clone(&state), stopping.clone());
                connections.spawn(async move {
                    look_after(stream, peer, state, stopping).await;
                    drop(place);
                });
            }
        };
        tokio::select! {
            () = stopping.cancelled() => {}
            () = accept => {}
        }
        drop(listener);
        connections.close();
        if timeout(state.options.drain_timeout, connections.wait()).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "requests were cut off, as they took longer than drain_timeout_secs"
            );
        }
        Ok(())
    }
}

/// The next connection. A failure concerns one client, or passes.
async fn next(listener: &Accepting, state: &State) -> (Box<dyn Connection>, Option<IpAddr>) {
    loop {
        match listener.next().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                state.refusals.tell(
                    Group::Connections,
                    Instant::now(),
                    "a connection cannot be taken",
                    &error.to_string(),
                );
                sleep(BREATHER).await;
            }
        }
    }
}

async fn look_after(
    stream: Box<dyn Connection>,
    peer: Option<IpAddr>,
    state: Arc<State>,
    stopping: CancellationToken,
) {
    let stream = TokioIo::new(Patient::new(stream, state.options.idle_timeout));
    let header_timeout = state.options.header_timeout;
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(routes::answer(&state, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(stream, service);
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        // A client that went away, was too slow, or sent something else.
        tracing::debug!(%error, "a connection ended");
    }
}
