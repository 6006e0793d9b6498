//! Vectors in contiguous memory, and a scan through them that is exact.
//!
//! Each vector is held twice: as it was stored, and scaled to length 1 and
//! rounded to eight bits. The scan runs over the small integers. How far a
//! rounded product may lie from the true cosine is known, so the rows that could
//! be among the best are known as well, and only those are computed exactly.

use crate::adapters::store::cosine;
use crate::adapters::store::ranking::Best;
use crate::domain::chunk::ChunkId;
use crate::ports::chunk_store::Candidate;

/// Rows that a scan keeps for every candidate that is wanted.
const KEPT_FOR_EACH: usize = 4;

/// Rows that a scan keeps at least.
const KEPT_AT_LEAST: usize = 64;

/// More than what single precision adds to the error of rounding.
const SLACK: f32 = 1e-5;

/// Rows of one dimension.
pub(super) struct Matrix {
    dimension: usize,
    values: Vec<f32>,
    small: Vec<i8>,
    scales: Vec<f32>,
    /// The length of the greatest difference between a rounded row and the row.
    error: f32,
}

impl Matrix {
    /// Rounds rows that follow one another.
    pub(super) fn new(values: Vec<f32>, dimension: usize) -> Self {
        // A vector has a direction and so at least one number.
        let dimension = dimension.max(1);
        let units: Vec<f32> = values.chunks_exact(dimension).flat_map(unit).collect();
        let (small, scales) = grooveseek_kernels::quantise(&units, dimension);
        let rounded = small.chunks_exact(dimension).zip(&scales);
        let error = units
            .chunks_exact(dimension)
            .zip(rounded)
            .map(|(row, (small, &scale))| difference(row, small, scale))
            .fold(0.0, f32::max);
        Self { dimension, values, small, scales, error }
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    /// A row as it was stored.
    pub(super) fn row(&self, place: usize) -> &[f32] {
        &self.values[place * self.dimension..][..self.dimension]
    }
}

/// A query, exact and rounded.
struct Query<'a> {
    exact: cosine::Query<'a>,
    small: Vec<i8>,
    scale: f32,
    error: f32,
}

impl<'a> Query<'a> {
    fn new(values: &'a [f32]) -> Self {
        let unit: Vec<f32> = unit(values).collect();
        let (small, scales) = grooveseek_kernels::quantise(&unit, unit.len().max(1));
        let scale = scales.first().copied().unwrap_or(0.0);
        let error = difference(&unit, &small, scale);
        Self { exact: cosine::Query::new(values), small, scale, error }
    }

    /// How far a rounded product with a row may lie from the cosine: by what
    /// the rounding of the query and that of the row change.
    fn tolerance(&self, matrix: &Matrix) -> f32 {
        self.error + (1.0 + self.error) * matrix.error + SLACK
    }
}

/// A vector scaled to length 1; one without length stays as it is.
fn unit(row: &[f32]) -> impl Iterator<Item = f32> {
    let square: f64 = row.iter().map(|&value| f64::from(value).powi(2)).sum();
    let factor = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, reason = "the product lies between −1 and 1")]
    row.iter().map(move |&value| (f64::from(value) * factor) as f32)
}

fn difference(row: &[f32], small: &[i8], scale: f32) -> f32 {
    let square: f32 = row
        .iter()
        .zip(small)
        .map(|(&value, &small)| (value - f32::from(small) * scale).powi(2))
        .sum();
    square.sqrt()
}

/// Rows that may be found.
pub(super) struct Part<'a> {
    /// The number of each row.
    pub(super) ids: &'a [i64],
    /// The rows.
    pub(super) matrix: &'a Matrix,
    /// One bit for each row, from the lowest of the first word on.
    pub(super) admitted: Vec<u64>,
}

/// Where a row is, and its rounded product.
struct Rough {
    score: f32,
    part: usize,
    place: usize,
}

/// The rows nearest to a query, best first: what a scan of all exact cosines
/// would return.
pub(super) fn nearest(values: &[f32], depth: usize, parts: &[Part<'_>]) -> Vec<Candidate> {
    let query = Query::new(values);
    let bits = |part: &Part<'_>| part.admitted.iter().map(|word| word.count_ones() as usize).sum();
    let admitted: usize = parts.iter().map(bits).collect::<Vec<usize>>().iter().sum();
    let tolerance = parts.iter().map(|part| query.tolerance(part.matrix)).fold(0.0, f32::max);
    let exact = |rough: &Rough| {
        let part = &parts[rough.part];
        (ChunkId(part.ids[rough.place]), query.exact.cosine(part.matrix.row(rough.place)))
    };
    let mut keep = depth.saturating_mul(KEPT_FOR_EACH).saturating_add(KEPT_AT_LEAST);
    loop {
        let rough = scan(&query, parts, keep.min(admitted));
        let mut best = Best::new(depth);
        let (first, rest) = rough.split_at(depth.min(rough.len()));
        let mut worst = f32::INFINITY;
        for rough in first {
            let (id, score) = exact(rough);
            worst = worst.min(score);
            best.show(id, score);
        }
        // Both the score that is to be beaten and the score that would have to
        // beat it may be off, but the former is exact.
        let floor = worst - tolerance;
        let complete = keep >= admitted || rough.last().is_none_or(|last| last.score < floor);
        if complete {
            for rough in rest.iter().take_while(|rough| rough.score >= floor) {
                let (id, score) = exact(rough);
                best.show(id, score);
            }
            return best.into_ranking();
        }
        keep = keep.saturating_mul(KEPT_FOR_EACH);
    }
}

/// The rows with the greatest rounded products, best first.
fn scan(query: &Query<'_>, parts: &[Part<'_>], keep: usize) -> Vec<Rough> {
    let mut found = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let matrix = part.matrix;
        let scored = grooveseek_kernels::scan_i8(
            &query.small,
            &matrix.small,
            &matrix.scales,
            Some(&part.admitted),
            keep,
        );
        found.extend(scored.into_iter().map(|scored| Rough {
            score: scored.score * query.scale,
            part: index,
            place: scored.row,
        }));
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.truncate(keep);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    use super::*;

    /// Every exact cosine, sorted.
    fn plain(query: &[f32], depth: usize, parts: &[Part<'_>]) -> Vec<Candidate> {
        let query = cosine::Query::new(query);
        let mut best = Best::new(depth);
        for part in parts {
            for (place, &id) in part.ids.iter().enumerate() {
                if part.admitted[place / 64] >> (place % 64) & 1 == 1 {
                    best.show(ChunkId(id), query.cosine(part.matrix.row(place)));
                }
            }
        }
        best.into_ranking()
    }

    proptest! {
        // SRCH-74 SRCH-89 SRCH-B08
        #[test]
        fn the_answer_is_that_of_the_exact_scan(
            dimension in 1_usize..24,
            numbers in prop::collection::vec(-8_i8..8, 0..1500),
            query in prop::collection::vec(-8_i8..8, 24),
            coarse in any::<bool>(),
            length in 0.1_f32..3.0,
            bits in prop::collection::vec(any::<u64>(), 32),
            depth in 0_usize..40,
        ) {
            // Coarse numbers tie often, fine ones lie close together.
            #[expect(clippy::cast_precision_loss, reason = "there are at most 1,500 numbers")]
            let step = |(place, &number): (usize, &i8)| {
                let fine = if coarse { 0.0 } else { (place as f32 * 0.37).sin() * 0.05 };
                (f32::from(number) + fine) * length
            };
            let mut values: Vec<f32> = numbers.iter().enumerate().map(step).collect();
            values.truncate(values.len() / dimension * dimension);
            let cut = values.len() / dimension / 3 * dimension;
            let tail = values.split_off(cut);
            let matrices = [Matrix::new(values, dimension), Matrix::new(tail, dimension)];
            let ids: Vec<i64> = (0..1500).rev().collect();
            let (head_ids, tail_ids) = ids.split_at(matrices[0].len());
            let query: Vec<f32> = query[..dimension].iter().map(|&x| f32::from(x)).collect();
            let parts = [
                Part { ids: head_ids, matrix: &matrices[0], admitted: bits.clone() },
                Part { ids: &tail_ids[..matrices[1].len()], matrix: &matrices[1], admitted: bits },
            ];
            let parts = parts.map(|part| {
                let admitted = (0..part.matrix.len().div_ceil(64))
                    .map(|word| {
                        let left = part.matrix.len() - word * 64;
                        let mask = if left < 64 { (1 << left) - 1 } else { u64::MAX };
                        part.admitted[word % 32] & mask
                    })
                    .collect();
                Part { ids: &part.ids[..part.matrix.len()], admitted, ..part }
            });
            prop_assert_eq!(nearest(&query, depth, &parts), plain(&query, depth, &parts));
        }
    }
}
