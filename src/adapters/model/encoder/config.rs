//! What a model's folder says about the model, checked.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::adapters::model::encoder::error::LoadError;

/// The most bytes of a configuration file.
const MOST_BYTES: u64 = 1 << 20;

const CONFIG: &str = "config.json";
const SENTENCE: &str = "sentence_bert_config.json";
const MODULES: &str = "modules.json";
const POOLING: &str = "1_Pooling/config.json";

/// The shape of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Numbers that stand for a token between layers, and in an embedding.
    pub(crate) hidden: usize,
    /// How many layers there are.
    pub(crate) layers: usize,
    /// Heads of each layer's attention; they divide `hidden`.
    pub(crate) heads: usize,
    /// Numbers in the middle of each layer's feed-forward part.
    pub(crate) inner: usize,
    /// Distinct tokens.
    pub(crate) vocabulary: usize,
    /// Distinct positions.
    pub(crate) positions: usize,
    /// Distinct token types, of which only the first is used.
    pub(crate) types: usize,
    /// What keeps a normalisation from dividing by zero.
    pub(crate) epsilon: f32,
    /// Tokens of a text that are looked at, special ones included; at most `positions`.
    pub(crate) window_tokens: usize,
    /// How the vectors of a text's tokens become one.
    pub(crate) pooling: Pooling,
}

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pooling {
    /// Their mean.
    Mean,
    /// The first token's vector.
    First,
}

#[derive(Deserialize)]
struct Config {
    model_type: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "tiny")]
    layer_norm_eps: f32,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
}

fn two() -> usize {
    2
}

fn tiny() -> f32 {
    1e-12
}

#[derive(Deserialize)]
struct Sentence {
    max_seq_length: Option<usize>,
}

#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
}

impl Shape {
    /// Reads the shape of the model in a folder.
    ///
    /// - `model`: its name, which decides on the pooling where the folder does not.
    pub(crate) fn read(folder: &Path, model: &str) -> Result<Self, LoadError> {
        let config: Config = read_json(folder, CONFIG)?
            .ok_or_else(|| LoadError::Missing { folder: folder.to_path_buf(), file: CONFIG })?;
        check_kind(&config, &folder.join(CONFIG))?;
        check_sizes(&config, &folder.join(CONFIG))?;
        check_modules(folder)?;
        let window_tokens = match read_json::<Sentence>(folder, SENTENCE)? {
            Some(Sentence { max_seq_length: Some(most) }) => {
                most.min(config.max_position_embeddings)
            }
            _ => config.max_position_embeddings,
        };
        Ok(Self {
            hidden: config.hidden_size,
            layers: config.num_hidden_layers,
            heads: config.num_attention_heads,
            inner: config.intermediate_size,
            vocabulary: config.vocab_size,
            positions: config.max_position_embeddings,
            types: config.type_vocab_size,
            epsilon: config.layer_norm_eps,
            window_tokens,
            pooling: read_pooling(folder, model)?,
        })
    }
}

fn check_kind(config: &Config, path: &Path) -> Result<(), LoadError> {
    let unsupported =
        |reason: String| Err(LoadError::Unsupported { path: path.to_path_buf(), reason });
    if config.model_type != "bert" {
        return unsupported(format!("model_type is {:?}, not \"bert\"", config.model_type));
    }
    if let Some(activation) = config.hidden_act.as_deref().filter(|name| *name != "gelu") {
        return unsupported(format!("hidden_act is {activation:?}, not \"gelu\""));
    }
    if let Some(kind) = config.position_embedding_type.as_deref().filter(|kind| *kind != "absolute")
    {
        return unsupported(format!("position_embedding_type is {kind:?}, not \"absolute\""));
    }
    if config.is_decoder {
        return unsupported("is_decoder is true".to_owned());
    }
    Ok(())
}

fn check_sizes(config: &Config, path: &Path) -> Result<(), LoadError> {
    let malformed = |reason: String| LoadError::Malformed { path: path.to_path_buf(), reason };
    let sizes = [
        ("hidden_size", config.hidden_size, 1, 1 << 14),
        ("num_hidden_layers", config.num_hidden_layers, 1, 1 << 8),
        ("num_attention_heads", config.num_attention_heads, 1, 1 << 10),
        ("intermediate_size", config.intermediate_size, 1, 1 << 16),
        ("vocab_size", config.vocab_size, 1, 1 << 24),
        ("max_position_embeddings", config.max_position_embeddings, 8, 1 << 16),
        ("type_vocab_size", config.type_vocab_size, 1, 1 << 10),
    ];
    for (name, size, least, most) in sizes {
        if !(least..=most).contains(&size) {
            return Err(malformed(format!("{name} is {size}, not from {least} to {most}")));
        }
    }
    if !config.hidden_size.is_multiple_of(config.num_attention_heads) {
        let (hidden, heads) = (config.hidden_size, config.num_attention_heads);
        return Err(malformed(format!(
            "hidden_size {hidden} is no multiple of num_attention_heads {heads}"
        )));
    }
    if !(0.0..1.0).contains(&config.layer_norm_eps) {
        return Err(malformed(format!("layer_norm_eps is {}", config.layer_norm_eps)));
    }
    Ok(())
}

/// Refuses a folder whose embeddings pass through more than pooling.
fn check_modules(folder: &Path) -> Result<(), LoadError> {
    let modules: Vec<Module> = read_json(folder, MODULES)?.unwrap_or_default();
    for Module { kind } in modules {
        let name = kind.rsplit('.').next().unwrap_or(&kind);
        if !["Transformer", "Pooling", "Normalize"].contains(&name) {
            let reason = format!("it has a module of type {kind:?}");
            return Err(LoadError::Unsupported { path: folder.join(MODULES), reason });
        }
    }
    Ok(())
}

/// Reads how a folder pools: `pooling_mode` says it in a word, or one of the
/// members `pooling_mode_…` is true.
fn read_pooling(folder: &Path, model: &str) -> Result<Pooling, LoadError> {
    let Some(members) = read_json::<Map<String, Value>>(folder, POOLING)? else {
        let first = model.starts_with("bge-");
        return Ok(if first { Pooling::First } else { Pooling::Mean });
    };
    let chosen: Vec<&str> = members
        .iter()
        .filter_map(|(name, value)| match value {
            Value::String(mode) if name == "pooling_mode" => Some(mode.as_str()),
            Value::Bool(true) => name.strip_prefix("pooling_mode_"),
            _ => None,
        })
        .collect();
    match chosen[..] {
        ["mean" | "mean_tokens"] => Ok(Pooling::Mean),
        ["cls" | "cls_token"] => Ok(Pooling::First),
        _ => Err(LoadError::Unsupported {
            path: folder.join(POOLING),
            reason: format!("it pools by {chosen:?}, not by \"mean\" or \"cls\" alone"),
        }),
    }
}

/// Reads a small JSON file; `None` if it is not there.
fn read_json<T: DeserializeOwned>(
    folder: &Path,
    file: &'static str,
) -> Result<Option<T>, LoadError> {
    let path: PathBuf = folder.join(file);
    let mut bytes = Vec::new();
    match File::open(&path).and_then(|open| open.take(MOST_BYTES + 1).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LoadError::from_io(folder, file, error)),
    }
    if bytes.len() as u64 > MOST_BYTES {
        let reason = format!("it has more than {MOST_BYTES} bytes");
        return Err(LoadError::Malformed { path, reason });
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| LoadError::Unreadable { path, source: error.into() })
}
