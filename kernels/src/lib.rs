//! The arithmetic of GrooveSeek: matrix product, attention and vector scans,
//! with the instructions chosen at run time.
//!
//! Read [`Isa`] first, which stands for what the processor has; then the parts
//! of a transformer, [`Linear`] foremost; then the scan over small integers
//! that answers a vector search.
//!
//! The whole public interface is safe: each function checks every length that
//! it is handed, and panics where lengths do not fit together.
#![allow(
    unsafe_code,
    reason = "vector instructions and unchecked reads in the innermost loops; here and nowhere else"
)]
#![allow(
    clippy::inline_always,
    reason = "code is compiled for an instruction set only where it is inlined into its entry"
)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "numbers are rounded on purpose, and bounded where it matters"
)]

mod aligned;
mod isa;
mod simd;

mod attention;
mod linear;
mod math;
mod norm;
mod quantise;
mod stored;
mod tile;

mod scan;

#[cfg(test)]
mod testing;

pub use attention::{AttentionScratch, Heads, attention};
pub use isa::Isa;
pub use linear::{Format, Linear, LinearScratch};
pub use math::gelu;
pub use norm::{LayerNorm, add_le_bytes, mean_of_rows, numbers_from_le_bytes};
pub use quantise::quantise;
pub use scan::{Scored, Shortlist, dot_f32, scan_i8};
pub use stored::{Stored, transposed};
