//! Adapters of the embedder port.

pub mod local;

pub mod native;

#[cfg(feature = "onnx")]
pub mod fastembed;

pub mod openai;

pub mod hashing;

pub mod prefixed;

pub mod measure;

pub use crate::adapters::embedder::local::open;
