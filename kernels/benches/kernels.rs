//! How near the kernels come to what the processor can do.
//!
//! Times each part of a transformer's layer alone, on one core and in processor
//! time, for texts of several lengths, beside the most that a loop of nothing
//! but multiplications reaches on the same core in the same run. The shapes are
//! those of all-MiniLM-L6-v2.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::format_collect,
    reason = "a measurement: it reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Duration;

use grooveseek_kernels::{
    AttentionScratch, Format, Heads, Isa, LayerNorm, Linear, LinearScratch, attention, gelu,
};

use support::peak::{fastest, peak};

mod support {
    //! What several benchmarks measure with.
    pub(crate) mod peak;
}

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

/// Numbers from −1 to 1, always the same.
fn noise(count: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}
