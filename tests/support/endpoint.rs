//! An embedding endpoint on this machine that does as it is told.
#![allow(dead_code, reason = "no test binary uses all of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The numbers of a vector of this endpoint.
pub(crate) const DIMENSION: usize = 256;

/// What the endpoint does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with vectors.
    Embed,
    /// The same, in the opposite order of entries.
    EmbedBackwards,
    /// Answers after a while.
    EmbedAfter(Duration),
    /// Answers with this status, these header lines and this body.
    Answer(u16, &'static str, String),
    /// Answers 200 with the beginning of a body and no more, keeping the
    /// connection open or closing it.
    Begin { status: u16, stay: bool },
    /// Closes the connection without a word.
    Drop,
    /// Says nothing, with the connection open.
    Silence,
    /// Sends more than anyone wants to read.
    Flood,
    /// Speaks another language.
    Babble,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) target: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
}

/// An endpoint; it ends with the process.
#[derive(Clone)]
pub(crate) struct FakeEndpoint {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    script: Mutex<Vec<Act>>,
    always: Mutex<Option<Act>>,
    received: Mutex<Vec<Received>>,
    /// Inputs with this word are refused with this status.
    refused: Mutex<Option<(String, u16)>>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl FakeEndpoint {
    /// Does these things with the first requests, one each, and embeds after.
    pub(crate) fn new(script: &[Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let mut script = script.to_vec();
        script.reverse();
        *state.script.lock().unwrap() = script;
        let endpoint = Self { port, state: Arc::clone(&state) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                thread::spawn(move || drop(serve(&stream, &state)));
            }
        });
        endpoint
    }

    /// Does this with every request from now on.
    pub(crate) fn always(&self, act: Option<Act>) {
        *self.state.always.lock().unwrap() = act;
    }

    /// Refuses inputs with a word.
    pub(crate) fn refuse(&self, word: &str, status: u16) {
        *self.state.refused.lock().unwrap() = Some((word.to_owned(), status));
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1/embeddings", self.port)
    }

    /// The requests since this was last asked.
    pub(crate) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.state.received.lock().unwrap())
    }

    /// The most requests that were under way at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state.most.load(Ordering::SeqCst)
    }
}

/// A direction that depends on the words of a text.
fn vector(text: &str) -> Vec<f64> {
    let mut vector = vec![0.01; DIMENSION];
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3);
    for word in words {
        let place =
            word.bytes().fold(7, |hash, byte| (hash * 31 + usize::from(byte)) % 9973) % DIMENSION;
        vector[place] += 1.0;
    }
    vector
}

fn serve(stream: &TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let Some(received) = read(&mut reader)? else { return Ok(()) };
        if received.body.is_null() {
            // As a proxy: whatever is asked for through it is answered here.
            state.received.lock().unwrap().push(received);
            (&*stream).write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
            continue;
        }
        let inputs: Vec<String> = received.body["input"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|input| input.as_str().map(str::to_owned))
            .collect();
        state.received.lock().unwrap().push(received);
        let now = state.now.fetch_add(1, Ordering::SeqCst) + 1;
        state.most.fetch_max(now, Ordering::SeqCst);
        let always = state.always.lock().unwrap().clone();
        let act = always.or_else(|| state.script.lock().unwrap().pop()).unwrap_or(Act::Embed);
        let refused = state.refused.lock().unwrap().clone();
        let act = match refused {
            Some((word, status)) if inputs.iter().any(|input| input.contains(&word)) => {
                Act::Answer(status, "", "{\"error\": \"s3cret words of the document\"}".to_owned())
            }
            _ => act,
        };
        let stay = answer(stream, act, &inputs);
        state.now.fetch_sub(1, Ordering::SeqCst);
        if !stay? {
            return stream.shutdown(Shutdown::Both);
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Received>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let length = lines
        .iter()
        .find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
        })
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let target = lines[0].split(' ').nth(1).unwrap_or_default().to_owned();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(Received { target, headers: lines.split_off(1), body }))
}

/// Acts, and tells whether the connection goes on.
fn answer(mut stream: &TcpStream, act: Act, inputs: &[String]) -> std::io::Result<bool> {
    let entries = inputs.iter().enumerate().map(|(index, input)| {
        json!({ "object": "embedding", "index": index, "embedding": vector(input) })
    });
    let mut entries: Vec<Value> = entries.collect();
    let mut whole = |status: u16, headers: &str, body: &str| {
        write!(
            stream,
            "HTTP/1.1 {status} Whatever\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        Ok(true)
    };
    match act {
        Act::Embed => whole(200, "", &json!({ "data": entries }).to_string()),
        Act::EmbedBackwards => {
            entries.reverse();
            whole(200, "", &json!({ "data": entries }).to_string())
        }
        Act::EmbedAfter(pause) => {
            thread::sleep(pause);
            whole(200, "", &json!({ "data": entries }).to_string())
        }
        Act::Answer(status, headers, body) => whole(status, headers, &body),
        Act::Begin { status, stay } => {
            write!(
                stream,
                "HTTP/1.1 {status} Whatever\r\ncontent-length: 999\r\n\r\n{{\"data\": ["
            )?;
            stream.flush()?;
            if stay {
                thread::sleep(Duration::from_secs(30));
            }
            Ok(false)
        }
        Act::Drop => Ok(false),
        Act::Silence => {
            thread::sleep(Duration::from_secs(30));
            Ok(false)
        }
        Act::Flood => {
            write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{{\"data\": [\"")?;
            let junk = vec![b'x'; 64 * 1024];
            while stream.write_all(&junk).is_ok() {}
            Ok(false)
        }
        Act::Babble => {
            stream.write_all(b"220 mail.example ESMTP ready\r\n")?;
            Ok(false)
        }
    }
}
