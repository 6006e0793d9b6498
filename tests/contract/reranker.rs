//! The contract of the reranker port.
