//! all-MiniLM-L6-v2 against vectors that an implementation of its own made of
//! real text.

use std::path::PathBuf;

use super::*;

/// Every twentieth of the 1,000 chunks; the benchmark takes all.
const SOME: usize = 20;

/// Fewer, for plain code.
const FEW: usize = 100;

fn model_folder() -> PathBuf {
    let below = |target: PathBuf| target.join("models/all-minilm-l6-v2");
    let named = std::env::var_os("GROOVE_TEST_MODEL").map(PathBuf::from);
    let built = std::env::var_os("CARGO_TARGET_DIR").map(|target| below(target.into()));
    let own = below(Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    named
        .or_else(|| built.into_iter().chain([own]).find(|folder| folder.is_dir()))
        .expect("all-MiniLM-L6-v2 is in the folder that GROOVE_TEST_MODEL names")
}

fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data/embed");
    std::fs::read(folder.join(name)).unwrap()
}

fn chunks(step: usize) -> Vec<String> {
    let all: Vec<String> = serde_json::from_slice(&data("chunks.json")).unwrap();
    all.into_iter().step_by(step).collect()
}

/// Reads vectors of half-precision numbers, least significant byte first.
fn reference(step: usize) -> Vec<Vec<f64>> {
    let widen = |half: &[u8; 2]| {
        let half = u16::from_le_bytes(*half);
        let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f64::from(half & 0x3ff) / 1024.0);
        let magnitude = match exponent {
            0 => fraction * 2.0_f64.powi(-14),
            _ => (1.0 + fraction) * 2.0_f64.powi(exponent - 15),
        };
        if half >> 15 == 1 { -magnitude } else { magnitude }
    };
    let bytes = data("reference.f16");
    let numbers: Vec<f64> = bytes.as_chunks().0.iter().map(widen).collect();
    numbers.chunks(384).step_by(step).map(<[f64]>::to_vec).collect()
}

fn open(precision: Precision) -> NativeEncoder {
    NativeEncoder::open("all-minilm-l6-v2", &model_folder(), precision).unwrap()
}

async fn assert_faithful(encoder: NativeEncoder, step: usize, least: f64) {
    let chunks = chunks(step);
    let embeddings = encoder.embed_documents(&chunks).await.unwrap().embeddings;
    // The reference cuts off what is beyond the window.
    let exceed = encoder.exceed_window(&chunks).await.unwrap();
    let (mut place, mut compared) = (0, 0);
    for ((embedding, expected), exceeds) in embeddings.iter().zip(reference(step)).zip(exceed) {
        if !exceeds {
            let cosine = cosine(embedding, &expected);
            assert!(cosine >= least, "chunk {place}: {cosine}");
            compared += 1;
        }
        place += step;
    }
    assert!(compared * 2 > chunks.len(), "{compared} of {} fit into the window", chunks.len());
}

#[tokio::test]
#[ignore = "needs the all-MiniLM-L6-v2 folder; make test fetches it and runs ignored tests"]
async fn embeddings_in_32_bits_agree_with_the_reference() {
    assert_faithful(open(Precision::F32), SOME, 0.999).await;
}

#[tokio::test]
#[ignore = "needs the all-MiniLM-L6-v2 folder; make test fetches it and runs ignored tests"]
async fn embeddings_in_small_integers_agree_with_the_reference() {
    assert_faithful(open(Precision::Int8), SOME, 0.995).await;
}

/// Plain code keeps as many bits as VNNI does, so that this shows on any
/// processor what those with VNNI give.
#[tokio::test]
#[ignore = "needs the all-MiniLM-L6-v2 folder; make test fetches it and runs ignored tests"]
async fn embeddings_in_bytes_agree_with_the_reference() {
    let (folder, formats) = (model_folder(), Formats::BYTES);
    let encoder = NativeEncoder::open_on(
        "toy",
        &ModelFolder::of("all-minilm-l6-v2", &folder),
        Isa::portable(),
        formats,
    )
    .unwrap();
    assert_faithful(encoder, FEW, 0.995).await;
}

#[tokio::test]
#[ignore = "needs the all-MiniLM-L6-v2 folder; make test fetches it and runs ignored tests"]
async fn a_query_is_nearest_to_what_answers_it() {
    let encoder = open(Precision::Auto);
    let documents = [
        "Bread dough rises because yeast turns sugar into gas.",
        "A linker joins object files into an executable program.",
        "The moon pulls on the oceans and so makes the tides.",
    ];
    let embeddings =
        encoder.embed_documents(&documents.map(str::to_owned)).await.unwrap().embeddings;
    for (query, answer) in [
        ("why does dough get bigger", 0),
        ("how is a program built from object files", 1),
        ("why does the sea rise and fall", 2),
    ] {
        let query = encoder.embed_query(query).await.unwrap();
        let cosines = embeddings.iter().map(|embedding| query.cosine(embedding));
        let nearest = cosines.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
        assert_eq!(nearest, answer);
    }
}
