//! Puts the HTTP transport together.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::adapters::transport::http::{HttpOptions, HttpTransport, Listener};
use crate::app::config::HttpSettings;
use crate::app::error::{AppError, chain};
use crate::app::monitor::ServiceMonitor;
use crate::app::service::Service;
use crate::app::wiring::Groove;
use crate::domain::gate::{self, GateSettings, Listening, OriginList};
use crate::ports::chunk_store::ChunkStore;
use crate::ports::transport::{Stop, Transport as _};

/// How long a session is kept that nobody uses.
const SESSION_IDLE: Duration = Duration::from_mins(5);

/// Where an HTTP server gets its socket from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketFrom {
    /// It binds an address itself.
    Address(SocketAddr),
    /// A service manager passes it; the two variables say so.
    ServiceManager {
        /// `LISTEN_PID`.
        listen_pid: Option<String>,
        /// `LISTEN_FDS`.
        listen_fds: Option<String>,
    },
}

/// A socket that listens, with how its clients are to be treated.
pub struct HttpServer {
    listener: Listener,
    options: HttpOptions,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpServer")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// Tells whether the lists of a configuration can be used.
///
/// # Errors
///
/// [`AppError::Invalid`] if an entry of `allowed_origins` is no origin.
pub fn check(settings: &HttpSettings) -> Result<(), AppError> {
    let entries = settings.allowed_origins.as_deref().unwrap_or_default();
    OriginList::of(entries).map(drop).map_err(|error| AppError::Invalid(error.to_string()))
}

impl HttpServer {
    /// Takes the socket. From then on connections wait until it is served.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] if the address cannot be bound, or what is passed is
    /// no socket to serve.
    pub fn listen(from: &SocketFrom, settings: &HttpSettings) -> Result<Self, AppError> {
        let listener = match from {
            SocketFrom::Address(address) => bind(*address)?,
            SocketFrom::ServiceManager { listen_pid, listen_fds } => {
                inherit(listen_pid.as_deref(), listen_fds.as_deref())?
            }
        };
        Ok(Self { listener, options: options(settings) })
    }

    /// Where it listens, with the port really bound.
    pub fn listening(&self) -> Listening {
        self.listener.listening()
    }

    /// What whoever starts it should know, a sentence each.
    pub fn advice(&self) -> Vec<String> {
        let settings: GateSettings<'_> = self.options.gate(self.listening());
        gate::advice(&settings)
    }

    /// Serves until it is to stop, and what is in flight is answered.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] as [`check`], and [`AppError::Transport`] if it
    /// breaks.
    pub async fn serve(
        self,
        service: Arc<Service>,
        monitor: Arc<ServiceMonitor>,
        stop: Stop,
    ) -> Result<(), AppError> {
        let transport = HttpTransport::new(self.listener, self.options, monitor)
            .map_err(|error| AppError::Invalid(error.to_string()))?;
        Ok(transport.serve(service, stop).await?)
    }
}

impl Groove {
    /// Tells how the service is that serves this knowledge base.
    ///
    /// - `config_source`: the name of where the configuration came from.
    pub fn monitor(&self, service: &Service, config_source: String) -> Arc<ServiceMonitor> {
        Arc::new(ServiceMonitor {
            store: Arc::clone(&self.store) as Arc<dyn ChunkStore>,
            model: Arc::clone(&self.model),
            reranker: self.reranker.as_ref().map(|reranker| reranker.name().to_owned()),
            watch: self.config.watch,
            config_source,
            pulse: service.pulse(),
            counts: Mutex::new(None),
            looked: Notify::new(),
        })
    }
}

fn bind(address: SocketAddr) -> Result<Listener, AppError> {
    Listener::bind(address).map_err(|error| {
        AppError::Invalid(format!(
            "cannot listen on {address}: {}; another instance may be running, or another program \
             holds the port: choose another one with --port",
            chain(&error)
        ))
    })
}

#[cfg(target_os = "linux")]
fn inherit(listen_pid: Option<&str>, listen_fds: Option<&str>) -> Result<Listener, AppError> {
    use crate::adapters::transport::http::inherited;

    let (listener, path) = inherited::take(listen_pid, listen_fds)
        .map_err(|error| AppError::Invalid(format!("--systemd-socket: {}", chain(&error))))?;
    if let Some(path) = path.filter(|path| inherited::is_open_to_all(path)) {
        tracing::warn!(
            path = %path.display(),
            "every user of this machine may connect to the socket; set SocketMode=, SocketUser= \
             and SocketGroup= in its unit"
        );
    }
    Ok(listener)
}

#[cfg(not(target_os = "linux"))]
fn inherit(_: Option<&str>, _: Option<&str>) -> Result<Listener, AppError> {
    Err(AppError::Invalid("--systemd-socket needs Linux".to_owned()))
}

fn options(settings: &HttpSettings) -> HttpOptions {
    let limits = settings.limits;
    HttpOptions {
        allowed_hosts: settings.allowed_hosts.clone(),
        allowed_origins: settings.allowed_origins.clone(),
        healthz_public: settings.healthz_public,
        max_sessions: settings.max_sessions,
        session_idle: SESSION_IDLE,
        metrics: settings.metrics,
        refuse_forwarded: settings.refuse_forwarded,
        header_timeout: limits.header,
        body_timeout: limits.body,
        idle_timeout: limits.idle,
        call_timeout: limits.call,
        drain_timeout: limits.drain,
        max_in_flight: limits.in_flight,
        max_connections: limits.connections,
    }
}
