//! Layer normalisation, pooling, and numbers as they lie in model files.

use crate::isa::{Isa, Kernel};
use crate::simd::Simd;

/// A layer normalisation.
#[derive(Debug)]
pub struct LayerNorm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl LayerNorm {
    /// Takes the parameters, a weight and a bias for each number of a row.
    ///
    /// # Panics
    ///
    /// If there are none, or not as many of one as of the other.
    pub fn new(weight: Vec<f32>, bias: Vec<f32>, epsilon: f32) -> Self {
        assert!(!weight.is_empty(), "a row has numbers");
        assert_eq!(weight.len(), bias.len(), "a bias for each weight");
        Self { weight, bias, epsilon }
    }

    /// Normalises each row to mean 0 and variance 1, then scales and shifts it.
    ///
    /// # Panics
    ///
    /// If the rows are not whole.
    ///
    /// # Source
    ///
    /// Ba, Kiros and Hinton, "Layer Normalization", 2016.
    pub fn apply(&self, isa: Isa, rows: &mut [f32]) {
        assert_eq!(rows.len() % self.weight.len(), 0, "rows are whole");
        isa.run(Normalise { norm: self, rows, residual: None });
    }

    /// Adds `residual` to the rows, then normalises them as [`apply`](Self::apply) does.
    ///
    /// # Panics
    ///
    /// If the rows are not whole, or the residual has not as many numbers.
    pub fn add_and_apply(&self, isa: Isa, rows: &mut [f32], residual: &[f32]) {
        assert_eq!(rows.len() % self.weight.len(), 0, "rows are whole");
        assert_eq!(rows.len(), residual.len(), "a residual for each number");
        isa.run(Normalise { norm: self, rows, residual: Some(residual) });
    }
}

struct Normalise<'a> {
    norm: &'a LayerNorm,
    rows: &'a mut [f32],
    residual: Option<&'a [f32]>,
}

impl Kernel for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let width = self.norm.weight.len();
        for (index, row) in self.rows.chunks_exact_mut(width).enumerate() {
            if let Some(residual) = self.residual {
                let residual = &residual[index * width..][..width];
                for (number, residual) in row.iter_mut().zip(residual) {
                    *number += residual;
                }
            }
            let mean = sum_of(simd, row, Part::Numbers) / width as f32;
            let variance = sum_of(simd, row, Part::SquaresAbout(mean)) / width as f32;
            let scale = 1.0 / (variance + self.norm.epsilon).sqrt();
            let parameters = self.norm.weight.iter().zip(&self.norm.bias);
            for (number, (weight, bias)) in row.iter_mut().zip(parameters) {
                *number = (*number - mean) * scale * weight + bias;
            }
        }
    }
}

/// What is summed up over a row.
#[derive(Clone, Copy)]
enum Part {
    Numbers,
    SquaresAbout(f32),
}

#[inline(always)]
fn sum_of<S: Simd>(simd: S, row: &[f32], part: Part) -> f32 {
    let chunks = row.chunks_exact(S::LANES);
    let rest = chunks.remainder();
    let mut sum = simd.splat(0.0);
    for chunk in chunks {
        // SAFETY: the chunk has as many values as a vector.
        let value = unsafe { simd.load(chunk.as_ptr()) };
        sum = match part {
            Part::Numbers => simd.add(sum, value),
            Part::SquaresAbout(mean) => {
                let difference = simd.subtract(value, simd.splat(mean));
                simd.multiply_add(difference, difference, sum)
            }
        };
    }
    let rest = rest.iter().map(|&number| match part {
        Part::Numbers => number,
        Part::SquaresAbout(mean) => (number - mean) * (number - mean),
    });
    simd.sum(sum) + rest.sum::<f32>()
}

/// The mean of rows.
///
/// - `rows`: n × `width` numbers, n from 1.
/// - Returns `width` numbers.
///
/// # Panics
///
/// If there is no row, or the rows are not whole.
pub fn mean_of_rows(rows: &[f32], width: usize) -> Vec<f32> {
    assert!(width > 0 && !rows.is_empty(), "there is a row");
    assert_eq!(rows.len() % width, 0, "rows are whole");
    let mut mean = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        for (mean, number) in mean.iter_mut().zip(row) {
            *mean += number;
        }
    }
    let count = (rows.len() / width) as f32;
    for mean in &mut mean {
        *mean /= count;
    }
    mean
}

/// Reads 32-bit numbers, least significant byte first.
///
/// # Panics
///
/// If there are not four bytes to each number.
pub fn numbers_from_le_bytes(bytes: &[u8]) -> Vec<f32> {
    let (numbers, rest) = bytes.as_chunks();
    assert!(rest.is_empty(), "four bytes to a number");
    numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// Adds 32-bit numbers, least significant byte first, to numbers.
///
/// # Panics
///
/// If there are not four bytes to each number.
pub fn add_le_bytes(numbers: &mut [f32], bytes: &[u8]) {
    let (addends, rest) = bytes.as_chunks();
    assert!(rest.is_empty() && addends.len() == numbers.len(), "four bytes to a number");
    for (number, &bytes) in numbers.iter_mut().zip(addends) {
        *number += f32::from_le_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::noise;

    proptest! {
        #[test]
        fn a_row_is_normalised_as_defined(
            width in 1_usize..80,
            count in 0_usize..4,
            seed in 0_u64..1000,
        ) {
            let rows: Vec<f32> = noise(width * count, seed).iter().map(|x| 5.0 * x + 3.0).collect();
            let residual = noise(width * count, seed + 1);
            let (weight, bias) = (noise(width, seed + 2), noise(width, seed + 3));
            let norm = LayerNorm::new(weight.clone(), bias.clone(), 1e-5);
            for isa in Isa::all() {
                let mut got = rows.clone();
                norm.add_and_apply(isa, &mut got, &residual);
                for row in 0..count {
                    let place = row * width..(row + 1) * width;
                    let sums: Vec<f64> = rows[place.clone()]
                        .iter()
                        .zip(&residual[place.clone()])
                        .map(|(&x, &r)| f64::from(x) + f64::from(r))
                        .collect();
                    let mean = sums.iter().sum::<f64>() / width as f64;
                    let squares = sums.iter().map(|x| (x - mean).powi(2));
                    let deviation = (squares.sum::<f64>() / width as f64 + 1e-5).sqrt();
                    for (column, (&got, x)) in got[place].iter().zip(&sums).enumerate() {
                        let expected = (x - mean) / deviation * f64::from(weight[column])
                            + f64::from(bias[column]);
                        // A narrow row may have hardly any variance to divide by.
                        prop_assert!((f64::from(got) - expected).abs() < 1e-3);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_have_a_mean() {
        assert_eq!(mean_of_rows(&[1.0, 2.0, 3.0, 6.0], 2), [2.0, 4.0]);
    }

    #[test]
    fn bytes_are_read_and_added() {
        let bytes: Vec<u8> =
            [1.5_f32, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(numbers_from_le_bytes(&bytes), [1.5, -2.0]);
        let mut numbers = [1.0, 1.0];
        add_le_bytes(&mut numbers, &bytes);
        assert_eq!(numbers.as_slice(), [2.5, -1.0]);
    }
}
