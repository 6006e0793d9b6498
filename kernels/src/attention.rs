//! Attention of several heads within each of several texts.

use crate::aligned::Aligned;
use crate::isa::{Isa, Kernel};
use crate::math::softmax_terms;
use crate::simd::{MOST_TILE_COLUMNS, MOST_TILE_ROWS, Simd};
use crate::tile::{Rows, RowsMut, TileBuffer, columns, float_tile, split, with_rows};

/// The heads of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// How many there are.
    pub count: usize,
    /// How many numbers each has of a query, a key and a value.
    pub size: usize,
}

/// Memory that calls to [`attention`] share.
#[derive(Debug, Default)]
pub struct AttentionScratch {
    keys: Aligned<f32>,
    values: Aligned<f32>,
    scores: Aligned<f32>,
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
/// Takes O(length²) time for each text, and memory for the scores of one tile.
///
/// # Panics
///
/// If the lengths do not fit together.
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

impl Head {
    /// Puts keys and values into panels: those of keys run along the numbers of
    /// a head, with a column for each key; those of values run along the keys,
    /// with a column for each number of the head.
    #[inline(always)]
    fn pack<S: Simd>(self, text: &[f32], scratch: &mut AttentionScratch) {
        let Self { length, width, size, first } = self;
        let columns = columns::<S>();
        let scale = 1.0 / (size as f32).sqrt();
        scratch.keys.resize(length.next_multiple_of(columns) * size);
        scratch.values.resize(size.next_multiple_of(columns) * length);
        let (keys, values) = (scratch.keys.as_mut_slice(), scratch.values.as_mut_slice());
        for (token, row) in text.chunks_exact(3 * width).enumerate() {
            let key = &row[width + first..][..size];
            let panel = &mut keys[(token / columns) * columns * size + token % columns..];
            for (place, &number) in panel.iter_mut().step_by(columns).zip(key) {
                *place = number * scale;
            }
            let value = &row[2 * width + first..][..size];
            for (panel, numbers) in value.chunks(columns).enumerate() {
                values[(panel * length + token) * columns..][..numbers.len()]
                    .copy_from_slice(numbers);
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
        let columns = columns::<S>();
        let padded = length.next_multiple_of(columns);
        scratch.scores.resize(S::FLOAT_ROWS * padded);
        let (keys, values) = (scratch.keys.as_slice(), scratch.values.as_slice());
        let scores = scratch.scores.as_mut_slice();
        let zeros = [0.0; MOST_TILE_COLUMNS];
        let mut tile: TileBuffer = [0.0; MOST_TILE_ROWS * MOST_TILE_COLUMNS];
        for (token, rows) in split(length, S::FLOAT_ROWS) {
            let queries = Rows { values: &text[token * 3 * width + first..], stride: 3 * width };
            for (panel, keys) in keys.chunks_exact(columns * size).enumerate() {
                let to = &mut RowsMut { values: &mut scores[panel * columns..], stride: padded };
                with_rows!(
                    rows,
                    S::FLOAT_ROWS,
                    float_tile::<S>(simd, size, queries, keys, &zeros, to)
                );
            }
            let mut sums = [1.0; MOST_TILE_ROWS];
            for (scores, sum) in scores.chunks_exact_mut(padded).take(rows).zip(&mut sums) {
                *sum = softmax_terms(simd, scores, length);
            }
            let terms = Rows { values: scores, stride: padded };
            for (panel, values) in values.chunks_exact(columns * length).enumerate() {
                let to = &mut RowsMut { values: &mut tile, stride: columns };
                with_rows!(
                    rows,
                    S::FLOAT_ROWS,
                    float_tile::<S>(simd, length, terms, values, &zeros, to)
                );
                let column = panel * columns;
                let wanted = columns.min(size - column);
                for (row, sum) in sums.iter().enumerate().take(rows) {
                    let to = &mut output[(token + row) * width + first + column..][..wanted];
                    for (to, from) in to.iter_mut().zip(&tile[row * columns..]) {
                        *to = from / sum;
                    }
                }
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
