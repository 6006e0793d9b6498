//! Exponentials and the error function, by vector.

use crate::isa::{Isa, Kernel};
use crate::simd::{MOST_LANES, ROUNDING, Simd};

/// Below this, 2^x is taken to be 2^−126, about 10⁻³⁸.
const LEAST_EXPONENT: f32 = -126.0;

/// The value of a polynomial, coefficients from the highest power down.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::Floats, coefficients: [f32; N]) -> S::Floats {
    let mut value = simd.splat(coefficients[0]);
    for coefficient in &coefficients[1..] {
        value = simd.multiply_add(value, x, simd.splat(*coefficient));
    }
    value
}

/// 2^x for x up to 126, to two units in the last place.
///
/// # Source
///
/// The polynomial of degree 5 whose greatest relative error between −½ and ½,
/// 7.5 × 10⁻⁸, is the least: the exchange algorithm of Remez, "Sur le calcul
/// effectif des polynômes d'approximation de Tchebichef", 1934.
#[inline(always)]
pub(crate) fn power_of_two<S: Simd>(simd: S, x: S::Floats) -> S::Floats {
    let x = simd.maximum(x, simd.splat(LEAST_EXPONENT));
    let rounding = simd.splat(ROUNDING);
    let shifted = simd.add(x, rounding);
    let rest = simd.subtract(x, simd.subtract(shifted, rounding));
    let value = polynomial(
        simd,
        rest,
        [1.327_647_2e-3, 9.675_541e-3, 5.550_713e-2, 0.240_221_2, 0.693_146_94, 1.000_000_1],
    );
    simd.scale_by_power(value, shifted)
}

/// The error function, to about 2 × 10⁻⁷.
///
/// # Source
///
/// The rational function of the Eigen library (`generic_fast_erf_float`), which
/// meets ±1 in single precision at ±4.
#[inline(always)]
fn error_function<S: Simd>(simd: S, x: S::Floats) -> S::Floats {
    let x = simd.minimum(simd.maximum(x, simd.splat(-4.0)), simd.splat(4.0));
    let square = simd.multiply(x, x);
    let above = polynomial(
        simd,
        square,
        [
            -2.726_142_3e-10,
            2.770_681_4e-8,
            -2.101_024e-6,
            -5.692_506_5e-5,
            -7.349_906e-4,
            -2.954_6e-3,
            -1.609_603_3e-2,
        ],
    );
    let below = polynomial(
        simd,
        square,
        [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329_2e-3, -1.426_474_e-2],
    );
    simd.divide(simd.multiply(x, above), below)
}

/// Applies the exact GELU, x × Φ(x), to every number.
///
/// The result is within 10⁻⁶ × max(1, |x|).
///
/// # Source
///
/// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
pub fn gelu(isa: Isa, values: &mut [f32]) {
    isa.run(Gelu(values));
}

struct Gelu<'a>(&'a mut [f32]);

#[inline(always)]
fn gelu_vector<S: Simd>(simd: S, x: S::Floats) -> S::Floats {
    let error = error_function(simd, simd.multiply(x, simd.splat(std::f32::consts::FRAC_1_SQRT_2)));
    let half = simd.multiply(x, simd.splat(0.5));
    simd.multiply_add(half, error, half)
}

impl Kernel for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut chunks = self.0.chunks_exact_mut(S::LANES);
        for chunk in &mut chunks {
            // SAFETY: the chunk has as many values as a vector.
            unsafe {
                let value = gelu_vector(simd, simd.load(chunk.as_ptr()));
                simd.store(chunk.as_mut_ptr(), value);
            }
        }
        let rest = chunks.into_remainder();
        let mut padded = [0.0; MOST_LANES];
        padded[..rest.len()].copy_from_slice(rest);
        // SAFETY: the array has at least as many values as a vector.
        unsafe {
            let value = gelu_vector(simd, simd.load(padded.as_ptr()));
            simd.store(padded.as_mut_ptr(), value);
        }
        rest.copy_from_slice(&padded[..rest.len()]);
    }
}

/// What has been seen of a row of scores so far: the greatest, and the sum of
/// 2^(score − greatest).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) greatest: f32,
    pub(crate) sum: f32,
}

impl Seen {
    /// Nothing yet.
    pub(crate) const NOTHING: Self = Self { greatest: f32::MIN, sum: 0.0 };

    /// Takes in more of the row: turns the scores into 2^(score − greatest).
    ///
    /// - `scores`: whole pairs of vectors, of which the first `count` count, at least one.
    ///   What does not count becomes at most 10⁻³⁷.
    /// - Returns what everything before has to be multiplied with, from 0 to 1.
    ///
    /// # Source
    ///
    /// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
    #[inline(always)]
    pub(crate) fn take_in<S: Simd>(&mut self, simd: S, scores: &mut [f32], count: usize) -> f32 {
        scores[count..].fill(f32::MIN);
        // Several at a time, since each step waits for the one before.
        let mut most = [simd.splat(self.greatest); 2];
        for pair in scores.chunks_exact(2 * S::LANES) {
            // SAFETY: the pair has as many values as two vectors.
            let values =
                unsafe { [simd.load(pair.as_ptr()), simd.load(pair.as_ptr().add(S::LANES))] };
            most = [simd.maximum(most[0], values[0]), simd.maximum(most[1], values[1])];
        }
        let greatest = simd.greatest(simd.maximum(most[0], most[1]));
        let before = match self.sum {
            0.0 => 0.0,
            _ if greatest > self.greatest => (self.greatest - greatest).exp2(),
            _ => 1.0,
        };
        let most = simd.splat(greatest);
        let mut sums = [simd.splat(0.0); 2];
        for pair in scores.chunks_exact_mut(2 * S::LANES) {
            // SAFETY: the pair has as many values as two vectors.
            unsafe {
                let (first, second) = (pair.as_mut_ptr(), pair.as_mut_ptr().add(S::LANES));
                let terms = [
                    power_of_two(simd, simd.subtract(simd.load(first), most)),
                    power_of_two(simd, simd.subtract(simd.load(second), most)),
                ];
                simd.store(first, terms[0]);
                simd.store(second, terms[1]);
                sums = [simd.add(sums[0], terms[0]), simd.add(sums[1], terms[1])];
            }
        }
        *self = Self { greatest, sum: self.sum * before + simd.sum(simd.add(sums[0], sums[1])) };
        before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The error function by a series of terms of one sign, in double precision.
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..300_u32 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        sum * (-x * x).exp() * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn gelu_is_exact_to_single_precision() {
        let inputs: Vec<f32> = (-9000_i16..9007).map(|step| f32::from(step) / 1000.0).collect();
        for isa in Isa::all() {
            let mut values = inputs.clone();
            gelu(isa, &mut values);
            for (&x, &y) in inputs.iter().zip(&values) {
                let x = f64::from(x);
                let exact = 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt()));
                let error = (f64::from(y) - exact).abs();
                assert!(error < 1e-6 * x.abs().max(1.0), "{}: {x} gives {error}", isa.name());
            }
        }
    }

    struct Power(Vec<f32>);

    impl Kernel for Power {
        type Output = Vec<f32>;

        #[inline(always)]
        fn run<S: Simd>(mut self, simd: S) -> Vec<f32> {
            for chunk in self.0.chunks_exact_mut(S::LANES) {
                // SAFETY: the chunk has as many values as a vector.
                unsafe {
                    let power = power_of_two(simd, simd.load(chunk.as_ptr()));
                    simd.store(chunk.as_mut_ptr(), power);
                }
            }
            self.0
        }
    }

    proptest! {
        #[test]
        fn powers_of_two_are_exact_to_single_precision(
            x in proptest::collection::vec(-126.0_f32..126.0, 16),
        ) {
            for isa in Isa::all() {
                for (&x, power) in x.iter().zip(isa.run(Power(x.clone()))) {
                    let exact = f64::from(x).exp2();
                    let error = (f64::from(power) / exact - 1.0).abs();
                    prop_assert!(error < 2.4e-7, "{}: 2^{x} is off by {error}", isa.name());
                }
            }
        }
    }

    #[test]
    fn powers_too_small_for_a_number_are_as_good_as_zero() {
        for isa in Isa::all() {
            let powers = isa.run(Power([f32::MIN, -1e6, -127.0, -126.5].repeat(4)));
            assert!(powers.iter().all(|power| (0.0..1.2e-38).contains(power)), "{}", isa.name());
        }
    }

    struct Terms {
        scores: Vec<f32>,
        /// Scores that are taken in together.
        block: usize,
        /// How many of each block count.
        count: usize,
    }

    impl Kernel for Terms {
        /// The terms as they are in the end, and their sum.
        type Output = (Vec<f32>, f32);

        #[inline(always)]
        fn run<S: Simd>(mut self, simd: S) -> (Vec<f32>, f32) {
            let mut seen = Seen::NOTHING;
            for first in (0..self.scores.len()).step_by(self.block) {
                let (before, block) = self.scores.split_at_mut(first);
                let scale = seen.take_in(simd, &mut block[..self.block], self.count);
                for term in before {
                    *term *= scale;
                }
            }
            (self.scores, seen.sum)
        }
    }

    #[test]
    fn terms_of_a_softmax_are_exact_and_never_overflow() {
        for direction in [1.0, -1.0] {
            let score = |step: u8| 1e4 + direction * f32::from(step) * 1.37;
            let scores: Vec<f32> = (0..64).map(score).collect();
            for (block, count) in [(64, 50), (32, 19), (32, 32)] {
                let counts = |place: usize| place % block < count;
                let places = (0..64).filter(|&place| counts(place));
                let most = places.map(|place| scores[place]).fold(f32::MIN, f32::max);
                for isa in Isa::all() {
                    let (terms, sum) = isa.run(Terms { scores: scores.clone(), block, count });
                    let mut exact_sum = 0.0;
                    for (place, (&score, &term)) in scores.iter().zip(&terms).enumerate() {
                        if counts(place) {
                            let exact = f64::from(score - most).exp2();
                            exact_sum += exact;
                            let error = (f64::from(term) - exact).abs();
                            assert!(error < 1e-6 * exact + 1e-36, "{}: {error}", isa.name());
                        } else {
                            assert!(term < 1e-37, "{}", isa.name());
                        }
                    }
                    assert!((f64::from(sum) - exact_sum).abs() < 1e-6 * exact_sum);
                }
            }
        }
    }
}
