//! The socket that connections come from.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::domain::gate::Listening;

/// A connection, whatever it came over.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A socket that listens.
pub struct Listener {
    pub(super) socket: Socket,
    listening: Listening,
}

pub(super) enum Socket {
    Tcp(std::net::TcpListener),
    #[cfg(target_os = "linux")]
    Unix(std::os::unix::net::UnixListener),
}

impl Listener {
    /// Binds an address; port 0 lets the system choose one.
    ///
    /// # Errors
    ///
    /// What the system says, for example that the address is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::TcpListener::bind(address)?;
        let listening = Listening::Bound(socket.local_addr()?);
        Ok(Self { socket: Socket::Tcp(socket), listening })
    }

    #[cfg(target_os = "linux")]
    pub(super) fn inherited(socket: Socket, listening: Listening) -> Self {
        Self { socket, listening }
    }

    /// Where it listens.
    pub fn listening(&self) -> Listening {
        self.listening
    }

    /// Hands the socket to the runtime that this is called in.
    pub(super) fn open(self) -> io::Result<Accepting> {
        match self.socket {
            Socket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Ok(Accepting::Tcp(TcpListener::from_std(socket)?))
            }
            #[cfg(target_os = "linux")]
            Socket::Unix(socket) => {
                socket.set_nonblocking(true)?;
                Ok(Accepting::Unix(tokio::net::UnixListener::from_std(socket)?))
            }
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Listener")
            .field("listening", &self.listening)
            .finish_non_exhaustive()
    }
}

/// A socket that hands out connections.
pub(super) enum Accepting {
    Tcp(TcpListener),
    #[cfg(target_os = "linux")]
    Unix(tokio::net::UnixListener),
}

impl Accepting {
    /// The next connection, and its other end unless that is local by nature.
    pub(super) async fn next(&self) -> io::Result<(Box<dyn Connection>, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Without this, small answers wait for the client's delayed
                // acknowledgement, about 40 ms each.
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), Some(peer.ip())))
            }
            #[cfg(target_os = "linux")]
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), None))
            }
        }
    }
}
