//! Adapters of the embedder port.

pub mod hashing;
