//! MCP over standard input and output.

use std::fmt;
use std::io;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::thread;

use async_trait::async_trait;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::sync::mpsc;

use crate::adapters::transport::mcp::lines::Lines;
use crate::adapters::transport::mcp::server::McpServer;
use crate::ports::transport::Handler;
use crate::ports::transport::Stop;
use crate::ports::transport::Transport;
use crate::ports::transport::TransportError;

type Input = Box<dyn AsyncRead + Unpin + Send>;
type Output = Box<dyn AsyncWrite + Unpin + Send>;
type Open = Box<dyn FnOnce() -> io::Result<(Input, Output)> + Send>;

/// One client at the other end of two streams of bytes, one JSON-RPC message
/// a line. Serves once.
///
/// The end of input ends the session in good order: what was asked before is
/// still answered.
pub struct StdioTransport {
    open: Mutex<Option<Open>>,
}

impl StdioTransport {
    /// Serves the process's own standard input and output. From then on
    /// nothing else may be written to standard output.
    pub fn new() -> Self {
        Self::opened_by(|| {
            Ok((Box::new(StandardInput::open()?) as Input, Box::new(tokio::io::stdout()) as Output))
        })
    }

    /// Serves any other pair of streams.
    pub fn over(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        Self::opened_by(|| Ok((Box::new(input) as Input, Box::new(output) as Output)))
    }

    fn opened_by(open: impl FnOnce() -> io::Result<(Input, Output)> + Send + 'static) -> Self {
        Self { open: Mutex::new(Some(Box::new(open))) }
    }
}

impl Default for StdioTransport {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StdioTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StdioTransport").finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for StdioTransport {
    async fn serve(&self, handler: Arc<dyn Handler>, stop: Stop) -> Result<(), TransportError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let open = open.ok_or_else(|| {
            unavailable("serve standard input twice", io::ErrorKind::AlreadyExists.into())
        })?;
        let (input, output) = open().map_err(|error| unavailable("open standard input", error))?;
        let (lines, written) = Lines::new(input, output, stop);
        let server = McpServer::new(handler);
        let outcome = session(server.clone(), lines).await;
        server.idle().await;
        match written.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            // A client that reads no more has gone.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(unavailable("write to standard output", error)),
            Ok(()) => outcome.map_err(|error| unavailable("serve standard input", error)),
        }
    }
}

/// Runs one session to its end.
async fn session(server: McpServer, lines: Lines<Input>) -> io::Result<()> {
    match server.serve(lines).await {
        Ok(session) => session.waiting().await.map(drop).map_err(io::Error::other),
        // The client left, or the stop came, before a session was opened.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn unavailable(what: &str, error: io::Error) -> TransportError {
    TransportError::Unavailable { what: what.into(), source: error.into() }
}

/// Standard input, read by a thread of its own: a read that never returns must
/// not keep the runtime, and with it the process, from ending.
struct StandardInput {
    blocks: mpsc::Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    /// How much of `block` was handed out.
    used: usize,
}

impl StandardInput {
    const BLOCK_BYTES: usize = 64 * 1024;

    fn open() -> io::Result<Self> {
        let (sender, blocks) = mpsc::channel(2);
        thread::Builder::new().name("stdin".into()).spawn(move || {
            let mut input = io::stdin().lock();
            let mut buffer = vec![0; Self::BLOCK_BYTES];
            loop {
                let block = match input.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => Ok(buffer[..length].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = block.is_err();
                if sender.blocking_send(block).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self { blocks, block: Vec::new(), used: 0 })
    }
}

impl AsyncRead for StandardInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.used == self.block.len() {
            match ready!(self.blocks.poll_recv(context)) {
                None => return Poll::Ready(Ok(())),
                Some(block) => self.block = block?,
            }
            self.used = 0;
        }
        let rest = &self.block[self.used..];
        let length = rest.len().min(target.remaining());
        target.put_slice(&rest[..length]);
        self.used += length;
        Poll::Ready(Ok(()))
    }
}
