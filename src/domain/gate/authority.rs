//! The host and port that a header names.

/// A host with the port that was written after it, if any.
///
/// ```
/// use grooveseek::domain::gate::Authority;
///
/// let authority = Authority::parse("LOCALHOST:3100").unwrap();
/// assert_eq!((authority.host(), authority.port()), ("localhost", Some(3100)));
/// assert!(Authority::parse("user@localhost").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// Reads a host and port; nothing if they are malformed: user information,
    /// unbalanced or empty brackets, characters that no host has, or a port that
    /// is not a number from 0 to 65535.
    pub fn parse(text: &str) -> Option<Self> {
        let bracketed = text.strip_prefix('[');
        let (host, rest) = match bracketed {
            Some(text) => text.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let is_known = if bracketed.is_some() { is_in_brackets } else { is_in_host };
        if host.is_empty() || !host.bytes().all(is_known) {
            return None;
        }
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            Some("") => None,
            Some(digits) => Some(port(digits)?),
        };
        Some(Self { host: host.to_ascii_lowercase(), port })
    }

    /// A host of any spelling, without a port.
    pub(super) fn bare(host: &str) -> Self {
        let host = host.strip_prefix('[').unwrap_or(host);
        let host = host.strip_suffix(']').unwrap_or(host);
        Self { host: host.to_ascii_lowercase(), port: None }
    }

    /// The same host with a port.
    pub(super) fn at(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Without brackets, in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port that was written.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether this entry of a list covers what a request names: the same bytes,
    /// and the same port unless the entry has none.
    pub(super) fn covers(&self, named: &Self) -> bool {
        self.host == named.host && (self.port.is_none() || self.port == named.port)
    }
}

fn is_in_brackets(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b':' || byte == b'.'
}

/// What RFC 3986 calls unreserved or a sub-delimiter. Percent escapes are no
/// part of any name that a client would use.
fn is_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

fn port(digits: &str) -> Option<u16> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    digits.trim_start_matches('0').parse().ok().or_else(|| digits.parse().ok())
}
