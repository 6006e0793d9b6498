//! From `f32` to small integers with a scale.

use crate::isa::{Isa, Kernel};
use crate::simd::{ROUNDING, Simd};

/// A kind of small integer that a row may be kept in.
pub(crate) trait Small: Copy {
    /// From the low bits of a two's complement integer, above a zero point.
    fn from_bits(bits: u32, zero: u8) -> Self;
}

impl Small for i8 {
    #[inline(always)]
    fn from_bits(bits: u32, _: u8) -> Self {
        bits as Self
    }
}

impl Small for u8 {
    #[inline(always)]
    fn from_bits(bits: u32, zero: u8) -> Self {
        (bits as Self).wrapping_add(zero)
    }
}

impl Small for i16 {
    #[inline(always)]
    fn from_bits(bits: u32, _: u8) -> Self {
        bits as Self
    }
}

/// The greatest magnitude in a row; 0 for an empty one.
#[inline(always)]
pub(crate) fn greatest_magnitude<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let whole = row.len() - row.len() % S::LANES;
    let zero = simd.splat(0.0);
    let mut most = zero;
    for chunk in row[..whole].chunks_exact(S::LANES) {
        // SAFETY: the chunk has as many values as a vector.
        let value = unsafe { simd.load(chunk.as_ptr()) };
        most = simd.maximum(most, simd.maximum(value, simd.subtract(zero, value)));
    }
    row[whole..].iter().fold(simd.greatest(most), |most, value| most.max(value.abs()))
}

/// Rounds a row to steps of its greatest magnitude ÷ `limit`.
///
/// - `small`: at least as long as the row; what is left over becomes the zero.
/// - Returns the value of one step; 0 for a row of zeros.
#[inline(always)]
pub(crate) fn quantise_row<S: Simd, T: Small>(
    simd: S,
    row: &[f32],
    limit: f32,
    zero: u8,
    small: &mut [T],
) -> f32 {
    let most = greatest_magnitude(simd, row);
    let (step, steps) =
        if most > f32::MIN_POSITIVE { (most / limit, limit / most) } else { (0.0, 0.0) };
    let (kept, rest) = small.split_at_mut(row.len());
    for (small, value) in kept.iter_mut().zip(row) {
        *small = T::from_bits((value * steps + ROUNDING).to_bits(), zero);
    }
    rest.fill(T::from_bits(0, zero));
    step
}

/// Rounds vectors to eight bits, each with a scale of its own.
///
/// - `vectors`: n × `dimension` numbers.
/// - Returns n × `dimension` integers from −127 to 127, and n scales: a number
///   is about its integer times its vector's scale.
///
/// # Panics
///
/// If `dimension` is zero or the vectors are not whole.
pub fn quantise(vectors: &[f32], dimension: usize) -> (Vec<i8>, Vec<f32>) {
    assert!(dimension > 0, "a vector has a dimension");
    assert_eq!(vectors.len() % dimension, 0, "vectors of {dimension} numbers are whole");
    let mut integers = vec![0; vectors.len()];
    let scales = Isa::best().run(Quantise { vectors, dimension, integers: &mut integers });
    (integers, scales)
}

struct Quantise<'a> {
    vectors: &'a [f32],
    dimension: usize,
    integers: &'a mut [i8],
}

impl Kernel for Quantise<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vec<f32> {
        let mut scales = Vec::with_capacity(self.vectors.len() / self.dimension);
        let rows = self.vectors.chunks_exact(self.dimension);
        for (row, small) in rows.zip(self.integers.chunks_exact_mut(self.dimension)) {
            scales.push(quantise_row(simd, row, 127.0, 0, small));
        }
        scales
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_at_most_half_a_step_from_its_integer(
            vectors in proptest::collection::vec(-4.0_f32..4.0, 0..8 * 37),
            dimension in 1_usize..38,
        ) {
            let vectors = &vectors[..vectors.len() - vectors.len() % dimension];
            let (integers, scales) = quantise(vectors, dimension);
            prop_assert_eq!(integers.len(), vectors.len());
            prop_assert_eq!(scales.len(), vectors.len() / dimension);
            for (position, (&value, &integer)) in vectors.iter().zip(&integers).enumerate() {
                let scale = scales[position / dimension];
                prop_assert!(integer != i8::MIN);
                prop_assert!((value - f32::from(integer) * scale).abs() <= scale * 0.501);
            }
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        let (integers, scales) = quantise(&[0.0; 6], 3);
        assert_eq!(integers, [0; 6]);
        assert!(scales.iter().all(|scale| scale.to_bits() == 0));
    }
}
