//! Lets a page of a listed origin read the answers of `/mcp`. Never `*`.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::adapters::transport::http::answer::{self, Answer};
use crate::domain::gate::Gate;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("Mcp-Session-Id");
const MAX_AGE_SECS: HeaderValue = HeaderValue::from_static("600");

/// The origin of a request whose page may read the answer.
pub(super) fn reader(gate: &Gate, headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(ORIGIN).filter(|origin| gate.lists_origin(origin.as_bytes())).cloned()
}

/// Whether a browser asks beforehand.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What a browser is told beforehand.
pub(super) fn preflight() -> Answer {
    let mut answer = answer::empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECS);
    answer
}

/// Lets the page at an origin read an answer.
pub(super) fn open_to(answer: &mut Answer, origin: Option<HeaderValue>) {
    let headers = answer.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
