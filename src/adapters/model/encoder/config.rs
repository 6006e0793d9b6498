//! What a model's folder says about the model, checked.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::adapters::model::catalogue::Pooling;
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::folder::{ModelFolder, read_json};
use crate::adapters::model::encoder::sentence;

const CONFIG: &str = "config.json";

/// Which of two kinds of encoder it is. They differ in how tokens get their
/// positions and types, and in how a classifier reads the first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// BERT: positions count from 0.
    Bert,
    /// RoBERTa, XLM-RoBERTa, CamemBERT: positions count from behind the padding
    /// token's number, which that token itself has as its position.
    Roberta {
        /// The padding token.
        padding: u32,
    },
}

impl Family {
    /// Position of a text's first token.
    pub(crate) fn first_position(self) -> usize {
        match self {
            Self::Bert => 0,
            Self::Roberta { padding } => padding as usize + 1,
        }
    }
}

/// The shape of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Which kind of encoder it is.
    pub(crate) family: Family,
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
    /// Distinct token types.
    pub(crate) types: usize,
    /// What keeps a normalisation from dividing by zero.
    pub(crate) epsilon: f32,
    /// Tokens of a text that are looked at, special ones included; at most as
    /// many as there are positions for.
    pub(crate) window_tokens: usize,
    /// How the vectors of a text's tokens become one.
    pub(crate) pooling: Pooling,
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
    pad_token_id: Option<u32>,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    num_labels: Option<usize>,
    id2label: Option<Map<String, Value>>,
}

fn two() -> usize {
    2
}

fn tiny() -> f32 {
    1e-12
}

impl Shape {
    /// Reads the shape of an embedding model.
    pub(crate) fn of_embedder(folder: &ModelFolder) -> Result<Self, LoadError> {
        let config = Config::read(&folder.root)?;
        let modules = sentence::Modules::read(&folder.root)?;
        let pooling = modules.pooling(&folder.root)?.or(folder.pooling).unwrap_or(Pooling::Mean);
        let said = sentence::window_tokens(&folder.root)?;
        config.shape(folder, pooling, said)
    }

    /// Reads the shape of a model that scores pairs of texts.
    pub(crate) fn of_cross_encoder(folder: &ModelFolder) -> Result<Self, LoadError> {
        let config = Config::read(&folder.root)?;
        config.check_classifier(&folder.root.join(CONFIG))?;
        let said = sentence::tokenizer_window(&folder.root)?;
        config.shape(folder, Pooling::Cls, said)
    }
}

impl Config {
    fn read(root: &Path) -> Result<Self, LoadError> {
        let config: Self = read_json(root, CONFIG)?.ok_or_else(|| LoadError::Missing {
            folder: root.to_path_buf(),
            file: CONFIG.to_owned(),
        })?;
        let path = root.join(CONFIG);
        config.check_kind(&path)?;
        config.check_sizes(&path)?;
        Ok(config)
    }

    /// - `said`: the window as other files have it, if they do.
    fn shape(
        &self,
        folder: &ModelFolder,
        pooling: Pooling,
        said: Option<usize>,
    ) -> Result<Shape, LoadError> {
        let family = self.family(&folder.root.join(CONFIG))?;
        let room = self.max_position_embeddings.saturating_sub(family.first_position());
        let window = [said, folder.window_tokens].into_iter().flatten().fold(room, usize::min);
        Ok(Shape {
            family,
            hidden: self.hidden_size,
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            inner: self.intermediate_size,
            vocabulary: self.vocab_size,
            positions: self.max_position_embeddings,
            types: self.type_vocab_size,
            epsilon: self.layer_norm_eps,
            window_tokens: window,
            pooling,
        })
    }

    fn family(&self, path: &Path) -> Result<Family, LoadError> {
        match self.model_type.as_str() {
            "bert" => Ok(Family::Bert),
            "roberta" | "xlm-roberta" | "camembert" => {
                let padding = self.pad_token_id.unwrap_or(1);
                if padding as usize + 2 > self.max_position_embeddings {
                    let reason = format!("pad_token_id {padding} leaves no position for a token");
                    return Err(LoadError::malformed(path, reason));
                }
                Ok(Family::Roberta { padding })
            }
            other => {
                let reason = format!(
                    "model_type is {other:?}, not \"bert\", \"roberta\", \"xlm-roberta\" or \
                     \"camembert\""
                );
                Err(LoadError::unsupported(path, reason))
            }
        }
    }

    fn check_kind(&self, path: &Path) -> Result<(), LoadError> {
        self.family(path)?;
        let named = [
            ("hidden_act", &self.hidden_act, "gelu"),
            ("position_embedding_type", &self.position_embedding_type, "absolute"),
        ];
        for (key, value, only) in named {
            if let Some(value) = value.as_deref().filter(|value| *value != only) {
                let reason = format!("{key} is {value:?}, not {only:?}");
                return Err(LoadError::unsupported(path, reason));
            }
        }
        if self.is_decoder {
            return Err(LoadError::unsupported(path, "is_decoder is true"));
        }
        Ok(())
    }

    fn check_sizes(&self, path: &Path) -> Result<(), LoadError> {
        let sizes = [
            ("hidden_size", self.hidden_size, 1, 1 << 14),
            ("num_hidden_layers", self.num_hidden_layers, 1, 1 << 8),
            ("num_attention_heads", self.num_attention_heads, 1, 1 << 10),
            ("intermediate_size", self.intermediate_size, 1, 1 << 16),
            ("vocab_size", self.vocab_size, 1, 1 << 24),
            ("max_position_embeddings", self.max_position_embeddings, 8, 1 << 16),
            ("type_vocab_size", self.type_vocab_size, 1, 1 << 10),
        ];
        for (name, size, least, most) in sizes {
            if !(least..=most).contains(&size) {
                let reason = format!("{name} is {size}, not from {least} to {most}");
                return Err(LoadError::malformed(path, reason));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let (hidden, heads) = (self.hidden_size, self.num_attention_heads);
            let reason =
                format!("hidden_size {hidden} is no multiple of num_attention_heads {heads}");
            return Err(LoadError::malformed(path, reason));
        }
        if !(0.0..1.0).contains(&self.layer_norm_eps) {
            let reason = format!("layer_norm_eps is {}", self.layer_norm_eps);
            return Err(LoadError::malformed(path, reason));
        }
        Ok(())
    }

    /// A model without a classifier has no score to give, and one with several
    /// labels has several.
    fn check_classifier(&self, path: &Path) -> Result<(), LoadError> {
        let architectures = self.architectures.as_deref().unwrap_or_default();
        if !architectures.iter().any(|name| name.ends_with("ForSequenceClassification")) {
            let reason =
                format!("architectures is {architectures:?}, not a sequence classification");
            return Err(LoadError::unsupported(path, reason));
        }
        let labels = self.num_labels.or(self.id2label.as_ref().map(Map::len)).unwrap_or(2);
        if labels != 1 {
            let reason = format!("it gives {labels} numbers for a pair of texts, not one");
            return Err(LoadError::unsupported(path, reason));
        }
        Ok(())
    }
}
