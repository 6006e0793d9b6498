//! The web page: one file, with nothing from elsewhere.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::adapters::transport::http::answer::{self, Answer};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The page, and the policy under which a browser runs it.
pub(super) struct Page {
    html: Bytes,
    policy: HeaderValue,
}

impl Page {
    pub(super) fn new() -> Self {
        let html = PAGE.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT);
        let policy = format!(
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             script-src '{}'; style-src '{}'; img-src data:; connect-src 'self'",
            source(SCRIPT),
            source(STYLE)
        );
        let nothing = HeaderValue::from_static("default-src 'none'");
        Self { html: html.into(), policy: policy.try_into().unwrap_or(nothing) }
    }

    pub(super) fn answer(&self) -> Answer {
        answer::of_bytes(StatusCode::OK, HTML, self.html.clone())
    }
}

/// Puts the headers on an answer of an admin route that keep a browser from
/// doing anything with it but showing it.
pub(super) fn protect(answer: &mut Answer, page: &Page) {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, page.policy.clone());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// What a policy calls a text of which it knows the hash.
fn source(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text)))
}

/// Base 64 with padding, RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let number = part.iter().fold(0_u32, |number, &byte| number << 8 | u32::from(byte))
            << (8 * (3 - part.len()));
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place) & 63) as usize];
            text.push(if place > part.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in pairs {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    // HTTP-80 HTTP-81 HTTP-B13
    #[test]
    fn the_page_is_one_file_that_its_own_policy_lets_run() {
        let page = Page::new();
        let html = String::from_utf8(page.html.to_vec()).unwrap();
        let policy = page.policy.to_str().unwrap();
        for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
            let (_, rest) = html.split_once(&format!("<{tag}>")).unwrap();
            let (inline, rest) = rest.split_once(&format!("</{tag}>")).unwrap();
            assert!(!rest.contains(&format!("<{tag}")), "there is one {tag}");
            let hash = format!("{directive} '{}'", source(inline));
            assert!(policy.contains(&hash), "{policy} lacks {hash}");
        }
        assert!(!policy.contains("unsafe"));
        let foreign =
            ["http://", "https://", "src=", "href=", "@import", "url(", " style=", " onclick="];
        for word in foreign {
            let line = html.lines().find(|line| line.contains(word));
            assert_eq!(line, None, "{word}");
        }
    }

    // HTTP-85
    #[test]
    fn nothing_from_the_server_becomes_markup() {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!SCRIPT.contains(way), "{way}");
        }
    }
}
