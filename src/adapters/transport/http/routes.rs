//! From a request to an answer: the route, the gate, the limits.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use http::header::{ALLOW, CONNECTION, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::adapters::transport::http::answer::{self, Answer};
use crate::adapters::transport::http::body::{self, Unread};
use crate::adapters::transport::http::cors;
use crate::adapters::transport::http::metrics;
use crate::adapters::transport::http::page;
use crate::adapters::transport::http::refusals::Group;
use crate::adapters::transport::http::state::State;
use crate::adapters::transport::http::status;
use crate::domain::gate::{Caller, Guard, Refusal, RefusalKind};

/// What there is to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Mcp,
    Health,
    Ready,
    Page,
    Status,
    Metrics,
}

impl Route {
    fn of(path: &str, has_metrics: bool) -> Option<Self> {
        Some(match path {
            "/mcp" => Self::Mcp,
            "/healthz" => Self::Health,
            "/readyz" => Self::Ready,
            "/ui" => Self::Page,
            "/api/admin/status" => Self::Status,
            "/metrics" if has_metrics => Self::Metrics,
            _ => return None,
        })
    }

    fn guard(self) -> Guard {
        match self {
            Self::Mcp => Guard::Protocol,
            Self::Health | Self::Ready => Guard::Health,
            Self::Page | Self::Status | Self::Metrics => Guard::Admin,
        }
    }

    fn group(self) -> Group {
        match self.guard() {
            Guard::Protocol => Group::Mcp,
            Guard::Health => Group::Health,
            Guard::Admin => Group::Admin,
        }
    }
}

/// Answers a request.
pub(super) async fn answer(
    state: &State,
    peer: Option<IpAddr>,
    request: Request<Incoming>,
) -> Answer {
    let route = Route::of(request.uri().path(), state.options.metrics);
    let origin = match route {
        Some(Route::Mcp) => Some(cors::reader(&state.gate, request.headers())),
        _ => None,
    };
    let mut answer = limited(state, peer, route, request).await;
    if let Some(origin) = origin {
        cors::open_to(&mut answer, origin);
    }
    if route.is_some_and(|route| route.guard() == Guard::Admin) {
        page::protect(&mut answer, &state.page);
    }
    state.counters.count(answer.status());
    answer
}

/// Answers within the limit of a request's body, which holds on every path.
async fn limited(
    state: &State,
    peer: Option<IpAddr>,
    route: Option<Route>,
    request: Request<Incoming>,
) -> Answer {
    let (parts, incoming) = request.into_parts();
    if body::is_declared_too_large(&parts.headers) {
        body::discard(incoming);
        return unread(Unread::TooLarge);
    }
    if let Some(route) = route
        && let Err(refused) = admit(state, peer, route, &parts)
    {
        return *refused;
    }
    let body = match body::read(incoming, state.options.body_timeout).await {
        Ok(body) => body,
        Err(why) => return unread(why),
    };
    match route {
        None => answer::text(StatusCode::NOT_FOUND, "Not Found"),
        Some(Route::Mcp) if cors::is_preflight(&parts.method, &parts.headers) => cors::preflight(),
        Some(Route::Mcp) => {
            state.mcp.answer(&state.refusals, Request::from_parts(parts, body)).await
        }
        Some(_) if !matches!(parts.method, Method::GET | Method::HEAD) => not_allowed("GET, HEAD"),
        Some(Route::Health) => answer::text(StatusCode::OK, "ok"),
        Some(Route::Ready) => ready(state),
        Some(Route::Page) => state.page.answer(),
        Some(Route::Status) => answer::json(StatusCode::OK, &status::value(state)),
        Some(Route::Metrics) => metrics::answer(state),
    }
}

fn ready(state: &State) -> Answer {
    if state.monitor.status().ready {
        return answer::text(StatusCode::OK, "ready");
    }
    let loading = "the embedding model is not loaded; searches are answered from the text";
    answer::text(StatusCode::SERVICE_UNAVAILABLE, loading)
}

/// Lets a request in to a route, or says what it is answered instead.
fn admit(
    state: &State,
    peer: Option<IpAddr>,
    route: Route,
    parts: &Parts,
) -> Result<(), Box<Answer>> {
    let caller = Caller {
        peer,
        hosts: values(&parts.headers, HOST),
        authority: parts.uri.authority().map(http::uri::Authority::as_str),
        origins: values(&parts.headers, ORIGIN),
    };
    if let Err(Refusal { kind, message, value }) = state.gate.check(route.guard(), &caller) {
        state.refusals.tell(route.group(), Instant::now(), message, &value);
        let status = match kind {
            RefusalKind::Malformed => StatusCode::BAD_REQUEST,
            RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        };
        return Err(Box::new(answer::text(status, message)));
    }
    if route.guard() == Guard::Admin && is_forwarded(&parts.headers) {
        if !state.told_of_proxy.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "an admin route was asked through a proxy: whoever reaches the proxy reads it; \
                 pass on /mcp and /healthz alone, or set [transport.http].refuse_forwarded"
            );
        }
        if state.options.refuse_forwarded {
            let message = "Forbidden: this route answers no request that a proxy passes on";
            state.refusals.tell(Group::Admin, Instant::now(), message, "");
            return Err(Box::new(answer::text(StatusCode::FORBIDDEN, message)));
        }
    }
    Ok(())
}

fn values(headers: &HeaderMap, name: http::HeaderName) -> Vec<&[u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

/// Whether a proxy says that it passes the request on.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name == "forwarded" || name.as_str().starts_with("x-forwarded-"))
}

/// What a request with another method is answered.
pub(super) fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = answer::text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn unread(why: Unread) -> Answer {
    let (status, message) = match why {
        Unread::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "Payload Too Large: a request has at most 1048576 bytes",
        ),
        Unread::TooSlow => {
            (StatusCode::REQUEST_TIMEOUT, "Request Timeout: the body took too long to arrive")
        }
        Unread::Broken => (StatusCode::BAD_REQUEST, "Bad Request: the body cannot be read"),
    };
    let mut answer = answer::text(status, message);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
