//! The names that a request may use for this server.

use std::net::IpAddr;

use crate::domain::gate::Listening;
use crate::domain::gate::authority::Authority;
use crate::domain::loopback::is_loopback;

/// What a client of the same machine calls it.
pub(super) const ALIASES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names that a request may use for this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList(Option<Vec<Authority>>);

impl HostList {
    /// Whatever is well-formed.
    pub fn any() -> Self {
        Self(None)
    }

    /// Exactly what the entries name. An entry without a port covers every port;
    /// one that is no host and port is taken as a host; an empty one covers
    /// nothing.
    pub fn of(entries: &[String]) -> Self {
        Self(Some(entries.iter().filter_map(|entry| parse_entry(entry)).collect()))
    }

    /// What holds unless a list is configured: this machine, and the address
    /// that is listened at if it is this machine's own.
    pub(super) fn default_of(listening: Listening) -> Self {
        let bound = listening.address().map(|address| address.ip()).filter(|ip| is_loopback(*ip));
        Self::aliases_and(bound)
    }

    /// What holds for the admin routes: this machine, and the address that this
    /// process bound. An unspecified address names no host.
    pub(super) fn admin_of(listening: Listening) -> Self {
        let bound = match listening {
            Listening::Bound(address) => Some(address.ip()).filter(|ip| !ip.is_unspecified()),
            Listening::Inherited(_) | Listening::Unix => None,
        };
        Self::aliases_and(bound)
    }

    fn aliases_and(address: Option<IpAddr>) -> Self {
        let own = address.map(spellings).unwrap_or_default();
        let aliases = ALIASES.iter().map(|alias| Authority::bare(alias));
        Self(Some(aliases.chain(own.iter().map(|host| Authority::bare(host))).collect()))
    }

    /// Whether a request may use this name.
    pub fn admits(&self, named: &Authority) -> bool {
        self.0.as_ref().is_none_or(|entries| entries.iter().any(|entry| entry.covers(named)))
    }
}

pub(super) fn parse_entry(entry: &str) -> Option<Authority> {
    let entry = entry.trim();
    (!entry.is_empty()).then(|| Authority::parse(entry).unwrap_or_else(|| Authority::bare(entry)))
}

/// The ways in which a client may write an address, without brackets: hosts are
/// compared byte by byte.
pub(super) fn spellings(address: IpAddr) -> Vec<String> {
    let IpAddr::V6(long) = address else { return vec![address.to_string()] };
    let groups = long.segments();
    let written: Vec<String> = groups.iter().map(|group| format!("{group:x}")).collect();
    let mut spellings = vec![long.to_string(), written.join(":")];
    if let Some(short) = long.to_ipv4_mapped() {
        // As browsers write it, and as the same socket is reached over IPv4.
        spellings.push(format!("::ffff:{:x}:{:x}", groups[6], groups[7]));
        spellings.push(short.to_string());
    }
    spellings
}
