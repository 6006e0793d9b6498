//! A model in a folder that a configuration names: what it is by its own files.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::adapters::model::catalogue::{Pooling, Prefixes};
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::sentence::{self, Modules};
use crate::adapters::model::locate::OnnxFolder;
use crate::domain::embedding::ModelIdentity;
use crate::ports::Cause;

/// What stands in front of the folder where a configuration names a model.
pub const SCHEME: &str = "dir:";

/// A folder in the layout of sentence-transformers, and what its files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderModel {
    /// What an index records: `dir:`, the folder's name, `@`, a fingerprint of
    /// all that decides about the vectors.
    pub identity: ModelIdentity,
    /// The folder.
    pub root: PathBuf,
    /// How it pools.
    pub pooling: Pooling,
    /// The most tokens of a text that it reads.
    pub window_tokens: usize,
    /// What goes in front of texts.
    pub prefixes: Prefixes,
    /// Whether `model.safetensors` is there.
    pub native: bool,
    /// Its files as ONNX, if they are there.
    pub onnx: Option<OnnxFolder>,
}

/// Why a folder is of no use as a model.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder is named relative to something.
    #[error(
        "model = \"{SCHEME}{given}\" names a folder relatively; write its absolute path, such as \
         \"{SCHEME}/srv/models/mine\""
    )]
    Relative {
        /// What was written.
        given: String,
    },
    /// A file that a model needs is not there.
    #[error("the model folder {} has no {what}", root.display())]
    Missing {
        /// The folder.
        root: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: Cause,
    },
    /// A file asks for something that no engine here can do.
    #[error("the model folder {} is not supported: {file} {reason}", root.display())]
    Unsupported {
        /// The folder.
        root: PathBuf,
        /// The file that says so.
        file: String,
        /// What it says.
        reason: String,
    },
}

/// The most bytes of a file with settings; a vocabulary is larger.
const MOST_SETTINGS_BYTES: u64 = 1 << 20;
/// Of the weights one sample a stride enters the fingerprint: any matrix of a
/// model is longer than a stride. See docs/adr/0008.
const STRIDE_BYTES: u64 = 256 * 1024;
const SAMPLE_BYTES: u64 = 4 * 1024;
/// The head of the weights, where safetensors describe themselves.
const HEAD_BYTES: u64 = 1024 * 1024;
/// The window of a model that does not say.
const DEFAULT_WINDOW: usize = 512;

/// What of `config.json` decides about the vectors.
const SHAPE: [&str; 10] = [
    "model_type",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "layer_norm_eps",
    "position_embedding_type",
    "max_position_embeddings",
    "type_vocab_size",
];

impl FolderModel {
    /// Reads what a folder says; reads a small part of its weights.
    ///
    /// - `named`: the folder as written after `dir:`.
    ///
    /// # Errors
    ///
    /// [`FolderError`], which names the file and what is wrong with it.
    pub fn read(named: &str) -> Result<Self, FolderError> {
        let root = Path::new(named);
        if !root.is_absolute() {
            return Err(FolderError::Relative { given: named.to_owned() });
        }
        let root = root.to_owned();
        let folder = Folder { root: &root };
        let config = folder.json("config.json")?;
        let config = config.ok_or_else(|| folder.missing("config.json"))?;
        if !root.join("tokenizer.json").is_file() {
            return Err(folder.missing("tokenizer.json"));
        }
        let hidden = config["hidden_size"].as_u64().and_then(|size| usize::try_from(size).ok());
        let dimension = hidden.filter(|size| (1..=16384).contains(size)).ok_or_else(|| {
            folder.unsupported("config.json", "has no hidden_size from 1 to 16384")
        })?;
        // A folder without settings for it pools by the mean, as
        // sentence-transformers does.
        let modules = Modules::read(&root).map_err(|error| folder.refuse(error))?;
        let pooling = modules.pooling(&root).map_err(|error| folder.refuse(error))?;
        let pooling = pooling.unwrap_or(Pooling::Mean);
        let window_tokens = folder.window(&config)?;
        let prefixes = folder.prefixes()?;
        let native = root.join("model.safetensors").is_file();
        let onnx = folder.onnx();
        let weights = match &onnx {
            _ if native => root.join("model.safetensors"),
            Some(onnx) => onnx.model.clone(),
            None => return Err(folder.missing("model.safetensors, model.onnx or onnx/model.onnx")),
        };
        let mut described = Sha256::new();
        described
            .update(format!("{pooling:?} {} {dimension}\n", folder.described_window(&config)?));
        described.update(format!("{:?} {:?}\n", prefixes.query, prefixes.document));
        for key in SHAPE {
            described.update(format!("{key} {}\n", config[key]));
        }
        let mut files = vec![root.join("tokenizer.json"), weights];
        if !native {
            files.extend(onnx.iter().flat_map(|onnx| onnx.data.iter().cloned()));
        }
        for path in files {
            sample(&path, &mut described)
                .map_err(|error| FolderError::Unreadable { path, source: error.into() })?;
        }
        let name = root.file_name().unwrap_or(OsStr::new("model")).to_string_lossy();
        let model = format!("{SCHEME}{name}@{}", hexadecimal(&described.finalize()[..8]));
        let identity = ModelIdentity { model, dimension };
        Ok(Self { identity, root, pooling, window_tokens, prefixes, native, onnx })
    }
}

struct Folder<'a> {
    root: &'a Path,
}

impl Folder<'_> {
    fn missing(&self, what: &'static str) -> FolderError {
        FolderError::Missing { root: self.root.to_owned(), what }
    }

    fn unsupported(&self, file: &str, reason: impl Into<String>) -> FolderError {
        let (root, file) = (self.root.to_owned(), file.to_owned());
        FolderError::Unsupported { root, file, reason: reason.into() }
    }

    /// What the encoder's reader finds wrong, without the words that are about
    /// the encoder.
    fn refuse(&self, error: LoadError) -> FolderError {
        match error {
            LoadError::Unreadable { path, source } => FolderError::Unreadable { path, source },
            LoadError::Malformed { path, reason } | LoadError::Unsupported { path, reason } => {
                let file = path.strip_prefix(self.root).unwrap_or(&path);
                self.unsupported(&format!("{}:", file.display()), reason)
            }
            missing @ LoadError::Missing { .. } => {
                FolderError::Unreadable { path: self.root.to_owned(), source: missing.into() }
            }
        }
    }

    /// The JSON of a file, or none if there is no such file.
    fn json(&self, file: &'static str) -> Result<Option<Value>, FolderError> {
        let path = self.root.join(file);
        let mut bytes = Vec::new();
        let read = File::open(&path)
            .and_then(|file| file.take(MOST_SETTINGS_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(FolderError::Unreadable { path, source: error.into() });
            }
            Ok(_) => {}
        }
        if bytes.len() as u64 > MOST_SETTINGS_BYTES {
            return Err(self.unsupported(file, "is larger than 1 MiB"));
        }
        let value = serde_json::from_slice(&bytes);
        value.map(Some).map_err(|error| self.unsupported(file, format!("is no JSON: {error}")))
    }

    /// The most tokens of a text, as all files have it.
    fn window(&self, config: &Value) -> Result<usize, FolderError> {
        let said = sentence::window_tokens(self.root).map_err(|error| self.refuse(error))?;
        Ok(least(said, positions(config)))
    }

    /// The window that enters the fingerprint, to which the tokenizer's settings
    /// never belonged.
    fn described_window(&self, config: &Value) -> Result<usize, FolderError> {
        let own = self.json("sentence_bert_config.json")?;
        Ok(least(own.and_then(|own| number(&own["max_seq_length"])), positions(config)))
    }

    fn prefixes(&self) -> Result<Prefixes, FolderError> {
        let file = "config_sentence_transformers.json";
        let Some(config) = self.json(file)? else { return Ok(Prefixes::default()) };
        let prompts = &config["prompts"];
        let prompt = |names: &[&str]| -> Cow<'static, str> {
            let named = names.iter().find_map(|name| prompts[*name].as_str());
            let usual = config["default_prompt_name"].as_str();
            let usual = usual.and_then(|name| prompts[name].as_str());
            Cow::Owned(named.or(usual).unwrap_or_default().to_owned())
        };
        Ok(Prefixes { query: prompt(&["query"]), document: prompt(&["document", "passage"]) })
    }

    fn onnx(&self) -> Option<OnnxFolder> {
        let model = ["onnx/model.onnx", "model.onnx"].iter().map(|name| self.root.join(name));
        let model = model.into_iter().find(|path| path.is_file())?;
        let beside = fs::read_dir(model.parent()?).into_iter().flatten().flatten();
        // Data lies beside the model under names that start with the model's.
        let mut data: Vec<PathBuf> = beside
            .map(|entry| entry.path())
            .filter(|path| *path != model && path.is_file() && is_data(path))
            .collect();
        data.sort();
        Some(OnnxFolder { root: self.root.to_owned(), model, data })
    }
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}

/// How many tokens a model has positions for, if `config.json` says so.
fn positions(config: &Value) -> Option<usize> {
    // Positions of this family start behind that of the padding.
    let before = match config["model_type"].as_str() {
        Some("xlm-roberta" | "roberta") => 2,
        _ => 0,
    };
    number(&config["max_position_embeddings"]).map(|positions| positions.saturating_sub(before))
}

fn least(said: Option<usize>, positions: Option<usize>) -> usize {
    [said, positions].into_iter().flatten().min().unwrap_or(DEFAULT_WINDOW).max(3)
}

fn is_data(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    (name.starts_with("model.onnx") && name.ends_with("data")) || name.ends_with("_attr__value")
}

/// Hashes a file's length, its head, and a sample of every stride of it.
fn sample(path: &Path, into: &mut Sha256) -> io::Result<()> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    into.update(length.to_le_bytes());
    let mut buffer = Vec::new();
    let mut take = |file: &mut File, at: u64, bytes: u64| -> io::Result<()> {
        file.seek(SeekFrom::Start(at))?;
        buffer.clear();
        Read::by_ref(file).take(bytes).read_to_end(&mut buffer)?;
        into.update(&buffer);
        Ok(())
    };
    take(&mut file, 0, HEAD_BYTES)?;
    let mut at = HEAD_BYTES;
    while at < length {
        take(&mut file, at, SAMPLE_BYTES)?;
        at += STRIDE_BYTES;
    }
    take(&mut file, length.saturating_sub(SAMPLE_BYTES), SAMPLE_BYTES)
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The SHA-256 of a file in lower-case hexadecimal.
///
/// # Errors
///
/// What reading the file fails with.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut sha256 = Sha256::new();
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hexadecimal(&sha256.finalize()));
        }
        sha256.update(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"hidden_size": 8, "max_position_embeddings": 512}"#;

    fn fill(root: &Path, files: &[(&str, &str)]) {
        let usual = [("config.json", CONFIG), ("tokenizer.json", "{}")];
        for (name, content) in usual.iter().chain(files) {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    fn made(files: &[(&str, &str)]) -> Result<FolderModel, FolderError> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("mine");
        fill(&folder, files);
        FolderModel::read(folder.to_str().unwrap())
    }

    const WEIGHTS: (&str, &str) = ("model.safetensors", "weights");

    // CFG-41
    #[test]
    fn pooling_window_dimension_and_prefixes_come_from_the_folders_own_files() {
        let model = made(&[
            WEIGHTS,
            ("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true}"#),
            ("sentence_bert_config.json", r#"{"max_seq_length": 128}"#),
            (
                "config_sentence_transformers.json",
                r#"{"prompts": {"query": "ask: ", "passage": "read: "}}"#,
            ),
        ])
        .unwrap();
        assert_eq!((model.pooling, model.window_tokens), (Pooling::Cls, 128));
        assert_eq!(model.identity.dimension, 8);
        assert_eq!((&*model.prefixes.query, &*model.prefixes.document), ("ask: ", "read: "));
        assert!(model.native && model.onnx.is_none());
        let plain = made(&[WEIGHTS]).unwrap();
        assert_eq!((plain.pooling, plain.window_tokens), (Pooling::Mean, 512));
        assert_eq!(plain.prefixes, Prefixes::default());
    }

    // IDX-112
    #[test]
    fn the_fingerprint_is_what_it_always_was() {
        let limit = ("tokenizer_config.json", r#"{"model_max_length": 64}"#);
        let model = made(&[WEIGHTS, limit]).unwrap();
        assert_eq!(model.window_tokens, 64);
        assert_eq!(model.identity.model, "dir:mine@ed76297d7507a3fd");
    }

    // CFG-41
    #[test]
    fn pooling_may_be_described_in_a_folder_of_another_name() {
        let modules =
            r#"[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "P"}]"#;
        let pooling = ("P/config.json", r#"{"pooling_mode": "cls"}"#);
        let model = made(&[WEIGHTS, ("modules.json", modules), pooling]).unwrap();
        assert_eq!(model.pooling, Pooling::Cls);
    }

    // IDX-112
    #[test]
    fn the_identity_does_not_depend_on_where_the_folder_lies() {
        let (one, other) = (made(&[WEIGHTS]).unwrap(), made(&[WEIGHTS]).unwrap());
        assert_ne!(one.root, other.root);
        assert_eq!(one.identity, other.identity);
        assert!(one.identity.model.starts_with("dir:mine@"), "{}", one.identity.model);
    }

    // IDX-112
    #[test]
    fn whatever_changes_the_vectors_changes_the_identity() {
        let identity = |files: &[(&str, &str)]| made(files).unwrap().identity;
        let plain = identity(&[WEIGHTS]);
        for files in [
            &[("model.safetensors", "wEights")][..],
            &[WEIGHTS, ("tokenizer.json", "{ }")],
            &[WEIGHTS, ("1_Pooling/config.json", r#"{"pooling_mode": "cls"}"#)],
            &[WEIGHTS, ("sentence_bert_config.json", r#"{"max_seq_length": 99}"#)],
            &[WEIGHTS, ("config_sentence_transformers.json", r#"{"prompts": {"query": "q"}}"#)],
            &[
                WEIGHTS,
                (
                    "config.json",
                    r#"{"hidden_size": 8, "max_position_embeddings": 512, "num_attention_heads": 2}"#,
                ),
            ],
        ] {
            assert_ne!(identity(files), plain, "{files:?}");
        }
        // The version of who wrote the folder says nothing of the vectors.
        let told = ("config_sentence_transformers.json", r#"{"__version__": {}}"#);
        assert_eq!(identity(&[WEIGHTS, told]), plain);
    }

    // IDX-112
    #[test]
    fn a_matrix_that_differs_anywhere_in_large_weights_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &[]);
        let path = root.path().join("model.safetensors");
        let read = |weights: &[u8]| {
            fs::write(&path, weights).unwrap();
            FolderModel::read(root.path().to_str().unwrap()).unwrap().identity
        };
        let mut weights = vec![7_u8; 3 << 20];
        let plain = read(&weights);
        let matrix = 384 * 384 * 4;
        for start in [0, (1 << 20) + 5, (2 << 20) - 99, (3 << 20) - matrix] {
            weights[start..start + matrix].fill(8);
            assert_ne!(read(&weights), plain, "{start}");
            weights[start..start + matrix].fill(7);
        }
    }

    #[test]
    fn a_relative_folder_is_refused_with_what_to_write() {
        let text = FolderModel::read("models/mine").unwrap_err().to_string();
        assert!(text.contains("models/mine") && text.contains("absolute"), "{text}");
    }

    #[test]
    fn what_is_not_supported_or_missing_is_named() {
        let dense = r#"[{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]"#;
        let elsewhere = r#"[{"type": "a.Pooling", "path": "../Pooling"}]"#;
        for (files, expected) in [
            (&[][..], "model.safetensors"),
            (&[WEIGHTS, ("config.json", "{}")], "hidden_size"),
            (&[WEIGHTS, ("config.json", "{")], "no JSON"),
            (&[WEIGHTS, ("modules.json", dense)], "Dense"),
            (
                &[WEIGHTS, ("modules.json", elsewhere)],
                "modules.json: its pooling lies in \"../Pooling\"",
            ),
            (&[WEIGHTS, ("1_Pooling/config.json", r#"{"pooling_mode": "max"}"#)], "max"),
        ] {
            let text = made(files).unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn onnx_files_are_found_in_both_layouts_with_their_data() {
        let model = made(&[("onnx/model.onnx", "graph"), ("onnx/model.onnx_data", "data")]);
        let onnx = model.unwrap().onnx.unwrap();
        assert!(onnx.model.ends_with("onnx/model.onnx"));
        assert_eq!(onnx.data.len(), 1);
        let flat = made(&[("model.onnx", "graph"), ("other.onnx", "no")]).unwrap();
        assert!(!flat.native && flat.onnx.unwrap().data.is_empty());
    }
}
