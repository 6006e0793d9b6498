//! The most that one core multiplies and adds up in 32 bits.
#![allow(
    unsafe_code,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a measurement: it reads the clock, and uses the instructions it measures"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The fastest of several runs, each long enough to be timed: others on the
/// same machine only ever make a run slower.
pub(crate) fn fastest(mut work: impl FnMut()) -> Duration {
    let mut once = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let first = once().max(once()).max(Duration::from_nanos(100));
    let count = (Duration::from_millis(4).as_nanos() / first.as_nanos()).clamp(1, 10_000);
    let count = u32::try_from(count).unwrap_or(1);
    let mut best = Duration::MAX;
    for _ in 0..12 {
        let start = Instant::now();
        for _ in 0..count {
            work();
        }
        best = best.min(start.elapsed() / count);
    }
    best
}

/// GFLOP/s of independent fused multiplications on one core; 0 where this
/// program does not know the processor's instructions.
pub(crate) fn peak() -> f64 {
    let (flops, time) = peak_run();
    flops * 1e-9 / time.as_secs_f64()
}

/// How often the loop of multiplications goes round.
const ROUNDS: usize = 20_000;

/// Registers that it adds up in.
const REGISTERS: usize = 12;

#[cfg(target_arch = "x86_64")]
fn peak_run() -> (f64, Duration) {
    use std::arch::x86_64::{
        __m256, __m512, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_fmadd_ps, _mm512_set1_ps,
    };

    #[target_feature(enable = "avx2,fma")]
    fn narrow() -> [__m256; REGISTERS] {
        let mut sums = [_mm256_set1_ps(0.0); REGISTERS];
        let (a, b) = (_mm256_set1_ps(black_box(1.0)), _mm256_set1_ps(black_box(0.5)));
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, b, a);
            }
        }
        sums
    }

    #[target_feature(enable = "avx512f")]
    fn wide() -> [__m512; REGISTERS] {
        let mut sums = [_mm512_set1_ps(0.0); REGISTERS];
        let (a, b) = (_mm512_set1_ps(black_box(1.0)), _mm512_set1_ps(black_box(0.5)));
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, b, a);
            }
        }
        sums
    }

    let operations = (2 * ROUNDS * REGISTERS) as f64;
    // SAFETY: the processor has just been asked for the instructions.
    unsafe {
        if is_x86_feature_detected!("avx512f") {
            (
                16.0 * operations,
                fastest(|| {
                    black_box(wide());
                }),
            )
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            (
                8.0 * operations,
                fastest(|| {
                    black_box(narrow());
                }),
            )
        } else {
            (0.0, Duration::from_secs(1))
        }
    }
}

#[cfg(target_arch = "aarch64")]
fn peak_run() -> (f64, Duration) {
    use std::arch::aarch64::{float32x4_t, vdupq_n_f32, vfmaq_f32};

    #[target_feature(enable = "neon")]
    fn four() -> [float32x4_t; 2 * REGISTERS] {
        let mut sums = [vdupq_n_f32(0.0); 2 * REGISTERS];
        let (a, b) = (vdupq_n_f32(black_box(1.0)), vdupq_n_f32(black_box(0.5)));
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = vfmaq_f32(a, *sum, b);
            }
        }
        sums
    }

    // SAFETY: every processor of this family has NEON.
    let time = fastest(|| {
        black_box(unsafe { four() });
    });
    (4.0 * (2 * ROUNDS * 2 * REGISTERS) as f64, time)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn peak_run() -> (f64, Duration) {
    (0.0, Duration::from_secs(1))
}
