//! One request, and what comes of it.

use std::fmt;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ureq::http::{HeaderValue, Response, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body, Error, Proxy};

use crate::adapters::embedder::openai::key::KeySource;
use crate::adapters::embedder::openai::wait::Wait;
use crate::adapters::embedder::openai::{Endpoint, address, answer, line};
use crate::domain::embedding::Embedding;
use crate::ports::embedder::EmbedError;

/// How much of an answer that is no success an operator may see, and how long
/// it is waited for.
const SHOWN_BYTES: u64 = 512;
const SHOWN_WAIT: Duration = Duration::from_secs(2);

/// A clock cannot count to the end of time; a year is as good.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(365 * 24);

/// Sends requests to one endpoint.
pub(super) struct Attempt {
    agent: Agent,
    url: String,
    /// The endpoint, as messages name it.
    what: String,
    key: Option<KeySource>,
    dimension: usize,
}

/// Why an attempt gave no embeddings. What it is, the status line decides; a
/// body that stalls or breaks off changes nothing about it.
pub(super) enum Failure {
    /// The endpoint does not take this input.
    Refused { status: u16 },
    /// Another attempt may help.
    Passing { cause: String, retry_after: Option<Duration>, answer: Option<Box<Response<Body>>> },
    /// Nothing helps.
    Stop { cause: String, answer: Option<Box<Response<Body>>> },
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { status } => write!(formatter, "answered HTTP {status}"),
            Self::Passing { cause, retry_after: None, .. } | Self::Stop { cause, .. } => {
                formatter.write_str(cause)
            }
            Self::Passing { cause, retry_after: Some(wish), .. } => {
                write!(formatter, "{cause} and asks to wait for {} s", wish.as_secs())
            }
        }
    }
}

impl Failure {
    fn stop(cause: impl Into<String>) -> Self {
        Self::Stop { cause: cause.into(), answer: None }
    }

    /// The beginning of what the endpoint said, for its operator: one line, all
    /// that is not ASCII escaped.
    pub(super) async fn into_answer(self) -> Option<String> {
        let answer = match self {
            // Whoever asks for a long wait is not read.
            Self::Passing { retry_after: Some(_), .. } | Self::Refused { .. } => None,
            Self::Passing { answer, .. } | Self::Stop { answer, .. } => answer,
        }?;
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            // What came before a failure is shown all the same.
            drop((*answer).into_body().into_reader().take(SHOWN_BYTES).read_to_end(&mut bytes));
            bytes
        });
        let bytes = tokio::time::timeout(SHOWN_WAIT, read).await.ok()?.ok()?;
        (!bytes.is_empty()).then(|| escaped(&String::from_utf8_lossy(&bytes)))
    }
}

/// A text on one line of ASCII.
fn escaped(text: &str) -> String {
    let escape = |character: char| {
        let plain = character.is_ascii_graphic() || character == ' ';
        if plain { character.to_string() } else { character.escape_unicode().to_string() }
    };
    text.chars().map(escape).collect()
}

impl Attempt {
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self, EmbedError> {
        let what = format!("the embedding endpoint {}", address::shown(&endpoint.url));
        let unusable = |reason: String| EmbedError::Remote {
            what: what.clone(),
            reason: format!("cannot be reached: {reason}"),
            answer: None,
        };
        let proxy = address::proxy(&endpoint.url, &endpoint.proxies)
            .map(Proxy::new)
            .transpose()
            // The address of a proxy may hold a password.
            .map_err(|_| unusable("the address of the proxy is not valid".to_owned()))?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(endpoint.timeout.min(LONGEST_TIMEOUT)))
            .proxy(proxy)
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
            .user_agent(concat!("groove/", env!("CARGO_PKG_VERSION")))
            .build();
        let authority = endpoint.url.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned());
        let connector = line::Watching::new(authority);
        let agent = Agent::with_parts(config, connector, DefaultResolver::default());
        let (url, key, dimension) =
            (endpoint.url.clone(), endpoint.key.clone(), endpoint.dimension);
        Ok(Self { agent, url, what, key, dimension })
    }

    /// The endpoint, as messages name it.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Sends one request and reads its answer, on a thread that may block.
    pub(super) async fn make(
        self: &Arc<Self>,
        body: Arc<[u8]>,
        inputs: usize,
    ) -> Result<Vec<Embedding>, Failure> {
        let attempt = Arc::clone(self);
        let made = tokio::task::spawn_blocking(move || attempt.make_now(&body, inputs)).await;
        made.unwrap_or_else(|_| Err(Failure::stop("was not asked: the request ended early")))
    }

    fn make_now(&self, body: &[u8], inputs: usize) -> Result<Vec<Embedding>, Failure> {
        let mut request = self
            .agent
            .post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json");
        if let Some(key) = &self.key {
            let key = key.get().map_err(|why| Failure::stop(format!("was not asked: {why}")))?;
            let value = zeroize::Zeroizing::new(format!("Bearer {}", key.reveal()));
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Failure::stop("was not asked: the API key is no header's value"))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        line::forget_status();
        let answer = request.send(body).map_err(|error| match line::status() {
            Some(status) => of_status(status, None),
            None => before_the_status(&error),
        })?;
        match answer.status().as_u16() {
            200..=299 => self.read(answer, inputs),
            status => Err(of_status(status, Some(Box::new(answer)))),
        }
    }

    fn read(&self, answer: Response<Body>, inputs: usize) -> Result<Vec<Embedding>, Failure> {
        let status = answer.status().as_u16();
        let most = answer::most_bytes(inputs, self.dimension);
        let mut bytes = Vec::new();
        let read = answer.into_body().into_reader().take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| {
            Failure::stop(format!("broke off its answer: {}", cause_of(&Error::from(error))))
        })?;
        if bytes.len() as u64 > most {
            return Err(Failure::stop(format!(
                "sent more than the {most} bytes that {inputs} embeddings of {} numbers may take",
                self.dimension
            )));
        }
        answer::embeddings(&bytes, inputs, self.dimension)
            .map_err(|why| Failure::stop(format!("answered HTTP {status}, but the answer {why}")))
    }
}

/// What a status means that brought no embeddings.
///
/// - `answer`: none if it broke off before the end of its headers.
fn of_status(status: u16, answer: Option<Box<Response<Body>>>) -> Failure {
    let cause = match (status, &answer) {
        (200..=299, None) => format!("broke off its answer of HTTP {status}"),
        _ => format!("answered HTTP {status}"),
    };
    match status {
        400 | 413 | 422 => Failure::Refused { status },
        429 | 500..=599 => {
            let wish = answer.as_ref().and_then(|answer| answer.headers().get(header::RETRY_AFTER));
            let wish = wish.and_then(|value| value.to_str().ok());
            let retry_after = wish.and_then(|value| Wait::read(value, SystemTime::now()));
            Failure::Passing { cause, retry_after, answer }
        }
        _ => Failure::Stop { cause, answer },
    }
}

/// What a failure means that came before any status line.
fn before_the_status(error: &Error) -> Failure {
    let cause = cause_of(error);
    let passes = match error {
        Error::Timeout(_)
        | Error::HostNotFound
        | Error::ConnectionFailed
        | Error::ConnectProxyFailed(_) => true,
        // One that was accepted and dropped without a word is among these.
        Error::Io(error) => !is_about_tls(error),
        _ => false,
    };
    if passes {
        Failure::Passing { cause, retry_after: None, answer: None }
    } else {
        Failure::stop(cause)
    }
}

/// TLS failures come dressed as failures of reading or writing.
fn is_about_tls(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
}

/// A failure in words that hold neither URL nor key.
fn cause_of(error: &Error) -> String {
    match error {
        Error::Timeout(_) => "did not answer in time".to_owned(),
        Error::HostNotFound => "has a host that is not known".to_owned(),
        Error::ConnectionFailed => "could not be connected to".to_owned(),
        Error::Io(error) if is_about_tls(error) => {
            let mut text = "has a certificate or TLS that is not trusted".to_owned();
            if let Some(inner) = error.get_ref() {
                text.push_str(": ");
                text.push_str(&inner.to_string());
            }
            text
        }
        Error::Io(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "refused the connection".to_owned(),
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => "closed the connection".to_owned(),
            io::ErrorKind::TimedOut => "did not answer in time".to_owned(),
            kind => format!("could not be reached: {kind}"),
        },
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => {
            "could not be reached through the proxy".to_owned()
        }
        Error::Protocol(_) => "does not speak HTTP as expected".to_owned(),
        Error::Rustls(error) => format!("has a certificate or TLS that is not trusted: {error}"),
        Error::LargeResponseHeader(..) => "sent headers that are too large".to_owned(),
        Error::BodyStalled => "did not go on with its answer in time".to_owned(),
        _ => "could not be asked".to_owned(),
    }
}
