//! Our own engine for models of the BERT and XLM-RoBERTa families: no padding,
//! weights packed for the processor at hand.

pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod tokens;
pub(crate) mod weights;

pub(crate) mod layer;
pub(crate) mod transformer;
