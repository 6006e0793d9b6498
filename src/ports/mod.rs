//! Promises: what the rules need from outside, one trait and its error a file.

pub mod document_source;
pub mod parser;

pub mod embedder;
pub mod reranker;

pub mod chunk_store;
pub mod monitor;
pub mod transport;

use std::error::Error;

/// The failure of a technology, as it reported it.
pub type Cause = Box<dyn Error + Send + Sync>;

/// An error with all of its causes, on one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // A transparent wrapper says the same as its cause.
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}
