//! MCP over HTTP, and what a person and a service manager may ask beside it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::adapters::transport::http::budget::Budget;
use crate::adapters::transport::http::front::Front;
use crate::adapters::transport::http::mcp::McpRoute;
use crate::adapters::transport::http::state::State;
use crate::adapters::transport::mcp::server::McpServer;
use crate::domain::gate::{Gate, GateSettings, Listening, OriginEntryError};
use crate::ports::monitor::Monitor;
use crate::ports::transport::{Handler, Stop, Transport, TransportError};

pub use crate::adapters::transport::http::listener::Listener;

mod listener;

#[cfg(target_os = "linux")]
pub mod inherited;

mod front;

mod patient;

mod state;

mod routes;

mod body;

mod answer;

mod refusals;

mod cors;

mod mcp;

mod sessions;

mod shape;

mod budget;

mod status;

mod metrics;

mod page;

#[cfg(test)]
mod tests;

/// How the transport treats its clients.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The hosts that a request may name, in place of the default.
    pub allowed_hosts: Option<Vec<String>>,
    /// The origins that a request may name, in place of the default.
    pub allowed_origins: Option<Vec<String>>,
    /// Whether the health routes answer whatever the host.
    pub healthz_public: bool,
    /// The most sessions at a time.
    pub max_sessions: Option<usize>,
    /// How long a session is kept that nobody uses.
    pub session_idle: Duration,
    /// Whether `/metrics` exists.
    pub metrics: bool,
    /// Whether the admin routes refuse what a proxy has passed on.
    pub refuse_forwarded: bool,
    /// How long a request's head may take, and a connection be kept without one.
    pub header_timeout: Option<Duration>,
    /// How long a request's body may take.
    pub body_timeout: Option<Duration>,
    /// How long a client may leave what is sent to it unread.
    pub idle_timeout: Option<Duration>,
    /// How long a call may take, index runs left out.
    pub call_timeout: Option<Duration>,
    /// How long what is in flight may take once the transport is to stop.
    pub drain_timeout: Duration,
    /// The most calls in flight at a time.
    pub max_in_flight: Option<usize>,
    /// The most connections at a time.
    pub max_connections: Option<usize>,
}

impl HttpOptions {
    /// What the gate is made from.
    pub fn gate(&self, listening: Listening) -> GateSettings<'_> {
        GateSettings {
            allowed_hosts: self.allowed_hosts.as_deref(),
            allowed_origins: self.allowed_origins.as_deref(),
            healthz_public: self.healthz_public,
            listening,
        }
    }
}

/// Any number of clients over HTTP, at one listening socket. Serves once.
///
/// Connections are looked after by a thread of their own, so that the health
/// route answers while all workers are busy.
pub struct HttpTransport {
    listener: Mutex<Option<Listener>>,
    listening: Listening,
    gate: Gate,
    options: HttpOptions,
    monitor: Arc<dyn Monitor>,
}

impl HttpTransport {
    /// Serves clients of a socket.
    ///
    /// # Errors
    ///
    /// [`OriginEntryError`] if an entry of `allowed_origins` is no origin.
    pub fn new(
        listener: Listener,
        options: HttpOptions,
        monitor: Arc<dyn Monitor>,
    ) -> Result<Self, OriginEntryError> {
        let listening = listener.listening();
        let gate = Gate::new(&options.gate(listening))?;
        Ok(Self { listener: Mutex::new(Some(listener)), listening, gate, options, monitor })
    }

    /// Where it listens, with the port really bound.
    pub fn listening(&self) -> Listening {
        self.listening
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpTransport").field("gate", &self.gate).finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn serve(&self, handler: Arc<dyn Handler>, stop: Stop) -> Result<(), TransportError> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        let listener = listener.ok_or_else(|| {
            unavailable("serve one socket twice", std::io::ErrorKind::AlreadyExists.into())
        })?;
        let server = McpServer::new(Budget::around(handler, self.options.call_timeout));
        let workers = Handle::current();
        let stopping = CancellationToken::new();
        let mcp = McpRoute::new(&server, &self.options, workers, &stopping);
        let sessions = mcp.end_idle_sessions();
        let state =
            State::new(self.gate.clone(), self.options.clone(), Arc::clone(&self.monitor), mcp);
        // However this ends, the thread does not outlive it for long.
        let _stopped = stopping.clone().drop_guard();
        let front = Front { listener, state: Arc::new(state), stopping: stopping.clone() };
        let (ended, mut end) = oneshot::channel();
        thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                // Whoever does not wait for the end any more has no use for it.
                let _unheard = ended.send(front.run());
            })
            .map_err(|error| unavailable("start the HTTP thread", error))?;
        let early = tokio::select! {
            () = stop => None,
            outcome = &mut end => Some(outcome),
        };
        stopping.cancel();
        let until = Instant::now() + self.options.drain_timeout;
        let outcome = match early {
            Some(outcome) => outcome,
            None => end.await,
        };
        // What nobody waits for any more is finished all the same.
        if timeout_at(until, server.idle()).await.is_err() {
            tracing::warn!("an index run was cut off by the end of the server");
        }
        sessions.abort();
        let gone = |_| Err(std::io::Error::other("the HTTP thread has gone"));
        outcome.unwrap_or_else(gone).map_err(|error| unavailable("serve over HTTP", error))
    }
}

fn unavailable(what: &str, error: std::io::Error) -> TransportError {
    TransportError::Unavailable { what: what.into(), source: error.into() }
}
