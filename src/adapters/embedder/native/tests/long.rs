//! Texts that are longer than the window, against the definition.

use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::*;
use crate::adapters::model::encoder::parts::MOST_PARTS;

/// Words that fit into a toy's window, each of which is one token.
const ROOM: usize = POSITIONS - 2;

fn exact(folder: &Path, lead: &str) -> NativeEncoder {
    let folder = ModelFolder { lead: lead.to_owned(), ..ModelFolder::of("toy", folder) };
    NativeEncoder::open_on("toy", &folder, Isa::best(), Formats::F32).unwrap()
}

fn words(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d", "e", "?"]), 0..most)
}

/// The mean of the windows' vectors, each of which is what a query gives, by
/// how many words each has.
async fn naive(encoder: &NativeEncoder, lead: &[&str], words: &[&str]) -> Vec<f64> {
    let mut sum = vec![0.0; HIDDEN];
    for window in words.chunks(ROOM - lead.len()).take(MOST_PARTS) {
        let text = [lead, window].concat().join(" ");
        let vector = encoder.embed_query(&text).await.unwrap();
        for (sum, number) in sum.iter_mut().zip(vector.as_slice()) {
            *sum += f64::from(u32::try_from(window.len()).unwrap()) * f64::from(*number);
        }
    }
    sum
}

async fn assert_is_the_mean(encoder: &NativeEncoder, lead: &[&str], words: &[&str]) {
    let text = [lead, words].concat().join(" ");
    let embedded = encoder.embed_documents(&[text]).await.unwrap();
    assert_eq!(embedded.in_parts, 1);
    let cosine = cosine(&embedded.embeddings[0], &naive(encoder, lead, words).await);
    assert!(cosine > 0.999_999, "{cosine} for {words:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // IDX-159 IDX-B23
    #[test]
    fn a_text_that_fits_is_embedded_as_it_always_was(words in words(ROOM + 1)) {
        for kind in [Kind::Bert, Kind::XlmRoberta] {
            let folder = Toy::of(kind).write();
            let encoder = exact(folder.path(), "");
            Runtime::new().unwrap().block_on(async {
                let text = words.join(" ");
                // A query is never in parts.
                let expected = encoder.embed_query(&text).await.unwrap();
                assert_eq!(encoder.exceed_window(std::slice::from_ref(&text)).await.unwrap(), [false]);
                let embedded = encoder.embed_documents(&[text]).await.unwrap();
                assert_eq!(embedded, vec![expected].into());
            });
        }
    }

    // IDX-B23
    #[test]
    fn a_long_text_is_the_mean_of_its_windows(
        head in prop::collection::vec(Just("b"), ROOM + 1), rest in words(4 * ROOM),
    ) {
        for kind in [Kind::Bert, Kind::XlmRoberta] {
            let folder = Toy::of(kind).write();
            let words = [&head[..], &rest[..]].concat();
            Runtime::new().unwrap().block_on(async {
                assert_is_the_mean(&exact(folder.path(), ""), &[], &words).await;
                let lead = ["c", "d"];
                assert_is_the_mean(&exact(folder.path(), "c d "), &lead, &words).await;
            });
        }
    }
}

// IDX-B23
#[tokio::test]
async fn long_texts_are_counted_and_what_they_come_with_stays_as_it_is() {
    let folder = Toy::new().write();
    for isa in Isa::all() {
        for formats in [Formats::F32, Formats::small(isa)] {
            let encoder = open(folder.path(), isa, formats);
            let long = ["a b c d e ".repeat(40), "b ".repeat(11)];
            let together = [&texts()[..], &long[..], &texts()[..]].concat();
            let embedded = encoder.embed_documents(&together).await.unwrap();
            assert_eq!(embedded.in_parts, 2);
            let exceed = encoder.exceed_window(&together).await.unwrap();
            assert_eq!(exceed.iter().filter(|exceeds| **exceeds).count(), 2);
            for (text, embedding) in together.into_iter().zip(embedded.embeddings) {
                let alone = encoder.embed_documents(&[text]).await.unwrap();
                assert_eq!(alone.embeddings, [embedding]);
            }
        }
    }
}

// IDX-B23
#[tokio::test]
async fn of_an_endless_text_a_bounded_number_of_windows_is_embedded() {
    let folder = Toy::new().write();
    let encoder = exact(folder.path(), "");
    let endless = "a b c d e ".repeat(1 << 20);
    let words: Vec<&str> = endless.split(' ').take(2 * MOST_PARTS * ROOM).collect();
    let embedded = encoder.embed_documents(std::slice::from_ref(&endless)).await.unwrap();
    let cosine = cosine(&embedded.embeddings[0], &naive(&encoder, &[], &words).await);
    assert!(cosine > 0.999_999, "{cosine}");
}

// IDX-159
#[tokio::test]
async fn a_query_is_cut_at_the_window() {
    let folder = Toy::new().write();
    let encoder = exact(folder.path(), "");
    let long = encoder.embed_query("a b c d e a b c d e e e e").await.unwrap();
    assert_eq!(long, encoder.embed_query("a b c d e a b c d e").await.unwrap());
}
