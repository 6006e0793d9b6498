//! Adapters of the embedder port.

pub mod hashing;
pub mod catalogue;
pub mod hub;
pub mod locate;
