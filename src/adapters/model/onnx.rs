//! The files of a model as ONNX, as FastEmbed and ONNX Runtime want them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fastembed::TokenizerFiles;
use serde_json::{Value, json};

use crate::adapters::model::locate::OnnxFolder;
use crate::ports::Cause;

/// A model up to this size is held by several sessions at once.
pub(crate) const SHARED_FROM_BYTES: u64 = 512 * 1024 * 1024;

/// More sessions than this cost memory for little.
pub(crate) const MOST_SESSIONS: usize = 4;

/// The folder from which ONNX Runtime may map the model's data files. It
/// refuses links that lead out of it, as a cache's do; what lies behind those
/// has to be handed to it in memory.
pub(crate) fn data_folder(folder: &OnnxFolder) -> Option<&Path> {
    let parent = folder.model.parent()?;
    let real_parent = fs::canonicalize(parent).ok()?;
    let inside = |path: &PathBuf| {
        path.parent() == Some(parent)
            && fs::canonicalize(path).is_ok_and(|path| path.starts_with(&real_parent))
    };
    (!folder.data.is_empty() && folder.data.iter().all(inside)).then_some(parent)
}

/// FastEmbed wants two files that a folder need not have. As no batch is ever
/// padded, the padding token does not matter.
pub(crate) fn tokenizer_files(root: &Path, window_tokens: usize) -> Result<TokenizerFiles, Cause> {
    let config = json_of(&root.join("tokenizer_config.json"))?;
    let mut config = config.filter(Value::is_object).unwrap_or_else(|| json!({}));
    if !config["model_max_length"].is_number() {
        config["model_max_length"] = json!(window_tokens);
    }
    if !(config["pad_token"].is_string() || config["pad_token"]["content"].is_string()) {
        config["pad_token"] = json!("[PAD]");
    }
    let tokens = json_of(&root.join("special_tokens_map.json"))?.unwrap_or_else(|| json!({}));
    Ok(TokenizerFiles {
        tokenizer_file: read(&root.join("tokenizer.json"))?,
        config_file: read(&root.join("config.json"))?,
        special_tokens_map_file: tokens.to_string().into_bytes(),
        tokenizer_config_file: config.to_string().into_bytes(),
    })
}

pub(crate) fn size_bytes(folder: &OnnxFolder) -> Result<u64, Cause> {
    let mut sum = 0;
    for path in folder.data.iter().chain([&folder.model]) {
        sum += fs::metadata(path).map_err(|error| named(path, &error))?.len();
    }
    Ok(sum)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Cause> {
    fs::read(path).map_err(|error| named(path, &error).into())
}

/// The JSON in a file, or none if there is no such file.
pub(crate) fn json_of(path: &Path) -> Result<Option<Value>, Cause> {
    match fs::read(path) {
        Ok(bytes) => {
            let value = serde_json::from_slice(&bytes);
            Ok(Some(value.map_err(|error| named(path, &error.into()))?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(named(path, &error).into()),
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
