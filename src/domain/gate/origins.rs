//! The pages that a request may come from.

use crate::domain::gate::Listening;
use crate::domain::gate::authority::Authority;
use crate::domain::gate::hosts::{ALIASES, spellings};
use crate::domain::loopback::is_loopback;

/// Where a request comes from, as a browser says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From nowhere that has a name, such as a file.
    Null,
    /// From a page.
    Page {
        /// In lower case.
        scheme: String,
        /// Its host and port.
        authority: Authority,
    },
}

impl Origin {
    /// Reads the value of a header; nothing if it is malformed. What follows the
    /// host and port is ignored.
    pub fn from_bytes(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        parse(text).ok()
    }

    fn covers(&self, named: &Self) -> bool {
        match (self, named) {
            (Self::Null, Self::Null) => true,
            (Self::Page { scheme, authority }, Self::Page { scheme: other, authority: named }) => {
                scheme == other && authority.covers(named)
            }
            _ => false,
        }
    }

    /// Whether it is a page that this machine serves.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Page { authority, .. } => is_local(authority),
        }
    }
}

/// Whether a name is this machine's own.
pub(super) fn is_local(authority: &Authority) -> bool {
    authority.host() == "localhost" || authority.host().parse().is_ok_and(is_loopback)
}

/// What is wrong with an entry of `allowed_origins`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "[transport.http].allowed_origins: the entry \"{}\" {flaw}; write it as \
     scheme://host or scheme://host:port, such as \"https://kb.example\"",
    entry.escape_default()
)]
pub struct OriginEntryError {
    /// The entry as it stands in the configuration.
    pub entry: String,
    /// The rule that it breaks.
    pub flaw: OriginFlaw,
}

/// The rule that an origin breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginFlaw {
    /// Nothing is there.
    #[error("is empty")]
    Empty,
    /// It does not begin as a URL does.
    #[error("has no scheme")]
    NoScheme,
    /// Nothing follows the scheme.
    #[error("has no host")]
    NoHost,
    /// It is something else.
    #[error("is no origin")]
    Unparsable,
}

fn parse(text: &str) -> Result<Origin, OriginFlaw> {
    let text = text.trim();
    if text.is_empty() {
        return Err(OriginFlaw::Empty);
    }
    if text.eq_ignore_ascii_case("null") {
        return Ok(Origin::Null);
    }
    let (scheme, rest) = text.split_once("://").ok_or(OriginFlaw::NoScheme)?;
    if scheme.is_empty() {
        return Err(OriginFlaw::NoScheme);
    }
    let is_in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        || !scheme.bytes().all(is_in_scheme)
        || !text.is_ascii()
    {
        return Err(OriginFlaw::Unparsable);
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.is_empty() || authority.starts_with(':') {
        return Err(OriginFlaw::NoHost);
    }
    let authority = Authority::parse(authority).ok_or(OriginFlaw::Unparsable)?;
    Ok(Origin::Page { scheme: scheme.to_ascii_lowercase(), authority })
}

/// The pages that a request may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginList(Option<Vec<Origin>>);

impl OriginList {
    /// Any page.
    pub fn any() -> Self {
        Self(None)
    }

    /// Exactly what the entries name; one without a port covers every port.
    ///
    /// # Errors
    ///
    /// [`OriginEntryError`] for the first entry that is no origin.
    pub fn of(entries: &[String]) -> Result<Self, OriginEntryError> {
        let origins = entries.iter().map(|entry| {
            parse(entry).map_err(|flaw| OriginEntryError { entry: entry.clone(), flaw })
        });
        Ok(Self(Some(origins.collect::<Result<_, _>>()?)))
    }

    /// What holds unless a list is configured: pages that this server itself
    /// could have served to a browser of this machine. A browser leaves out the
    /// port 80.
    pub(super) fn default_of(listening: Listening) -> Self {
        let mut hosts = ALIASES.map(str::to_owned).to_vec();
        let address = listening.address();
        if let Some(address) = address.filter(|address| is_loopback(address.ip())) {
            hosts.extend(spellings(address.ip()));
        }
        let port = address.map(|address| address.port());
        let mut origins = Vec::new();
        for host in hosts {
            let page = |authority| Origin::Page { scheme: "http".to_owned(), authority };
            let host = Authority::bare(&host);
            if matches!(port, None | Some(80)) {
                origins.push(page(host.clone()));
            }
            origins.extend(port.map(|port| page(host.at(port))));
        }
        Self(Some(origins))
    }

    /// Whether nothing is checked.
    pub(super) fn is_any(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an entry covers an origin.
    pub(super) fn lists(&self, origin: &Origin) -> bool {
        self.0.as_ref().is_some_and(|entries| entries.iter().any(|entry| entry.covers(origin)))
    }

    /// The entries, unless nothing is checked.
    pub(super) fn entries(&self) -> &[Origin] {
        self.0.as_deref().unwrap_or_default()
    }
}
