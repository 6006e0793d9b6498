//! Our own engine for models of the BERT and XLM-RoBERTa families, whatever
//! they are used for: no padding, weights packed for the processor at hand.

mod folder;

pub(crate) mod beginning;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod parts;
pub(crate) mod sentence;
pub(crate) mod tokens;
pub(crate) mod weights;

pub(crate) mod head;
pub(crate) mod layer;
pub(crate) mod transformer;

pub(crate) mod gather;
pub(crate) mod loaded;
pub(crate) mod threads;

#[cfg(test)]
pub(crate) mod onnx_testing;
#[cfg(test)]
pub(crate) mod testing;

pub use crate::adapters::model::encoder::folder::ModelFolder;
pub use crate::adapters::model::encoder::loaded::Precision;
