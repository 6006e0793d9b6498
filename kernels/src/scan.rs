//! Search through vectors of small integers.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::isa::{Isa, Kernel};
use crate::simd::Simd;

/// The most numbers that a vector may have: their products add up in 32 bits.
const MOST_DIMENSION: usize = 1 << 16;

/// A row that a scan found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Which row of the matrix.
    pub row: usize,
    /// The row's product with the query, times the row's scale. Times the
    /// query's scale it is the similarity, but for rounding.
    pub score: f32,
}

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Best first: a higher score comes before a lower, and the earlier of two
/// rows with the same score before the later.
impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row))
    }
}

/// Finds the rows with the greatest product with a query.
///
/// - `query`: `dimension` integers, as [`quantise`](crate::quantise()) makes them.
/// - `matrix`: n rows of `dimension` integers; `scales`: n.
/// - `admit`: one bit for each row, from the lowest bit of the first word on,
///   set if the row may be found; without it all may.
/// - `keep`: how many rows are wanted.
/// - Returns at most `keep` rows, best first, equal scores by row. The answer is
///   the same on every instruction set.
///
/// Takes time linear in the admitted rows, as fast as memory delivers them.
///
/// # Panics
///
/// If the query is empty or has more than 65,536 integers, or the lengths do
/// not fit together.
pub fn scan_i8(
    query: &[i8],
    matrix: &[i8],
    scales: &[f32],
    admit: Option<&[u64]>,
    keep: usize,
) -> Vec<Scored> {
    scan_i8_on(Isa::best(), query, matrix, scales, admit, keep)
}

fn scan_i8_on(
    isa: Isa,
    query: &[i8],
    matrix: &[i8],
    scales: &[f32],
    admit: Option<&[u64]>,
    keep: usize,
) -> Vec<Scored> {
    assert!((1..=MOST_DIMENSION).contains(&query.len()), "a query has a sensible dimension");
    assert_eq!(Some(matrix.len()), scales.len().checked_mul(query.len()), "rows are whole");
    if let Some(admit) = admit {
        assert!(admit.len() >= scales.len().div_ceil(64), "a bit for each row");
    }
    if keep == 0 {
        return Vec::new();
    }
    isa.run(Scan { query, matrix, scales, admit, keep })
}

struct Scan<'a> {
    query: &'a [i8],
    matrix: &'a [i8],
    scales: &'a [f32],
    admit: Option<&'a [u64]>,
    keep: usize,
}

impl Kernel for Scan<'_> {
    type Output = Vec<Scored>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vec<Scored> {
        let dimension = self.query.len();
        let query = Query::new::<S>(self.query);
        let rows = self.scales.len();
        // The worst of the kept rows is on top.
        let mut best = BinaryHeap::with_capacity(self.keep.min(rows) + 1);
        let mut threshold = f32::NEG_INFINITY;
        for first in (0..rows).step_by(64) {
            let mut bits = self.admit.map_or(u64::MAX, |admit| admit[first / 64]);
            if rows - first < 64 {
                bits &= (1 << (rows - first)) - 1;
            }
            while bits != 0 {
                let row = first + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let integers = &self.matrix[row * dimension..][..dimension];
                // Adding zero turns −0 into 0, which is ordered apart.
                let score = query.dot(simd, integers) as f32 * self.scales[row] + 0.0;
                // Rows come in ascending order, so an equal score never displaces one.
                if best.len() < self.keep {
                    best.push(Scored { row, score });
                } else if score > threshold {
                    best.pop();
                    best.push(Scored { row, score });
                } else {
                    continue;
                }
                if best.len() == self.keep {
                    threshold = best.peek().map_or(f32::NEG_INFINITY, |worst| worst.score);
                }
            }
        }
        best.into_sorted_vec()
    }
}

/// A query, widened to pairs of 16 bits as far as whole vectors reach.
struct Query<'a> {
    pairs: Vec<i32>,
    rest: &'a [i8],
}

impl<'a> Query<'a> {
    #[inline(always)]
    fn new<S: Simd>(query: &'a [i8]) -> Self {
        let (whole, rest) = query.split_at(query.len() - query.len() % (2 * S::LANES));
        let (pairs, _) = whole.as_chunks();
        let widen = |&[low, high]: &[i8; 2]| (i32::from(low) & 0xffff) | (i32::from(high) << 16);
        Self { pairs: pairs.iter().map(widen).collect(), rest }
    }

    #[inline(always)]
    fn dot<S: Simd>(&self, simd: S, row: &[i8]) -> i32 {
        let (whole, rest) = row.split_at(2 * self.pairs.len());
        let (lanes, from) = (S::LANES, whole.as_ptr());
        let vectors = self.pairs.len() / lanes;
        let mut sums = [simd.splat_integer(0); 4];
        let mut vector = 0;
        // SAFETY: `whole` has two bytes, and `pairs` one value, for each of the
        // `vectors × LANES` places that are read.
        unsafe {
            while vector + 4 <= vectors {
                for (offset, sum) in sums.iter_mut().enumerate() {
                    let place = (vector + offset) * lanes;
                    let row = simd.load_widened(from.add(2 * place));
                    *sum = simd.dot_words(
                        *sum,
                        row,
                        simd.load_integers(self.pairs.as_ptr().add(place)),
                    );
                }
                vector += 4;
            }
            while vector < vectors {
                let place = vector * lanes;
                let row = simd.load_widened(from.add(2 * place));
                sums[0] = simd.dot_words(
                    sums[0],
                    row,
                    simd.load_integers(self.pairs.as_ptr().add(place)),
                );
                vector += 1;
            }
        }
        let sum: i32 = sums.iter().map(|&sum| simd.sum_integers(sum)).sum();
        let rest = self.rest.iter().zip(rest).map(|(&a, &b)| i32::from(a) * i32::from(b));
        sum + rest.sum::<i32>()
    }
}

/// The product of two vectors.
///
/// # Panics
///
/// If one has more numbers than the other.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one dimension");
    Isa::best().run(Dot { a, b })
}

struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let (a, b) = (self.a.chunks_exact(4 * S::LANES), self.b.chunks_exact(4 * S::LANES));
        let rest = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum::<f32>();
        let mut sums = [simd.splat(0.0); 4];
        for (a, b) in a.zip(b) {
            for (part, sum) in sums.iter_mut().enumerate() {
                // SAFETY: each chunk has four times as many values as a vector.
                unsafe {
                    let a = simd.load(a.as_ptr().add(part * S::LANES));
                    let b = simd.load(b.as_ptr().add(part * S::LANES));
                    *sum = simd.multiply_add(a, b, *sum);
                }
            }
        }
        let sum = simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]));
        simd.sum(sum) + rest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantise::quantise;
    use crate::testing::noise;

    fn naive(
        query: &[i8],
        matrix: &[i8],
        scales: &[f32],
        admit: Option<&[u64]>,
        keep: usize,
    ) -> Vec<Scored> {
        let mut all: Vec<Scored> = matrix
            .chunks_exact(query.len())
            .zip(scales)
            .enumerate()
            .filter(|(row, _)| admit.is_none_or(|admit| admit[row / 64] >> (row % 64) & 1 == 1))
            .map(|(row, (integers, scale))| {
                let products = query.iter().zip(integers);
                let dot: i32 = products.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
                Scored { row, score: dot as f32 * scale + 0.0 }
            })
            .collect();
        all.sort();
        all.truncate(keep);
        all
    }

    proptest! {
        #[test]
        fn a_scan_finds_what_a_full_sort_finds(
            dimension in 1_usize..200,
            rows in 0_usize..200,
            keep in 0_usize..20,
            // Few distinct values, so that scores tie.
            seed in 0_u64..1000,
            some in any::<bool>(),
            bits in proptest::collection::vec(any::<u64>(), 4),
        ) {
            let coarse = |numbers: Vec<f32>| -> Vec<i8> {
                numbers.into_iter().map(|number| (number * 1.5) as i8).collect()
            };
            let query = coarse(noise(dimension, seed));
            let matrix = coarse(noise(dimension * rows, seed + 1));
            let scales: Vec<f32> = noise(rows, seed + 2).iter().map(|x| x.round().abs()).collect();
            let admit = some.then_some(&bits[..]);
            let expected = naive(&query, &matrix, &scales, admit, keep);
            for isa in Isa::all() {
                let found = scan_i8_on(isa, &query, &matrix, &scales, admit, keep);
                prop_assert_eq!(&found, &expected, "{}", isa.name());
            }
        }

        #[test]
        fn a_product_of_numbers_is_exact(dimension in 0_usize..200, seed in 0_u64..1000) {
            let (a, b) = (noise(dimension, seed), noise(dimension, seed + 1));
            let exact: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            for isa in Isa::all() {
                let dot = isa.run(Dot { a: &a, b: &b });
                prop_assert!((f64::from(dot) - exact).abs() < 1e-5);
            }
            prop_assert!((f64::from(dot_f32(&a, &b)) - exact).abs() < 1e-5);
        }
    }

    #[test]
    fn the_greatest_products_do_not_overflow() {
        let (query, matrix) = (vec![127; 65_536], vec![-128; 65_536]);
        for isa in Isa::all() {
            let found = scan_i8_on(isa, &query, &matrix, &[1.0], None, 1);
            assert_eq!(found, [Scored { row: 0, score: -127.0 * 128.0 * 65_536.0 }]);
        }
    }

    #[test]
    fn a_scan_of_quantised_vectors_finds_the_nearest() {
        let vectors = noise(500 * 384, 3);
        let (matrix, scales) = quantise(&vectors, 384);
        let (query, _) = quantise(&vectors[123 * 384..][..384], 384);
        assert_eq!(scan_i8(&query, &matrix, &scales, None, 1)[0].row, 123);
    }

    #[test]
    #[should_panic(expected = "a bit for each row")]
    fn too_short_an_admission_is_a_panic() {
        scan_i8(&[1], &[1; 65], &[1.0; 65], Some(&[0]), 1);
    }
}
