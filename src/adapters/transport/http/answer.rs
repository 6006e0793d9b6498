//! Short answers.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use serde_json::Value;

/// What every route answers with.
pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A body that is there as a whole.
pub(super) fn of_bytes(status: StatusCode, kind: HeaderValue, bytes: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(bytes.into()).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// A line of text.
pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    of_bytes(status, TEXT, text)
}

/// A JSON value.
pub(super) fn json(status: StatusCode, value: &Value) -> Answer {
    let mut answer = of_bytes(status, JSON, value.to_string());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// JSON that is written already.
pub(super) fn json_text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    of_bytes(status, JSON, text)
}

/// Nothing but a status.
pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Empty::new().boxed());
    *answer.status_mut() = status;
    answer
}

/// Asks the client to come back later.
pub(super) fn later(status: StatusCode, seconds: u32, reason: &'static str) -> Answer {
    let mut answer = text(status, reason);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}
