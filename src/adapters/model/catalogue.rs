//! The local models that are known by name.

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

/// The default first, the others by name.
const ENTRIES: &[ModelEntry] = &[
    ModelEntry {
        name: "bge-small-en-v1.5",
        dimension: 384,
        pooling: Pooling::Cls,
        window_tokens: 512,
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
    // The hub has no safetensors of this model; a folder with them may be
    // placed in the models directory.
    ModelEntry {
        name: "bge-m3",
        dimension: 1024,
        pooling: Pooling::Cls,
        window_tokens: 512,
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
             \"bge-small-en-v1.5\"?); known: bge-small-en-v1.5, all-minilm-l6-v2, bge-m3"
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
