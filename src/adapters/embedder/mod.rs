//! Adapters of the embedder port.

pub mod local;

pub mod catalogue;
pub mod hub;
pub mod locate;

pub mod native;

#[cfg(feature = "onnx")]
pub mod fastembed;

pub mod hashing;

pub use crate::adapters::embedder::local::open;
