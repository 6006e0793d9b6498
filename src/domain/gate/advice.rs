//! What whoever starts an HTTP server should know about its gate.

use crate::domain::gate::hosts::parse_entry;
use crate::domain::gate::origins::{OriginList, is_local};
use crate::domain::gate::{GateSettings, Origin};
use crate::domain::loopback::is_loopback;

/// What holds for every address that other machines reach.
pub const NO_AUTHENTICATION: &str = "there is no authentication: whoever reaches the port reads \
                                     the whole knowledge base, and neither Host checks nor the \
                                     session cap authenticate anybody";

/// What to tell when a server starts, one sentence each; nothing if all is
/// usual.
pub fn advice(settings: &GateSettings<'_>) -> Vec<String> {
    let mut advice = Vec::new();
    let address = settings.listening.address();
    if let Some(address) = address.filter(|address| !is_loopback(address.ip())) {
        let consequence = match settings.allowed_hosts {
            None => {
                "; until [transport.http].allowed_hosts names how clients call this machine, the \
                 Host check refuses requests from outside"
            }
            Some([]) => {
                "; [transport.http].allowed_hosts is empty, so the Host check is off and every \
                 peer that reaches the port can call /mcp"
            }
            Some(_) => "",
        };
        advice.push(format!("{address}: {NO_AUTHENTICATION}{consequence}"));
    }
    advice.extend(about_origins(settings).map(str::to_owned));
    if let Some(entries) = settings.allowed_hosts.filter(|entries| !entries.is_empty()) {
        let mut named = entries.iter().filter_map(|entry| parse_entry(entry));
        if !named.any(|authority| is_local(&authority)) {
            advice.push(
                "[transport.http].allowed_hosts names nothing of this machine, so a /ui opened \
                 here cannot search; add the exact names, such as \"127.0.0.1\""
                    .to_owned(),
            );
        }
    }
    advice
}

fn about_origins(settings: &GateSettings<'_>) -> Option<&'static str> {
    match settings.allowed_origins {
        Some([]) => Some(
            "[transport.http].allowed_origins is empty, so the Origin check is off and any page \
             in a local browser can reach /mcp",
        ),
        Some(entries) => {
            let list = OriginList::of(entries).ok()?;
            (!list.entries().iter().any(Origin::is_local)).then_some(
                "[transport.http].allowed_origins names no page of this machine, so a /ui opened \
                 here cannot search; add the exact origins, such as \"http://127.0.0.1:3100\"",
            )
        }
        None => {
            let list = OriginList::default_of(settings.listening);
            let is_portless = |origin: &Origin| matches!(origin, Origin::Page { authority, .. } if authority.port().is_none());
            list.entries().iter().any(is_portless).then_some(
                "the default of [transport.http].allowed_origins names http://localhost without a \
                 port here, which covers the pages of every local port; set the exact origins if \
                 that is too much",
            )
        }
    }
}
