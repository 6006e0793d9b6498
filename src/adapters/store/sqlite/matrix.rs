//! Vectors in contiguous memory.
//!
//! Each is held twice: as it was stored, and scaled to length 1 and rounded to
//! eight bits. How far a product of rounded vectors may lie from the true cosine
//! is known.

use std::ops::Range;

use grooveseek_kernels::{Shortlist, quantise, scan_i8};

use crate::adapters::store::cosine;

/// More than what single precision adds to the error of rounding.
const SLACK: f32 = 1e-5;

/// Rows of one dimension.
pub(super) struct Matrix {
    dimension: usize,
    values: Vec<f32>,
    small: Vec<i8>,
    scales: Vec<f32>,
    /// Of each row as it was stored, the sum of the squares.
    squares: Vec<f64>,
    /// The length of the greatest difference between a rounded row and the row.
    error: f32,
}

impl Matrix {
    /// Rounds rows that follow one another; none if the dimension is 0.
    pub(super) fn new(values: Vec<f32>, dimension: usize) -> Self {
        if dimension == 0 {
            let (small, scales, squares) = (Vec::new(), Vec::new(), Vec::new());
            return Self { dimension, values: Vec::new(), small, scales, squares, error: 0.0 };
        }
        let mut units = Vec::with_capacity(values.len());
        let mut squares = Vec::with_capacity(values.len() / dimension);
        for row in values.chunks_exact(dimension) {
            let square = cosine::square(row);
            units.extend(unit(row, square));
            squares.push(square);
        }
        let (small, scales) = quantise(&units, dimension);
        let rounded = small.chunks_exact(dimension).zip(&scales);
        let error = units
            .chunks_exact(dimension)
            .zip(rounded)
            .map(|(row, (small, &scale))| difference(row, small, scale))
            .fold(0.0, f32::max);
        Self { dimension, values, small, scales, squares, error }
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    /// How many bytes a scan reads of each row.
    pub(super) fn row_bytes(&self) -> usize {
        self.dimension
    }

    /// Shows the rounded products of some rows with queries to the queries'
    /// shortlists, each times the scale of the row alone.
    ///
    /// - `queries`: the small integers of one query after the other.
    /// - `rows`: begins at a multiple of 64.
    /// - `admitted`: one bit for each row of the matrix.
    /// - `first`: the number that the first of these rows is known by.
    pub(super) fn scan(
        &self,
        queries: &[i8],
        rows: Range<usize>,
        admitted: &[u64],
        first: usize,
        found: &mut [Shortlist],
    ) {
        let small = &self.small[rows.start * self.dimension..rows.end * self.dimension];
        let admitted = Some(&admitted[rows.start / 64..]);
        scan_i8(queries, self.dimension, small, &self.scales[rows], admitted, first, found);
    }

    /// The sum of the squares of a row as it was stored.
    pub(super) fn square(&self, place: usize) -> f64 {
        self.squares[place]
    }

    /// A row as it was stored; empty if the dimension is 0.
    pub(super) fn row(&self, place: usize) -> &[f32] {
        &self.values[place * self.dimension..][..self.dimension]
    }
}

/// A query, exact and rounded.
pub(super) struct Query {
    pub(super) exact: cosine::Query,
    pub(super) small: Vec<i8>,
    /// A rounded product times this is a cosine, but for rounding.
    pub(super) scale: f32,
    error: f32,
}

impl Query {
    /// Rounds a query.
    pub(super) fn new(values: &[f32]) -> Self {
        let unit: Vec<f32> = unit(values, cosine::square(values)).collect();
        let (small, scales) = quantise(&unit, unit.len().max(1));
        let scale = scales.first().copied().unwrap_or(0.0);
        let error = difference(&unit, &small, scale);
        Self { exact: cosine::Query::new(values), small, scale, error }
    }

    /// How far a rounded product with a row may lie from the cosine: by what
    /// the rounding of the query and that of the row change.
    pub(super) fn tolerance(&self, matrix: &Matrix) -> f32 {
        self.error + (1.0 + self.error) * matrix.error + SLACK
    }
}

/// A vector scaled to length 1; one without length stays as it is.
fn unit(row: &[f32], square: f64) -> impl Iterator<Item = f32> {
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
