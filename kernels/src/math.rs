//! Exponentials and the error function, by vector.

use crate::isa::{Isa, Kernel};
use crate::simd::{MOST_LANES, Simd};

/// Adding and subtracting this rounds a number of magnitude below 2²².
const ROUNDING: f32 = 12_582_912.0;

/// Below this, e^x is taken to be e^−87, about 10⁻³⁸.
const LEAST_EXPONENT: f32 = -87.0;

/// The value of a polynomial, coefficients from the highest power down.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::Floats, coefficients: [f32; N]) -> S::Floats {
    let mut value = simd.splat(coefficients[0]);
    for coefficient in &coefficients[1..] {
        value = simd.multiply_add(value, x, simd.splat(*coefficient));
    }
    value
}

/// e^x for x from −87 to 88, to a few units in the last place.
///
/// # Source
///
/// Moshier, "Cephes Mathematical Library", 1989: `expf`, its reduction and its
/// polynomial.
#[inline(always)]
pub(crate) fn exponential<S: Simd>(simd: S, x: S::Floats) -> S::Floats {
    let x = simd.maximum(x, simd.splat(LEAST_EXPONENT));
    let rounding = simd.splat(ROUNDING);
    let powers = simd.multiply_add(x, simd.splat(std::f32::consts::LOG2_E), rounding);
    let powers = simd.subtract(powers, rounding);
    // ln 2 in two parts, the first of which (355/512) multiplies without rounding.
    let rest = simd.multiply_add(powers, simd.splat(-0.693_359_4), x);
    let rest = simd.multiply_add(powers, simd.splat(2.121_944_4e-4), rest);
    let series = polynomial(
        simd,
        rest,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5, 1.0, 1.0],
    );
    simd.multiply(series, simd.power_of_two(powers))
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

/// Turns scores into e^(score − the greatest score).
///
/// - `scores`: whole vectors, of which the first `count` count, at least one.
/// - Returns the sum, from 1 on; what does not count becomes at most 10⁻³⁷.
#[inline(always)]
pub(crate) fn softmax_terms<S: Simd>(simd: S, scores: &mut [f32], count: usize) -> f32 {
    scores[count..].fill(f32::MIN);
    let mut most = simd.splat(f32::MIN);
    for chunk in scores.chunks_exact(S::LANES) {
        // SAFETY: the chunk has as many values as a vector.
        most = simd.maximum(most, unsafe { simd.load(chunk.as_ptr()) });
    }
    let most = simd.splat(simd.greatest(most));
    let mut sum = simd.splat(0.0);
    for chunk in scores.chunks_exact_mut(S::LANES) {
        // SAFETY: the chunk has as many values as a vector.
        unsafe {
            let term = exponential(simd, simd.subtract(simd.load(chunk.as_ptr()), most));
            simd.store(chunk.as_mut_ptr(), term);
            sum = simd.add(sum, term);
        }
    }
    simd.sum(sum)
}

#[cfg(test)]
mod tests {
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

    struct Terms(Vec<f32>, usize);

    impl Kernel for Terms {
        type Output = (Vec<f32>, f32);

        #[inline(always)]
        fn run<S: Simd>(mut self, simd: S) -> (Vec<f32>, f32) {
            let sum = softmax_terms(simd, &mut self.0, self.1);
            (self.0, sum)
        }
    }

    #[test]
    fn terms_of_a_softmax_are_exact_and_never_overflow() {
        let scores: Vec<f32> = (0..64_u8).map(|step| 1e4 - f32::from(step) * 1.37).collect();
        for isa in Isa::all() {
            let (terms, sum) = isa.run(Terms(scores.clone(), 50));
            let mut exact_sum = 0.0;
            for (&score, &term) in scores[..50].iter().zip(&terms) {
                let exact = (f64::from(score) - 1e4).exp();
                exact_sum += exact;
                assert!((f64::from(term) - exact).abs() < 1e-6 * exact + 1e-36, "{}", isa.name());
            }
            assert!((f64::from(sum) - exact_sum).abs() < 1e-6 * exact_sum);
            assert!(terms[50..].iter().all(|&term| term < 1e-37));
        }
    }
}
