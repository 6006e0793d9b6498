//! Chunks of real documentation with vectors that an implementation of its own
//! made (`data/embed/README.md`).
#![allow(dead_code, clippy::disallowed_methods, clippy::unwrap_used, reason = "a measurement")]

use std::path::{Path, PathBuf};

use grooveseek::domain::embedding::Embedding;

/// How many numbers a vector has.
pub(crate) const DIMENSION: usize = 384;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data/embed").join(name)
}

/// The chunks.
pub(crate) fn chunks() -> Vec<String> {
    serde_json::from_slice(&std::fs::read(data("chunks.json")).unwrap()).unwrap()
}

/// Up to so many bytes a chunk fits into the window. Of longer ones the stored
/// vectors know the beginning only.
const SURELY_WHOLE_BYTES: usize = 600;

/// The least cosine of vectors of the chunks with the stored ones.
pub(crate) fn least_cosine(vectors: &[Vec<f32>]) -> f32 {
    let stored = vectors_of(&data("reference.f16"));
    assert_eq!(stored.len(), vectors.len());
    let ours = vectors.iter().map(|it| Embedding::normalised(it.clone()).unwrap());
    let whole = chunks().into_iter().map(|chunk| chunk.len() <= SURELY_WHOLE_BYTES);
    let pairs = ours.zip(&stored).zip(whole).filter(|(_, whole)| *whole);
    pairs.map(|((ours, stored), _)| ours.cosine(stored)).fold(f32::MAX, f32::min)
}

/// Reads vectors of half-precision numbers, least significant byte first.
fn vectors_of(path: &Path) -> Vec<Embedding> {
    let bytes = std::fs::read(path).unwrap();
    let (numbers, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    let numbers: Vec<f32> = numbers.iter().map(|&half| widen(u16::from_le_bytes(half))).collect();
    numbers
        .chunks_exact(DIMENSION)
        .map(|row| Embedding::normalised(row.to_vec()).unwrap())
        .collect()
}

/// Widens a number of half precision that is finite.
fn widen(half: u16) -> f32 {
    let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f32::from(half & 0x3ff) / 1024.0);
    let magnitude = match exponent {
        0 => fraction * 2.0_f32.powi(-14),
        _ => (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    };
    if half >> 15 == 1 { -magnitude } else { magnitude }
}
