//! The contract of the embedder port.

#[cfg(feature = "onnx")]
use std::sync::Arc;

use std::num::NonZeroUsize;
#[cfg(feature = "onnx")]
use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "onnx")]
use grooveseek::adapters::embedder::fastembed::{FastEmbedEmbedder, OnnxModel};
use grooveseek::adapters::embedder::hashing::HashingEmbedder;
use grooveseek::adapters::embedder::native::{NativeEncoder, Precision};
use grooveseek::adapters::embedder::openai::{Endpoint, OpenAiEmbedder, Proxies};
use grooveseek::adapters::embedder::prefixed::PrefixedEmbedder;
#[cfg(feature = "onnx")]
use grooveseek::adapters::model::catalogue;
use grooveseek::adapters::model::catalogue::Prefixes;
#[cfg(feature = "onnx")]
use grooveseek::adapters::model::locate::OnnxFolder;
use grooveseek::domain::embedding::Embedding;
use grooveseek::ports::embedder::Embedder;

use crate::endpoint;

macro_rules! embedder_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            names_itself,
            an_embedding_has_length_one_and_the_dimension_of_the_identity,
            n_texts_give_n_embeddings_in_order,
            no_text_gives_no_embedding,
            a_text_is_embedded_alike_whatever_it_comes_with,
            any_text_can_be_embedded,
            all_of_a_long_text_counts_if_the_window_is_known,
            a_query_is_closest_to_the_document_with_its_words,
        }
    };
}

embedder_contract! { hashing = super::hashing_in_384_dimensions }
embedder_contract! { openai = super::behind_an_endpoint }
embedder_contract! { prefixed = super::hashing_behind_prefixes }

mod with_model {
    use super::*;

    embedder_contract! {
        native_in_32_bits = super::exact,
        ignore "needs the model all-MiniLM-L6-v2; `make test` gets it"
    }
    embedder_contract! {
        native_in_8_bits = super::small,
        ignore "needs the model all-MiniLM-L6-v2; `make test` gets it"
    }

    fn exact() -> Box<dyn Embedder> {
        native(Precision::F32)
    }

    fn small() -> Box<dyn Embedder> {
        native(Precision::Int8)
    }

    fn native(precision: Precision) -> Box<dyn Embedder> {
        let folder = std::env::var_os("GROOVE_TEST_MODEL").unwrap();
        Box::new(NativeEncoder::open("all-minilm-l6-v2", folder.as_ref(), precision).unwrap())
    }
}

#[cfg(feature = "onnx")]
mod with_onnx {
    use super::*;

    embedder_contract! {
        fastembed = super::on_onnx_runtime,
        ignore "needs ONNX Runtime and a model as ONNX; `make test` gets both"
    }

    fn on_onnx_runtime() -> Box<dyn Embedder> {
        let root = PathBuf::from(std::env::var_os("GROOVE_TEST_ONNX").unwrap());
        let library = PathBuf::from(std::env::var_os("ORT_DYLIB_PATH").unwrap());
        let entry = catalogue::find("all-minilm-l6-v2").unwrap();
        let model = OnnxModel {
            identity: entry.identity(),
            folder: OnnxFolder { model: root.join("onnx/model.onnx"), root, data: Vec::new() },
            pooling: entry.pooling,
            window_tokens: entry.window_tokens,
            quantised: entry.quantised,
            lead: String::new(),
        };
        let cores = NonZeroUsize::new(2).unwrap();
        Box::new(FastEmbedEmbedder::open(model, &[library], cores).unwrap())
    }
}

fn behind_an_endpoint() -> Box<dyn Embedder> {
    let fake = endpoint::FakeEndpoint::new(&[]);
    let endpoint = Endpoint {
        url: fake.url(),
        document_model: "documents".to_owned(),
        query_model: "queries".to_owned(),
        dimension: endpoint::DIMENSION,
        request_dimensions: false,
        key: None,
        timeout: Duration::from_mins(1),
        max_input_chars: 8000,
        max_retries: 0,
        proxies: Proxies::default(),
    };
    Box::new(OpenAiEmbedder::new(endpoint).unwrap())
}

/// Waits for an answer; each case has a runtime of its own.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

type Make = fn() -> Box<dyn Embedder>;

fn hashing_behind_prefixes() -> Box<dyn Embedder> {
    let prefixes = Prefixes { query: "query: ".into(), document: "passage: ".into() };
    Box::new(PrefixedEmbedder::new(Arc::from(hashing_in_384_dimensions()), prefixes))
}

fn hashing_in_384_dimensions() -> Box<dyn Embedder> {
    Box::new(HashingEmbedder::new(384))
}

/// Texts as knowledge bases hold them, of unlike length, script and subject.
const TEXTS: [&str; 5] = [
    "Tokio spawns a task on the runtime and returns a handle to join it.",
    "Apple pie: peel the apples, roll out the dough, bake for forty minutes.",
    "再ランキングの評価手法について説明します。",
    "ok",
    "The quarterly report lists revenue, costs and the number of new customers. It closes with an \
     outlook on the coming year, in which the company expects to open two more branches.",
];

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn documents(embedder: &dyn Embedder, texts: &[&str]) -> Vec<Embedding> {
    let texts = owned(texts);
    run(async { embedder.embed_documents(&texts).await.unwrap().embeddings })
}

fn query(embedder: &dyn Embedder, text: &str) -> Embedding {
    run(async { embedder.embed_query(text).await.unwrap() })
}

fn assert_unit(embedding: &Embedding, dimension: usize, text: &str) {
    assert_eq!(embedding.dimension(), dimension);
    let length = embedding.as_slice().iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    assert!((length - 1.0).abs() < 1e-5, "length {length} for {text:.40}");
}

fn assert_same(left: &Embedding, right: &Embedding, text: &str) {
    assert_eq!(left.dimension(), right.dimension());
    let cosine = left.cosine(right);
    assert!(cosine > 0.9999, "cosine {cosine} for {text:.40}");
}

fn names_itself(make: Make) {
    let embedder = make();
    assert!(!embedder.identity().model.is_empty());
    assert!(embedder.identity().dimension > 0);
    assert!(!embedder.engine().name.is_empty());
    assert!(!embedder.engine().precision.is_empty());
}

fn an_embedding_has_length_one_and_the_dimension_of_the_identity(make: Make) {
    let embedder = make();
    let dimension = embedder.identity().dimension;
    for (embedding, text) in documents(&*embedder, &TEXTS).iter().zip(TEXTS) {
        assert_unit(embedding, dimension, text);
        assert_unit(&query(&*embedder, text), dimension, text);
    }
}

fn n_texts_give_n_embeddings_in_order(make: Make) {
    let embedder = make();
    let forwards = documents(&*embedder, &TEXTS);
    let mut reversed = TEXTS;
    reversed.reverse();
    let backwards = documents(&*embedder, &reversed);
    assert_eq!(forwards.len(), TEXTS.len());
    assert_eq!(backwards.len(), TEXTS.len());
    for (index, text) in TEXTS.iter().enumerate() {
        assert_same(&forwards[index], &backwards[TEXTS.len() - 1 - index], text);
        for (other, unlike) in forwards.iter().enumerate().filter(|&(other, _)| other != index) {
            assert!(forwards[index].cosine(unlike) < 0.999, "texts {index} and {other}");
        }
    }
}

fn no_text_gives_no_embedding(make: Make) {
    assert!(documents(&*make(), &[]).is_empty());
}

fn a_text_is_embedded_alike_whatever_it_comes_with(make: Make) {
    let embedder = make();
    let together = documents(&*embedder, &TEXTS);
    for (embedding, text) in together.iter().zip(TEXTS) {
        assert_same(embedding, &documents(&*embedder, &[text])[0], text);
    }
    for twin in &documents(&*embedder, &[TEXTS[0]; 3]) {
        assert_same(twin, &together[0], TEXTS[0]);
    }
}

fn any_text_can_be_embedded(make: Make) {
    let embedder = make();
    let dimension = embedder.identity().dimension;
    let long = "word ".repeat(20_000);
    let unbroken = "x".repeat(50_000);
    let texts =
        ["", " \n\t", "\0", "?!", "🦀🦀", "\u{202E}e\u{301}\u{FEFF}", "日本", &long, &unbroken];
    for (embedding, text) in documents(&*embedder, &texts).iter().zip(texts) {
        assert_unit(embedding, dimension, text);
        assert_unit(&query(&*embedder, text), dimension, text);
    }
}

// IDX-B23 IDX-159
fn all_of_a_long_text_counts_if_the_window_is_known(make: Make) {
    let embedder = make();
    let tides = "The tide comes in twice a day. ".repeat(100);
    let texts = owned(&[&tides, TEXTS[1], &format!("{tides}{}", TEXTS[1].repeat(20)), TEXTS[0]]);
    let (embedded, exceed) = run(async {
        let exceed = embedder.exceed_window(&texts).await.unwrap();
        (embedder.embed_documents(&texts).await.unwrap(), exceed)
    });
    let known = embedder.window_tokens().is_some();
    assert_eq!(exceed, [known, false, known, false]);
    assert_eq!(embedded.in_parts, if known { 2 } else { 0 });
    if let [tides, pie, both, _] = &embedded.embeddings[..]
        && known
    {
        assert!(both.cosine(pie) > tides.cosine(pie) + 0.05, "{}", both.cosine(pie));
        let cut = [&texts[0], &texts[2]].map(|text| query(&*embedder, text));
        assert_same(&cut[0], &cut[1], "two queries that begin alike");
    }
    assert!(run(embedder.exceed_window(&[])).unwrap().is_empty());
}

fn a_query_is_closest_to_the_document_with_its_words(make: Make) {
    let embedder = make();
    let documents = documents(&*embedder, &TEXTS);
    for (index, text) in
        [(0, "join a tokio task"), (1, "bake an apple pie"), (4, "report of revenue and costs")]
    {
        let query = query(&*embedder, text);
        let nearest = documents
            .iter()
            .enumerate()
            .max_by(|left, right| query.cosine(left.1).total_cmp(&query.cosine(right.1)))
            .map(|(index, _)| index);
        assert_eq!(nearest, Some(index), "{text}");
    }
}
