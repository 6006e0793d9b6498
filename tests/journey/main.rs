//! Whole runs of the built binary: index, search, serve.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::format_collect,
    reason = "a failure here is a failed case, and output is for its reader"
)]
#![allow(missing_docs, reason = "a test binary has no readers of its interface")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests make files and start processes"
)]

mod contents;
mod groove;
mod http_server;
mod server;
mod site;
mod traversal;

mod command_line;
mod crashes;
mod doctor;
mod endpoints;
mod graph;
mod hostile;
mod http;
mod indexing;
mod library;
mod models;
mod planted;
mod refusals;
mod relevance;
mod serving;
mod surface;
mod validate;
mod watching;

#[path = "../support/endpoint.rs"]
mod endpoint;
#[path = "../support/judged.rs"]
mod judged;
