//! Families of models, and places of their weights: the same vectors from each.

use super::*;
use crate::adapters::model::encoder::onnx_testing::{self, Kept, Style};

const TEXTS: [&str; 7] =
    ["", "a", "b c d", "e d c b a a b", "a unknown b", "a b c d e a b c d e", "c <pad> a"];

fn texts() -> Vec<String> {
    TEXTS.map(str::to_owned).to_vec()
}

async fn assert_agrees(toy: &Toy, folder: &ModelFolder, first: bool) {
    for isa in Isa::all() {
        for (formats, least) in [(Formats::F32, 0.999_999), (Formats::small(isa), 0.995)] {
            let encoder = NativeEncoder::open_on("toy", folder, isa, formats).unwrap();
            let embeddings = encoder.embed_documents(&texts()).await.unwrap().embeddings;
            for (embedding, text) in embeddings.iter().zip(TEXTS) {
                // To the toy tokenizer of BERT, that is three words.
                if toy.kind == Kind::Bert && text.contains("<pad>") {
                    continue;
                }
                let rows = toy.forward(&toy.kind.tokens(text));
                let expected = if first { rows[0].clone() } else { mean(&rows) };
                let cosine = cosine(embedding, &expected);
                assert!(cosine > least, "{} {formats:?} {text:?}: {cosine}", isa.name());
            }
        }
    }
}

#[tokio::test]
async fn a_model_of_the_xlm_roberta_family_is_what_the_definition_gives() {
    for first in [false, true] {
        let mut toy = Toy::of(Kind::XlmRoberta);
        if first {
            let pooling = serde_json::json!({"pooling_mode": "cls"});
            toy.files.insert("1_Pooling/config.json", pooling);
        }
        let folder = toy.write();
        assert_agrees(&toy, &ModelFolder::new(folder.path()), first).await;
    }
}

#[tokio::test]
async fn models_of_the_same_kind_by_another_name_are_run_alike() {
    for name in ["roberta", "camembert"] {
        let mut toy = Toy::of(Kind::XlmRoberta);
        toy.files.get_mut("config.json").unwrap()["model_type"] = name.into();
        let folder = toy.write();
        assert_agrees(&toy, &ModelFolder::new(folder.path()), false).await;
    }
}

#[tokio::test]
async fn tensors_may_have_a_prefix() {
    for (kind, prefix) in [
        (Kind::Bert, "bert."),
        (Kind::Bert, "0.auto_model."),
        (Kind::XlmRoberta, "roberta."),
        (Kind::XlmRoberta, "model."),
    ] {
        let folder = Toy::of(kind).with_prefix(prefix).write();
        assert_agrees(&Toy::of(kind), &ModelFolder::new(folder.path()), false).await;
    }
}

// CFG-96 IDX-161
#[tokio::test]
async fn a_cache_with_onnx_alone_gives_the_same_vectors_without_a_runtime() {
    for kind in [Kind::Bert, Kind::XlmRoberta] {
        for numbers in [Kept::Raw, Kept::External] {
            let toy = Toy::of(kind);
            let folder = toy.write_settings();
            onnx_testing::write(&toy, Style { numbers, ..Style::USUAL }, folder.path());
            // By its place, and by what the folder has.
            let named =
                ModelFolder::new(folder.path()).with_onnx(onnx_testing::path(folder.path()));
            assert_eq!(ModelFolder::of("toy", folder.path()), named);
            assert_agrees(&toy, &named, false).await;
        }
    }
}

#[test]
fn safetensors_come_before_onnx() {
    let toy = Toy::new();
    let folder = toy.write();
    onnx_testing::write(&toy, Style::USUAL, folder.path());
    assert_eq!(ModelFolder::of("toy", folder.path()).onnx, None);
}

#[test]
fn a_model_of_the_xlm_roberta_family_has_fewer_tokens_than_positions() {
    let toy = Toy::of(Kind::XlmRoberta);
    let folder = toy.write();
    let shape = Shape::of_embedder(&ModelFolder::new(folder.path())).unwrap();
    assert_eq!((shape.positions, shape.window_tokens), (POSITIONS + 2, POSITIONS));
}

// CFG-41 IDX-158
#[test]
fn the_catalogue_bounds_the_window_of_a_model_that_it_knows() {
    let mut toy = Toy::of(Kind::XlmRoberta);
    toy.files.get_mut("config.json").unwrap()["max_position_embeddings"] = 8194.into();
    let folder = toy.write();
    for (name, window) in [("bge-m3", 512), ("toy", 8192)] {
        let shape = Shape::of_embedder(&ModelFolder::of(name, folder.path())).unwrap();
        assert_eq!(shape.window_tokens, window);
    }
}

#[test]
fn the_tokenizers_settings_bound_the_window_where_no_other_file_does() {
    let mut toy = Toy::new();
    let huge: serde_json::Value = serde_json::from_str("1000000000000000019884624838656").unwrap();
    for (said, window) in [(serde_json::json!(7), 7), (huge, POSITIONS)] {
        toy.files.insert("tokenizer_config.json", serde_json::json!({"model_max_length": said}));
        let folder = toy.write();
        let shape = Shape::of_embedder(&ModelFolder::new(folder.path())).unwrap();
        assert_eq!(shape.window_tokens, window);
    }
}

#[tokio::test]
async fn many_texts_leave_little_memory_behind() {
    let folder = Toy::new().write();
    let encoder = open(folder.path(), Isa::best(), Formats::F32);
    let many: Vec<String> = std::iter::repeat_with(texts).take(100).flatten().collect();
    encoder.embed_documents(&many).await.unwrap();
    assert!(encoder.model.loaded.idle_bytes() < 1 << 20);
    let calls = (0..8).map(|_| encoder.embed_documents(&many));
    try_join_all(calls).await.unwrap();
    encoder.embed_documents(&[String::new()]).await.unwrap();
    let one = encoder.model.loaded.idle_bytes();
    encoder.model.loaded.rest();
    assert_eq!(encoder.model.loaded.idle_bytes(), one);
}
