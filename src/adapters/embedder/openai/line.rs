//! Connections that note the status line, which decides what an answer is.
//!
//! The client library hands an answer out once all of its headers are there.
//! An endpoint may say `413` and close while the request is still being sent,
//! or fall silent between the status line and the end of the headers; what it
//! said counts all the same.

use std::cell::Cell;
use std::time::Duration;

use ureq::Error;
use ureq::http::uri::Authority;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport,
};

/// How long an answer is waited for when a request cannot be sent to its end.
const LAST_WORD_WAIT: Duration = Duration::from_millis(500);

thread_local! {
    /// The status that the attempt on this thread was answered with.
    static STATUS: Cell<Option<u16>> = const { Cell::new(None) };
}

/// Forgets the status of the attempt before this one on the thread.
pub(super) fn forget_status() {
    STATUS.set(None);
}

/// The status that has arrived on this thread since it was last forgotten.
pub(super) fn status() -> Option<u16> {
    STATUS.get()
}

/// Connects as usual, and watches what comes from one host.
#[derive(Debug)]
pub(super) struct Watching {
    usual: DefaultConnector,
    /// What a proxy says on the way there is not the endpoint's word.
    endpoint: Option<Authority>,
}

impl Watching {
    pub(super) fn new(endpoint: Option<Authority>) -> Self {
        Self { usual: DefaultConnector::default(), endpoint }
    }
}

impl Connector for Watching {
    type Out = Watched;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Watched>, Error> {
        let to_endpoint = details.uri.authority() == self.endpoint.as_ref();
        let state = if to_endpoint { State::Waiting } else { State::Unwatched };
        let transport = self.usual.connect(details, chained)?;
        Ok(transport.map(|transport| Watched { transport, state }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unwatched,
    /// No status line yet.
    Waiting,
    Answered,
    /// Answered before the request was sent to its end; no more is sent.
    AnsweredEarly,
}

/// A connection that is watched.
#[derive(Debug)]
pub(super) struct Watched {
    transport: Box<dyn Transport>,
    state: State,
}

impl Watched {
    fn look(&mut self) {
        if self.state == State::Waiting
            && let Some(status) = final_status(self.transport.buffers().input())
        {
            STATUS.set(Some(status));
            self.state = State::Answered;
        }
    }
}

impl Transport for Watched {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        match self.state {
            State::AnsweredEarly => return Ok(()),
            // The next request on a connection that was kept.
            State::Answered => self.state = State::Waiting,
            State::Unwatched | State::Waiting => {}
        }
        let sent = self.transport.transmit_output(amount, timeout);
        if sent.is_err() && self.state == State::Waiting {
            let timeout = NextTimeout { after: LAST_WORD_WAIT.into(), ..timeout };
            // Only a status counts here; without one, the first failure does.
            drop(self.transport.await_input(timeout));
            self.look();
            if self.state == State::Answered {
                self.state = State::AnsweredEarly;
                return Ok(());
            }
        }
        sent
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let progress = self.transport.await_input(timeout);
        self.look();
        progress
    }

    fn is_open(&mut self) -> bool {
        self.state != State::AnsweredEarly && self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

/// The status of a whole status line at the start of `input`; one that only
/// announces another (`1xx`) is none.
fn final_status(input: &[u8]) -> Option<u16> {
    let end = input.iter().position(|&byte| byte == b'\n')?;
    let line = str::from_utf8(&input[..end]).ok()?;
    let (version, rest) = line.split_once(' ')?;
    let status = rest.get(..3)?.parse().ok()?;
    (version.starts_with("HTTP/1.") && (200..1000).contains(&status)).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    // IDX-168
    #[test]
    fn a_status_line_counts_once_it_is_whole() {
        for (input, expected) in [
            ("HTTP/1.1 413 Too Large\r\nConnection", Some(413)),
            ("HTTP/1.0 200\r\n", Some(200)),
            ("HTTP/1.1 413 Too Large", None),
            ("HTTP/1.1 100 Continue\r\n\r\n", None),
            ("SSH-2.0 400 x\r\n", None),
            ("HTTP/1.1 4\r\n", None),
            ("", None),
        ] {
            assert_eq!(final_status(input.as_bytes()), expected, "{input:?}");
        }
    }
}
