//! A model of two small layers with random weights, and what it has to give.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) const HIDDEN: usize = 20;
const HEADS: usize = 2;
const INNER: usize = 36;
pub(super) const LAYERS: usize = 2;
pub(super) const POSITIONS: usize = 12;
const EPSILON: f64 = 1e-12;

const WORDS: [&str; 9] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e"];

/// A folder in the making. Each part may be changed before it is written.
pub(super) struct Toy {
    /// Files other than the weights, by name.
    pub(super) files: BTreeMap<&'static str, Value>,
    /// Tensors by name: shape and numbers.
    pub(super) tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

/// Numbers from −1 to 1 that depend on the seed alone.
fn noise(count: usize, seed: &mut u64) -> Vec<f32> {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        f32::from(u16::try_from(*seed >> 48).unwrap()) / 32_768.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

impl Toy {
    pub(super) fn new() -> Self {
        let config = json!({
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": INNER, "vocab_size": WORDS.len(),
            "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
            "layer_norm_eps": EPSILON,
        });
        let pooling = json!({"pooling_mode_mean_tokens": true});
        let files = [
            ("config.json", config),
            ("tokenizer.json", tokenizer()),
            ("1_Pooling/config.json", pooling),
        ];
        Self { files: files.into(), tensors: tensors() }
    }

    /// Writes the folder.
    pub(super) fn write(&self) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, value) in &self.files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value.to_string()).unwrap();
        }
        std::fs::write(folder.path().join("model.safetensors"), self.safetensors()).unwrap();
        folder
    }

    pub(super) fn safetensors(&self) -> Vec<u8> {
        let bytes: Vec<Vec<u8>> = self
            .tensors
            .values()
            .map(|(_, numbers)| numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
            .collect();
        let views = self.tensors.iter().zip(&bytes).map(|((name, (shape, _)), bytes)| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
        });
        serialize(views, None).unwrap()
    }

    fn tensor(&self, name: &str) -> Vec<f64> {
        self.tensors[name].1.iter().map(|&number| number.into()).collect()
    }

    fn norm(&self, name: &str, rows: &mut [Vec<f64>]) {
        let (weight, bias) =
            (self.tensor(&format!("{name}.weight")), self.tensor(&format!("{name}.bias")));
        for row in rows {
            let mean = row.iter().sum::<f64>() / count(row.len());
            let squares = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let deviation = (squares / count(row.len()) + EPSILON).sqrt();
            for (column, x) in row.iter_mut().enumerate() {
                *x = (*x - mean) / deviation * weight[column] + bias[column];
            }
        }
    }

    fn linear(&self, name: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (weight, bias) =
            (self.tensor(&format!("{name}.weight")), self.tensor(&format!("{name}.bias")));
        let apply = |row: &Vec<f64>| {
            let outputs = weight.chunks(row.len()).zip(&bias);
            outputs.map(|(weight, bias)| dot(weight, row) + bias).collect()
        };
        rows.iter().map(apply).collect()
    }

    /// The vectors of all tokens, straight from the definition.
    pub(super) fn forward(&self, tokens: &[usize]) -> Vec<Vec<f64>> {
        let [words, positions, types] = ["word", "position", "token_type"]
            .map(|kind| self.tensor(&format!("embeddings.{kind}_embeddings.weight")));
        let look_up = |(position, token): (usize, &usize)| -> Vec<f64> {
            let sum = |column: usize| {
                words[token * HIDDEN + column]
                    + positions[position * HIDDEN + column]
                    + types[column]
            };
            (0..HIDDEN).map(sum).collect()
        };
        let mut rows: Vec<Vec<f64>> = tokens.iter().enumerate().map(look_up).collect();
        self.norm("embeddings.LayerNorm", &mut rows);
        for layer in 0..LAYERS {
            let part = |name: &str| format!("encoder.layer.{layer}.{name}");
            let mixed = self.linear(&part("attention.output.dense"), &self.attend(layer, &rows));
            add(&mut rows, &mixed);
            self.norm(&part("attention.output.LayerNorm"), &mut rows);
            let mut inner = self.linear(&part("intermediate.dense"), &rows);
            inner.iter_mut().flatten().for_each(|x| *x = gelu(*x));
            let outer = self.linear(&part("output.dense"), &inner);
            add(&mut rows, &outer);
            self.norm(&part("output.LayerNorm"), &mut rows);
        }
        rows
    }

    fn attend(&self, layer: usize, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let [queries, keys, values] = ["query", "key", "value"]
            .map(|name| self.linear(&format!("encoder.layer.{layer}.attention.self.{name}"), rows));
        let size = HIDDEN / HEADS;
        let mut mixed = vec![vec![0.0; HIDDEN]; rows.len()];
        for head in 0..HEADS {
            let range = head * size..(head + 1) * size;
            for (query, mixed) in queries.iter().zip(&mut mixed) {
                let score = |key: &Vec<f64>| {
                    (dot(&query[range.clone()], &key[range.clone()]) / count(size).sqrt()).exp()
                };
                let terms: Vec<f64> = keys.iter().map(score).collect();
                let sum: f64 = terms.iter().sum();
                for (term, value) in terms.iter().zip(&values) {
                    for column in range.clone() {
                        mixed[column] += term / sum * value[column];
                    }
                }
            }
        }
        mixed
    }
}

fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(rows: &mut [Vec<f64>], others: &[Vec<f64>]) {
    for (x, other) in rows.iter_mut().flatten().zip(others.iter().flatten()) {
        *x += other;
    }
}

/// x × Φ(x), with the error function as a series.
fn gelu(x: f64) -> f64 {
    let z = x / 2.0_f64.sqrt();
    let (mut term, mut sum) = (z, z);
    for n in 1..200_u32 {
        term *= 2.0 * z * z / f64::from(2 * n + 1);
        sum += term;
    }
    let erf = sum * (-z * z).exp() * 2.0 / std::f64::consts::PI.sqrt();
    0.5 * x * (1.0 + erf)
}

fn tensors() -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let mut seed = 7;
    let mut tensors = BTreeMap::new();
    let mut put = |name: String, shape: &[usize], scale: f32, offset: f32| {
        let numbers = noise(shape.iter().product(), &mut seed);
        let numbers = numbers.into_iter().map(|number| scale * number + offset).collect();
        tensors.insert(name, (shape.to_vec(), numbers));
    };
    for (kind, rows) in [("word", WORDS.len()), ("position", POSITIONS), ("token_type", 2)] {
        put(format!("embeddings.{kind}_embeddings.weight"), &[rows, HIDDEN], 1.0, 0.0);
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..LAYERS {
        let part = |name: &str| format!("encoder.layer.{layer}.{name}");
        for (name, outputs, inputs) in [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ] {
            put(part(&format!("{name}.weight")), &[outputs, inputs], 0.4, 0.0);
            put(part(&format!("{name}.bias")), &[outputs], 0.2, 0.0);
        }
        norms.extend([part("attention.output.LayerNorm"), part("output.LayerNorm")]);
    }
    for norm in norms {
        put(format!("{norm}.weight"), &[HIDDEN], 0.2, 1.0);
        put(format!("{norm}.bias"), &[HIDDEN], 0.2, 0.0);
    }
    tensors
}

/// A tokenizer of single letters, whose own truncation and padding are in the way.
fn tokenizer() -> Value {
    let vocabulary: serde_json::Map<String, Value> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let special = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let added = |id: usize| {
        json!({"id": id, "content": WORDS[id], "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false})
    };
    json!({
        "version": "1.0",
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0,
            "direction": "Right"},
        "padding": {"strategy": {"Fixed": 11}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [added(0), added(1), added(2), added(3)],
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
            "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [special("[CLS]"), text, special("[SEP]")],
            "pair": [special("[CLS]"), text, special("[SEP]")],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

/// The tokens of a text of single letters.
pub(super) fn tokens(text: &str) -> Vec<usize> {
    let id = |word: &str| WORDS.iter().position(|known| *known == word).unwrap_or(1);
    let most = POSITIONS - 2;
    [2].into_iter()
        .chain(text.split(' ').filter(|word| !word.is_empty()).map(id).take(most))
        .chain([3])
        .collect()
}

/// Where the tests' own file of a name lies in a folder.
pub(super) fn overwrite(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).unwrap();
}
