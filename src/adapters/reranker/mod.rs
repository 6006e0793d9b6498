//! Adapters of the reranker port.

pub mod native;

pub mod overlap;
