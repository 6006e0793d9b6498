//! What the files of sentence-transformers add to a model: pooling and window.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::adapters::model::catalogue::Pooling;
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::folder::read_json;

const MODULES: &str = "modules.json";

/// Where pooling is described if no list of modules says otherwise.
const POOLING: &str = "1_Pooling";

/// Files of one meaning, of which a folder has at most one.
const SENTENCE: [&str; 4] = [
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_camembert_config.json",
];

#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    path: String,
}

/// The steps from a text to its vector.
pub(crate) struct Modules {
    /// The folder that describes the pooling.
    pooling: String,
}

impl Modules {
    /// Reads the steps, and refuses any but a transformer in the folder itself,
    /// pooling and scaling to length 1.
    pub(crate) fn read(root: &Path) -> Result<Self, LoadError> {
        let modules: Vec<Module> = read_json(root, MODULES)?.unwrap_or_default();
        let refuse = |reason| Err(LoadError::unsupported(&root.join(MODULES), reason));
        let mut pooling = POOLING.to_owned();
        for Module { kind, path } in modules {
            match kind.rsplit('.').next().unwrap_or(&kind) {
                "Transformer" | "Pooling" if path.is_empty() => {}
                "Transformer" => {
                    return refuse(format!("its transformer lies in a folder {path:?}"));
                }
                "Normalize" => {}
                "Pooling" if is_plain_name(&path) => pooling = path,
                "Pooling" => return refuse(format!("its pooling lies in {path:?}")),
                _ => return refuse(format!("it has a module of type {kind:?}")),
            }
        }
        Ok(Self { pooling })
    }

    /// Reads how the folder pools: `pooling_mode` says it in a word, or one of
    /// the members `pooling_mode_…` is true.
    ///
    /// - Returns nothing if the folder does not say.
    pub(crate) fn pooling(&self, root: &Path) -> Result<Option<Pooling>, LoadError> {
        let file = format!("{}/config.json", self.pooling);
        let Some(members) = read_json::<Map<String, Value>>(root, &file)? else {
            return Ok(None);
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
            ["mean" | "mean_tokens"] => Ok(Some(Pooling::Mean)),
            ["cls" | "cls_token"] => Ok(Some(Pooling::Cls)),
            _ => {
                let reason = format!("it pools by {chosen:?}, not by \"mean\" or \"cls\" alone");
                Err(LoadError::unsupported(&root.join(file), reason))
            }
        }
    }
}

#[derive(Deserialize)]
struct Sentence {
    max_seq_length: Option<usize>,
}

/// The most tokens of a text, if the folder says so.
pub(crate) fn window_tokens(root: &Path) -> Result<Option<usize>, LoadError> {
    for file in SENTENCE {
        if let Some(Sentence { max_seq_length: Some(most) }) = read_json(root, file)? {
            return Ok(Some(most));
        }
    }
    tokenizer_window(root)
}

#[derive(Deserialize)]
struct TokenizerConfig {
    /// Has thirty digits where there is no limit.
    model_max_length: Option<f64>,
}

/// The most tokens that the tokenizer's settings allow, if they do so.
pub(crate) fn tokenizer_window(root: &Path) -> Result<Option<usize>, LoadError> {
    let config: Option<TokenizerConfig> = read_json(root, "tokenizer_config.json")?;
    let most = config.and_then(|config| config.model_max_length);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked before"
    )]
    let whole = |most: f64| most as usize;
    Ok(most.filter(|most| (1.0..1e9).contains(most)).map(whole))
}

/// Whether a name from a file leads to a neighbour of that file.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !(name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0', ':']))
}
