//! Index files of any size, made of real chunks and their embeddings.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a measurement"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use grooveseek::adapters::store::sqlite::SqliteStore;
use grooveseek::domain::chunk::Chunk;
use grooveseek::domain::document::{ContentHash, DocumentPath};
use grooveseek::domain::embedding::{Embedding, ModelIdentity};
use grooveseek::ports::chunk_store::{Change, ChunkStore as _, Document, NewChunk};

/// Chunks of a document.
const CHUNKS: usize = 10;

/// Documents of a transaction.
const DOCUMENTS: usize = 200;

/// How far a vector that is drawn lies from the real one that it is drawn
/// around: the length of the noise that is added to it.
const NOISE: f32 = 0.5;

/// What an index is filled with.
pub(crate) struct Real {
    pub(crate) texts: Vec<String>,
    /// One for each text, of 384 numbers.
    pub(crate) vectors: Vec<Embedding>,
}

impl Real {
    /// The vector of a chunk: real ones first, then some that are drawn around
    /// them.
    ///
    /// - `dimension`: 384, or more: then the numbers are repeated, each time in
    ///   another order, as far as they go, which hardly changes an angle.
    pub(crate) fn vector(&self, number: usize, dimension: usize) -> Embedding {
        let real = self.vectors[number % self.vectors.len()].as_slice();
        let mut values: Vec<f32> = (0..dimension)
            .map(|place| {
                let (round, place) = (place / real.len(), place % real.len());
                real[(place * (2 * round + 1)) % real.len()]
            })
            .collect();
        if number >= self.vectors.len() {
            let mut noise = Noise(number as u64);
            let step = NOISE / (dimension as f32).sqrt();
            for value in &mut values {
                *value += step * noise.next();
            }
        }
        Embedding::normalised(values).unwrap()
    }

    /// The text of a chunk: real ones first, then the same with some words
    /// changed.
    pub(crate) fn text(&self, number: usize) -> String {
        let text = &self.texts[number % self.texts.len()];
        let round = number / self.texts.len();
        if round == 0 {
            return text.clone();
        }
        let word = |(place, word): (usize, &str)| match (place + round) % 17 {
            0 => format!("{word}{round}"),
            _ => word.to_owned(),
        };
        text.split(' ').enumerate().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Numbers with mean 0 and variance 1.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f32 {
        // The sum of uniform numbers is nearly normal.
        let mut sum = 0.0;
        for _ in 0..3 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = self.0;
            bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            sum += ((bits ^ bits >> 31) >> 40) as f32 / (1_u64 << 24) as f32 - 0.5;
        }
        2.0 * sum
    }
}

/// Fills a new index; the texts are a word each unless they are wanted.
pub(crate) async fn fill(
    path: &Path,
    real: &Real,
    count: usize,
    dimension: usize,
    with_texts: bool,
) -> Arc<SqliteStore> {
    let store = SqliteStore::open_or_create(path).await.unwrap();
    store.apply(vec![Change::Empty(identity(dimension))]).await.unwrap();
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(CHUNKS * DOCUMENTS) {
        let put = |numbers: &[usize]| Change::Put {
            document: document(numbers[0] / CHUNKS),
            chunks: numbers
                .iter()
                .map(|&number| NewChunk {
                    chunk: Chunk {
                        content: if with_texts { real.text(number) } else { "text".to_owned() },
                        ..Chunk::default()
                    },
                    quality: 1.0,
                    embedding: Some(real.vector(number, dimension)),
                })
                .collect(),
        };
        store.apply(batch.chunks(CHUNKS).map(put).collect()).await.unwrap();
    }
    Arc::new(store)
}

pub(crate) fn identity(dimension: usize) -> ModelIdentity {
    ModelIdentity { model: "all-minilm-l6-v2".to_owned(), dimension }
}

fn document(number: usize) -> Document {
    let path = DocumentPath::new(format!("{}/{number}.md", number % 20)).unwrap();
    Document {
        title: path.title(),
        topic: path.topic().map(str::to_owned),
        category: path.category().map(str::to_owned),
        depth: None,
        tags: Vec::new(),
        date: None,
        fields: BTreeMap::new(),
        hash: ContentHash::from_text(path.as_str()),
        recipe: None,
        size_bytes: None,
        indexed_at: "2026-11-30T12:00:00Z".to_owned(),
        path,
    }
}
