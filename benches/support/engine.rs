//! The ways of embedding that are compared.
#![allow(dead_code, clippy::disallowed_methods, clippy::unwrap_used, reason = "a measurement")]

use std::path::{Path, PathBuf};

use fastembed::{
    InitOptionsUserDefined, Pooling, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel,
};
use grooveseek::adapters::embedder::native::{NativeEncoder, Precision};
use grooveseek::adapters::model::runtime::environment;
use grooveseek::ports::embedder::Embedder;
use tokio::runtime::Runtime;

/// The most tokens of a text that the model reads.
pub(crate) const WINDOW_TOKENS: usize = 256;

/// Texts to a call of the native encoder, as an index run hands them over.
const GROUP: usize = 64;

/// A way of embedding.
pub(crate) enum Engine {
    /// ONNX Runtime, the texts of a document padded to the longest of them.
    Padded(Box<TextEmbedding>),
    /// ONNX Runtime, one text at a time.
    Alone(Box<TextEmbedding>),
    /// The native encoder.
    Native(Runtime, NativeEncoder),
}

/// Opens ONNX Runtime on one thread.
pub(crate) fn open_onnx(folder: &Path, library: PathBuf) -> Box<TextEmbedding> {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let tokenizer = TokenizerFiles {
        tokenizer_file: read("tokenizer.json"),
        config_file: read("config.json"),
        special_tokens_map_file: read("special_tokens_map.json"),
        tokenizer_config_file: read("tokenizer_config.json"),
    };
    let model = UserDefinedEmbeddingModel::new(read("onnx/model.onnx"), tokenizer);
    let options = InitOptionsUserDefined::new()
        .with_environment(environment(&[library]).unwrap())
        .with_max_length(WINDOW_TOKENS)
        .with_intra_threads(1);
    let model = model.with_pooling(Pooling::Mean);
    Box::new(TextEmbedding::try_new_from_user_defined(model, options).unwrap())
}

/// Opens the native encoder.
pub(crate) fn open_native(folder: &Path, precision: Precision) -> Engine {
    let encoder = NativeEncoder::open("all-minilm-l6-v2", folder, precision).unwrap();
    Engine::Native(Runtime::new().unwrap(), encoder)
}

impl Engine {
    /// Embeds the chunks of documents, one vector a chunk, in order.
    pub(crate) fn embed(&mut self, documents: &[Vec<String>]) -> Vec<Vec<f32>> {
        match self {
            Self::Padded(model) => {
                let all = documents.iter().map(|chunks| model.embed(chunks, None).unwrap());
                all.flatten().collect()
            }
            Self::Alone(model) => {
                let chunks = documents.iter().flatten();
                chunks.map(|chunk| model.embed([chunk], None).unwrap().remove(0)).collect()
            }
            Self::Native(runtime, encoder) => {
                let chunks: Vec<String> = documents.iter().flatten().cloned().collect();
                let groups = chunks.chunks(GROUP);
                let embed = |group| runtime.block_on(encoder.embed_documents(group)).unwrap();
                groups
                    .flat_map(|group| embed(group).embeddings)
                    .map(|it| it.as_slice().to_vec())
                    .collect()
            }
        }
    }

    /// Embeds a question: what `groove` does with one.
    pub(crate) fn ask(&mut self, query: &str) {
        if let Self::Native(runtime, encoder) = self {
            runtime.block_on(encoder.embed_query(query)).unwrap();
        } else {
            self.embed(&[vec![query.to_owned()]]);
        }
    }
}
