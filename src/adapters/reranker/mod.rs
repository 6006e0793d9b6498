//! Adapters of the reranker port.

pub mod overlap;
