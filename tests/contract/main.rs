//! What every adapter of a port must do: one suite a port, run against each
//! adapter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::similar_names,
    clippy::type_complexity,
    reason = "a failure here is a failed case, and output is for its reader"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "cases make files, and the environment names what they may use"
)]
#![allow(missing_docs, reason = "a test binary has no readers of its interface")]

/// Runs every case against one adapter, each as a test of its own.
///
/// A case left out of the list is an unused function, which the build refuses.
/// An adapter that needs more than this machine has is marked `ignore`, so that
/// the runner reports its cases as ignored and never as passed.
#[allow(unused_macros, reason = "each port's suite uses it")]
macro_rules! contract {
    ($adapter:ident = $make:expr; $($case:ident),+ $(,)?) => {
        mod $adapter {
            $(#[test] fn $case() { super::$case($make); })+
        }
    };
    ($adapter:ident = $make:expr, ignore $why:literal; $($case:ident),+ $(,)?) => {
        mod $adapter {
            $(#[test] #[ignore = $why] fn $case() { super::$case($make); })+
        }
    };
}

mod chunk_store;
mod document_source;
mod embedder;
mod parser;
mod reranker;
mod transport;

#[path = "../support/endpoint.rs"]
mod endpoint;
