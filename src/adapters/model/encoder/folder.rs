//! Where the files of a model are, and what holds where they do not say.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::adapters::model::catalogue::{self, Pooling};
use crate::adapters::model::encoder::error::LoadError;

/// The most bytes of a configuration file.
const MOST_BYTES: u64 = 1 << 20;

/// Where a folder may have its ONNX file.
const ONNX: [&str; 2] = ["onnx/model.onnx", "model.onnx"];

/// A model's folder in the layout of sentence-transformers or transformers:
/// `config.json`, `tokenizer.json` and weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFolder {
    /// The folder.
    pub root: PathBuf,
    /// The ONNX file that holds the weights; otherwise they are
    /// `model.safetensors`, or the files that `model.safetensors.index.json`
    /// lists.
    pub onnx: Option<PathBuf>,
    /// How it pools where the folder does not say: by the mean, if nothing is
    /// known.
    pub pooling: Option<Pooling>,
    /// The most tokens of a text that it reads; the folder may say less.
    pub window_tokens: Option<usize>,
    /// What each part of a long text begins with, if the text does.
    pub lead: String,
}

impl ModelFolder {
    /// A folder with safetensors of a model of which nothing else is known.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            onnx: None,
            pooling: None,
            window_tokens: None,
            lead: String::new(),
        }
    }

    /// The folder of a model that has a name.
    ///
    /// - `name`: looked up in the catalogue; it decides on pooling and window
    ///   where the folder says nothing.
    ///
    /// A folder without safetensors but with `onnx/model.onnx` or `model.onnx`
    /// has its weights from there.
    pub fn of(name: &str, root: &Path) -> Self {
        let entry = catalogue::find(name).ok();
        let cls = Some(Pooling::Cls).filter(|_| name.starts_with("bge-"));
        let pooling = entry.map(|entry| entry.pooling).or(cls);
        let window_tokens = entry.map(|entry| entry.window_tokens);
        let lead = entry.map_or_else(String::new, |it| it.prefixes.document.to_string());
        let safetensors = ["model.safetensors", "model.safetensors.index.json"];
        let onnx = if safetensors.iter().any(|file| root.join(file).exists()) {
            None
        } else {
            ONNX.iter().map(|file| root.join(file)).find(|path| path.is_file())
        };
        Self { root: root.to_owned(), onnx, pooling, window_tokens, lead }
    }

    /// The same folder with the weights of an ONNX file.
    #[must_use]
    pub fn with_onnx(mut self, model: impl Into<PathBuf>) -> Self {
        self.onnx = Some(model.into());
        self
    }
}

/// Reads a small JSON file; `None` if it is not there.
pub(crate) fn read_json<T: DeserializeOwned>(
    folder: &Path,
    file: &str,
) -> Result<Option<T>, LoadError> {
    let path = folder.join(file);
    let mut bytes = Vec::new();
    match File::open(&path).and_then(|open| open.take(MOST_BYTES + 1).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LoadError::from_io(folder, file, error)),
    }
    if bytes.len() as u64 > MOST_BYTES {
        return Err(LoadError::malformed(&path, format!("it has more than {MOST_BYTES} bytes")));
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| LoadError::Unreadable { path, source: error.into() })
}
