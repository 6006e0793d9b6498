//! Folders that are not usable are refused with the name of what is wrong.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::adapters::model::encoder::testing::{Toy, overwrite};

/// The error of opening a folder, with all its causes.
fn refusal(folder: &Path) -> String {
    let error = NativeEncoder::open("toy", folder, Precision::F32).unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable { .. }));
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn assert_refuses(toy: &Toy, parts: &[&str]) {
    let text = refusal(toy.write().path());
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

fn with_config(key: &str, value: Value) -> Toy {
    let mut toy = Toy::new();
    toy.files.get_mut("config.json").unwrap()[key] = value;
    toy
}

#[test]
fn a_missing_file_is_named_with_its_folder_and_a_remedy() {
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let folder = Toy::new().write();
        std::fs::remove_file(folder.path().join(name)).unwrap();
        let text = refusal(folder.path());
        for part in [name, folder.path().to_str().unwrap(), "put the model's"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
}

#[test]
fn a_model_of_another_kind_is_refused() {
    for (key, value) in [
        ("model_type", json!("gpt2")),
        ("hidden_act", json!("relu")),
        ("position_embedding_type", json!("relative_key")),
        ("is_decoder", json!(true)),
    ] {
        assert_refuses(&with_config(key, value), &["config.json", "does not run", key]);
    }
}

#[test]
fn nonsense_sizes_are_refused() {
    for (key, value) in [
        ("hidden_size", json!(0)),
        ("hidden_size", json!(1_000_000_000)),
        ("num_hidden_layers", json!(4_000_000_000_u64)),
        ("num_attention_heads", json!(3)),
        ("intermediate_size", json!(-1)),
        ("vocab_size", json!(1.5)),
        ("max_position_embeddings", json!(u64::MAX)),
        ("layer_norm_eps", json!(-1.0)),
    ] {
        assert_refuses(&with_config(key, value), &["config.json"]);
    }
}

#[test]
fn more_modules_than_pooling_are_refused() {
    let mut toy = Toy::new();
    let modules = json!([{"type": "sentence_transformers.models.Dense"}]);
    toy.files.insert("modules.json", modules);
    assert_refuses(&toy, &["modules.json", "Dense"]);
    toy.files.remove("modules.json");
    toy.files.insert("1_Pooling/config.json", json!({"pooling_mode_max_tokens": true}));
    assert_refuses(&toy, &["1_Pooling/config.json"]);
}

#[test]
fn a_missing_or_misshapen_tensor_is_named() {
    let name = "encoder.layer.1.output.dense.weight";
    let mut toy = Toy::new();
    toy.tensors.get_mut(name).unwrap().0.reverse();
    assert_refuses(&toy, &["model.safetensors", name, "shape"]);
    toy.tensors.remove(name);
    assert_refuses(&toy, &["model.safetensors", name, "no tensor"]);
    assert_refuses(
        &with_config("vocab_size", json!(10)),
        &["model.safetensors", "word_embeddings"],
    );
}

#[test]
fn numbers_of_another_kind_are_refused() {
    use safetensors::tensor::{Dtype, TensorView, serialize};

    let toy = Toy::new();
    let folder = toy.write();
    let views = toy.tensors.iter().map(|(name, (shape, _))| {
        let bytes: &'static [u8] = &[0; 4096];
        let numbers: usize = shape.iter().product();
        (name, TensorView::new(Dtype::I8, shape.clone(), &bytes[..numbers]).unwrap())
    });
    overwrite(folder.path(), "model.safetensors", &serialize(views, None).unwrap());
    let text = refusal(folder.path());
    assert!(text.contains("model.safetensors") && text.contains("I8"), "{text}");
}

#[test]
fn a_header_that_claims_too_much_is_refused() {
    let folder = Toy::new().write();
    let offsets = format!("[0,{}]", u64::MAX);
    let headers = [
        format!("{{\"a\":{{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{offsets}}}}}"),
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}"
            .to_owned(),
    ];
    for header in headers {
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
        overwrite(folder.path(), "model.safetensors", &bytes);
        assert!(refusal(folder.path()).contains("model.safetensors"));
    }
    overwrite(folder.path(), "model.safetensors", &u64::MAX.to_le_bytes());
    assert!(refusal(folder.path()).contains("model.safetensors"));
}

#[test]
fn a_tokenizer_without_special_tokens_is_refused() {
    let mut toy = Toy::new();
    toy.files.get_mut("tokenizer.json").unwrap()["post_processor"] = Value::Null;
    assert_refuses(&toy, &["tokenizer.json", "special tokens"]);
}

#[tokio::test]
async fn a_token_that_the_model_lacks_is_an_error() {
    let mut toy = Toy::new();
    toy.files.get_mut("tokenizer.json").unwrap()["model"]["vocab"]["f"] = json!(9);
    let encoder = NativeEncoder::open("toy", toy.write().path(), Precision::F32).unwrap();
    let error = encoder.embed_query("f").await.unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable { .. }));
}

#[tokio::test]
async fn numbers_that_are_none_are_an_error() {
    let mut toy = Toy::new();
    toy.tensors.get_mut("encoder.layer.1.output.LayerNorm.bias").unwrap().1[0] = f32::NAN;
    let encoder = NativeEncoder::open("toy", toy.write().path(), Precision::F32).unwrap();
    let error = encoder.embed_documents(&["a".to_owned()]).await.unwrap_err();
    assert!(matches!(error, EmbedError::WrongShape { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_file_that_is_cut_short_is_refused(which in 0_usize..3, part in 0.0_f64..1.0) {
        let name = ["config.json", "model.safetensors", "tokenizer.json"][which];
        let folder = Toy::new().write();
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
            reason = "a part of a small length")]
        let kept = (part * bytes.len() as f64) as usize;
        overwrite(folder.path(), name, &bytes[..kept]);
        prop_assert!(refusal(folder.path()).contains(name));
    }
}
