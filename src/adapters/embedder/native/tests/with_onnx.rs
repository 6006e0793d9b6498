//! all-MiniLM-L6-v2 as ONNX: run by ONNX Runtime, and read by ourselves.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::adapters::embedder::fastembed::{FastEmbedEmbedder, OnnxModel};
use crate::adapters::model::catalogue;
use crate::adapters::model::locate::OnnxFolder;

const NAME: &str = "all-minilm-l6-v2";

fn variable(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(name).unwrap())
}

fn on_runtime() -> FastEmbedEmbedder {
    let root = variable("GROOVE_TEST_ONNX");
    let entry = catalogue::find(NAME).unwrap();
    let model = OnnxModel {
        identity: entry.identity(),
        folder: OnnxFolder { model: root.join("onnx/model.onnx"), root, data: Vec::new() },
        pooling: entry.pooling,
        window_tokens: entry.window_tokens,
        quantised: false,
        lead: String::new(),
    };
    let cores = NonZeroUsize::new(2).unwrap();
    FastEmbedEmbedder::open(model, &[variable("ORT_DYLIB_PATH")], cores).unwrap()
}

/// 500 texts of every length up to well beyond the window, in many scripts.
fn many_texts() -> Vec<String> {
    let sentences = [
        "The tide comes in twice a day, and the harbour fills.",
        "Les élèves déjà naïfs préfèrent l’été à Zürich.",
        "Кошка сидит на окне и смотрит на снег.",
        "東京の天気は晴れ、明日は雨でしょう。",
        "今天的会议讨论了搜索引擎的评估方法",
        "مرحبا بالعالم هذا نص قصير",
        "שלום עולם זה טקסט קצר",
        "สวัสดีชาวโลกนี่คือข้อความสั้นๆ",
        "नमस्ते दुनिया यह एक छोटा पाठ है",
        "🦀🚀 emoji 👩‍💻 and e\u{301} marks \u{202e}turned",
        "fn main() { println!(\"{:?}\", vec![1, 2, 3]); }",
        "x",
    ];
    let mut texts = vec![String::new(), " \n\t".to_owned(), "?!".to_owned(), "\u{0}".to_owned()];
    while texts.len() < 500 {
        let number = texts.len();
        // Most are short; a few have several times the window.
        let count = 1 + number % 5 + if number.is_multiple_of(25) { number / 4 } else { 0 };
        let parts = (0..count).map(|part| sentences[(number + part * (1 + number % 3)) % 12]);
        texts.push(parts.collect::<Vec<_>>().join(if number % 2 == 0 { " " } else { "\n\n" }));
    }
    texts
}

// CFG-96 IDX-161
#[tokio::test]
#[ignore = "needs ONNX Runtime and a model as ONNX; `make test` gets both"]
async fn vectors_of_weights_out_of_an_onnx_file_agree_with_onnx_runtime() {
    let root = variable("GROOVE_TEST_ONNX");
    let folder = ModelFolder::of(NAME, &root).with_onnx(root.join("onnx/model.onnx"));
    let native = NativeEncoder::open_folder(NAME, &folder, Precision::F32).unwrap();
    let texts = many_texts();
    let ours = native.embed_documents(&texts).await.unwrap().embeddings;
    let theirs = on_runtime().embed_documents(&texts).await.unwrap().embeddings;
    assert_eq!(ours.len(), 500);
    for ((ours, theirs), text) in ours.iter().zip(&theirs).zip(&texts) {
        let cosine = ours.cosine(theirs);
        assert!(cosine >= 0.999, "{cosine} for {text:.60}");
    }
}

// CFG-96 IDX-158 IDX-161
#[tokio::test]
#[ignore = "needs ONNX Runtime, and Python to write a model as ONNX; `make test` gets both"]
async fn a_model_of_the_xlm_roberta_family_agrees_with_onnx_runtime() {
    let mut toy = Toy::of(Kind::XlmRoberta);
    toy.files.insert("1_Pooling/config.json", serde_json::json!({"pooling_mode_cls_token": true}));
    let (safetensors, root) = (toy.write(), tempfile::tempdir().unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/make_onnx.py");
    let mut command = Command::new(variable("GROOVE_TEST_PYTHON"));
    command.arg(script).arg(safetensors.path()).arg(root.path()).args(["--exporter", "--external"]);
    assert!(command.status().unwrap().success());
    let native = NativeEncoder::open("toy", root.path(), Precision::F32).unwrap();
    let model = OnnxModel {
        identity: native.identity().clone(),
        folder: OnnxFolder {
            root: root.path().to_owned(),
            model: root.path().join("onnx/model.onnx"),
            data: vec![root.path().join("onnx/model.onnx_data")],
        },
        pooling: Pooling::Cls,
        window_tokens: POSITIONS,
        quantised: false,
        lead: String::new(),
    };
    let cores = NonZeroUsize::new(1).unwrap();
    let runtime = FastEmbedEmbedder::open(model, &[variable("ORT_DYLIB_PATH")], cores).unwrap();
    let texts = texts();
    let ours = native.embed_documents(&texts).await.unwrap().embeddings;
    let theirs = runtime.embed_documents(&texts).await.unwrap().embeddings;
    for ((ours, theirs), text) in ours.iter().zip(&theirs).zip(&texts) {
        assert!(ours.cosine(theirs) >= 0.99999, "{text}");
    }
}

// CFG-96
#[tokio::test]
#[ignore = "needs a model, and Python to write it as ONNX; `make test` gets both"]
async fn files_as_exporters_write_them_give_the_vectors_of_the_safetensors() {
    let (python, model) = (variable("GROOVE_TEST_PYTHON"), variable("GROOVE_TEST_MODEL"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/make_onnx.py");
    let texts: Vec<String> = many_texts().into_iter().step_by(25).collect();
    let plain = NativeEncoder::open(NAME, &model, Precision::F32).unwrap();
    let plain = plain.embed_documents(&texts).await.unwrap().embeddings;
    for (options, least) in [
        (&["--exporter"][..], None),
        (&["--exporter", "--external"], None),
        (&["--exporter", "--half"], Some(0.9999)),
    ] {
        let target = tempfile::tempdir().unwrap();
        let mut command = Command::new(&python);
        command.arg(&script).arg(&model).arg(target.path()).args(options);
        assert!(command.status().unwrap().success());
        let encoder = NativeEncoder::open(NAME, target.path(), Precision::F32).unwrap();
        let read = encoder.embed_documents(&texts).await.unwrap().embeddings;
        match least {
            None => assert_eq!(read, plain, "{options:?}"),
            Some(least) => {
                for (read, plain) in read.iter().zip(&plain) {
                    assert!(read.cosine(plain) >= least, "{options:?}");
                }
            }
        }
    }
}
