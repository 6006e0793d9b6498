//! Technologies: a folder for each port, a file or folder for each technology.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files, sockets, the clock and the environment end here"
)]

pub mod parser;
pub mod source;

pub mod model;

pub mod embedder;
pub mod reranker;

pub mod store;

pub mod json;
pub mod transport;
