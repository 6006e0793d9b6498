//! How near the kernels come to what the processor can do.
//!
//! Times each part of a transformer's layer alone, on one core and in processor
//! time, for texts of several lengths, beside the most that a loop of nothing
//! but multiplications reaches on the same core in the same run. The shapes are
//! those of all-MiniLM-L6-v2.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement: it reads the clock and prints"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use grooveseek_kernels::{
    AttentionScratch, Format, Heads, Isa, LayerNorm, Linear, LinearScratch, attention, gelu,
};

const HIDDEN: usize = 384;
const INNER: usize = 1536;
const HEADS: Heads = Heads { count: 12, size: 32 };
const LENGTHS: [usize; 6] = [8, 32, 64, 128, 256, 512];

/// Linear layers: name, inputs, outputs.
const LINEAR: [(&str, usize, usize); 4] = [
    ("projections", HIDDEN, 3 * HIDDEN),
    ("mixed", HIDDEN, HIDDEN),
    ("widen", HIDDEN, INNER),
    ("narrow", INNER, HIDDEN),
];

fn main() {
    let isa = Isa::best();
    let peak = peak();
    println!("{}, peak {peak:.1} GFLOP/s in f32", isa.name());
    let header: String = LENGTHS.iter().map(|rows| format!("{rows:>9}")).collect();
    println!("\nGFLOP/s (% of the peak), rows{header}");
    for format in [Format::F32, Format::I16, Format::I8] {
        for (name, inputs, outputs) in LINEAR {
            let line = LENGTHS.iter().map(|&rows| linear(isa, format, rows, inputs, outputs));
            let line: String = line.map(|speed| cell(speed, peak)).collect();
            println!("{:<28}{line}", format!("{format:?} {name}"));
        }
    }
    for size in [32, 64] {
        let heads = Heads { count: HIDDEN / size, size };
        let line = LENGTHS.iter().map(|&rows| cell(attend(isa, heads, rows), peak));
        println!("{:<28}{}", format!("attention, heads of {size}"), line.collect::<String>());
    }

    println!("\nmicroseconds a layer{header:>53}");
    let timed = |name: &str, time: &dyn Fn(usize) -> Duration| {
        let line = LENGTHS.iter().map(|&rows| format!("{:>9.1}", time(rows).as_secs_f64() * 1e6));
        println!("{name:<20}{}", line.collect::<String>());
    };
    for format in [Format::F32, Format::I16, Format::I8] {
        timed(&format!("linear {format:?}"), &|rows| {
            let parts = LINEAR.iter().map(|&(_, inputs, outputs)| {
                2e-9 * (rows * inputs * outputs) as f64 / linear(isa, format, rows, inputs, outputs)
            });
            Duration::from_secs_f64(parts.sum())
        });
    }
    timed("attention", &|rows| {
        Duration::from_secs_f64(attention_work(HEADS, rows) / attend(isa, HEADS, rows))
    });
    timed("gelu", &|rows| {
        let mut values = noise(rows * INNER);
        fastest(|| gelu(isa, black_box(&mut values)))
    });
    timed("both norms", &|rows| {
        let norm = LayerNorm::new(noise(HIDDEN), noise(HIDDEN), 1e-12);
        let (mut values, residual) = (noise(rows * HIDDEN), noise(rows * HIDDEN));
        2 * fastest(|| norm.add_and_apply(isa, black_box(&mut values), &residual))
    });
}

/// A speed and its share of the peak.
fn cell(speed: f64, peak: f64) -> String {
    format!("{speed:>5.0} {:>2.0}%", 100.0 * speed / peak)
}

/// GFLOP/s of a linear layer.
fn linear(isa: Isa, format: Format, rows: usize, inputs: usize, outputs: usize) -> f64 {
    let layer = Linear::pack(isa, format, &noise(inputs * outputs), &noise(outputs), inputs);
    let (x, mut y) = (noise(rows * inputs), vec![0.0; rows * outputs]);
    let mut scratch = LinearScratch::default();
    let time = fastest(|| layer.apply(black_box(&x), black_box(&mut y), &mut scratch));
    2e-9 * (rows * inputs * outputs) as f64 / time.as_secs_f64()
}

/// GFLOP of the two products of attention.
fn attention_work(heads: Heads, length: usize) -> f64 {
    4e-9 * (heads.count * heads.size * length * length) as f64
}

/// GFLOP/s of attention within one text.
fn attend(isa: Isa, heads: Heads, length: usize) -> f64 {
    let width = heads.count * heads.size;
    let (projected, mut output) = (noise(3 * width * length), vec![0.0; width * length]);
    let mut scratch = AttentionScratch::default();
    let time = fastest(|| {
        attention(
            isa,
            heads,
            black_box(&projected),
            &[length],
            black_box(&mut output),
            &mut scratch,
        );
    });
    attention_work(heads, length) / time.as_secs_f64()
}

/// The fastest of several runs, each long enough to be timed: others on the
/// same machine only ever make a run slower.
fn fastest(mut work: impl FnMut()) -> Duration {
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

/// Numbers from −1 to 1, always the same.
fn noise(count: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// GFLOP/s of independent fused multiplications on one core; 0 where this
/// program does not know the processor's instructions.
fn peak() -> f64 {
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
            (16.0 * operations, fastest(|| drop(black_box(wide()))))
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            (8.0 * operations, fastest(|| drop(black_box(narrow()))))
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
    let time = fastest(|| drop(black_box(unsafe { four() })));
    (4.0 * (2 * ROUNDS * 2 * REGISTERS) as f64, time)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn peak_run() -> (f64, Duration) {
    (0.0, Duration::from_secs(1))
}
