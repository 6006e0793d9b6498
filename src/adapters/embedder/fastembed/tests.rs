//! What needs a library or weights is ignored unless both are named:
//! `ORT_DYLIB_PATH` is the library, `GROOVE_TEST_ONNX` a folder that
//! `tests/data/make_onnx.py` made of all-minilm-l6-v2, and `GROOVE_TEST_MODEL`
//! the folder that it was made of.

use std::fs;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::adapters::embedder::native::{NativeEncoder, Precision};
use crate::adapters::model::catalogue;

proptest! {
    #[test]
    fn batches_hold_every_text_once_and_are_of_one_length_within_the_budget(
        lengths in prop::collection::vec(0_usize..40, 0..60),
        budget in 1_usize..100,
    ) {
        let batches = batches_of_one_length(&lengths, budget);
        let mut seen: Vec<usize> = batches.iter().flatten().copied().collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
        for batch in &batches {
            prop_assert!(batch.iter().all(|&index| lengths[index] == lengths[batch[0]]));
            let tokens: usize = batch.iter().map(|&index| lengths[index]).sum();
            prop_assert!(batch.len() == 1 || tokens <= budget);
        }
        let firsts: Vec<usize> = batches.iter().map(|batch| lengths[batch[0]]).collect();
        prop_assert!(firsts.is_sorted_by(|a, b| a >= b));
    }
}

#[test]
fn short_texts_of_one_length_share_a_batch() {
    assert_eq!(batches_of_one_length(&[5, 9, 5, 5], 10), [vec![1], vec![0, 2], vec![3]]);
}

#[test]
fn without_a_library_the_error_names_the_variable_and_the_version() {
    let error = environment(&[]).unwrap_err().to_string();
    assert!(error.contains("ORT_DYLIB_PATH") && error.contains("1.24"), "{error}");
    let gone = tempfile::tempdir().unwrap().path().join("libonnxruntime.so");
    let error = environment(std::slice::from_ref(&gone)).unwrap_err().to_string();
    assert!(error.contains(&format!("{} does not exist", gone.display())), "{error}");
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

#[test]
fn the_folder_says_width_window_and_pooling() {
    let mean = r#"{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#;
    let folder = folder(&[
        ("config.json", r#"{"hidden_size": 384}"#),
        ("sentence_bert_config.json", r#"{"max_seq_length": 256}"#),
        ("1_Pooling/config.json", mean),
    ]);
    let expected =
        Settings { hidden_size: Some(384), window_tokens: Some(256), pooling: Some(Pooling::Mean) };
    assert_eq!(Settings::read(folder.path()).unwrap(), expected);
}

#[test]
fn a_folder_that_says_nothing_leaves_it_to_the_catalogue() {
    let folder = folder(&[("config.json", "{}")]);
    assert_eq!(Settings::read(folder.path()).unwrap(), Settings::default());
}

#[test]
fn a_pooling_that_is_not_supported_is_an_error() {
    for config in [
        r#"{"pooling_mode_max_tokens": true}"#,
        r#"{"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true}"#,
        r#"{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}"#,
        "{}",
    ] {
        let folder = folder(&[("1_Pooling/config.json", config)]);
        assert!(Settings::read(folder.path()).is_err(), "{config}");
    }
}

#[test]
fn a_settings_file_that_is_no_json_is_named() {
    let folder = folder(&[("sentence_bert_config.json", "{")]);
    let error = Settings::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("sentence_bert_config.json"), "{error}");
}

#[test]
fn missing_tokenizer_settings_are_made_up() {
    let folder = folder(&[("config.json", "{}"), ("tokenizer.json", "{}")]);
    let files = tokenizer_files(folder.path(), 77).unwrap();
    let config: Value = serde_json::from_slice(&files.tokenizer_config_file).unwrap();
    assert_eq!(config, json!({"model_max_length": 77, "pad_token": "[PAD]"}));
    assert_eq!(files.special_tokens_map_file, b"{}");
}

#[test]
fn tokenizer_settings_that_are_there_are_kept() {
    let own = r#"{"model_max_length":12,"pad_token":{"content":"<pad>"}}"#;
    let folder =
        folder(&[("config.json", "{}"), ("tokenizer.json", "{}"), ("tokenizer_config.json", own)]);
    let files = tokenizer_files(folder.path(), 77).unwrap();
    assert_eq!(String::from_utf8(files.tokenizer_config_file).unwrap(), own);
}

#[cfg(unix)]
#[test]
fn data_behind_links_out_of_the_folder_is_not_mapped() {
    let files = [("a/model.onnx", "m"), ("a/model.onnx_data", "d"), ("b/blob", "d")];
    let folder = folder(&files);
    let root = folder.path().join("a");
    let with = |data: &[&str]| OnnxFolder {
        root: root.clone(),
        model: root.join("model.onnx"),
        data: data.iter().map(|name| root.join(name)).collect(),
    };
    std::os::unix::fs::symlink("../b/blob", root.join("linked")).unwrap();
    assert_eq!(data_folder(&with(&["model.onnx_data"])), Some(root.as_path()));
    assert_eq!(data_folder(&with(&["model.onnx_data", "linked"])), None);
    assert_eq!(data_folder(&with(&[])), None);
}

#[test]
fn an_answer_of_another_shape_is_refused() {
    let is_wrong = |vectors: Vec<Vec<f32>>| {
        matches!(to_embeddings(vectors, 1, 2), Err(EmbedError::WrongShape { .. }))
    };
    assert!(is_wrong(vec![]));
    assert!(is_wrong(vec![vec![1.0]]));
    assert!(is_wrong(vec![vec![f32::NAN, 1.0]]));
    assert!(!is_wrong(vec![vec![3.0, 4.0]]));
}

const IGNORED: &str = "ORT_DYLIB_PATH and GROOVE_TEST_ONNX";

fn minilm() -> FastEmbedEmbedder {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect(IGNORED));
    let root = variable("GROOVE_TEST_ONNX");
    let model = root.join("onnx").join("model.onnx");
    let data = Some(root.join("onnx").join("model.onnx_data")).filter(|path| path.exists());
    let entry = catalogue::find("all-minilm-l6-v2").unwrap();
    let model = OnnxModel {
        identity: entry.identity(),
        folder: OnnxFolder { root, model, data: data.into_iter().collect() },
        pooling: entry.pooling,
        window_tokens: entry.window_tokens,
        quantised: entry.quantised,
        lead: String::new(),
    };
    let cores = NonZeroUsize::new(2).unwrap();
    FastEmbedEmbedder::open(model, &[variable("ORT_DYLIB_PATH")], cores).unwrap()
}

// IDX-158
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs ORT_DYLIB_PATH and GROOVE_TEST_ONNX"]
async fn embeddings_are_those_of_the_reference() {
    // Computed with onnxruntime for Python, one text at a time, mean pooled.
    let expected = [
        0.126_535_22_f32,
        -0.032_850_694,
        -0.029_059_604,
        0.044_406_977,
        -0.043_445_33,
        0.032_096_915,
        0.048_111_156,
        0.027_675_021,
    ];
    let embedder = minilm();
    let embedding = embedder.embed_query("A cat sits on the mat.").await.unwrap();
    for (actual, expected) in embedding.as_slice().iter().zip(expected) {
        assert!((actual - expected).abs() < 1e-5, "{actual} {expected}");
    }
    let near = embedder.embed_query("A feline rests on a rug.").await.unwrap();
    let far = embedder.embed_query("Interest rates rose in March.").await.unwrap();
    assert!((embedding.cosine(&near) - 0.573_811).abs() < 1e-4);
    assert!((embedding.cosine(&far) - 0.016_971).abs() < 1e-4);
}

// IDX-159
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs ORT_DYLIB_PATH and GROOVE_TEST_ONNX"]
async fn documents_keep_their_order_and_equal_the_query() {
    let embedder = minilm();
    let full = "word ".repeat(254);
    let texts: Vec<String> =
        ["one", "two words", "", "three", &full, "one", "日本語"].map(str::to_owned).to_vec();
    let embeddings = embedder.embed_documents(&texts).await.unwrap().embeddings;
    assert_eq!(embeddings.len(), texts.len());
    for (text, embedding) in texts.iter().zip(&embeddings) {
        let alone = embedder.embed_query(text).await.unwrap();
        assert!(alone.cosine(embedding) > 0.999_999, "{text:.20}");
        let norm: f32 = embedding.as_slice().iter().map(|value| value * value).sum();
        assert!((norm - 1.0).abs() < 1e-5);
    }
    let cut = embedder.embed_query(&"word ".repeat(3000)).await.unwrap();
    assert!(embeddings[4].cosine(&cut) > 0.999_999);
    assert!(embeddings[0].cosine(&embeddings[1]) < 0.99);
    assert!(embedder.embed_documents(&[]).await.unwrap().embeddings.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs ORT_DYLIB_PATH, GROOVE_TEST_ONNX and GROOVE_TEST_MODEL"]
async fn the_native_engine_gives_the_same_embeddings() {
    let onnx = minilm();
    let folder = PathBuf::from(std::env::var_os("GROOVE_TEST_MODEL").expect("GROOVE_TEST_MODEL"));
    let name = onnx.identity().model.clone();
    let native = NativeEncoder::open(&name, &folder, Precision::F32).unwrap();
    assert_eq!(native.identity(), onnx.identity());
    // Several windows, and words that fill one by themselves.
    let long = "The quick brown fox jumps over the lazy dog. ".repeat(60);
    let unbroken = "日本語の文書".repeat(200) + &"x1-".repeat(400);
    let texts: Vec<String> =
        ["", "ok", "Tokio spawns a task.", "日本語の文書", "naïve café", &long, &unbroken]
            .map(str::to_owned)
            .to_vec();
    let [left, right] = [&onnx as &dyn Embedder, &native].map(|it| it.embed_documents(&texts));
    let (left, right) = (left.await.unwrap(), right.await.unwrap());
    assert_eq!((left.in_parts, right.in_parts), (2, 2));
    assert_eq!(onnx.window_tokens(), native.window_tokens());
    let exceed = onnx.exceed_window(&texts).await.unwrap();
    assert_eq!(exceed, native.exceed_window(&texts).await.unwrap());
    for (text, (left, right)) in texts.iter().zip(left.embeddings.iter().zip(&right.embeddings)) {
        let cosine = left.cosine(right);
        assert!(cosine > 0.999, "{cosine} {text:.40}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs ORT_DYLIB_PATH and GROOVE_TEST_ONNX"]
async fn a_query_does_not_wait_for_the_documents() {
    let embedder = Arc::new(minilm());
    let texts: Vec<String> = (0..60).map(|n| format!("{n} {}", "filler ".repeat(200))).collect();
    let documents = Arc::clone(&embedder);
    let started = std::time::Instant::now();
    let run =
        tokio::spawn(
            async move { documents.embed_documents(&texts).await.unwrap().embeddings.len() },
        );
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    embedder.embed_query("a question").await.unwrap();
    let query = started.elapsed();
    assert!(!run.is_finished());
    assert_eq!(run.await.unwrap(), 60);
    assert!(query * 2 < started.elapsed());
}

#[test]
#[ignore = "needs ORT_DYLIB_PATH and GROOVE_TEST_ONNX"]
fn a_model_of_another_width_is_refused() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect(IGNORED));
    let root = variable("GROOVE_TEST_ONNX");
    let model = OnnxModel {
        identity: ModelIdentity { model: "bge-m3".to_owned(), dimension: 1024 },
        folder: OnnxFolder { model: root.join("onnx/model.onnx"), root, data: Vec::new() },
        pooling: Pooling::Cls,
        window_tokens: 512,
        quantised: false,
        lead: String::new(),
    };
    let cores = NonZeroUsize::new(1).unwrap();
    let error = FastEmbedEmbedder::open(model, &[variable("ORT_DYLIB_PATH")], cores).unwrap_err();
    let EmbedError::Unavailable { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "its embeddings have 384 numbers, not 1024");
}
