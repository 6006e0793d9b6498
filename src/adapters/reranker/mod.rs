//! Adapters of the reranker port.

pub mod local;

pub mod native;

#[cfg(feature = "onnx")]
pub mod fastembed;

pub mod overlap;
