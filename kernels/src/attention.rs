//! Attention of several heads within each of several texts.

use crate::aligned::Aligned;
use crate::isa::{Isa, Kernel};
use crate::math::Seen;
use crate::simd::{MOST_TILE_COLUMNS, Simd};
use crate::tile::{Rows, RowsMut, Start, columns, float_tile, split, with_rows};

/// The heads of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// How many there are.
    pub count: usize,
    /// How many numbers each has of a query, a key and a value.
    pub size: usize,
}

/// Queries that pass over the keys together.
const BLOCK_QUERIES: usize = 24;

/// Keys that a block of queries passes over together. Their scores, with what
/// they are made of and what becomes of them, stay in the first-level cache.
const BLOCK_KEYS: usize = 128;

/// Memory that calls to [`attention`] share.
#[derive(Debug, Default)]
pub struct AttentionScratch {
    /// A row for each query of a block, with a column for each number of the head.
    queries: Aligned<f32>,
    /// Panels along the numbers of a head, with a column for each key.
    keys: Aligned<f32>,
    /// For each block of keys panels along its keys, with a column for each
    /// number of the head.
    values: Aligned<f32>,
    /// A row for each query of a block, with a column for each key of a block.
    scores: Aligned<f32>,
    /// A row for each query of a block, with a column for each number of the head.
    sums: Aligned<f32>,
}

/// Computes softmax(Q Kᵀ ÷ √size) V for each head of each text.
///
/// Texts lie one behind the other, without padding, and do not see each other.
///
/// - `projected`: for each token 3 × count × size numbers: the queries of all
///   heads, then the keys, then the values.
/// - `lengths`: the tokens of each text, possibly 0.
/// - `output`: for each token count × size numbers, overwritten.
///
/// Takes O(length²) time for each text, and O(length) memory.
///
/// # Panics
///
/// If the lengths do not fit together.
///
/// # Source
///
/// Vaswani et al., "Attention Is All You Need", 2017; block by block, after Rabe
/// and Staats, "Self-attention Does Not Need O(n²) Memory", 2021.
pub fn attention(
    isa: Isa,
    heads: Heads,
    projected: &[f32],
    lengths: &[usize],
    output: &mut [f32],
    scratch: &mut AttentionScratch,
) {
    let tokens = lengths.iter().fold(0, |sum: usize, &length| sum.saturating_add(length));
    let width = heads.count.saturating_mul(heads.size);
    assert_eq!(output.len(), tokens.saturating_mul(width), "an output for each token");
    assert_eq!(projected.len(), 3 * output.len(), "three projections for each token");
    if width > 0 {
        isa.run(Attention { heads, projected, lengths, output, scratch });
    }
}

struct Attention<'a> {
    heads: Heads,
    projected: &'a [f32],
    lengths: &'a [usize],
    output: &'a mut [f32],
    scratch: &'a mut AttentionScratch,
}

impl Kernel for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let width = self.heads.count * self.heads.size;
        let (mut projected, mut output) = (self.projected, self.output);
        for &length in self.lengths {
            let (text, rest) = projected.split_at(length * 3 * width);
            let (to, after) = output.split_at_mut(length * width);
            (projected, output) = (rest, after);
            for head in 0..self.heads.count {
                let head =
                    Head { length, width, size: self.heads.size, first: head * self.heads.size };
                head.pack::<S>(text, self.scratch);
                head.attend(simd, text, to, self.scratch);
            }
        }
    }
}

/// One head of one text.
#[derive(Clone, Copy)]
struct Head {
    /// Tokens of the text.
    length: usize,
    /// Numbers of all heads together.
    width: usize,
    /// Numbers of this head.
    size: usize,
    /// Where they start among all.
    first: usize,
}

/// Queries or keys that are worked on together.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    count: usize,
}

impl Head {
    /// Numbers of this head, padded to whole panels.
    #[inline(always)]
    fn padded_size<S: Simd>(self) -> usize {
        self.size.next_multiple_of(columns::<S>())
    }

    /// Puts keys and values into panels.
    #[inline(always)]
    fn pack<S: Simd>(self, text: &[f32], scratch: &mut AttentionScratch) {
        let Self { length, width, size, first } = self;
        let columns = columns::<S>();
        scratch.keys.resize(length.next_multiple_of(columns) * size);
        scratch.values.resize(self.padded_size::<S>() * length);
        let (keys, values) = (scratch.keys.as_mut_slice(), scratch.values.as_mut_slice());
        for (token, row) in text.chunks_exact(3 * width).enumerate() {
            let key = &row[width + first..][..size];
            let panel = &mut keys[(token / columns) * columns * size + token % columns..];
            for (place, &number) in panel.iter_mut().step_by(columns).zip(key) {
                *place = number;
            }
        }
        for first_key in (0..length).step_by(BLOCK_KEYS) {
            let count = BLOCK_KEYS.min(length - first_key);
            let block = &mut values[first_key * self.padded_size::<S>()..];
            let rows = text.chunks_exact(3 * width).skip(first_key).take(count);
            for (key, row) in rows.enumerate() {
                let value = &row[2 * width + first..][..size];
                for (panel, numbers) in value.chunks(columns).enumerate() {
                    block[(panel * count + key) * columns..][..numbers.len()]
                        .copy_from_slice(numbers);
                }
            }
        }
    }

    #[inline(always)]
    fn attend<S: Simd>(
        self,
        simd: S,
        text: &[f32],
        output: &mut [f32],
        scratch: &mut AttentionScratch,
    ) {
        let Self { length, width, size, first } = self;
        let padded_size = self.padded_size::<S>();
        scratch.queries.resize(BLOCK_QUERIES * size);
        scratch.scores.resize(BLOCK_QUERIES * BLOCK_KEYS);
        scratch.sums.resize(BLOCK_QUERIES * padded_size);
        for (query, count) in split(length, BLOCK_QUERIES) {
            let queries = Block { first: query, count };
            let mut seen = [Seen::NOTHING; BLOCK_QUERIES];
            self.copy_queries(text, queries, scratch);
            scratch.sums.as_mut_slice()[..count * padded_size].fill(0.0);
            for first in (0..length).step_by(BLOCK_KEYS) {
                let keys = Block { first, count: BLOCK_KEYS.min(length - first) };
                self.score(simd, queries, keys, scratch);
                let scores = scratch.scores.as_mut_slice().chunks_exact_mut(BLOCK_KEYS);
                let sums = scratch.sums.as_mut_slice().chunks_exact_mut(padded_size);
                for ((scores, sums), seen) in scores.zip(sums).zip(&mut seen).take(count) {
                    let scores = &mut scores[..keys.count.next_multiple_of(columns::<S>())];
                    let before = seen.take_in(simd, scores, keys.count);
                    if before < 1.0 {
                        for sum in sums {
                            *sum *= before;
                        }
                    }
                }
                self.add_values(simd, queries, keys, scratch);
            }
            let sums = scratch.sums.as_slice().chunks_exact(padded_size);
            for ((row, sums), seen) in sums.enumerate().zip(&seen).take(count) {
                let to = &mut output[(query + row) * width + first..][..size];
                let scale = 1.0 / seen.sum;
                for (to, sum) in to.iter_mut().zip(sums) {
                    *to = sum * scale;
                }
            }
        }
    }

    /// Puts queries side by side: apart as they lie in the text, they would drive
    /// each other out of the cache. Scores are powers of two rather than of e, so
    /// queries are scaled by its logarithm too.
    #[inline(always)]
    fn copy_queries(self, text: &[f32], queries: Block, scratch: &mut AttentionScratch) {
        let Self { width, size, first, .. } = self;
        let scale = std::f32::consts::LOG2_E / (size as f32).sqrt();
        let rows = text.chunks_exact(3 * width).skip(queries.first).take(queries.count);
        for (to, row) in scratch.queries.as_mut_slice().chunks_exact_mut(size).zip(rows) {
            for (to, number) in to.iter_mut().zip(&row[first..]) {
                *to = number * scale;
            }
        }
    }

    /// Multiplies queries with keys.
    #[inline(always)]
    fn score<S: Simd>(self, simd: S, queries: Block, keys: Block, scratch: &mut AttentionScratch) {
        let size = self.size;
        let columns = columns::<S>();
        let from = scratch.queries.as_slice();
        let panels = &scratch.keys.as_slice()[keys.first * size..];
        let scores = scratch.scores.as_mut_slice();
        let zeros = [0.0; MOST_TILE_COLUMNS];
        let panel_count = keys.count.div_ceil(columns);
        for (panel, keys) in panels.chunks_exact(columns * size).take(panel_count).enumerate() {
            for (row, rows) in split(queries.count, S::FLOAT_ROWS) {
                let left = Rows { values: &from[row * size..], stride: size };
                let to = &mut scores[row * BLOCK_KEYS + panel * columns..];
                let to = &mut RowsMut { values: to, stride: BLOCK_KEYS };
                let start = Start::Bias(&zeros);
                with_rows!(rows, S::FLOAT_ROWS, float_tile::<S>(simd, size, left, keys, start, to));
            }
        }
    }

    /// Adds up values, as many times as the scores of their keys say.
    #[inline(always)]
    fn add_values<S: Simd>(
        self,
        simd: S,
        queries: Block,
        keys: Block,
        scratch: &mut AttentionScratch,
    ) {
        let columns = columns::<S>();
        let padded_size = self.padded_size::<S>();
        let (first, count) = (keys.first * padded_size, keys.count);
        let panels = &scratch.values.as_slice()[first..][..count * padded_size];
        let (scores, sums) = (scratch.scores.as_slice(), scratch.sums.as_mut_slice());
        for (panel, values) in panels.chunks_exact(columns * count).enumerate() {
            for (row, rows) in split(queries.count, S::FLOAT_ROWS) {
                let left = Rows { values: &scores[row * BLOCK_KEYS..], stride: BLOCK_KEYS };
                let to = &mut sums[row * padded_size + panel * columns..];
                let to = &mut RowsMut { values: to, stride: padded_size };
                with_rows!(
                    rows,
                    S::FLOAT_ROWS,
                    float_tile::<S>(simd, count, left, values, Start::Tile, to)
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::noise;

    /// One text, by the definition, in double precision.
    fn naive(heads: Heads, text: &[f32]) -> Vec<f64> {
        let width = heads.count * heads.size;
        let rows: Vec<&[f32]> = text.chunks_exact(3 * width).collect();
        let mut output = vec![0.0; rows.len() * width];
        for (token, row) in rows.iter().enumerate() {
            for head in 0..heads.count {
                let numbers = |row: &[f32], part: usize| -> Vec<f64> {
                    let first = part * width + head * heads.size;
                    row[first..][..heads.size].iter().map(|&number| number.into()).collect()
                };
                let query = numbers(row, 0);
                let terms = rows.iter().map(|other| {
                    let key = numbers(other, 1);
                    let dot: f64 = query.iter().zip(&key).map(|(q, k)| q * k).sum();
                    (dot / (heads.size as f64).sqrt()).exp()
                });
                let terms: Vec<f64> = terms.collect();
                let sum: f64 = terms.iter().sum();
                for (term, other) in terms.iter().zip(&rows) {
                    for (position, value) in numbers(other, 2).into_iter().enumerate() {
                        output[token * width + head * heads.size + position] += term / sum * value;
                    }
                }
            }
        }
        output
    }

    fn check(heads: Heads, lengths: &[usize], seed: u64) {
        let width = heads.count * heads.size;
        let tokens: usize = lengths.iter().sum();
        let projected: Vec<f32> =
            noise(tokens * 3 * width, seed).into_iter().map(|number| 3.0 * number).collect();
        let mut expected = Vec::new();
        let mut rest = &projected[..];
        for &length in lengths {
            let (text, after) = rest.split_at(length * 3 * width);
            expected.extend(naive(heads, text));
            rest = after;
        }
        for isa in Isa::all() {
            let mut scratch = AttentionScratch::default();
            let mut output = vec![f32::NAN; tokens * width];
            // Twice, so that what a call leaves in the scratch cannot matter.
            for _ in 0..2 {
                attention(isa, heads, &projected, lengths, &mut output, &mut scratch);
            }
            for (&got, expected) in output.iter().zip(&expected) {
                let error = (f64::from(got) - expected).abs();
                assert!(error < 2e-5, "{} {heads:?} {lengths:?}: {error}", isa.name());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_text_gets_its_own_attention(
            count in 1_usize..4,
            size in 1_usize..70,
            lengths in proptest::collection::vec(0_usize..40, 0..5),
            seed in 0_u64..1000,
        ) {
            check(Heads { count, size }, &lengths, seed);
        }
    }

    #[test]
    fn long_texts_are_exact() {
        check(Heads { count: 2, size: 32 }, &[512, 3, 257], 5);
    }
}
