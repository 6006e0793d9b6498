//! What a URL says of an endpoint, and what its model is called in an index.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use ureq::http::Uri;

use crate::adapters::embedder::openai::Proxies;
use crate::domain::embedding::ModelIdentity;
use crate::domain::loopback;

/// What an index records of an endpoint's model: both names and a digest of
/// them and of the dimension, so that names which contain separators cannot be
/// taken for others.
///
/// - `document_model`, `query_model`: the names that are sent; they are trimmed.
pub fn identity(document_model: &str, query_model: &str, dimension: usize) -> ModelIdentity {
    let (document_model, query_model) = (document_model.trim(), query_model.trim());
    let mut digest = Sha256::new();
    for alias in [document_model, query_model] {
        digest.update((alias.len() as u64).to_le_bytes());
        digest.update(alias);
    }
    digest.update((dimension as u64).to_le_bytes());
    let mut hexadecimal = String::with_capacity(12);
    for byte in digest.finalize().iter().take(6) {
        // Writing to a string cannot fail.
        let _ = write!(hexadecimal, "{byte:02x}");
    }
    let model = format!("openai-compatible:{document_model}|{query_model}:{hexadecimal}");
    ModelIdentity { model, dimension }
}

/// A URL as messages show it: origin and path. The rest may be secret.
pub(super) fn shown(url: &str) -> String {
    let public = url.split(['?', '#']).next().unwrap_or_default();
    match public.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => "at an address without a scheme".to_owned(),
    }
}

/// Whether the URL leads to this machine.
pub(super) fn is_on_this_machine(url: &str) -> bool {
    host_of(url).is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(loopback::is_loopback)
    })
}

/// Whether what is sent can be read on the way to another machine.
pub(super) fn sends_in_the_clear(url: &str) -> bool {
    let plain = url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    plain && !is_on_this_machine(url)
}

/// The proxy on the way to a URL, if there is one.
pub(super) fn proxy<'a>(url: &str, proxies: &'a Proxies) -> Option<&'a str> {
    let host = host_of(url)?;
    if is_on_this_machine(url) || goes_directly(&host, proxies.none_for.as_deref()) {
        return None;
    }
    let plain = url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let own = if plain { &proxies.http } else { &proxies.https };
    own.as_deref().or(proxies.all.as_deref()).filter(|proxy| !proxy.trim().is_empty())
}

/// Whether a list such as `localhost,.example.com,10.0.0.1` names a host: by
/// itself, by a domain that it belongs to, or by `*`.
fn goes_directly(host: &str, none_for: Option<&str>) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    none_for.unwrap_or_default().split(',').map(str::trim).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        let domain = entry.trim_start_matches('*').trim_start_matches('.');
        entry == "*"
            || (!domain.is_empty()
                && (host == domain
                    || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))))
    })
}

fn host_of(url: &str) -> Option<String> {
    url.parse::<Uri>().ok()?.host().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    // IDX-117 IDX-118
    #[test]
    fn the_identity_depends_on_names_and_dimension_alone() {
        let plain = identity("m", "m", 256);
        assert_eq!(plain.dimension, 256);
        assert_eq!(plain.model, "openai-compatible:m|m:58477d1dcacd");
        assert_eq!(identity(" m ", "\tm", 256), plain);
        let all = [
            identity("m", "m", 257),
            identity("m", "n", 256),
            identity("n", "m", 256),
            identity("m|m", "", 256),
            identity("m", "|m", 256),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all[index + 1..].iter().chain([&plain]).all(|other| other.model != one.model));
        }
    }

    // IDX-172
    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        for (url, expected) in [
            ("https://h.example/v1/embeddings?key=s3cret#x", "https://h.example/v1/embeddings"),
            ("http://user:s3cret@h.example:8080/v1", "http://h.example:8080/v1"),
            ("http://h.example/a@b/v1", "http://h.example/a@b/v1"),
            ("https://h.example", "https://h.example"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    // CFG-64 CFG-70i
    #[test]
    fn this_machine_is_reached_directly_and_others_through_the_proxy() {
        let proxies = Proxies {
            http: Some("http://p:1".to_owned()),
            https: Some("http://p:2".to_owned()),
            all: Some("http://p:3".to_owned()),
            none_for: Some("direct.example, .inner.example".to_owned()),
        };
        for (url, expected) in [
            ("http://localhost:11434/v1", None),
            ("https://LOCALHOST/v1", None),
            ("http://127.0.0.1:1/v1", None),
            ("http://127.8.9.1/v1", None),
            ("http://[::1]:1/v1", None),
            ("http://h.example/v1", Some("http://p:1")),
            ("https://h.example/v1", Some("http://p:2")),
            ("https://direct.example/v1", None),
            ("https://a.inner.example/v1", None),
            ("https://notinner.example/v1", Some("http://p:2")),
        ] {
            assert_eq!(proxy(url, &proxies), expected, "{url}");
        }
        let all = Proxies { all: Some("http://p:3".to_owned()), ..Proxies::default() };
        assert_eq!(proxy("https://h.example/v1", &all), Some("http://p:3"));
        let none = Proxies { none_for: Some("*".to_owned()), ..proxies };
        assert_eq!(proxy("https://h.example/v1", &none), None);
    }

    // IDX-B25
    #[test]
    fn a_key_is_safe_over_https_and_on_this_machine() {
        assert!(sends_in_the_clear("http://h.example/v1"));
        assert!(!sends_in_the_clear("https://h.example/v1"));
        assert!(!sends_in_the_clear("http://localhost/v1"));
    }
}
