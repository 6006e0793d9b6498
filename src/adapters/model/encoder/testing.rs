//! Models of two small layers with random weights, and what they have to give.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const HIDDEN: usize = 20;
const HEADS: usize = 2;
const INNER: usize = 36;
pub(crate) const LAYERS: usize = 2;
pub(crate) const POSITIONS: usize = 12;

const WORDS: [&str; 9] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e"];

const PIECES: [&str; 9] = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "▁c", "▁d", "▁e"];

/// Which of the two families a toy is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bert,
    XlmRoberta,
}

/// A folder in the making. Each part may be changed before it is written.
pub(crate) struct Toy {
    pub(crate) kind: Kind,
    /// Files other than the weights, by name.
    pub(crate) files: BTreeMap<&'static str, Value>,
    /// Tensors by name: shape and numbers.
    pub(crate) tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
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
    /// A BERT model.
    pub(crate) fn new() -> Self {
        Self::of(Kind::Bert)
    }

    /// A model of a family, with mean pooling.
    pub(crate) fn of(kind: Kind) -> Self {
        let (model_type, types, padding, tokenizer) = match kind {
            Kind::Bert => ("bert", 2, 0, word_pieces()),
            Kind::XlmRoberta => ("xlm-roberta", 1, 1, sentence_pieces()),
        };
        let config = json!({
            "model_type": model_type, "hidden_act": "gelu", "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": INNER, "vocab_size": WORDS.len(), "pad_token_id": padding,
            "max_position_embeddings": POSITIONS + kind.first_position(),
            "type_vocab_size": types, "layer_norm_eps": kind.epsilon(),
        });
        let pooling = json!({"pooling_mode_mean_tokens": true});
        let files = [
            ("config.json", config),
            ("tokenizer.json", tokenizer),
            ("1_Pooling/config.json", pooling),
        ];
        Self { kind, files: files.into(), tensors: tensors(kind) }
    }

    /// A model that scores pairs.
    pub(crate) fn cross_encoder(kind: Kind) -> Self {
        let mut toy = Self::of(kind);
        let config = toy.files.get_mut("config.json").unwrap();
        config["id2label"] = json!({"0": "LABEL_0"});
        let ([dense, score], architecture) = kind.head();
        config["architectures"] = json!([architecture]);
        let mut seed = 99;
        for (name, outputs) in [(dense, HIDDEN), (score, 1)] {
            let (matrix, bias) = (noise(outputs * HIDDEN, &mut seed), noise(outputs, &mut seed));
            toy.tensors.insert(format!("{name}.weight"), (vec![outputs, HIDDEN], matrix));
            toy.tensors.insert(format!("{name}.bias"), (vec![outputs], bias));
        }
        toy
    }

    /// Puts a prefix in front of the names of all tensors.
    pub(crate) fn with_prefix(mut self, prefix: &str) -> Self {
        let tensors = std::mem::take(&mut self.tensors);
        let named = tensors.into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor));
        self.tensors = named.collect();
        self
    }

    /// Writes the folder without weights.
    pub(crate) fn write_settings(&self) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, value) in &self.files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value.to_string()).unwrap();
        }
        folder
    }

    /// Writes the folder.
    pub(crate) fn write(&self) -> TempDir {
        let folder = self.write_settings();
        std::fs::write(folder.path().join("model.safetensors"), self.safetensors()).unwrap();
        folder
    }

    pub(crate) fn safetensors(&self) -> Vec<u8> {
        self.safetensors_as(Dtype::F32, |_| true)
    }

    /// The tensors that are wanted, in one of the kinds of numbers.
    pub(crate) fn safetensors_as(&self, kind: Dtype, wanted: impl Fn(&str) -> bool) -> Vec<u8> {
        let wanted: Vec<_> = self.tensors.iter().filter(|(name, _)| wanted(name)).collect();
        let bytes: Vec<Vec<u8>> = wanted
            .iter()
            .map(|(_, (_, numbers))| match kind {
                Dtype::F16 => numbers.iter().flat_map(|&x| to_half(x).to_le_bytes()).collect(),
                Dtype::BF16 => numbers.iter().flat_map(|&x| to_brain(x).to_le_bytes()).collect(),
                _ => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            })
            .collect();
        let views = wanted.into_iter().zip(&bytes).map(|((name, (shape, _)), bytes)| {
            (name, TensorView::new(kind, shape.clone(), bytes).unwrap())
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
            let deviation = (squares / count(row.len()) + self.kind.epsilon()).sqrt();
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
    pub(crate) fn forward(&self, tokens: &[usize]) -> Vec<Vec<f64>> {
        self.forward_typed(tokens, &vec![0; tokens.len()])
    }

    /// The same, for tokens of several types.
    pub(crate) fn forward_typed(&self, tokens: &[usize], kinds: &[usize]) -> Vec<Vec<f64>> {
        let [words, positions, types] = ["word", "position", "token_type"]
            .map(|kind| self.tensor(&format!("embeddings.{kind}_embeddings.weight")));
        let places = self.kind.positions(tokens);
        let look_up = |((&token, position), &kind): ((&usize, usize), &usize)| -> Vec<f64> {
            let sum = |column: usize| {
                words[token * HIDDEN + column]
                    + positions[position * HIDDEN + column]
                    + types[kind * HIDDEN + column]
            };
            (0..HIDDEN).map(sum).collect()
        };
        let mut rows: Vec<Vec<f64>> = tokens.iter().zip(places).zip(kinds).map(look_up).collect();
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

    /// The score of a pair, straight from the definition.
    pub(crate) fn score(&self, tokens: &[usize], types: &[usize]) -> f64 {
        let ([dense, score], _) = self.kind.head();
        let first = self.forward_typed(tokens, types).swap_remove(0);
        let mut inner = self.linear(dense, &[first]);
        inner[0].iter_mut().for_each(|x| *x = x.tanh());
        self.linear(score, &inner)[0][0]
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

fn tensors(kind: Kind) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let mut seed = 7;
    let mut tensors = BTreeMap::new();
    let mut put = |name: String, shape: &[usize], scale: f32, offset: f32| {
        let numbers = noise(shape.iter().product(), &mut seed);
        let numbers = numbers.into_iter().map(|number| scale * number + offset).collect();
        tensors.insert(name, (shape.to_vec(), numbers));
    };
    let (positions, types) =
        (POSITIONS + kind.first_position(), if kind == Kind::Bert { 2 } else { 1 });
    for (kind, rows) in [("word", WORDS.len()), ("position", positions), ("token_type", types)] {
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
fn word_pieces() -> Value {
    let vocabulary: serde_json::Map<String, Value> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let special = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let second = json!({"Sequence": {"id": "B", "type_id": 1}});
    let end = json!({"SpecialToken": {"id": "[SEP]", "type_id": 1}});
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
            "pair": [special("[CLS]"), text, special("[SEP]"), second, end],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

/// A tokenizer of single letters as SentencePiece has them.
fn sentence_pieces() -> Value {
    let score = |id: usize| if id < 4 { 0.0 } else { -2.0 };
    let vocabulary: Vec<Value> =
        PIECES.iter().enumerate().map(|(id, piece)| json!([piece, score(id)])).collect();
    let added = |id: usize| {
        json!({"id": id, "content": PIECES[id], "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false})
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [added(0), added(1), added(2), added(3)],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}]},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
            "trim_offsets": true, "add_prefix_space": false},
        "decoder": null,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": false},
    })
}

impl Kind {
    fn first_position(self) -> usize {
        if self == Self::Bert { 0 } else { 2 }
    }

    fn epsilon(self) -> f64 {
        if self == Self::Bert { 1e-12 } else { 1e-5 }
    }

    /// The names of the two layers that score a pair, and that of the whole.
    pub(crate) fn head(self) -> ([&'static str; 2], &'static str) {
        match self {
            Self::Bert => (["pooler.dense", "classifier"], "BertForSequenceClassification"),
            Self::XlmRoberta => {
                (["classifier.dense", "classifier.out_proj"], "XLMRobertaForSequenceClassification")
            }
        }
    }

    fn positions(self, tokens: &[usize]) -> Vec<usize> {
        match self {
            Self::Bert => (0..tokens.len()).collect(),
            // As the model's first implementation: a running count of what is no padding.
            Self::XlmRoberta => {
                let mut count = 0;
                let mut place = |&token: &usize| {
                    let is_text = usize::from(token != 1);
                    count += is_text;
                    count * is_text + 1
                };
                tokens.iter().map(&mut place).collect()
            }
        }
    }

    /// The tokens of a text of single letters, without special ones.
    fn words(self, text: &str) -> Vec<usize> {
        let words = text.split(' ').filter(|word| !word.is_empty());
        let known = |word: &str| match (self, word) {
            (Self::XlmRoberta, "<pad>") => 1,
            (Self::Bert, _) => WORDS.iter().position(|known| *known == word).unwrap_or(1),
            (Self::XlmRoberta, _) => PIECES
                .iter()
                .position(|known| known[..].trim_start_matches('▁') == word)
                .unwrap_or(3),
        };
        words.map(known).collect()
    }

    /// The tokens of a text of single letters.
    pub(crate) fn tokens(self, text: &str) -> Vec<usize> {
        let (begin, end) = if self == Self::Bert { (2, 3) } else { (0, 2) };
        let words = self.words(text).into_iter().take(POSITIONS - 2);
        [begin].into_iter().chain(words).chain([end]).collect()
    }

    /// The tokens of two texts of single letters that fit together, with types.
    pub(crate) fn pair(self, first: &str, second: &str) -> (Vec<usize>, Vec<usize>) {
        let (begin, end, between): (_, _, &[usize]) =
            if self == Self::Bert { (2, 3, &[3]) } else { (0, 2, &[2, 2]) };
        let (one, other) = (self.words(first), self.words(second));
        let head = 1 + one.len() + between.len();
        let tokens = [&[begin], &one[..], between, &other[..], &[end]].concat();
        let kind = |place: usize| usize::from(self == Self::Bert && place >= head);
        let types = (0..tokens.len()).map(kind).collect();
        (tokens, types)
    }
}

/// The tokens of a text of single letters, for a BERT model.
pub(crate) fn tokens(text: &str) -> Vec<usize> {
    Kind::Bert.tokens(text)
}

/// A number in 16 bits, cut off at its end.
#[expect(clippy::cast_possible_truncation, reason = "the upper bits are none")]
pub(crate) fn to_half(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = f32::from_bits(bits & 0x7fff_ffff) * f32::from_bits((127 - 112) << 23);
    sign | (magnitude.to_bits() >> 13) as u16
}

/// The upper half of a number.
pub(crate) fn to_brain(number: f32) -> u16 {
    (number.to_bits() >> 16) as u16
}

/// Where the tests' own file of a name lies in a folder.
pub(crate) fn overwrite(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).unwrap();
}
