//! The local models that are known by name.

use std::borrow::Cow;

use crate::domain::embedding::ModelIdentity;

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The first token's vector stands for the text.
    Cls,
    /// The mean over all tokens.
    Mean,
}

/// A repository of the hub, and what of it makes a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubSource {
    /// The repository: `organisation/name`.
    pub repository: &'static str,
    /// The model's file and after it the files that it cannot do without, as
    /// paths inside the repository.
    pub weights: &'static [&'static str],
    /// Files that are taken along where they exist.
    pub extras: &'static [&'static str],
    /// The SHA-256 of the model's file in lower-case hexadecimal, where known.
    pub sha256: Option<&'static str>,
}

/// Text that a model wants in front of what it embeds, a different one for what
/// is asked and for what is searched. Part of what the model means, whatever
/// runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// In front of a query.
    pub query: Cow<'static, str>,
    /// In front of a document's text.
    pub document: Cow<'static, str>,
}

/// Where the files of a model may come from, whatever the model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    /// The name of its folder in the models directory.
    pub name: &'static str,
    /// Where its safetensors come from, if the hub has them.
    pub safetensors: Option<HubSource>,
    /// Repositories that hold it as ONNX; the first is the one to download.
    pub onnx: &'static [HubSource],
}

/// What is known about a local model without any of its files.
#[derive(Debug, PartialEq, Eq)]
pub struct ModelEntry {
    /// The name that configuration, flags and the index know it by.
    pub name: &'static str,
    /// How many numbers an embedding has.
    pub dimension: usize,
    /// How it pools, if its folder does not say.
    pub pooling: Pooling,
    /// The most tokens of a text that it reads; the rest is cut off.
    pub window_tokens: usize,
    /// What goes in front of texts.
    pub prefixes: Prefixes,
    /// Whether its weights are small integers. Such a model computes a scale
    /// for each batch, so it gets one text at a time.
    pub quantised: bool,
    /// The languages that it was trained for, for a person to read.
    pub languages: &'static str,
    /// The licence of its weights.
    pub licence: &'static str,
    /// About how much a download takes, in megabytes.
    pub download_mb: u32,
    /// Where its safetensors come from, if the hub has them.
    pub safetensors: Option<HubSource>,
    /// Repositories that hold it as ONNX; the first is the one to download.
    pub onnx: &'static [HubSource],
}

/// A name that the catalogue does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no embedding model is called {name:?}{}; known: {}", suggestion(*.nearest), known())]
pub struct UnknownModel {
    /// The name that was asked for.
    pub name: String,
    /// The known name that looks most like it, if one does.
    pub nearest: Option<&'static str>,
}

/// A cross-encoder, known without any of its files.
#[derive(Debug, PartialEq, Eq)]
pub struct RerankerEntry {
    /// The name that configuration and flags know it by.
    pub name: &'static str,
    /// The most tokens of a query and a passage together.
    pub window_tokens: usize,
    /// The languages that it was trained for, for a person to read.
    pub languages: &'static str,
    /// The licence of its weights.
    pub licence: &'static str,
    /// About how much a download takes, in megabytes.
    pub download_mb: u32,
    /// Where its safetensors come from, if the native engine can run them.
    pub safetensors: Option<HubSource>,
    /// Repositories that hold it as ONNX; the first is the one to download.
    pub onnx: &'static [HubSource],
}

const PLAIN: Prefixes = Prefixes { query: Cow::Borrowed(""), document: Cow::Borrowed("") };

const SAFETENSORS: &[&str] = &["model.safetensors"];
const ONNX: &[&str] = &["onnx/model.onnx"];

/// What tells of tokens and pooling beside the two files that every model has.
const SETTINGS: &[&str] = &[
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
];

/// What tells of tokens beside the two files that every model has.
const TOKENS: &[&str] = &["tokenizer_config.json", "special_tokens_map.json"];

/// The default first, the others by name.
const ENTRIES: &[ModelEntry] = &[
    ModelEntry {
        name: "bge-small-en-v1.5",
        dimension: 384,
        pooling: Pooling::Cls,
        window_tokens: 512,
        prefixes: PLAIN,
        quantised: false,
        languages: "English",
        licence: "MIT",
        download_mb: 130,
        safetensors: Some(HubSource {
            repository: "BAAI/bge-small-en-v1.5",
            weights: SAFETENSORS,
            extras: SETTINGS,
            sha256: None,
        }),
        onnx: &[
            HubSource {
                repository: "Xenova/bge-small-en-v1.5",
                weights: ONNX,
                extras: SETTINGS,
                sha256: None,
            },
            HubSource {
                repository: "BAAI/bge-small-en-v1.5",
                weights: ONNX,
                extras: SETTINGS,
                sha256: None,
            },
        ],
    },
    ModelEntry {
        name: "all-minilm-l6-v2",
        dimension: 384,
        pooling: Pooling::Mean,
        window_tokens: 256,
        prefixes: PLAIN,
        quantised: false,
        languages: "English",
        licence: "Apache-2.0",
        download_mb: 90,
        safetensors: Some(HubSource {
            repository: "sentence-transformers/all-MiniLM-L6-v2",
            weights: SAFETENSORS,
            extras: SETTINGS,
            sha256: Some("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        }),
        onnx: &[
            HubSource {
                repository: "sentence-transformers/all-MiniLM-L6-v2",
                weights: ONNX,
                extras: SETTINGS,
                sha256: None,
            },
            HubSource {
                repository: "Qdrant/all-MiniLM-L6-v2-onnx",
                weights: &["model.onnx"],
                extras: SETTINGS,
                sha256: None,
            },
        ],
    },
    ModelEntry {
        name: "all-minilm-l6-v2-q",
        dimension: 384,
        pooling: Pooling::Mean,
        window_tokens: 256,
        prefixes: PLAIN,
        quantised: true,
        languages: "English",
        licence: "Apache-2.0",
        download_mb: 23,
        safetensors: None,
        onnx: &[HubSource {
            repository: "Xenova/all-MiniLM-L6-v2",
            weights: &["onnx/model_quantized.onnx"],
            extras: SETTINGS,
            sha256: None,
        }],
    },
    // The hub has no safetensors of this model; a folder with them may be
    // placed in the models directory.
    ModelEntry {
        name: "bge-m3",
        dimension: 1024,
        pooling: Pooling::Cls,
        window_tokens: 512,
        prefixes: PLAIN,
        quantised: false,
        languages: "more than 100",
        licence: "MIT",
        download_mb: 2300,
        safetensors: None,
        onnx: &[HubSource {
            repository: "BAAI/bge-m3",
            weights: &["onnx/model.onnx", "onnx/model.onnx_data"],
            extras: &[
                "onnx/Constant_7_attr__value",
                "tokenizer_config.json",
                "special_tokens_map.json",
            ],
            sha256: None,
        }],
    },
    ModelEntry {
        name: "bge-small-en-v1.5-q",
        dimension: 384,
        pooling: Pooling::Cls,
        window_tokens: 512,
        prefixes: PLAIN,
        quantised: true,
        languages: "English",
        licence: "MIT",
        download_mb: 67,
        safetensors: None,
        onnx: &[HubSource {
            repository: "Qdrant/bge-small-en-v1.5-onnx-Q",
            weights: &["model_optimized.onnx"],
            extras: SETTINGS,
            sha256: None,
        }],
    },
    ModelEntry {
        name: "multilingual-e5-small",
        dimension: 384,
        pooling: Pooling::Mean,
        window_tokens: 512,
        prefixes: Prefixes {
            query: Cow::Borrowed("query: "),
            document: Cow::Borrowed("passage: "),
        },
        quantised: false,
        languages: "about 100",
        licence: "MIT",
        download_mb: 490,
        safetensors: Some(HubSource {
            repository: "intfloat/multilingual-e5-small",
            weights: SAFETENSORS,
            extras: SETTINGS,
            sha256: None,
        }),
        onnx: &[HubSource {
            repository: "intfloat/multilingual-e5-small",
            weights: ONNX,
            extras: SETTINGS,
            sha256: None,
        }],
    },
];

/// In the order of the documentation.
const RERANKERS: &[RerankerEntry] = &[
    RerankerEntry {
        name: "bge-v2-m3",
        window_tokens: 512,
        languages: "more than 100",
        licence: "Apache-2.0",
        download_mb: 2300,
        safetensors: Some(HubSource {
            repository: "BAAI/bge-reranker-v2-m3",
            weights: SAFETENSORS,
            extras: TOKENS,
            sha256: None,
        }),
        onnx: &[
            HubSource {
                repository: "rozgo/bge-reranker-v2-m3",
                weights: &["model.onnx", "model.onnx.data"],
                extras: TOKENS,
                sha256: None,
            },
            // Whoever filled a cache under the original name may have put the
            // same files into it.
            HubSource {
                repository: "BAAI/bge-reranker-v2-m3",
                weights: &["model.onnx", "model.onnx.data"],
                extras: TOKENS,
                sha256: None,
            },
        ],
    },
    RerankerEntry {
        name: "jina-v2-ml",
        window_tokens: 512,
        languages: "many",
        licence: "CC-BY-NC-4.0: no commercial use",
        download_mb: 1200,
        safetensors: None,
        onnx: &[HubSource {
            repository: "jinaai/jina-reranker-v2-base-multilingual",
            weights: ONNX,
            extras: TOKENS,
            sha256: None,
        }],
    },
    RerankerEntry {
        name: "bge-base",
        window_tokens: 512,
        languages: "English and Chinese",
        licence: "MIT",
        download_mb: 280,
        safetensors: Some(HubSource {
            repository: "BAAI/bge-reranker-base",
            weights: SAFETENSORS,
            extras: TOKENS,
            sha256: None,
        }),
        onnx: &[HubSource {
            repository: "BAAI/bge-reranker-base",
            weights: ONNX,
            extras: TOKENS,
            sha256: None,
        }],
    },
    RerankerEntry {
        name: "minilm-l6",
        window_tokens: 512,
        languages: "English",
        licence: "Apache-2.0",
        download_mb: 91,
        safetensors: Some(HubSource {
            repository: "cross-encoder/ms-marco-MiniLM-L6-v2",
            weights: SAFETENSORS,
            extras: TOKENS,
            sha256: None,
        }),
        onnx: &[
            HubSource {
                repository: "cross-encoder/ms-marco-MiniLM-L6-v2",
                weights: ONNX,
                extras: TOKENS,
                sha256: None,
            },
            // The name that it had before.
            HubSource {
                repository: "cross-encoder/ms-marco-MiniLM-L-6-v2",
                weights: ONNX,
                extras: TOKENS,
                sha256: None,
            },
        ],
    },
];

/// Below this likeness, from 0 to 1, a known name is no plausible slip.
const PLAUSIBLE: f64 = 0.5;

/// All known models, the default first.
pub fn entries() -> &'static [ModelEntry] {
    ENTRIES
}

/// Finds a model by its exact name.
///
/// # Errors
///
/// [`UnknownModel`], which lists the known names and suggests the nearest.
pub fn find(name: &str) -> Result<&'static ModelEntry, UnknownModel> {
    ENTRIES
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| UnknownModel { name: name.to_owned(), nearest: nearest(name) })
}

/// All known rerankers.
pub fn rerankers() -> &'static [RerankerEntry] {
    RERANKERS
}

/// Finds a reranker by its exact name.
pub fn find_reranker(name: &str) -> Option<&'static RerankerEntry> {
    RERANKERS.iter().find(|entry| entry.name == name)
}

impl From<&ModelEntry> for Sources {
    fn from(entry: &ModelEntry) -> Self {
        Self { name: entry.name, safetensors: entry.safetensors, onnx: entry.onnx }
    }
}

impl From<&RerankerEntry> for Sources {
    fn from(entry: &RerankerEntry) -> Self {
        Self { name: entry.name, safetensors: entry.safetensors, onnx: entry.onnx }
    }
}

impl ModelEntry {
    /// What an index records of this model; asks neither network nor files.
    pub fn identity(&self) -> ModelIdentity {
        ModelIdentity { model: self.name.to_owned(), dimension: self.dimension }
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    let asked = name.trim().to_lowercase();
    ENTRIES
        .iter()
        .map(|entry| (strsim::normalized_damerau_levenshtein(&asked, entry.name), entry.name))
        .filter(|(likeness, _)| *likeness >= PLAUSIBLE)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, name)| name)
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

fn known() -> String {
    let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // CFG-41 IDX-158 IDX-159
    #[test]
    fn the_models_of_the_specification_have_its_facts() {
        let small = find("bge-small-en-v1.5").unwrap();
        assert_eq!((small.dimension, small.window_tokens), (384, 512));
        assert_eq!((small.pooling, small.download_mb), (Pooling::Cls, 130));
        assert_eq!(small.onnx[0].repository, "Xenova/bge-small-en-v1.5");
        assert_eq!(small.onnx[0].weights, ["onnx/model.onnx"]);
        let m3 = find("bge-m3").unwrap();
        assert_eq!((m3.dimension, m3.window_tokens), (1024, 512));
        assert_eq!((m3.pooling, m3.download_mb), (Pooling::Cls, 2300));
        assert_eq!(m3.onnx[0].repository, "BAAI/bge-m3");
        assert_eq!(m3.onnx[0].weights[..2], ["onnx/model.onnx", "onnx/model.onnx_data"]);
    }

    // IDX-159
    #[test]
    fn only_a_model_that_wants_prefixes_has_them() {
        for entry in entries() {
            let e5 = entry.name == "multilingual-e5-small";
            assert_eq!(entry.prefixes == PLAIN, !e5, "{}", entry.name);
        }
        let e5 = find("multilingual-e5-small").unwrap();
        assert_eq!((&*e5.prefixes.query, &*e5.prefixes.document), ("query: ", "passage: "));
        assert_eq!((e5.dimension, e5.pooling, e5.window_tokens), (384, Pooling::Mean, 512));
    }

    // IDX-B24
    #[test]
    fn a_quantised_model_has_an_identity_of_its_own() {
        for entry in entries().iter().filter(|entry| entry.quantised) {
            let plain = entry.name.strip_suffix("-q").and_then(|name| find(name).ok()).unwrap();
            assert_ne!(plain.identity(), entry.identity());
            assert_eq!((plain.pooling, plain.dimension), (entry.pooling, entry.dimension));
        }
    }

    // IDX-177 IDX-178 IDX-179
    #[test]
    fn the_rerankers_of_the_specification_have_its_facts() {
        let facts: Vec<_> = rerankers()
            .iter()
            .take(3)
            .map(|entry| (entry.name, entry.onnx[0].repository, entry.download_mb))
            .collect();
        assert_eq!(
            facts,
            [
                ("bge-v2-m3", "rozgo/bge-reranker-v2-m3", 2300),
                ("jina-v2-ml", "jinaai/jina-reranker-v2-base-multilingual", 1200),
                ("bge-base", "BAAI/bge-reranker-base", 280),
            ]
        );
        assert!(rerankers().iter().all(|entry| entry.window_tokens == 512));
        let small = find_reranker("minilm-l6").unwrap();
        assert!(small.safetensors.is_some() && small.download_mb < 100);
        assert!(find_reranker("jina-v2-ml").unwrap().licence.contains("CC-BY-NC-4.0"));
        assert_eq!(
            find_reranker("bge-v2-m3").unwrap().onnx[1].repository,
            "BAAI/bge-reranker-v2-m3"
        );
    }

    // IDX-112 IDX-116
    #[test]
    fn the_identity_is_the_name_and_the_dimension() {
        for (name, dimension) in
            [("bge-small-en-v1.5", 384), ("bge-m3", 1024), ("all-minilm-l6-v2", 384)]
        {
            let expected = ModelIdentity { model: name.to_owned(), dimension };
            assert_eq!(find(name).unwrap().identity(), expected);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones_and_the_nearest() {
        let error = find("bge-smal-en-v1.5").unwrap_err();
        assert_eq!(error.nearest, Some("bge-small-en-v1.5"));
        assert_eq!(
            error.to_string(),
            "no embedding model is called \"bge-smal-en-v1.5\" (did you mean \
             \"bge-small-en-v1.5\"?); known: bge-small-en-v1.5, all-minilm-l6-v2, \
             all-minilm-l6-v2-q, bge-m3, bge-small-en-v1.5-q, multilingual-e5-small"
        );
    }

    #[test]
    fn the_suggestion_ignores_case_but_the_look_up_does_not() {
        assert_eq!(find("BGE-M3").unwrap_err().nearest, Some("bge-m3"));
        assert_eq!(find("All-MiniLM-L6-v2").unwrap_err().nearest, Some("all-minilm-l6-v2"));
    }

    #[test]
    fn a_name_that_resembles_none_gets_no_suggestion() {
        let error = find("word2vec").unwrap_err();
        assert_eq!(error.nearest, None);
        assert!(!error.to_string().contains("did you mean"));
    }

    #[test]
    fn no_two_models_share_a_name_and_each_can_be_had_somewhere() {
        for (index, entry) in entries().iter().enumerate() {
            assert!(entries()[index + 1..].iter().all(|other| other.name != entry.name));
            assert!(entry.safetensors.is_some() || !entry.onnx.is_empty());
            for source in entry.safetensors.iter().chain(entry.onnx) {
                assert_eq!(source.repository.split('/').count(), 2, "{}", source.repository);
                assert!(!source.weights.is_empty());
            }
        }
    }
}
