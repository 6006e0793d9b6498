//! The route of the protocol itself.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::adapters::transport::http::HttpOptions;
use crate::adapters::transport::http::answer::{self, Answer};
use crate::adapters::transport::http::refusals::{Group, Refusals};
use crate::adapters::transport::http::routes::not_allowed;
use crate::adapters::transport::http::sessions::Sessions;
use crate::adapters::transport::http::shape::{self, Accepted};
use crate::adapters::transport::mcp::server::McpServer;
use crate::adapters::transport::mcp::surrogates;

type Service = StreamableHttpService<McpServer, Sessions>;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// The first revision without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";

/// When a client that finds all seats taken is to come back.
const SEAT_RETRY_SECS: u32 = 30;

/// When a client that finds the server busy is to come back.
const CALL_RETRY_SECS: u32 = 1;

/// The route of the protocol itself.
pub(super) struct McpRoute {
    /// Answers what opens a session: each has a server of its own.
    opening: Service,
    /// Answers everything else.
    calls: Service,
    sessions: Arc<Sessions>,
    in_flight: Option<Arc<Semaphore>>,
    /// Where calls are worked on.
    workers: Handle,
    /// Ends the streams that would not end by themselves.
    stopping: CancellationToken,
}

impl McpRoute {
    pub(super) fn new(
        server: &McpServer,
        options: &HttpOptions,
        workers: Handle,
        stopping: &CancellationToken,
    ) -> Self {
        // Hosts and origins have been looked at by the gate.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(super::body::LIMIT_BYTES);
        let sessions = Arc::new(Sessions::new(options.max_sessions, options.session_idle));
        let service = |factory: Box<dyn Fn() -> McpServer + Send + Sync>| {
            Service::new(move || Ok(factory()), Arc::clone(&sessions), config.clone())
        };
        let (each, shared) = (server.clone(), server.clone());
        Self {
            opening: service(Box::new(move || each.for_session())),
            calls: service(Box::new(move || shared.clone())),
            in_flight: options.max_in_flight.map(|most| Arc::new(Semaphore::new(most))),
            sessions,
            workers,
            stopping: stopping.clone(),
        }
    }

    /// Ends sessions that nobody uses, for as long as the task is not aborted.
    pub(super) fn end_idle_sessions(&self) -> JoinHandle<()> {
        let sessions = Arc::clone(&self.sessions);
        self.workers.spawn(async move {
            loop {
                tokio::time::sleep(sessions.look_every()).await;
                sessions.end_idle().await;
            }
        })
    }

    /// How many sessions there are.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.count()
    }

    /// Answers a request of this route that the gate has let in.
    pub(super) async fn answer(&self, refusals: &Refusals, request: Request<Bytes>) -> Answer {
        match *request.method() {
            Method::POST => self.post(refusals, request).await,
            Method::GET => self.get(request).await,
            Method::DELETE => self.delete(request).await,
            _ => not_allowed("GET, POST, DELETE"),
        }
    }

    async fn get(&self, request: Request<Bytes>) -> Answer {
        let headers = request.headers();
        if !has_sessions(headers) {
            return not_allowed("POST");
        }
        if session(headers).is_none() {
            return no_session_named();
        }
        if !Accepted::of(headers).events {
            return answer::text(
                StatusCode::NOT_ACCEPTABLE,
                "Not Acceptable: the client must accept text/event-stream",
            );
        }
        let service = self.calls.clone();
        let answer = self.work(async move { service.handle(inward(request)).await }).await;
        let stopped = self.stopping.clone().cancelled_owned();
        answer.map(|body| {
            let frames = body.into_data_stream().take_until(stopped);
            BoxBody::new(StreamBody::new(frames.map(|data| data.map(Frame::data))))
        })
    }

    async fn delete(&self, request: Request<Bytes>) -> Answer {
        if !has_sessions(request.headers()) {
            return not_allowed("POST");
        }
        let Some(id) = session(request.headers()) else { return no_session_named() };
        if !self.sessions.has_session(&id).await.unwrap_or(false) {
            return answer::text(StatusCode::NOT_FOUND, "Not Found: there is no such session");
        }
        let service = self.calls.clone();
        self.work(async move { service.handle(inward(request)).await }).await
    }

    async fn post(&self, refusals: &Refusals, request: Request<Bytes>) -> Answer {
        let accepted = Accepted::of(request.headers());
        if !accepted.both {
            return answer::text(
                StatusCode::NOT_ACCEPTABLE,
                "Not Acceptable: the client must accept both application/json and \
                 text/event-stream",
            );
        }
        if !shape::is_json(request.headers()) {
            return answer::text(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Unsupported Media Type: the body must be application/json",
            );
        }
        let request = request.map(mended);
        let peeked = match Peeked::of(request.body()) {
            Ok(peeked) => peeked,
            Err(complaint) => return *complaint,
        };
        let Ok(turn) = self.turn() else {
            refusals.tell(Group::Calls, Instant::now(), "too many calls are in flight", "");
            return answer::later(
                StatusCode::SERVICE_UNAVAILABLE,
                CALL_RETRY_SECS,
                "Service Unavailable: too many calls are in flight",
            );
        };
        let in_session = session(request.headers()).is_some();
        let answer = if peeked.opens_session && !in_session {
            self.open(refusals, request, peeked, accepted).await
        } else {
            let service = self.calls.clone();
            self.work(async move {
                let answer = service.handle(inward(request)).await;
                shaped(answer, &peeked, accepted, in_session).await
            })
            .await
        };
        held(answer, turn)
    }

    async fn open(
        &self,
        refusals: &Refusals,
        request: Request<Bytes>,
        peeked: Peeked,
        accepted: Accepted,
    ) -> Answer {
        let Some(seat) = self.sessions.seat() else {
            refusals.tell(Group::Sessions, Instant::now(), "all sessions are taken", "");
            return answer::later(
                StatusCode::TOO_MANY_REQUESTS,
                SEAT_RETRY_SECS,
                "Too Many Requests: all sessions are taken; end one, or call without a session",
            );
        };
        let (service, sessions) = (self.opening.clone(), Arc::clone(&self.sessions));
        self.work(async move {
            let handled = service.handle(inward(request));
            let is_open = |answer: &Answer| answer.headers().contains_key(SESSION);
            let answer = sessions.opened(seat, handled, is_open).await;
            shaped(answer, &peeked, accepted, true).await
        })
        .await
    }

    /// Has the workers do something; gives it up if nobody waits any more.
    async fn work(&self, work: impl Future<Output = Answer> + Send + 'static) -> Answer {
        let mut task = Abandoned(self.workers.spawn(work));
        (&mut task.0).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a request ended in a panic");
            answer::text(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        })
    }

    /// A place among the calls in flight; an error if all are taken.
    fn turn(&self) -> Result<Option<OwnedSemaphorePermit>, tokio::sync::TryAcquireError> {
        let places = self.in_flight.as_ref().map(Arc::clone);
        places.map(Semaphore::try_acquire_owned).transpose()
    }
}

/// A task that is given up when this is dropped.
struct Abandoned(JoinHandle<Answer>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keeps a place until the answer is sent.
fn held(answer: Answer, turn: Option<OwnedSemaphorePermit>) -> Answer {
    if hyper::body::Body::is_end_stream(answer.body())
        || hyper::body::Body::size_hint(answer.body()).exact().is_some()
    {
        return answer;
    }
    answer.map(|body| {
        body.map_frame(move |frame| {
            let _turn = &turn;
            frame
        })
        .boxed()
    })
}

async fn shaped(answer: Answer, peeked: &Peeked, accepted: Accepted, in_session: bool) -> Answer {
    if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        // The type was right, so it was what is in the body.
        return complaint(&peeked.id, -32600, "no JSON-RPC message");
    }
    if !in_session {
        return shape::of_call(answer, accepted.prefers_json).await;
    }
    // Progress is heard only from a stream.
    if accepted.prefers_json && !peeked.wants_progress {
        return shape::of_stream(answer).await;
    }
    answer
}

/// What has to be known of a message before it is handed on.
struct Peeked {
    id: Value,
    opens_session: bool,
    wants_progress: bool,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    id: Value,
}

impl Peeked {
    /// Looks into a body; what is no message is answered at once.
    fn of(body: &Bytes) -> Result<Self, Box<Answer>> {
        match serde_json::from_slice::<Envelope<'_>>(body) {
            Ok(envelope) => Ok(Self {
                opens_session: envelope.method.as_deref() == Some("initialize"),
                // Seen where there is none, it costs nothing but the shape.
                wants_progress: has(body, b"progressToken"),
                id: envelope.id,
            }),
            Err(error) if serde_json::from_slice::<IgnoredAny>(body).is_err() => {
                let message = format!("the body is not JSON: {error}");
                Err(Box::new(complaint(&Value::Null, -32700, &message)))
            }
            // This includes a body that names its method twice.
            Err(_) => {
                let message = "the body is no single JSON-RPC message";
                Err(Box::new(complaint(&Value::Null, -32600, message)))
            }
        }
    }
}

fn has(body: &[u8], words: &[u8]) -> bool {
    body.windows(words.len()).any(|window| window == words)
}

fn complaint(id: &Value, code: i64, message: &str) -> Answer {
    let error = json!({ "code": code, "message": message });
    answer::json(StatusCode::BAD_REQUEST, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

fn mended(body: Bytes) -> Bytes {
    match surrogates::mended(&body) {
        Cow::Borrowed(_) => body,
        Cow::Owned(body) => body.into(),
    }
}

/// The request as the protocol's own library takes it: what the gate has looked
/// at is not to be judged again, by other rules.
fn inward(request: Request<Bytes>) -> Request<Full<Bytes>> {
    let (mut parts, body) = request.into_parts();
    parts.uri = Uri::from_static("/mcp");
    parts.headers.insert(HOST, HeaderValue::from_static("localhost"));
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(TRANSFER_ENCODING);
    Request::from_parts(parts, Full::new(body))
}

fn session(headers: &HeaderMap) -> Option<SessionId> {
    headers.get(SESSION).map(|id| String::from_utf8_lossy(id.as_bytes()).into())
}

/// Whether a client speaks a revision that has sessions.
fn has_sessions(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|version| version.to_str().ok());
    version.is_none_or(|version| version < WITHOUT_SESSIONS)
}

fn no_session_named() -> Answer {
    answer::text(StatusCode::BAD_REQUEST, "Bad Request: the header Mcp-Session-Id is missing")
}
