//! The contract of the reranker port.

use std::fs;

use grooveseek::adapters::model::encoder::{ModelFolder, Precision};
use grooveseek::adapters::reranker::native::NativeReranker;
use grooveseek::adapters::reranker::overlap::OverlapReranker;
use grooveseek::ports::reranker::Reranker;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::json;

macro_rules! reranker_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            names_its_model,
            n_passages_give_n_scores_in_order,
            no_passage_gives_no_score,
            a_score_depends_on_its_own_pair_alone,
            a_score_is_finite_whatever_the_texts,
            a_passage_about_the_query_scores_above_one_about_something_else,
        }
    };
}

reranker_contract! { overlap = super::overlap }

/// A cross-encoder of random weights knows nothing of any subject, so that the
/// one case about subjects is left to models that were trained.
mod native_at_random {
    contract! { native = super::at_random;
        names_its_model,
        n_passages_give_n_scores_in_order,
        no_passage_gives_no_score,
        a_score_depends_on_its_own_pair_alone,
        a_score_is_finite_whatever_the_texts,
    }

    use super::*;
}

#[cfg(feature = "onnx")]
mod with_onnx {
    use std::num::NonZeroUsize;
    use std::path::PathBuf;

    use grooveseek::adapters::model::locate::OnnxFolder;
    use grooveseek::adapters::reranker::fastembed::FastEmbedReranker;

    use super::*;

    reranker_contract! {
        fastembed = super::on_onnx_runtime,
        ignore "needs ONNX Runtime and a toy cross-encoder; `make test` gets both"
    }

    fn on_onnx_runtime() -> Box<dyn Reranker> {
        let root = PathBuf::from(std::env::var_os("GROOVE_TEST_RERANKER").unwrap());
        let library = PathBuf::from(std::env::var_os("ORT_DYLIB_PATH").unwrap());
        let model = root.join("onnx/model.onnx");
        let folder = OnnxFolder { root, model, data: Vec::new() };
        let cores = NonZeroUsize::new(2).unwrap();
        // IDX-178
        Box::new(FastEmbedReranker::open("toy", &folder, 512, &[library], cores).unwrap())
    }
}

/// Waits for an answer; each case has a runtime of its own.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

type Make = fn() -> Box<dyn Reranker>;

fn overlap() -> Box<dyn Reranker> {
    Box::new(OverlapReranker)
}

/// A cross-encoder of one layer with weights that follow from their places.
fn at_random() -> Box<dyn Reranker> {
    const HIDDEN: usize = 16;
    const INNER: usize = 32;
    let words =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "apple", "bake", "tax", "tokio", "a", "to", "w"];
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "model_type": "bert", "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0"}, "hidden_size": HIDDEN, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": INNER, "vocab_size": words.len(),
        "max_position_embeddings": 64,
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let vocabulary: serde_json::Map<_, _> =
        words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), json!(id))).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "decoder": null,
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
            "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    });
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let mut shapes = vec![
        ("bert.embeddings.word_embeddings.weight".to_owned(), vec![words.len(), HIDDEN]),
        ("bert.embeddings.position_embeddings.weight".to_owned(), vec![64, HIDDEN]),
        ("bert.embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
    ];
    let layer = |name: &str| format!("bert.encoder.layer.0.{name}");
    for (name, outputs, inputs) in [
        (layer("attention.self.query"), HIDDEN, HIDDEN),
        (layer("attention.self.key"), HIDDEN, HIDDEN),
        (layer("attention.self.value"), HIDDEN, HIDDEN),
        (layer("attention.output.dense"), HIDDEN, HIDDEN),
        (layer("intermediate.dense"), INNER, HIDDEN),
        (layer("output.dense"), HIDDEN, INNER),
        ("bert.pooler.dense".to_owned(), HIDDEN, HIDDEN),
        ("classifier".to_owned(), 1, HIDDEN),
    ] {
        shapes.push((format!("{name}.weight"), vec![outputs, inputs]));
        shapes.push((format!("{name}.bias"), vec![outputs]));
    }
    for name in [
        "bert.embeddings.LayerNorm".to_owned(),
        layer("attention.output.LayerNorm"),
        layer("output.LayerNorm"),
    ] {
        shapes.push((format!("{name}.weight"), vec![HIDDEN]));
        shapes.push((format!("{name}.bias"), vec![HIDDEN]));
    }
    let bytes: Vec<Vec<u8>> = shapes
        .iter()
        .enumerate()
        .map(|(tensor, (_, shape))| {
            let number = |place: usize| ((place * 7 + tensor * 13) as f32 * 0.7).sin() * 0.5;
            (0..shape.iter().product()).flat_map(|place| number(place).to_le_bytes()).collect()
        })
        .collect();
    let views = shapes.iter().zip(&bytes).map(|((name, shape), bytes)| {
        (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    let weights = serialize(views, None).unwrap();
    fs::write(folder.path().join("model.safetensors"), weights).unwrap();
    Box::new(
        NativeReranker::open("random", &ModelFolder::new(folder.path()), Precision::F32).unwrap(),
    )
}

const QUERY: &str = "how to bake an apple pie";

const PASSAGES: [&str; 4] = [
    "Tokio spawns a task on the runtime and returns a handle to join it.",
    "To bake an apple pie, peel the apples, roll out the dough and preheat the oven.",
    "再ランキングの評価手法について説明します。",
    "How to file a tax return: gather your receipts first.",
];

fn scores(reranker: &dyn Reranker, query: &str, passages: &[&str]) -> Vec<f32> {
    let passages: Vec<String> = passages.iter().map(|&passage| passage.to_owned()).collect();
    run(async { reranker.score(query, &passages).await.unwrap() })
}

fn assert_same(left: f32, right: f32) {
    assert!((left - right).abs() < 1e-3 * left.abs().max(1.0), "{left} and {right}");
}

fn names_its_model(make: Make) {
    assert!(!make().model().is_empty());
}

fn n_passages_give_n_scores_in_order(make: Make) {
    let reranker = make();
    let forwards = scores(&*reranker, QUERY, &PASSAGES);
    let mut reversed = PASSAGES;
    reversed.reverse();
    let mut backwards = scores(&*reranker, QUERY, &reversed);
    backwards.reverse();
    assert_eq!(forwards.len(), PASSAGES.len());
    assert_eq!(backwards.len(), PASSAGES.len());
    for (forward, backward) in forwards.into_iter().zip(backwards) {
        assert_same(forward, backward);
    }
}

fn no_passage_gives_no_score(make: Make) {
    assert!(scores(&*make(), QUERY, &[]).is_empty());
}

fn a_score_depends_on_its_own_pair_alone(make: Make) {
    let reranker = make();
    let together = scores(&*reranker, QUERY, &PASSAGES);
    for (score, passage) in together.into_iter().zip(PASSAGES) {
        assert_same(score, scores(&*reranker, QUERY, &[passage])[0]);
    }
}

fn a_score_is_finite_whatever_the_texts(make: Make) {
    let reranker = make();
    let long = "word ".repeat(20_000);
    let texts = ["", " ", "\0", "?!", "🦀", "日本語", &long];
    for query in texts {
        let scores = scores(&*reranker, query, &texts);
        assert_eq!(scores.len(), texts.len());
        assert!(scores.iter().all(|score| score.is_finite()), "{scores:?} for {query:.20}");
    }
}

fn a_passage_about_the_query_scores_above_one_about_something_else(make: Make) {
    let scores = scores(&*make(), QUERY, &PASSAGES);
    for other in [0, 2, 3] {
        assert!(scores[1] > scores[other], "{scores:?}");
    }
}
