//! A small random model against the definition, and the real one against a
//! stored reference.

mod long;
mod malformed;
mod sources;
mod with_model;
#[cfg(feature = "onnx")]
mod with_onnx;

use futures::future::try_join_all;

use super::*;
use crate::adapters::model::catalogue::Pooling;
use crate::adapters::model::encoder::testing::{HIDDEN, Kind, POSITIONS, Toy, tokens};

const TEXTS: [&str; 7] =
    ["", "a", "b c d", "e d c b a a b", "a unknown b", "a b c d e a b c d e", "c"];

fn texts() -> Vec<String> {
    TEXTS.map(str::to_owned).to_vec()
}

fn open(folder: &Path, isa: Isa, formats: Formats) -> NativeEncoder {
    NativeEncoder::open_on("toy", &ModelFolder::of("toy", folder), isa, formats).unwrap()
}

/// The cosine of an embedding with a vector by the definition.
fn cosine(embedding: &Embedding, expected: &[f64]) -> f64 {
    let numbers = embedding.as_slice().iter().map(|&number| f64::from(number));
    let (mut dot, mut square) = (0.0, 0.0);
    for (number, expected) in numbers.zip(expected) {
        dot += number * expected;
        square += expected * expected;
    }
    dot / square.sqrt()
}

fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    // The length plays no part in a cosine, so the sum will do.
    (0..HIDDEN).map(|column| rows.iter().map(|row| row[column]).sum()).collect()
}

async fn assert_agrees(toy: &Toy, expected: impl Fn(&[Vec<f64>]) -> Vec<f64>) {
    let folder = toy.write();
    for isa in Isa::all() {
        for (formats, least) in [(Formats::F32, 0.999_999), (Formats::small(isa), 0.995)] {
            let encoder = open(folder.path(), isa, formats);
            let embeddings = encoder.embed_documents(&texts()).await.unwrap().embeddings;
            assert_eq!(embeddings.len(), TEXTS.len());
            for (embedding, text) in embeddings.iter().zip(TEXTS) {
                let cosine = cosine(embedding, &expected(&toy.forward(&tokens(text))));
                assert!(cosine > least, "{} {formats:?} {text:?}: {cosine}", isa.name());
            }
        }
    }
}

#[tokio::test]
async fn the_mean_of_all_tokens_is_what_the_definition_gives() {
    assert_agrees(&Toy::new(), mean).await;
}

#[tokio::test]
async fn the_first_token_is_what_the_definition_gives() {
    let mut toy = Toy::new();
    let pooling = serde_json::json!({"pooling_mode_cls_token": true});
    toy.files.insert("1_Pooling/config.json", pooling);
    assert_agrees(&toy, |rows| rows[0].clone()).await;
}

#[tokio::test]
async fn a_text_has_the_same_embedding_whatever_it_is_embedded_with() {
    let folder = Toy::new().write();
    for isa in Isa::all() {
        for formats in [Formats::F32, Formats::small(isa)] {
            let encoder = open(folder.path(), isa, formats);
            let together = encoder.embed_documents(&texts()).await.unwrap().embeddings;
            for (text, embedding) in texts().into_iter().zip(together) {
                let alone = encoder.embed_documents(&[text]).await.unwrap().embeddings;
                assert_eq!(alone, [embedding]);
            }
        }
    }
}

#[tokio::test]
async fn a_query_gets_the_vector_of_a_document_with_its_words() {
    let folder = Toy::new().write();
    let exact = open(folder.path(), Isa::best(), Formats::F32);
    let small = open(folder.path(), Isa::best(), Formats::small(Isa::best()));
    assert_eq!(exact.engine().precision, "f32");
    let narrowest = if Isa::best().has_byte_products() { "int8" } else { "int16" };
    assert_eq!(small.engine().precision, narrowest);
    for encoder in [exact, small] {
        let of_document = encoder.embed_documents(&["a b".to_owned()]).await.unwrap();
        assert_eq!(encoder.embed_query("a b").await.unwrap(), of_document.embeddings[0]);
    }
}

#[tokio::test]
async fn many_calls_at_once_keep_their_texts_apart() {
    let folder = Toy::new().write();
    let encoder = open(folder.path(), Isa::best(), Formats::F32);
    let single = encoder.embed_documents(&texts()).await.unwrap().embeddings;
    let many: Vec<String> = std::iter::repeat_with(texts).take(50).flatten().collect();
    let calls = try_join_all((0..4).map(|_| encoder.embed_documents(&many))).await.unwrap();
    for embeddings in calls {
        assert_eq!(embeddings.embeddings.chunks(TEXTS.len()).count(), 50);
        assert!(embeddings.embeddings.chunks(TEXTS.len()).all(|chunk| chunk == single));
    }
}

// SRCH-190
#[tokio::test]
async fn queries_that_come_together_get_the_vectors_that_they_get_alone() {
    let folder = Toy::new().write();
    for isa in Isa::all() {
        let encoder = open(folder.path(), isa, Formats::small(isa));
        let model = &encoder.model;
        let mut alone = Vec::new();
        for text in texts() {
            alone.push(encoder.embed_query(&text).await.unwrap());
        }
        // However they fall together.
        let many = std::iter::repeat_with(texts).take(12).flatten().collect::<Vec<_>>();
        for size in [1, 2, 3, 7, 16] {
            for (place, together) in many.chunks(size).enumerate() {
                let embedded = model.embed_queries(together).into_iter();
                for (offset, embedding) in embedded.enumerate() {
                    let expected = &alone[(place * size + offset) % TEXTS.len()];
                    assert_eq!(&embedding.ok().unwrap(), expected, "{}", isa.name());
                }
            }
        }
        let answers = try_join_all(many.iter().map(|text| encoder.embed_query(text))).await;
        assert!(answers.unwrap().chunks(TEXTS.len()).all(|chunk| chunk == alone));
    }
}

#[tokio::test]
async fn a_query_that_fails_takes_no_other_with_it() {
    // A token that the model lacks.
    let mut toy = Toy::new();
    toy.files.get_mut("tokenizer.json").unwrap()["model"]["vocab"]["f"] = 99.into();
    let folder = toy.write();
    let encoder = open(folder.path(), Isa::best(), Formats::F32);
    let texts = ["a b", "f", "c"].map(str::to_owned);
    let embedded = encoder.model.embed_queries(&texts);
    let good: Vec<bool> = embedded.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true]);
}

// SRCH-B01
#[tokio::test]
async fn a_query_does_not_wait_for_documents_that_are_embedded() {
    let folder = Toy::new().write();
    let encoder = Arc::new(open(folder.path(), Isa::best(), Formats::F32));
    let expected = encoder.embed_query("a b").await.unwrap();
    let occupied = encoder.threads.occupied().await;
    let documents = tokio::spawn({
        let encoder = Arc::clone(&encoder);
        async move { encoder.embed_documents(&texts()).await }
    });
    // No thread is left for documents, however long one waits.
    let queries = try_join_all((0..20).map(|_| encoder.embed_query("a b"))).await.unwrap();
    assert!(queries.iter().all(|query| query == &expected));
    assert!(!documents.is_finished());
    drop(occupied);
    assert_eq!(documents.await.unwrap().unwrap().embeddings.len(), TEXTS.len());
}

#[tokio::test]
async fn no_text_has_no_embedding() {
    let folder = Toy::new().write();
    let encoder = open(folder.path(), Isa::best(), Formats::F32);
    assert!(encoder.embed_documents(&[]).await.unwrap().embeddings.is_empty());
}

#[test]
fn the_name_decides_on_the_pooling_where_the_folder_does_not() {
    let mut toy = Toy::new();
    toy.files.remove("1_Pooling/config.json");
    let folder = toy.write();
    for (name, pooling) in
        [("bge-small-en-v1.5", Pooling::Cls), ("all-minilm-l6-v2", Pooling::Mean)]
    {
        let folder = ModelFolder::of(name, folder.path());
        assert_eq!(Shape::of_embedder(&folder).unwrap().pooling, pooling);
    }
}

#[test]
fn the_window_is_the_smaller_of_what_two_files_say() {
    let mut toy = Toy::new();
    for (said, window) in [(7, 7), (500, POSITIONS)] {
        let sentence = serde_json::json!({"max_seq_length": said});
        toy.files.insert("sentence_bert_config.json", sentence);
        let folder = toy.write();
        let folder = ModelFolder::of("toy", folder.path());
        assert_eq!(Shape::of_embedder(&folder).unwrap().window_tokens, window);
    }
}
