//! The shape of an answer: one JSON body, or a stream of events.

use std::convert::Infallible;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::{Instant, timeout_at};

use crate::adapters::transport::http::answer::{self, Answer};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How long a client waits without a word for the one message that answers it;
/// after that it gets a stream, which is kept alive.
const SILENCE: Duration = Duration::from_secs(10);

/// What a client takes, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    /// Whether it takes both shapes, as the protocol demands.
    pub(super) both: bool,
    /// Whether it takes streams of events at all.
    pub(super) events: bool,
    /// Whether it would rather have one JSON body.
    pub(super) prefers_json: bool,
}

impl Accepted {
    /// Reads `Accept`: the greater weight is preferred, and of equal ones the
    /// first.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let (mut json, mut events) = (None, None);
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for (place, range) in values.flat_map(|value| value.split(',')).enumerate() {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, weight);
            let slot = if kind.eq_ignore_ascii_case(JSON) {
                &mut json
            } else if kind.eq_ignore_ascii_case(EVENTS) {
                &mut events
            } else {
                continue;
            };
            if weight > 0.0 && slot.is_none() {
                *slot = Some((weight, place));
            }
        }
        let prefers_json = match (json, events) {
            (Some((json, first)), Some((events, second))) => {
                json > events || (json >= events && first < second)
            }
            (json, _) => json.is_some(),
        };
        Self { both: json.is_some() && events.is_some(), events: events.is_some(), prefers_json }
    }
}

/// A weight that is none counts as the full one.
fn weight(text: &str) -> f32 {
    text.parse().unwrap_or(1.0)
}

/// Whether a request says that its body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(JSON)
}

fn has_type(answer: &Answer, kind: &str) -> bool {
    answer.headers().get(CONTENT_TYPE).is_some_and(|value| value == kind)
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    method: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
}

/// Gives the answer to a call without a session its status, and the shape that
/// the client prefers.
pub(super) async fn of_call(mut answer: Answer, prefers_json: bool) -> Answer {
    if !has_type(&answer, JSON) {
        return answer;
    }
    let Ok(body) = std::mem::take(answer.body_mut()).collect().await;
    let body = body.to_bytes();
    let code = serde_json::from_slice::<Message>(&body)
        .ok()
        .and_then(|message| message.error)
        .map(|failure| failure.code);
    let status = match code {
        Some(-32602 | -32020 | -32021 | -32022) => StatusCode::BAD_REQUEST,
        Some(-32601) => StatusCode::NOT_FOUND,
        _ => answer.status(),
    };
    if status != StatusCode::OK || prefers_json {
        return answer::json_text(status, body);
    }
    let mut event = BytesMut::with_capacity(body.len() + 8);
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(&body);
    event.extend_from_slice(b"\n\n");
    let kind = HeaderValue::from_static(EVENTS);
    let mut answer = answer::of_bytes(status, kind, event.freeze());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// Turns a stream that holds nothing but the answer into that one JSON body;
/// leaves it a stream if anything else comes first, or nothing for a while.
pub(super) async fn of_stream(answer: Answer) -> Answer {
    if answer.status() != StatusCode::OK || !has_type(&answer, EVENTS) {
        return answer;
    }
    let (mut parts, mut body) = answer.into_parts();
    let mut seen = BytesMut::new();
    let until = Instant::now() + SILENCE;
    while let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await {
        let Ok(data) = frame.into_data() else { continue };
        seen.extend_from_slice(&data);
        let Some(text) = first_message(&seen) else { continue };
        let is_answer =
            serde_json::from_slice::<Message>(text).is_ok_and(|message| message.method.is_none());
        if is_answer {
            let text = Bytes::copy_from_slice(text);
            parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            return Answer::from_parts(parts, http_body_util::Full::new(text).boxed());
        }
        break;
    }
    Answer::from_parts(parts, after(seen.freeze(), body))
}

/// What was read already, and then the rest.
fn after(seen: Bytes, rest: BoxBody<Bytes, Infallible>) -> BoxBody<Bytes, Infallible> {
    let begin = (!seen.is_empty()).then(|| Ok(seen));
    let frames = stream::iter(begin).chain(rest.into_data_stream());
    BoxBody::new(StreamBody::new(frames.map(|data| data.map(Frame::data))))
}

/// The data of the first whole event that has any.
fn first_message(events: &[u8]) -> Option<&[u8]> {
    let mut rest = events;
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
        for line in rest[..end].split(|&byte| byte == b'\n') {
            if let Some(data) = line.strip_prefix(b"data:") {
                let data = data.trim_ascii();
                if !data.is_empty() {
                    return Some(data);
                }
            }
        }
        rest = &rest[end + 2..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(value: &str) -> Accepted {
        Accepted::of(&HeaderMap::from_iter([(ACCEPT, value.parse().unwrap())]))
    }

    // HTTP-60 HTTP-B08
    #[test]
    fn both_shapes_have_to_be_taken_and_one_is_preferred() {
        let prefers_json = |value| {
            let accepted = accepted(value);
            assert!(accepted.both, "{value}");
            accepted.prefers_json
        };
        assert!(prefers_json("application/json, text/event-stream"));
        assert!(!prefers_json("text/event-stream, application/json"));
        assert!(prefers_json("text/event-stream;q=0.5, Application/JSON"));
        assert!(!prefers_json("application/json;q=0.1,text/event-stream;q=0.2"));
        for value in ["", "*/*", "application/json", "text/event-stream", "text/html"] {
            assert!(!accepted(value).both, "{value}");
        }
        assert!(!accepted("application/json;q=0, text/event-stream").both);
        assert!(accepted("text/event-stream").events);
    }

    fn events(texts: &[&'static str]) -> Answer {
        let frames = texts.iter().map(|&text| Ok(Frame::data(Bytes::from_static(text.as_bytes()))));
        let frames: Vec<_> = frames.collect();
        let mut answer = Answer::new(BoxBody::new(StreamBody::new(stream::iter(frames))));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
        answer
    }

    async fn text(answer: Answer) -> (String, String) {
        let kind = answer.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (kind, String::from_utf8(body.to_vec()).unwrap())
    }

    // HTTP-B08
    #[tokio::test]
    async fn a_stream_of_one_answer_becomes_that_answer() {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let stream = events(&[
            "id: 0\nretry: 3000\ndata:\n\n",
            ": \n\n",
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,",
            "\"result\":{}}\n\n",
        ]);
        assert_eq!(text(of_stream(stream).await).await, (JSON.into(), answer.into()));
    }

    // HTTP-B08
    #[tokio::test]
    async fn a_stream_with_anything_else_stays_whole() {
        let parts = [
            "data:\n\n",
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n",
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
        ];
        let (kind, body) = text(of_stream(events(&parts)).await).await;
        assert_eq!((kind.as_str(), body), (EVENTS, parts.concat()));
        assert_eq!(text(of_stream(events(&[])).await).await, (EVENTS.into(), String::new()));
    }

    // HTTP-62
    #[tokio::test]
    async fn an_error_of_a_call_has_its_status() {
        for (code, status) in [
            (-32602, 400),
            (-32020, 400),
            (-32021, 400),
            (-32022, 400),
            (-32601, 404),
            (-32603, 200),
        ] {
            for prefers_json in [true, false] {
                let body = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code}}}}}"#);
                let answer = answer::json_text(StatusCode::OK, body.clone());
                let answer = of_call(answer, prefers_json).await;
                assert_eq!(answer.status().as_u16(), status, "{code}");
                let (kind, seen) = text(answer).await;
                assert!(seen.contains(&body));
                assert_eq!(kind == JSON, prefers_json || status != 200);
            }
        }
    }
}
