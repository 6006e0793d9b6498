//! Adapters of the reranker port.
