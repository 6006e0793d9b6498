//! Local models, whatever they do: which are known, where their files are, and
//! how those that are not here are fetched.

pub mod catalogue;

pub mod locate;

pub mod folder;

pub mod hub;

pub mod encoder;

pub mod runtime;

#[cfg(feature = "onnx")]
pub(crate) mod onnx;

pub mod archive;

pub mod shelf;

use crate::adapters::model::catalogue::Sources;
use crate::adapters::model::locate::ModelPlaces;

/// How to get a model onto a machine without a network, to be read after what
/// went wrong; empty where there is no folder for it.
pub(crate) fn offline_way(sources: &Sources, places: &ModelPlaces) -> String {
    let Some(folder) = &places.models_dir else { return String::new() };
    let weights = if sources.safetensors.is_some() { "model.safetensors" } else { "ONNX files" };
    format!(
        "; without a network, `groove models import` a folder or an archive of it, or put its \
         config.json, tokenizer.json and {weights} into {}",
        folder.join(sources.name).display()
    )
}
