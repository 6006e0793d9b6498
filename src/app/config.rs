//! Configuration as checked values.

use std::path::PathBuf;

use crate::domain::chunk::ContextMode;
use crate::domain::format::EnabledFormats;
use crate::domain::fusion::RankConstant;
use crate::ports::chunk_store::ColumnWeights;

/// Everything that a run of the program is configured with. The default is
/// what holds without a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The root of the knowledge base.
    pub kb_path: Option<PathBuf>,
    /// The local embedding model: a name of the catalogue.
    pub model: String,
    /// The cross-encoder that scores candidates again, unless it is `none`.
    pub reranker: String,
    /// Whether a configured reranker works when a caller does not say.
    pub rerank_by_default: bool,
    /// Where downloaded models are kept, if the file names a place.
    pub model_cache: Option<PathBuf>,
    /// Substrings of headings whose sections are not indexed.
    pub exclude_headings: Vec<String>,
    /// Names of folders that are not entered.
    pub exclude_dirs: Vec<String>,
    /// The formats that are indexed.
    pub formats: EnabledFormats,
    /// How indexing works.
    pub index: IndexSettings,
    /// How searching works.
    pub search: SearchSettings,
}

/// How indexing works.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSettings {
    /// Whether a run with unreadable frontmatter ends with an error.
    pub fail_on_frontmatter_error: bool,
    /// The most bytes of a text or code file; none if unlimited.
    pub max_text_file_size: Option<u64>,
    /// The most bytes of a binary file; none if unlimited.
    pub max_binary_file_size: Option<u64>,
    /// The most bytes that a document may unpack to; none if unlimited.
    pub max_decompressed_size: Option<u64>,
    /// Whether contexts are to be part of what is embedded.
    pub context_mode: ContextMode,
}

/// How searching works.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSettings {
    /// The least quality of a chunk that is shown, from 0 to 1.
    pub min_quality: f32,
    /// See [`low_confidence`](crate::domain::confidence); 0 switches it off.
    pub min_confidence_ratio: f64,
    /// Fusion of the two legs.
    pub rank_constant: RankConstant,
    /// How much a match weighs, by where it is.
    pub weights: ColumnWeights,
    /// Spreading hits over different passages.
    pub mmr: MmrSettings,
    /// Widening hits to their surroundings.
    pub parent: ParentSettings,
}

/// Spreading hits over different passages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MmrSettings {
    /// Whether it is on when a caller does not say.
    pub enabled: bool,
    /// Relevance against diversity, from 0 to 1.
    pub lambda: f32,
    /// What a second chunk of one document loses, from 0 to 1.
    pub same_doc_penalty: f32,
}

/// Widening hits to their surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentSettings {
    /// Whether it is on when a caller does not say.
    pub enabled: bool,
    /// A hit under this many tokens is widened to its whole document.
    pub whole_doc_threshold_tokens: u32,
    /// The most tokens of a widened hit.
    pub max_expanded_tokens: u32,
}

/// The size caps that hold unless a trusted file says otherwise: 50 MiB.
pub const DEFAULT_SIZE_CAP: u64 = 50 * 1024 * 1024;

/// The folders that are not entered unless a file says otherwise.
pub const DEFAULT_EXCLUDE_DIRS: [&str; 6] =
    [".obsidian", ".git", "node_modules", "target", ".vscode", ".idea"];

/// The default embedding model.
pub const DEFAULT_MODEL: &str = "bge-small-en-v1.5";

impl Default for Config {
    fn default() -> Self {
        Self {
            kb_path: None,
            model: DEFAULT_MODEL.to_owned(),
            reranker: "none".to_owned(),
            rerank_by_default: true,
            model_cache: None,
            exclude_headings: Vec::new(),
            exclude_dirs: DEFAULT_EXCLUDE_DIRS.map(str::to_owned).to_vec(),
            formats: EnabledFormats::default(),
            index: IndexSettings::default(),
            search: SearchSettings::default(),
        }
    }
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            fail_on_frontmatter_error: false,
            max_text_file_size: Some(DEFAULT_SIZE_CAP),
            max_binary_file_size: Some(DEFAULT_SIZE_CAP),
            max_decompressed_size: Some(DEFAULT_SIZE_CAP),
            context_mode: ContextMode::Off,
        }
    }
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            min_quality: 0.3,
            min_confidence_ratio: 1.5,
            rank_constant: RankConstant::default(),
            weights: ColumnWeights::default(),
            mmr: MmrSettings { enabled: false, lambda: 0.7, same_doc_penalty: 0.0 },
            parent: ParentSettings {
                enabled: false,
                whole_doc_threshold_tokens: 100,
                max_expanded_tokens: 2000,
            },
        }
    }
}
