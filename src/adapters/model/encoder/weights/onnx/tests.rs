//! Files that exporters write, and files that nobody should have written.

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::adapters::model::encoder::onnx_testing::{
    self as file, Kept, Style, bytes, node, number, raw_tensor,
};
use crate::adapters::model::encoder::testing::{HIDDEN, Kind, Toy};

fn written(toy: &Toy, style: Style) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    file::write(toy, style, folder.path());
    folder
}

fn opened(folder: &TempDir) -> Result<Weights, LoadError> {
    open(&file::path(folder.path()))
}

/// Checks that each weight of a toy is read, with its own numbers up to a
/// distance, that of a number in fewer bits.
fn assert_same(toy: &Toy, weights: &Weights, most: f32, context: &str) {
    for (name, (shape, expected)) in &toy.tensors {
        let got = weights.read(name, shape).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() <= most, "{context} {name}: {got} and {expected}");
        }
    }
}

// CFG-96 IDX-161
#[test]
fn every_style_of_exporters_gives_the_same_weights() {
    for kind in [Kind::Bert, Kind::XlmRoberta] {
        let toy = Toy::of(kind);
        let usual = Style::USUAL;
        for style in [
            usual,
            Style { scopes: false, ..usual },
            Style { turned: true, ..usual },
            Style { turned: true, scopes: false, ..usual },
            Style { nodes: true, ..usual },
            Style { whole_norms: false, ..usual },
            Style { nameless: true, ..usual },
            Style { nameless: true, whole_norms: false, ..usual },
        ] {
            let folder = written(&toy, style);
            assert_same(&toy, &opened(&folder).unwrap(), 0.0, &format!("{style:?}"));
        }
    }
}

// CFG-96
#[test]
fn numbers_of_every_kind_and_place_are_read() {
    let toy = Toy::new();
    for (numbers, most) in [
        (Kept::Raw, 0.0),
        (Kept::Floats, 0.0),
        (Kept::External, 0.0),
        (Kept::RawHalves, 0.002),
        (Kept::Halves, 0.002),
        (Kept::Brains, 0.01),
    ] {
        for nodes in [false, true] {
            let folder = written(&toy, Style { nodes, numbers, ..Style::USUAL });
            assert_same(&toy, &opened(&folder).unwrap(), most, &format!("{numbers:?}"));
        }
    }
}

#[test]
fn a_weight_that_shares_its_numbers_is_found_behind_a_copy() {
    let (one, other) =
        ("encoder.layer.0.output.LayerNorm.bias", "encoder.layer.1.output.LayerNorm.bias");
    let numbers = vec![0.5; HIDDEN];
    let copies = [
        node("Identity", "Identity_1", &["Identity_0"], other),
        node("Identity", "Identity_0", &[one], "Identity_0"),
    ];
    let weights = read(&file::model(&copies, &[raw_tensor(one, &[HIDDEN], &numbers)])).unwrap();
    assert_eq!(weights.read(other, &[HIDDEN]).unwrap(), numbers);
}

#[test]
fn a_product_with_a_bias_of_its_own_tells_which_way_its_matrix_lies() {
    let (matrix, bias) = ("classifier.dense.weight", "classifier.dense.bias");
    let numbers = [1.0, 2.0, 3.0, 4.0];
    let tensors = [raw_tensor(matrix, &[2, 2], &numbers), raw_tensor(bias, &[2], &[0.0; 2])];
    let product = |turns: bool| {
        let mut product = node("Gemm", "/classifier/dense/Gemm", &["x", matrix, bias], "y");
        product.extend(bytes(5, [bytes(1, "transB"), number(3, turns.into())].concat()));
        read(&file::model(&[product], &tensors)).unwrap().read(matrix, &[2, 2]).unwrap()
    };
    assert_eq!(product(true), numbers);
    assert_eq!(product(false), [1.0, 3.0, 2.0, 4.0]);
    // Nothing uses the matrix, and it is as high as wide.
    let error = read(&file::model(&[], &tensors)).unwrap().read(matrix, &[2, 2]).unwrap_err();
    assert!(error.to_string().contains("which side"), "{error}");
}

fn read(model: &[u8]) -> Result<Weights, LoadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    std::fs::write(&path, model).unwrap();
    open(&path)
}

fn refusal(model: &[u8]) -> String {
    let error = read(model).unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    format!("{error}: {}", cause.unwrap_or_default())
}

#[test]
fn graphs_that_only_a_runtime_understands_are_refused_with_its_name() {
    for operator in ["MatMulInteger", "DynamicQuantizeLinear", "QLinearMatMul", "DequantizeLinear"]
    {
        let text = refusal(&file::model(&[node(operator, "", &["x"], "y")], &[]));
        for part in [operator, "quantised", "ONNX Runtime", "model.onnx"] {
            assert!(text.contains(part), "{text}");
        }
    }
    let mut fused = node("SkipLayerNormalization", "", &["x"], "y");
    fused.extend(bytes(7, "com.microsoft"));
    let text = refusal(&file::model(&[fused], &[]));
    assert!(text.contains("SkipLayerNormalization") && text.contains("ONNX Runtime"), "{text}");
}

#[test]
fn numbers_in_other_folders_are_refused() {
    let name = "encoder.layer.0.output.dense.bias";
    for location in ["../secret", "/etc/passwd", "a/b", "..", "", "a\\b", "C:x"] {
        let entry = bytes(13, [bytes(1, "location"), bytes(2, location)].concat());
        let tensor = [number(1, 2), number(2, 1), bytes(8, name), entry, number(14, 1)].concat();
        let text = refusal(&file::model(&[], &[tensor]));
        assert!(text.contains(name) && text.contains("no file beside it"), "{text}");
    }
}

#[test]
fn numbers_beyond_the_end_of_a_file_are_refused() {
    let toy = Toy::new();
    let folder = written(&toy, Style { numbers: Kept::External, ..Style::USUAL });
    let data = folder.path().join("onnx/model.onnx_data");
    let length = std::fs::metadata(&data).unwrap().len();
    std::fs::File::options().write(true).open(&data).unwrap().set_len(length - 1).unwrap();
    let weights = opened(&folder).unwrap();
    let bad = toy.tensors.iter().filter_map(|(name, (shape, _))| weights.read(name, shape).err());
    let texts: Vec<String> = bad.map(|error| error.to_string()).collect();
    assert_eq!(texts.len(), 1);
    assert!(texts[0].contains("model.onnx_data") && texts[0].contains("beyond the end"));
    std::fs::remove_file(&data).unwrap();
    assert!(opened(&folder).unwrap_err().to_string().contains("model.onnx_data"));
}

#[test]
fn places_and_sizes_that_no_file_has_are_refused() {
    let name = "encoder.layer.0.output.dense.bias";
    let entry = |key: &str, value: &str| bytes(13, [bytes(1, key), bytes(2, value)].concat());
    let most = u64::MAX.to_string();
    let external = |offset: &str, length: &str| {
        [
            number(1, 2),
            number(2, 1),
            bytes(8, name),
            entry("location", "model.onnx"),
            entry("offset", offset),
            entry("length", length),
            number(14, 1),
        ]
        .concat()
    };
    let sides = |sides: &[u64]| {
        let sides: Vec<u8> = sides.iter().flat_map(|&side| number(1, side)).collect();
        [sides, number(2, 10), bytes(8, name), bytes(5, [1, 2])].concat()
    };
    for tensor in [
        external(&most, "8"),
        external("8", &most),
        external("-1", "8"),
        external("x", "8"),
        sides(&[u64::MAX, u64::MAX]),
        sides(&[1 << 40]),
        sides(&[1; 9]),
        [number(1, 2), number(2, 1), bytes(8, name)].concat(),
        [number(1, 2), number(2, 1), bytes(8, name), bytes(9, [0; 4]), bytes(9, [0; 4])].concat(),
    ] {
        let opened = read(&file::model(&[], &[tensor]));
        assert!(opened.and_then(|weights| weights.read(name, &[2])).is_err());
    }
}

#[test]
fn circles_and_endless_chains_of_copies_end() {
    let bias = "encoder.layer.0.output.dense.bias";
    let circle = [
        node("Identity", "", &["b"], "a"),
        node("Identity", "", &["a"], "b"),
        node("MatMul", "", &["x", "a"], "product"),
        node("Add", "", &["product", bias], "y"),
    ];
    let weights = read(&file::model(&circle, &[raw_tensor(bias, &[2], &[0.0; 2])])).unwrap();
    assert!(weights.read("encoder.layer.0.output.dense.weight", &[2, 2]).is_err());
}

#[test]
fn a_weight_that_two_tensors_claim_is_refused() {
    let name = "encoder.layer.0.output.dense.bias";
    let tensors =
        [raw_tensor(name, &[2], &[0.0; 2]), raw_tensor(&format!("bert.{name}"), &[2], &[1.0; 2])];
    assert!(refusal(&file::model(&[], &tensors)).contains("two tensors"));
}

#[test]
fn what_is_no_model_is_refused() {
    for model in [&b""[..], b"{}", b"\x00\x00\x00", &[0xff; 64], &bytes(7, [0xff; 9])] {
        assert!(refusal(model).contains("model.onnx"));
    }
}

/// Reads all that a toy has; an error is as good as numbers, and nothing else is.
fn try_all(toy: &Toy, model: &[u8]) {
    if let Ok(weights) = read(model) {
        for (name, (shape, numbers)) in &toy.tensors {
            if let Ok(got) = weights.read(name, shape) {
                assert_eq!(got.len(), numbers.len());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_file_with_other_bytes_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        numbers in prop::sample::select(vec![Kept::Raw, Kept::Floats, Kept::Halves, Kept::External]),
    ) {
        let toy = Toy::new();
        let folder = written(&toy, Style { numbers, ..Style::USUAL });
        let mut model = std::fs::read(file::path(folder.path())).unwrap();
        // Most of a file is numbers, of which any will do.
        let names = 4096.min(model.len());
        for (place, byte) in changes {
            let place = place.index(names);
            model[place] = byte;
        }
        try_all(&toy, &model);
    }

    #[test]
    fn a_file_that_breaks_off_is_refused(cut in any::<prop::sample::Index>()) {
        let folder = written(&Toy::new(), Style::USUAL);
        let model = std::fs::read(file::path(folder.path())).unwrap();
        prop_assert!(read(&model[..cut.index(model.len())]).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        try_all(&Toy::new(), &bytes);
    }
}
