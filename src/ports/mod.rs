//! Promises: what the rules need from outside, one trait and its error a file.

pub mod document_source;
pub mod parser;

pub mod embedder;
pub mod reranker;

pub mod chunk_store;
pub mod transport;

use std::error::Error;

/// The failure of a technology, as it reported it.
pub type Cause = Box<dyn Error + Send + Sync>;
