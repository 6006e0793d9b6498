//! Weights in safetensors: in one file, in several, in numbers of 16 bits.

use std::collections::BTreeMap;

use ::safetensors::tensor::Dtype;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::adapters::model::encoder::testing::{Toy, overwrite};

const INDEX: &str = "model.safetensors.index.json";

fn open(folder: &TempDir) -> Result<Weights, LoadError> {
    Weights::open(&ModelFolder::new(folder.path()))
}

fn assert_same(toy: &Toy, weights: &Weights, most: f32) {
    for (name, (shape, expected)) in &toy.tensors {
        for (got, expected) in weights.read(name, shape).unwrap().iter().zip(expected) {
            assert!((got - expected).abs() <= most, "{name}: {got} and {expected}");
        }
    }
}

#[test]
fn numbers_of_16_bits_are_read_as_they_are_meant() {
    let toy = Toy::new();
    for (kind, most) in [(Dtype::F32, 0.0), (Dtype::F16, 0.002), (Dtype::BF16, 0.01)] {
        let folder = tempfile::tempdir().unwrap();
        overwrite(folder.path(), "model.safetensors", &toy.safetensors_as(kind, |_| true));
        let weights = open(&folder).unwrap();
        assert_same(&toy, &weights, most);
        let (shape, numbers) = &toy.tensors["embeddings.word_embeddings.weight"];
        let table = weights.table("embeddings.word_embeddings.weight", shape[0], shape[1]).unwrap();
        let mut row = vec![1.0; shape[1]];
        weights.add_row(&table, 3, &mut row);
        for (got, expected) in row.iter().zip(&numbers[3 * shape[1]..]) {
            assert!((got - 1.0 - expected).abs() <= most + 1e-6);
        }
        // There is no such row.
        let before = row.clone();
        for beyond in [shape[0], usize::MAX] {
            weights.add_row(&table, beyond, &mut row);
        }
        assert_eq!(row, before);
    }
}

/// Writes a toy in two files and their index.
fn sharded(toy: &Toy) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file =
        |name: &str| if name < "encoder.layer.1" { "one.safetensors" } else { "two.safetensors" };
    for part in ["one.safetensors", "two.safetensors"] {
        let bytes = toy.safetensors_as(Dtype::F32, |name| file(name) == part);
        overwrite(folder.path(), part, &bytes);
    }
    let map: BTreeMap<&str, &str> = toy.tensors.keys().map(|name| (&**name, file(name))).collect();
    overwrite(folder.path(), INDEX, json!({"weight_map": map}).to_string().as_bytes());
    folder
}

#[test]
fn weights_may_lie_in_several_files_that_an_index_lists() {
    let toy = Toy::new().with_prefix("roberta.");
    let folder = sharded(&toy);
    let weights = open(&folder).unwrap();
    assert_same(&Toy::new(), &weights, 0.0);
}

#[test]
fn a_file_that_an_index_lists_must_be_there_and_beside_it() {
    let folder = sharded(&Toy::new());
    std::fs::remove_file(folder.path().join("two.safetensors")).unwrap();
    assert!(open(&folder).unwrap_err().to_string().contains("two.safetensors"));
    for bad in ["../one.safetensors", "/one.safetensors", ""] {
        let index = json!({"weight_map": {"embeddings.LayerNorm.bias": bad}}).to_string();
        overwrite(folder.path(), INDEX, index.as_bytes());
        let text = open(&folder).unwrap_err().to_string();
        assert!(text.contains(INDEX) && text.contains("no file beside it"), "{text}");
    }
    overwrite(folder.path(), INDEX, b"{");
    assert!(open(&folder).unwrap_err().to_string().contains(INDEX));
}

#[test]
fn a_weight_that_two_tensors_claim_is_refused() {
    let mut toy = Toy::new();
    let name = "embeddings.LayerNorm.bias";
    toy.tensors.insert(format!("bert.{name}"), toy.tensors[name].clone());
    let text = open(&toy.write()).unwrap_err().to_string();
    assert!(text.contains("both") && text.contains(name), "{text}");
}

#[test]
fn a_folder_in_place_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("model.safetensors")).unwrap();
    assert!(open(&folder).unwrap_err().to_string().contains("not a file"));
}
