//! The gate in front of every route of the HTTP transport: who may ask, under
//! which name, and from which page.
//!
//! `Host` and `Origin` checks keep a web page that a local browser has open from
//! reaching a local server through DNS rebinding. They are no access control:
//! any other program can send whatever headers it likes.

use std::net::{IpAddr, SocketAddr};

use crate::domain::loopback::is_loopback;

pub use advice::{NO_AUTHENTICATION, advice};
pub use authority::Authority;
pub use hosts::HostList;
pub use origins::{Origin, OriginEntryError, OriginFlaw, OriginList};

mod authority;

mod hosts;

mod origins;

mod advice;

/// What a gate is made from.
#[derive(Clone, Copy, Debug)]
pub struct GateSettings<'a> {
    /// The hosts that a request may name, in place of the default.
    pub allowed_hosts: Option<&'a [String]>,
    /// The origins that a request may name, in place of the default.
    pub allowed_origins: Option<&'a [String]>,
    /// Whether the health routes answer whatever the host.
    pub healthz_public: bool,
    /// Where requests come in.
    pub listening: Listening,
}

/// Where requests come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// At an address that this process bound, with the port really bound.
    Bound(SocketAddr),
    /// At an address that somebody else bound.
    Inherited(SocketAddr),
    /// At a Unix socket, whose owner and mode decide who may connect.
    Unix,
}

impl Listening {
    /// The address, if there is one.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Bound(address) | Self::Inherited(address) => Some(address),
            Self::Unix => None,
        }
    }
}

/// What a route lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Any peer; listed hosts and origins.
    Protocol,
    /// Any peer and origin; listed hosts, unless the route is public.
    Health,
    /// Loopback peers; the machine's own names and listed origins.
    Admin,
}

/// Who asks, as far as the gate looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The other end of the connection; none if it is local by its nature.
    pub peer: Option<IpAddr>,
    /// The value of every `Host` header.
    pub hosts: Vec<&'a [u8]>,
    /// The authority of the request's target, if that names one.
    pub authority: Option<&'a str>,
    /// The value of every `Origin` header.
    pub origins: Vec<&'a [u8]>,
}

/// Why a caller is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of answer it is.
    pub kind: RefusalKind,
    /// What the caller is told; it never repeats what was refused.
    pub message: &'static str,
    /// What was refused, for the log alone; of any length and content.
    pub value: String,
}

/// What kind of answer a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A header could not be understood.
    Malformed,
    /// All was understood, and it is not listed.
    Forbidden,
}

/// The one decision that all routes share.
#[derive(Clone, Debug)]
pub struct Gate {
    hosts: HostList,
    admin_hosts: HostList,
    origins: OriginList,
    healthz_public: bool,
}

impl Gate {
    /// Makes the lists that are in force.
    ///
    /// # Errors
    ///
    /// [`OriginEntryError`] if an entry of `allowed_origins` is no origin.
    pub fn new(settings: &GateSettings<'_>) -> Result<Self, OriginEntryError> {
        let hosts = match settings.allowed_hosts {
            None => HostList::default_of(settings.listening),
            Some([]) => HostList::any(),
            Some(entries) => HostList::of(entries),
        };
        let origins = match settings.allowed_origins {
            None => OriginList::default_of(settings.listening),
            Some([]) => OriginList::any(),
            Some(entries) => OriginList::of(entries)?,
        };
        Ok(Self {
            hosts,
            admin_hosts: HostList::admin_of(settings.listening),
            origins,
            healthz_public: settings.healthz_public,
        })
    }

    /// Whether a caller is let in to a route: first its peer, then the name that
    /// it uses for this server, then the page that it comes from.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for the first of these that is not as it has to be.
    pub fn check(&self, guard: Guard, caller: &Caller<'_>) -> Result<(), Refusal> {
        match guard {
            Guard::Protocol => {
                check_host(&self.hosts, caller)?;
                check_origin(&self.origins, caller)
            }
            Guard::Health if self.healthz_public => Ok(()),
            Guard::Health => check_host(&self.hosts, caller),
            Guard::Admin => {
                check_peer(caller)?;
                check_host(&self.admin_hosts, caller)?;
                check_origin(&self.origins, caller)
            }
        }
    }

    /// Whether a page may read answers: its origin is in a list.
    pub fn lists_origin(&self, origin: &[u8]) -> bool {
        Origin::from_bytes(origin).is_some_and(|origin| self.origins.lists(&origin))
    }
}

fn check_peer(caller: &Caller<'_>) -> Result<(), Refusal> {
    match caller.peer {
        Some(peer) if !is_loopback(peer) => {
            Err(forbidden("Forbidden: this route answers loopback peers only", peer.to_string()))
        }
        _ => Ok(()),
    }
}

fn check_host(list: &HostList, caller: &Caller<'_>) -> Result<(), Refusal> {
    const MALFORMED: &str = "Bad Request: the Host header is malformed";
    let named = match (caller.hosts.as_slice(), caller.authority) {
        ([], None) => {
            return Err(malformed("Bad Request: the Host header is missing", String::new()));
        }
        ([], Some(authority)) => authority.as_bytes(),
        ([host], None) => *host,
        // Whoever stands in front may have looked at the one or at the other.
        ([host], Some(authority)) if host.eq_ignore_ascii_case(authority.as_bytes()) => *host,
        ([host], Some(_)) => {
            return Err(malformed(
                "Bad Request: the Host header and the target differ",
                text(host),
            ));
        }
        (hosts, _) => {
            let values: Vec<String> = hosts.iter().map(|host| text(host)).collect();
            return Err(malformed(
                "Bad Request: there is more than one Host header",
                values.join(", "),
            ));
        }
    };
    let Some(authority) = std::str::from_utf8(named).ok().and_then(Authority::parse) else {
        return Err(malformed(MALFORMED, text(named)));
    };
    if list.admits(&authority) {
        return Ok(());
    }
    Err(forbidden("Forbidden: the Host header is not allowed", text(named)))
}

fn check_origin(list: &OriginList, caller: &Caller<'_>) -> Result<(), Refusal> {
    let value = match caller.origins.as_slice() {
        [] => return Ok(()),
        [value] => *value,
        values => {
            let values: Vec<String> = values.iter().map(|value| text(value)).collect();
            return Err(malformed(
                "Bad Request: there is more than one Origin header",
                values.join(", "),
            ));
        }
    };
    if list.is_any() {
        return Ok(());
    }
    let Some(origin) = Origin::from_bytes(value) else {
        return Err(malformed("Bad Request: the Origin header is malformed", text(value)));
    };
    if list.lists(&origin) {
        return Ok(());
    }
    Err(forbidden("Forbidden: the Origin header is not allowed", text(value)))
}

fn malformed(message: &'static str, value: String) -> Refusal {
    Refusal { kind: RefusalKind::Malformed, message, value }
}

fn forbidden(message: &'static str, value: String) -> Refusal {
    Refusal { kind: RefusalKind::Forbidden, message, value }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
