//! What `groove serve` speaks, and where it listens.

#![allow(clippy::disallowed_methods, reason = "the binary is where the environment comes in")]

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use anyhow::bail;
use grooveseek::app::config::{HttpSettings, TransportKind, TransportSettings};
use grooveseek::app::config_file::Source;
use grooveseek::app::error::AppError;
use grooveseek::app::service::Service;
use grooveseek::app::wiring::Groove;
use grooveseek::app::wiring::http::{self, HttpServer, SocketFrom};
use grooveseek::domain::gate::{Listening, NO_AUTHENTICATION};
use grooveseek::domain::loopback::is_loopback;

use crate::cli::{HttpArgs, TransportName};

/// What `groove serve` speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// MCP over standard input and output.
    Stdio,
    /// MCP over HTTP.
    Http(SocketFrom),
}

/// Decides from the flags and the configuration.
pub(crate) fn way(arguments: &HttpArgs, settings: &TransportSettings) -> anyhow::Result<Way> {
    let kind = match arguments.transport {
        Some(TransportName::Stdio) => TransportKind::Stdio,
        Some(TransportName::Http) => TransportKind::Http,
        None => settings.kind,
    };
    match kind {
        TransportKind::Stdio => {
            refuse_what_stdio_has_not(arguments, &settings.http)?;
            Ok(Way::Stdio)
        }
        TransportKind::Http => {
            http::check(&settings.http)?;
            socket(arguments, &settings.http).map(Way::Http)
        }
    }
}

fn refuse_what_stdio_has_not(arguments: &HttpArgs, settings: &HttpSettings) -> anyhow::Result<()> {
    if arguments.port.is_some() || arguments.bind.is_some() {
        bail!(
            "--port and --bind belong to HTTP, and this run speaks over standard input and \
             output: add --transport http, or leave them out"
        );
    }
    if arguments.systemd_socket {
        bail!(
            "--systemd-socket belongs to HTTP, and this run speaks over standard input and \
             output: add --transport http, or leave it out"
        );
    }
    // Who asks for standard input and output in so many words gets it.
    if settings.systemd_socket && arguments.transport.is_none() {
        bail!(
            "[transport.http].systemd_socket is true, but [transport].kind is \"stdio\": change \
             one of them, or add --transport http or --transport stdio"
        );
    }
    Ok(())
}

fn socket(arguments: &HttpArgs, settings: &HttpSettings) -> anyhow::Result<SocketFrom> {
    if arguments.systemd_socket || settings.systemd_socket {
        return inherited(arguments, settings);
    }
    if let Some(address) = arguments.bind {
        if !is_loopback(address.ip()) && !arguments.i_know {
            bail!(
                "--bind {address} can be reached from other machines: {NO_AUTHENTICATION}; add \
                 --i-know to proceed all the same"
            );
        }
        return Ok(SocketFrom::Address(address));
    }
    Ok(SocketFrom::Address(match arguments.port {
        Some(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        None => settings.address(),
    }))
}

fn inherited(arguments: &HttpArgs, settings: &HttpSettings) -> anyhow::Result<SocketFrom> {
    if !cfg!(target_os = "linux") {
        bail!("--systemd-socket and [transport.http].systemd_socket need Linux");
    }
    let other = [
        ("--bind", arguments.bind.map(|address| address.to_string())),
        ("--port", arguments.port.map(|port| port.to_string())),
        ("[transport.http].bind", settings.bind.map(|address| address.to_string())),
    ];
    if let Some((name, Some(value))) = other.into_iter().find(|(_, value)| value.is_some()) {
        bail!(
            "{name} is {value}, expected none: with the socket of a service manager the address \
             is that of its ListenStream="
        );
    }
    // Read only when it was asked for.
    let variable = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    Ok(SocketFrom::ServiceManager {
        listen_pid: variable("LISTEN_PID"),
        listen_fds: variable("LISTEN_FDS"),
    })
}

/// Serves over HTTP until it is to stop.
pub(crate) async fn serve(
    server: HttpServer,
    groove: &Groove,
    service: Arc<Service>,
    config_source: Source,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
) -> Result<(), AppError> {
    for advice in server.advice() {
        tracing::warn!("{advice}");
    }
    let monitor = groove.monitor(&service, config_source.to_string());
    monitor.count().await;
    let counted = Arc::clone(&monitor);
    let counting = tokio::spawn(async move { counted.follow().await });
    let outcome = server.serve(service, monitor, stop).await;
    counting.abort();
    outcome
}

/// What the ready line calls the place where requests come in.
pub(crate) fn place(listening: Listening) -> String {
    match listening {
        Listening::Bound(address) | Listening::Inherited(address) => address.to_string(),
        Listening::Unix => "the Unix socket of the service manager".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grooveseek::app::config::DEFAULT_BIND;

    fn settings(kind: TransportKind) -> TransportSettings {
        TransportSettings { kind, http: HttpSettings::default() }
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn at(text: &str) -> Way {
        Way::Http(SocketFrom::Address(address(text)))
    }

    fn refusal(arguments: &HttpArgs, settings: &TransportSettings) -> String {
        way(arguments, settings).unwrap_err().to_string()
    }

    const HTTP: HttpArgs = HttpArgs {
        transport: Some(TransportName::Http),
        port: None,
        bind: None,
        i_know: false,
        systemd_socket: false,
    };

    // HTTP-01 HTTP-02 HTTP-06 CLI-65 CLI-66 CLI-67
    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let plain = HttpArgs { transport: None, ..HTTP };
        let stdio = settings(TransportKind::Stdio);
        let mut http = settings(TransportKind::Http);
        assert_eq!(way(&plain, &stdio).unwrap(), Way::Stdio);
        assert_eq!(way(&HTTP, &stdio).unwrap(), at(&DEFAULT_BIND.to_string()));
        assert_eq!(way(&plain, &http).unwrap(), at("127.0.0.1:3100"));
        let back = HttpArgs { transport: Some(TransportName::Stdio), ..HTTP };
        assert_eq!(way(&back, &http).unwrap(), Way::Stdio);
        http.http.bind = Some(address("10.0.0.1:9"));
        assert_eq!(way(&plain, &http).unwrap(), at("10.0.0.1:9"), "a trusted file is not asked");
        let port = HttpArgs { port: Some(0), ..HTTP };
        assert_eq!(way(&port, &http).unwrap(), at("127.0.0.1:0"));
        let bind = HttpArgs { bind: Some(address("[::1]:8")), ..HTTP };
        assert_eq!(way(&bind, &http).unwrap(), at("[::1]:8"));
    }

    // HTTP-01 HTTP-03
    #[test]
    fn flags_of_http_do_not_switch_the_transport() {
        let stdio = settings(TransportKind::Stdio);
        for arguments in [
            HttpArgs { transport: None, port: Some(1), ..HTTP },
            HttpArgs { transport: None, bind: Some(address("127.0.0.1:1")), ..HTTP },
            HttpArgs { transport: None, systemd_socket: true, ..HTTP },
        ] {
            assert!(refusal(&arguments, &stdio).contains("--transport http"));
            let arguments = HttpArgs { transport: Some(TransportName::Stdio), ..arguments };
            assert!(refusal(&arguments, &settings(TransportKind::Http)).contains("--transport"));
        }
    }

    // HTTP-05 HTTP-07 CLI-68
    #[test]
    fn an_address_that_others_reach_has_to_be_meant() {
        let http = settings(TransportKind::Stdio);
        for bind in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::127.0.0.1]:1"] {
            let arguments = HttpArgs { bind: Some(address(bind)), ..HTTP };
            let refusal = refusal(&arguments, &http);
            for words in ["no authentication", "whole knowledge base", "session cap", "--i-know"] {
                assert!(refusal.contains(words), "{refusal} lacks {words}");
            }
            let meant = HttpArgs { i_know: true, ..arguments };
            assert_eq!(way(&meant, &http).unwrap(), at(bind));
        }
        for bind in ["127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            let arguments = HttpArgs { bind: Some(address(bind)), ..HTTP };
            assert_eq!(way(&arguments, &http).unwrap(), at(bind));
        }
    }

    // HTTP-09 HTTP-43 CLI-76
    #[test]
    fn a_broken_list_of_origins_stops_http_alone() {
        let mut broken = settings(TransportKind::Http);
        broken.http.allowed_origins = Some(vec!["127.0.0.1:3100".to_owned()]);
        assert!(refusal(&HTTP, &broken).contains("has no scheme"));
        let stdio = HttpArgs { transport: Some(TransportName::Stdio), ..HTTP };
        assert_eq!(way(&stdio, &broken).unwrap(), Way::Stdio);
    }

    // HTTP-90 HTTP-91 CLI-69
    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_of_the_service_manager_goes_with_no_address() {
        let flag = HttpArgs { systemd_socket: true, ..HTTP };
        let plain = settings(TransportKind::Http);
        let is_inherited = |way| matches!(way, Ok(Way::Http(SocketFrom::ServiceManager { .. })));
        assert!(is_inherited(way(&flag, &plain)));
        let mut key = settings(TransportKind::Http);
        key.http.systemd_socket = true;
        assert!(is_inherited(way(&HTTP, &key)));
        let mut both = key.clone();
        both.http.bind = Some(DEFAULT_BIND);
        for (arguments, settings, name) in [
            (HttpArgs { bind: Some(DEFAULT_BIND), ..flag.clone() }, &plain, "--bind"),
            (HttpArgs { port: Some(1), ..HTTP }, &key, "--port"),
            (flag.clone(), &both, "[transport.http].bind"),
        ] {
            let refusal = refusal(&arguments, settings);
            assert!(refusal.starts_with(&format!("{name} is ")), "{refusal}");
        }
        // The key beside stdio contradicts itself, unless a flag decides.
        key.kind = TransportKind::Stdio;
        let none = HttpArgs { transport: None, ..HTTP };
        assert!(refusal(&none, &key).contains("systemd_socket"));
        let stdio = HttpArgs { transport: Some(TransportName::Stdio), ..HTTP };
        assert_eq!(way(&stdio, &key).unwrap(), Way::Stdio);
    }
}
