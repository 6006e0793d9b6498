//! An embedder without a model: it counts hashed words and parts of words.
//!
//! Texts that share words come out close to each other, always the same way
//! on every machine. It knows nothing about meaning.

use async_trait::async_trait;

use crate::domain::embedding::Embedding;
use crate::domain::embedding::ModelIdentity;
use crate::ports::embedder::EmbedError;
use crate::ports::embedder::Embedded;
use crate::ports::embedder::Embedder;
use crate::ports::embedder::Engine;

/// How many characters a part of a word has; a script without spaces gets the
/// shorter parts too, since its words are short and not set apart.
const PART_LENGTH: usize = 3;
const SHORT_PART_LENGTH: usize = 2;

/// A whole word says more than one of its parts.
const WORD_WEIGHT: f32 = 2.0;
const PART_WEIGHT: f32 = 1.0;

/// Counts words and parts of words, each in the place that its hash gives.
///
/// ```
/// use grooveseek::adapters::embedder::hashing::HashingEmbedder;
/// use grooveseek::ports::embedder::Embedder;
///
/// let embedder = HashingEmbedder::new(256);
/// assert_eq!(embedder.identity().model, "hashing");
/// assert_eq!(embedder.identity().dimension, 256);
/// ```
#[derive(Clone, Debug)]
pub struct HashingEmbedder {
    identity: ModelIdentity,
}

impl HashingEmbedder {
    /// Embeds into `dimension` numbers; 0 counts as 1. The more there are, the
    /// fewer words share a place.
    pub fn new(dimension: usize) -> Self {
        let dimension = dimension.max(1);
        Self { identity: ModelIdentity { model: "hashing".into(), dimension } }
    }

    fn embed(&self, text: &str) -> Embedding {
        let mut counts = vec![0.0; self.identity.dimension];
        let lower = text.to_lowercase();
        for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            count(&mut counts, word.chars(), WORD_WEIGHT);
            let marked: Vec<char> =
                std::iter::once(' ').chain(word.chars()).chain(std::iter::once(' ')).collect();
            for part in marked.windows(PART_LENGTH) {
                count(&mut counts, part.iter().copied(), PART_WEIGHT);
            }
            for part in
                marked.windows(SHORT_PART_LENGTH).filter(|part| !part.iter().all(char::is_ascii))
            {
                count(&mut counts, part.iter().copied(), PART_WEIGHT);
            }
        }
        Embedding::normalised(counts).unwrap_or_else(|_| self.of_nothing())
    }

    /// What a text without any word gets: a direction like any other.
    fn of_nothing(&self) -> Embedding {
        let mut values = vec![0.0; self.identity.dimension];
        values[0] = 1.0;
        Embedding::from_stored(values)
    }
}

/// Adds a feature in its place. One bit of the hash decides the sign, so that
/// features that share a place cancel out on average instead of adding up.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a place is less than the length of the vector, which is a usize"
)]
fn count(counts: &mut [f32], feature: impl Iterator<Item = char>, weight: f32) {
    let hash = hash(feature);
    let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
    let place = (hash & u64::from(u32::MAX)) % counts.len() as u64;
    counts[place as usize] += sign * weight;
}

/// FNV-1a, followed by a mixing step so that the high bits depend on every
/// character.
///
/// # Source
///
/// Fowler, Noll and Vo, "FNV Hash", 1991; the finish is that of Appleby's
/// `MurmurHash3`, 2011.
fn hash(characters: impl Iterator<Item = char>) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for character in characters {
        hash = (hash ^ u64::from(u32::from(character))).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}

#[async_trait]
impl Embedder for HashingEmbedder {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn engine(&self) -> Engine {
        Engine { name: "hashing", precision: "f32" }
    }

    fn window_tokens(&self) -> Option<usize> {
        None
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        Ok(vec![false; texts.len()])
    }

    async fn embed_documents(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        Ok(texts.iter().map(|text| self.embed(text)).collect::<Vec<_>>().into())
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        Ok(self.embed(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closeness(left: &str, right: &str) -> f32 {
        let embedder = HashingEmbedder::new(512);
        embedder.embed(left).cosine(&embedder.embed(right))
    }

    #[test]
    fn shared_words_bring_texts_together() {
        let near = closeness("how to spawn a task in tokio", "Tokio tasks: spawn and join");
        let far = closeness("how to spawn a task in tokio", "recipe for apple pie with cream");
        assert!(near > far + 0.2, "{near} against {far}");
    }

    #[test]
    fn a_word_is_found_inside_a_script_without_spaces() {
        let near = closeness("評価手法", "再ランキングの評価手法について");
        let far = closeness("評価手法", "東京の天気は晴れです");
        assert!(near > far + 0.2, "{near} against {far}");
    }

    #[test]
    fn case_and_punctuation_do_not_matter() {
        assert!(closeness("Foundry Local!", "foundry, local") > 0.999);
    }

    #[test]
    fn any_dimension_will_do() {
        for dimension in [0, 1, 2, 7] {
            let embedder = HashingEmbedder::new(dimension);
            let embedding = embedder.embed("some words, and more words");
            assert_eq!(embedding.dimension(), dimension.max(1));
            assert!((embedding.cosine(&embedding) - 1.0).abs() < 1e-6);
        }
    }

    /// Indexes made on one machine are read on others.
    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash("".chars()), 0xEFD0_1F60_BA99_2926);
        assert_eq!(hash("tokio".chars()), 0xE739_D5E2_824D_421A);
    }
}
