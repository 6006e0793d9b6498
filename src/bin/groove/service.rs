//! `groove service`: its commands and flags.
//!
//! Registering a service is not part of this version.

use std::net::SocketAddr;
use std::path::PathBuf;

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    command: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Register a server that starts at login
    Install(InstallArgs),
    /// Remove the registration; the index stays unless --purge is given
    Uninstall(UninstallArgs),
    /// Say whether a service runs
    Status(ServiceName),
    /// List the registered services
    List,
    /// Let a tray icon show the service (Windows only)
    TrayInstall(TrayInstallArgs),
    /// Remove the tray icon (Windows only)
    TrayUninstall(ServiceName),
}

#[derive(Debug, Args)]
struct ServiceName {
    /// Which service: letters, digits, `_` and `-`
    #[arg(long, value_name = "NAME", default_value = "groove", value_parser = service_name)]
    service_name: String,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
struct InstallArgs {
    /// Root of the knowledge base; needed unless the service's groove.toml names
    /// one
    #[arg(long, value_name = "PATH")]
    kb_path: Option<PathBuf>,
    #[command(flatten)]
    name: ServiceName,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3100")]
    bind: SocketAddr,
    /// Bind to an address that other machines reach, knowing that there is no
    /// authentication
    #[arg(long)]
    i_know: bool,
    /// Register it without starting it at login
    #[arg(long)]
    no_auto_start: bool,
    /// Replace what is registered under the name
    #[arg(long)]
    force: bool,
    /// Also let a tray icon show it (Windows only)
    #[arg(long)]
    with_tray: bool,
}

#[derive(Debug, Args)]
struct UninstallArgs {
    #[command(flatten)]
    name: ServiceName,
    /// Also remove its configuration and its index
    #[arg(long)]
    purge: bool,
    /// Really do what --purge says
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct TrayInstallArgs {
    #[command(flatten)]
    name: ServiceName,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

/// Manages services of the user who runs it.
pub(crate) fn run(arguments: &ServiceArgs) -> anyhow::Result<ExitCode> {
    let is_tray = match &arguments.command {
        ServiceCommand::Install(install) => install.with_tray,
        ServiceCommand::TrayInstall(_) | ServiceCommand::TrayUninstall(_) => true,
        _ => false,
    };
    if is_tray && cfg!(not(windows)) {
        bail!("the tray icon is for Windows only; nothing was changed");
    }
    bail!(
        "this version does not manage services; start `groove serve` from a unit of your own; \
         nothing was changed"
    )
}

/// Reads a service's name: one or more ASCII letters, digits, `_` and `-`.
fn service_name(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if text.is_empty() || !text.bytes().all(is_allowed) {
        return Err("a service name consists of ASCII letters, digits, `_` and `-`".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // OPS-11
    #[test]
    fn a_service_name_is_letters_digits_and_two_marks() {
        for name in ["groove", "a", "A_b-9"] {
            assert_eq!(service_name(name), Ok(name.to_owned()));
        }
        for name in ["", ".", "a.b", "a/b", "a b", "\u{e4}", "..", "a\n"] {
            assert!(service_name(name).is_err(), "{name:?}");
        }
    }
}
