//! Reads the bodies of requests, which are small.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

/// The most bytes of a body, on every route.
pub(super) const LIMIT_BYTES: usize = 1024 * 1024;

/// How much of a body that is too large is read and thrown away, and for how
/// long: a client that is still sending does not see an answer before that.
const DISCARDED_BYTES: usize = 16 * LIMIT_BYTES;
const DISCARDING: Duration = Duration::from_secs(1);

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    TooLarge,
    TooSlow,
    Broken,
}

/// Whether a request says itself that its body is too large.
pub(super) fn is_declared_too_large(headers: &HeaderMap) -> bool {
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    declared
        .and_then(|length| length.trim().parse::<u64>().ok())
        .is_some_and(|length| length > LIMIT_BYTES as u64)
}

/// Reads a body to its end.
///
/// - `within`: how long that may take; without end if none.
pub(super) async fn read(body: Incoming, within: Option<Duration>) -> Result<Bytes, Unread> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let reading = collect(body);
    match within {
        None => reading.await,
        Some(within) => timeout(within, reading).await.unwrap_or(Err(Unread::TooSlow)),
    }
}

async fn collect(mut body: Incoming) -> Result<Bytes, Unread> {
    let mut first: Option<Bytes> = None;
    let mut more = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        length += data.len();
        if length > LIMIT_BYTES {
            discard(body);
            return Err(Unread::TooLarge);
        }
        match &first {
            None => first = Some(data),
            Some(begin) => {
                if more.is_empty() {
                    more.extend_from_slice(begin);
                }
                more.extend_from_slice(&data);
            }
        }
    }
    if more.is_empty() { Ok(first.unwrap_or_default()) } else { Ok(more.freeze()) }
}

/// Reads on beside the answer and keeps nothing.
pub(super) fn discard(mut body: Incoming) {
    let reading = async move {
        let mut length = 0;
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > DISCARDED_BYTES {
                return;
            }
        }
    };
    tokio::spawn(timeout(DISCARDING, reading));
}

#[cfg(test)]
mod tests {
    use super::*;

    // HTTP-63
    #[test]
    fn a_length_is_believed_when_it_is_too_large() {
        let declared = |length: &str| {
            is_declared_too_large(&HeaderMap::from_iter([(
                CONTENT_LENGTH,
                length.parse().unwrap(),
            )]))
        };
        assert!(!declared("0") && !declared("1048576"));
        assert!(declared("1048577") && declared("18446744073709551615"));
        assert!(!is_declared_too_large(&HeaderMap::new()));
    }
}
