//! The one listening socket that a service manager passes, by the protocol of
//! `sd_listen_fds(3)`.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::adapters::transport::http::listener::{Listener, Socket};
use crate::domain::gate::Listening;

/// The first descriptor that is passed.
const FIRST: i32 = 3;

/// Why the socket cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// The variables are meant for another process, or not there.
    #[error("LISTEN_PID is {found}, expected {expected}, which is this process: {HINT}")]
    OtherProcess {
        /// What the variable says.
        found: String,
        /// This process.
        expected: u32,
    },
    /// Not exactly one descriptor was passed.
    #[error("LISTEN_FDS is {found}, expected 1: give the .socket unit one ListenStream= line")]
    NotOne {
        /// What the variable says.
        found: String,
    },
    /// The descriptor is something else.
    #[error("descriptor 3 is {found}, expected a stream socket: use ListenStream=")]
    NotAStream {
        /// What it is.
        found: String,
    },
    /// The socket is a connection, or not yet listening.
    #[error(
        "descriptor 3 is a socket that does not listen, expected one that does: leave out \
         Accept=yes"
    )]
    NotListening,
    /// No file mode says who may connect.
    #[error(
        "descriptor 3 is the abstract socket @{name}, expected one with a path or an address: an \
         abstract socket has no owner and mode, so everybody may connect"
    )]
    Abstract {
        /// Its name.
        name: String,
    },
    /// The system does not say what the descriptor is.
    #[error("descriptor 3 cannot be looked at")]
    Unreadable(#[source] io::Error),
}

const HINT: &str = "start the program from the .service unit that belongs to the .socket unit";

/// Takes the socket that the service manager passed.
///
/// - `listen_pid`, `listen_fds`: the variables of these names.
/// - Returns the socket, and the path of a Unix socket.
///
/// # Errors
///
/// [`InheritError`] for the first thing that is not as it has to be.
pub fn take(
    listen_pid: Option<&str>,
    listen_fds: Option<&str>,
) -> Result<(Listener, Option<PathBuf>), InheritError> {
    check_variables(listen_pid, listen_fds, std::process::id())?;
    // Looked at before it is owned: what is not there must not be closed.
    rustix::fs::stat(format!("/proc/self/fd/{FIRST}").as_str())
        .map_err(|error| InheritError::Unreadable(error.into()))?;
    #[expect(unsafe_code, reason = "the service manager passes the socket as a number")]
    // SAFETY: LISTEN_PID says that descriptor 3 was passed to this process, it is
    // open, and nothing else in this program takes it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(FIRST) };
    let (listener, path) = adopt(descriptor)?;
    Ok((listener, path))
}

fn check_variables(
    listen_pid: Option<&str>,
    listen_fds: Option<&str>,
    own: u32,
) -> Result<(), InheritError> {
    let found = |value: Option<&str>| value.map_or_else(|| "not set".to_owned(), shown);
    if listen_pid.and_then(|pid| pid.parse::<u32>().ok()) != Some(own) {
        return Err(InheritError::OtherProcess { found: found(listen_pid), expected: own });
    }
    if listen_fds != Some("1") {
        return Err(InheritError::NotOne { found: found(listen_fds) });
    }
    Ok(())
}

fn shown(value: &str) -> String {
    value.chars().take(40).flat_map(char::escape_default).collect()
}

/// Makes a listener of a descriptor, if it is one.
///
/// - Returns the path of a Unix socket, too.
///
/// # Errors
///
/// [`InheritError`] if it is no stream socket, does not listen, or is abstract.
fn adopt(descriptor: OwnedFd) -> Result<(Listener, Option<PathBuf>), InheritError> {
    let unreadable = |error: rustix::io::Errno| InheritError::Unreadable(error.into());
    match sockopt::socket_type(&descriptor) {
        Ok(SocketType::STREAM) => {}
        Ok(other) => return Err(InheritError::NotAStream { found: kind(other) }),
        Err(rustix::io::Errno::NOTSOCK) => {
            return Err(InheritError::NotAStream { found: "no socket".into() });
        }
        Err(error) => return Err(unreadable(error)),
    }
    if !sockopt::socket_acceptconn(&descriptor).map_err(unreadable)? {
        return Err(InheritError::NotListening);
    }
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC).map_err(unreadable)?;
    if sockopt::socket_domain(&descriptor).map_err(unreadable)? == AddressFamily::UNIX {
        return adopt_unix(descriptor);
    }
    let socket = std::net::TcpListener::from(descriptor);
    let address = socket.local_addr().map_err(InheritError::Unreadable)?;
    Ok((Listener::inherited(Socket::Tcp(socket), Listening::Inherited(address)), None))
}

fn adopt_unix(descriptor: OwnedFd) -> Result<(Listener, Option<PathBuf>), InheritError> {
    use std::os::linux::net::SocketAddrExt as _;

    let socket = std::os::unix::net::UnixListener::from(descriptor);
    let address = socket.local_addr().map_err(InheritError::Unreadable)?;
    if let Some(name) = address.as_abstract_name() {
        return Err(InheritError::Abstract { name: name.escape_ascii().to_string() });
    }
    let path = address.as_pathname().map(Path::to_owned);
    Ok((Listener::inherited(Socket::Unix(socket), Listening::Unix), path))
}

fn kind(kind: SocketType) -> String {
    match kind {
        SocketType::DGRAM => "a datagram socket".into(),
        SocketType::SEQPACKET => "a socket of sequential packets".into(),
        SocketType::RAW => "a raw socket".into(),
        other => format!("a socket of the type {}", other.as_raw()),
    }
}

/// Whether every user of the machine may connect to a Unix socket.
pub fn is_open_to_all(socket: &Path) -> bool {
    std::fs::metadata(socket).is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    // HTTP-91
    #[test]
    fn the_variables_must_name_this_process_and_one_descriptor() {
        let check = |pid, fds| check_variables(pid, fds, 7).map_err(|error| error.to_string());
        assert_eq!(check(Some("7"), Some("1")), Ok(()));
        for (pid, found) in [(None, "not set"), (Some("8"), "8"), (Some(""), "")] {
            let error = check(pid, Some("2")).unwrap_err();
            assert!(error.starts_with(&format!("LISTEN_PID is {found}, expected 7")), "{error}");
        }
        for (fds, found) in [(None, "not set"), (Some("0"), "0"), (Some("2"), "2")] {
            let error = check(Some("7"), fds).unwrap_err();
            assert!(error.starts_with(&format!("LISTEN_FDS is {found}, expected 1")), "{error}");
        }
    }

    // HTTP-91
    #[test]
    fn only_a_stream_socket_that_listens_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |descriptor: OwnedFd| adopt(descriptor).unwrap_err().to_string();
        let datagram = UnixDatagram::bind(folder.path().join("d")).unwrap();
        assert!(refused(datagram.into()).contains("is a datagram socket, expected a stream"));
        let file = tempfile::tempfile().unwrap();
        assert!(refused(file.into()).contains("is no socket"));
        let (connection, _other) = UnixStream::pair().unwrap();
        assert!(refused(connection.into()).contains("does not listen"));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(refused(udp.into()).contains("datagram"));
    }

    // HTTP-91
    #[test]
    fn an_abstract_socket_is_refused() {
        use std::os::linux::net::SocketAddrExt as _;

        let name = format!("groove-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixListener::bind_addr(&address).unwrap();
        assert!(adopt(socket.into()).unwrap_err().to_string().contains(&format!("@{name}")));
    }

    // HTTP-92 HTTP-93 HTTP-B14
    #[test]
    fn the_family_is_read_from_the_socket_and_a_file_outlives_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("groove.sock");
        let socket = UnixListener::bind(&path).unwrap();
        let (listener, found) = adopt(socket.into()).unwrap();
        assert_eq!((listener.listening(), found), (Listening::Unix, Some(path.clone())));
        drop(listener);
        assert!(path.exists());
        let mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            is_open_to_all(&path)
        };
        assert!(mode(0o666) && !mode(0o660));

        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (listener, found) = adopt(socket.into()).unwrap();
        assert_eq!((listener.listening(), found), (Listening::Inherited(address), None));
        let Socket::Tcp(socket) = listener.socket else { panic!("a TCP socket was passed") };
        let flags = rustix::io::fcntl_getfd(&socket).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
