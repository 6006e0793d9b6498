//! JSON-RPC messages as lines of text: one message a line, UTF-8.
//!
//! rmcp ships such a transport too. This one also answers lines that are no
//! messages, outlives them, and holds the end of input back until every
//! request that was read has its answer on the way.

use std::borrow::Cow;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::io;

use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::model::ClientNotification;
use rmcp::model::ClientRequest;
use rmcp::model::ErrorData;
use rmcp::model::GetMeta as _;
use rmcp::model::JsonRpcMessage;
use rmcp::model::ProtocolVersion;
use rmcp::model::RequestId;
use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncBufReadExt as _;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt as _;
use tokio::io::BufReader;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::adapters::transport::mcp::surrogates;
use crate::ports::transport::Stop;

/// A longer line is dropped and answered with an error.
const LINE_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// How many lines wait to be written before their senders have to wait.
const OUTBOX_LENGTH: usize = 64;

/// One connection, as rmcp's service loop reads and writes it.
pub(in crate::adapters::transport) struct Lines<R> {
    input: LineReader<R>,
    outbox: mpsc::Sender<Outgoing>,
    /// Messages of a batch that are still to be handed on.
    batch: VecDeque<ClientJsonRpcMessage>,
    /// Requests that were handed on and are not answered yet.
    unanswered: watch::Sender<HashSet<RequestId>>,
    /// Whether a request has opened the session.
    open: bool,
    /// None once no more is to be read.
    stop: Option<Stop>,
}

/// A line to be written, and who waits for that.
struct Outgoing {
    line: String,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

/// What the writing half came to.
pub(in crate::adapters::transport) type Writing = JoinHandle<io::Result<()>>;

impl<R: AsyncRead + Unpin + Send> Lines<R> {
    /// Connects the two halves. The second value completes when everything is
    /// written that was to be.
    pub(in crate::adapters::transport) fn new<W>(input: R, output: W, stop: Stop) -> (Self, Writing)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outbox, queue) = mpsc::channel(OUTBOX_LENGTH);
        let lines = Self {
            input: LineReader::new(input, LINE_LIMIT_BYTES),
            outbox,
            batch: VecDeque::new(),
            unanswered: watch::Sender::new(HashSet::new()),
            open: false,
            stop: Some(stop),
        };
        (lines, tokio::spawn(write(output, queue)))
    }

    /// The next line that was read, together with a place in the outbox for
    /// the error that it may deserve. None at the end of input, or when it is
    /// time to stop. Nothing is lost if this is dropped before it completes.
    async fn next_line(&mut self) -> Option<(Line, mpsc::OwnedPermit<Outgoing>)> {
        let stop = self.stop.as_mut()?;
        let outbox = self.outbox.clone();
        let input = &mut self.input;
        let line = async {
            let permit = outbox.reserve_owned().await.ok()?;
            Some((input.next().await?, permit))
        };
        tokio::select! {
            () = stop => None,
            () = self.outbox.closed() => None,
            line = line => line,
        }
    }

    /// Waits until all that was taken is answered, or nobody can read answers.
    async fn drained(&mut self) {
        let mut unanswered = self.unanswered.subscribe();
        tokio::select! {
            () = self.outbox.closed() => {}
            _ = unanswered.wait_for(HashSet::is_empty) => {}
        }
    }

    /// Sorts the messages of a line; returns what has to be answered at once.
    fn read_messages(&mut self, line: &[u8]) -> Result<(), Complaint> {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let value: Value = serde_json::from_slice(line)
            .or_else(|error| match surrogates::mended(line) {
                Cow::Owned(line) => serde_json::from_slice(&line),
                Cow::Borrowed(_) => Err(error),
            })
            .map_err(|error| Complaint::unreadable(format!("the line is not JSON: {error}")))?;
        match value {
            // Revision 2025-03-26 allows batches; each message is answered by itself.
            Value::Array(values) if !values.is_empty() => {
                // One bad message must not take the others with it; the first complaint
                // is answered.
                let results: Vec<_> =
                    values.into_iter().map(|value| self.read_message(value)).collect();
                results.into_iter().collect()
            }
            value => self.read_message(value),
        }
    }

    fn read_message(&mut self, value: Value) -> Result<(), Complaint> {
        let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
        let is_notification = value.get("id").is_none() && value.get("method").is_some();
        match serde_json::from_value(value) {
            Ok(message) => self.take(message),
            // Notifications are never answered, and an unknown one does no harm.
            Err(_) if is_notification => Ok(()),
            Err(_) => Err(Complaint::invalid(id, "the line is no JSON-RPC message".into())),
        }
    }

    fn take(&mut self, message: ClientJsonRpcMessage) -> Result<(), Complaint> {
        match &message {
            JsonRpcMessage::Request(request) => {
                self.open |= opens_session(&request.request);
                // What only listens is never done, so nobody waits for its answer.
                let listens =
                    matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
                if !listens
                    && !self.unanswered.send_if_modified(|ids| ids.insert(request.id.clone()))
                {
                    return Err(Complaint::invalid(
                        None,
                        format!("a request with the id {} is being worked on", request.id),
                    ));
                }
            }
            // Before the session is open, the service loop would end on these.
            JsonRpcMessage::Notification(_) if !self.open => return Ok(()),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // The protocol sends no answer to a cancelled request.
                    self.unanswered.send_modify(|ids| _ = ids.remove(id));
                }
            }
            // The client is asked nothing, so it has nothing to answer.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return Ok(()),
        }
        self.batch.push_back(message);
        Ok(())
    }
}

impl<R: AsyncRead + Unpin + Send> rmcp::transport::Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outbox = self.outbox.clone();
        let unanswered = self.unanswered.clone();
        async move {
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                JsonRpcMessage::Error(error) => error.id.clone(),
                _ => None,
            };
            let outcome = match serde_json::to_string(&message) {
                Ok(line) => deliver(&outbox, line).await,
                Err(error) => Err(error.into()),
            };
            if let Some(id) = answered {
                unanswered.send_modify(|ids| _ = ids.remove(&id));
            }
            outcome
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                return Some(message);
            }
            let Some((line, permit)) = self.next_line().await else {
                self.stop = None;
                self.drained().await;
                return None;
            };
            let outcome = match line {
                Line::Whole(line) => self.read_messages(&line),
                Line::TooLong => Err(Complaint::unreadable("the line is too long".into())),
            };
            if let Err(complaint) = outcome {
                permit.send(Outgoing { line: complaint.line(), written: None });
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether rmcp's service loop considers the session open after this request.
fn opens_session(request: &ClientRequest) -> bool {
    let meta = request.get_meta();
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        _ => {
            meta.missing_required_keys(&ProtocolVersion::NO_INITIALIZE).is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

/// What is wrong with a line, as JSON-RPC says it.
struct Complaint {
    id: Option<Value>,
    error: ErrorData,
}

impl Complaint {
    fn unreadable(message: String) -> Self {
        Self { id: None, error: ErrorData::parse_error(message, None) }
    }

    fn invalid(id: Option<Value>, message: String) -> Self {
        Self { id, error: ErrorData::invalid_request(message, None) }
    }

    fn line(self) -> String {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error }).to_string()
    }
}

async fn deliver(outbox: &mpsc::Sender<Outgoing>, line: String) -> io::Result<()> {
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let (written, outcome) = oneshot::channel();
    let outgoing = Outgoing { line, written: Some(written) };
    outbox.send(outgoing).await.map_err(|_| gone())?;
    outcome.await.map_err(|_| gone())?
}

/// Writes lines until nobody has any more, or the other end has gone.
async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut queue: mpsc::Receiver<Outgoing>,
) -> io::Result<()> {
    while let Some(Outgoing { mut line, written }) = queue.recv().await {
        line.push('\n');
        let outcome = match output.write_all(line.as_bytes()).await {
            Ok(()) => output.flush().await,
            Err(error) => Err(error),
        };
        let failed = outcome.as_ref().err().map(|error| io::Error::from(error.kind()));
        if let Some(written) = written {
            // Whoever sent the line may have stopped waiting.
            let _unheard = written.send(outcome);
        }
        if let Some(error) = failed {
            return Err(error);
        }
    }
    output.shutdown().await
}

/// Cuts a stream of bytes into lines of bounded length.
struct LineReader<R> {
    input: BufReader<R>,
    limit_bytes: usize,
    line: Vec<u8>,
    /// Whether the line at hand is already known to be too long.
    overlong: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(input: R, limit_bytes: usize) -> Self {
        Self { input: BufReader::new(input), limit_bytes, line: Vec::new(), overlong: false }
    }

    /// The next line without its end; the last one may have none. None at the
    /// end of input. Nothing is lost if this is dropped before it completes:
    /// bytes are taken from the buffer and kept in one step.
    async fn next(&mut self) -> Option<Line> {
        loop {
            let available = match self.input.fill_buf().await {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read any further");
                    return None;
                }
            };
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            if self.line.len() + part.len() > self.limit_bytes {
                self.overlong = true;
                self.line = Vec::new();
            }
            if !self.overlong {
                self.line.extend_from_slice(part);
            }
            let at_end_of_input = available.is_empty();
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() || (at_end_of_input && self.has_begun()) {
                let line = std::mem::take(&mut self.line);
                let overlong = std::mem::take(&mut self.overlong);
                return Some(if overlong { Line::TooLong } else { Line::Whole(line) });
            }
            if at_end_of_input {
                return None;
            }
        }
    }

    fn has_begun(&self) -> bool {
        self.overlong || !self.line.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit_bytes: usize) -> Vec<Line> {
        let mut reader = LineReader::new(input, limit_bytes);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(line);
        }
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn the_last_line_needs_no_end() {
        assert_eq!(lines(b"a\n\nb", 10).await, [whole("a"), whole(""), whole("b")]);
        assert_eq!(lines(b"a\n", 10).await, [whole("a")]);
        assert_eq!(lines(b"", 10).await, []);
    }

    // HTTP-B03
    #[tokio::test]
    async fn an_overlong_line_is_dropped_and_the_next_one_read() {
        assert_eq!(
            lines(b"12345\n123456\n1\n1234567", 5).await,
            [whole("12345"), Line::TooLong, whole("1"), Line::TooLong]
        );
        // Longer than the buffer, so that it comes in parts.
        let long = [vec![b'x'; 100_000], b"\nnext".to_vec()].concat();
        assert_eq!(lines(&long, 5).await, [Line::TooLong, whole("next")]);
        assert_eq!(lines(&long, 100_000).await.len(), 2);
    }

    #[tokio::test]
    async fn reading_can_be_given_up_and_taken_up_again() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut reader = LineReader::new(server, 100);
        client.write_all(b"first ").await.unwrap();
        tokio::select! {
            line = reader.next() => panic!("{line:?}"),
            () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
        }
        client.write_all(b"half\n").await.unwrap();
        assert_eq!(reader.next().await, Some(whole("first half")));
    }
}
