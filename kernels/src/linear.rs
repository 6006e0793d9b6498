//! `y = x · Wᵀ + b`, with weights packed once.

use crate::aligned::Aligned;
use crate::isa::{Isa, Kernel};
use crate::quantise::{Small, quantise_row};
use crate::simd::{MOST_TILE_COLUMNS, MOST_TILE_ROWS, Simd};
use crate::tile::{
    Bytes, Columns, Product, Rows, RowsMut, Start, TileBuffer, Words, columns, float_tile,
    integer_tile, split, with_rows,
};

/// Bytes of the left matrix that are worked on at a time, so that they stay in
/// the second-level cache while the weights pass by.
const BLOCK_BYTES: usize = 192 << 10;

/// The greatest magnitude of an activation or a weight in 16 bits.
const WORD_LIMIT: f64 = 4095.0;

/// The greatest magnitude of a weight in 8 bits.
const BYTE_LIMIT: f32 = 127.0;

/// How weights are kept, and what they are multiplied as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 32-bit floating point.
    F32,
    /// 12 bits and a sign for activations, at most as much for weights, added
    /// up exactly. The result is within about 10⁻³ of a row's magnitude.
    I16,
    /// 8 bits for activations (7 where the processor has no VNNI), 8 for weights.
    I8,
}

/// A linear layer.
///
/// Activations of the integer formats are rounded row by row, each row with
/// the scale of its own greatest magnitude; weights output by output. A row's
/// result does not depend on the rows beside it.
#[derive(Debug)]
pub struct Linear {
    isa: Isa,
    inputs: usize,
    outputs: usize,
    weights: Weights,
    /// Padded to whole panels.
    bias: Vec<f32>,
}

#[derive(Debug)]
enum Weights {
    Floats(Aligned<f32>),
    Words(Integers),
    Bytes(Integers),
}

/// Weights as small integers.
#[derive(Debug)]
struct Integers {
    /// Words to a row, two or four integers each.
    words: usize,
    /// The greatest magnitude of an activation.
    limit: f32,
    /// What stands for an activation of zero.
    zero: u8,
    panels: Aligned<i32>,
    /// By output, padded to whole panels: the zero point times the weights' sum.
    offsets: Vec<i32>,
    /// By output, padded to whole panels: the value of one step.
    scales: Vec<f32>,
}

/// Memory that calls to [`Linear::apply`] share.
#[derive(Debug, Default)]
pub struct LinearScratch {
    words: Vec<i16>,
    bytes: Vec<u8>,
    scales: Vec<f32>,
}

impl Linear {
    /// Packs the weights of a layer.
    ///
    /// - `weights`: outputs × `inputs` numbers, one row for each output.
    /// - `bias`: as many numbers as there are outputs.
    ///
    /// # Panics
    ///
    /// If `inputs` is zero or above 65,536, or the lengths do not fit together.
    pub fn pack(isa: Isa, format: Format, weights: &[f32], bias: &[f32], inputs: usize) -> Self {
        assert!((1..=1 << 16).contains(&inputs), "{inputs} inputs are out of range");
        let outputs = bias.len();
        assert_eq!(Some(weights.len()), outputs.checked_mul(inputs), "a weight for each pair");
        let pack = Pack { format, weights, outputs, inputs };
        let (weights, padded) = isa.run(pack);
        let mut padded_bias = vec![0.0; padded];
        padded_bias[..outputs].copy_from_slice(bias);
        Self { isa, inputs, outputs, weights, bias: padded_bias }
    }

    /// How many numbers a row of the input has.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// How many numbers a row of the output has.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Applies the layer to rows.
    ///
    /// - `x`: n × `inputs` numbers, n from 0.
    /// - `y`: n × `outputs` numbers, overwritten.
    ///
    /// # Panics
    ///
    /// If the lengths do not fit together.
    pub fn apply(&self, x: &[f32], y: &mut [f32], scratch: &mut LinearScratch) {
        let rows = x.len() / self.inputs;
        assert_eq!(x.len(), rows * self.inputs, "rows of the input are whole");
        assert_eq!(y.len(), rows * self.outputs, "a row of output for each row of input");
        match &self.weights {
            Weights::Floats(panels) => {
                self.isa.run(FloatProduct { layer: self, panels: panels.as_slice(), x, y });
            }
            Weights::Words(weights) => {
                let (small, scales) = (&mut scratch.words, &mut scratch.scales);
                self.isa.run(IntegerProduct::<Words> { layer: self, weights, x, y, small, scales });
            }
            Weights::Bytes(weights) => {
                let (small, scales) = (&mut scratch.bytes, &mut scratch.scales);
                self.isa.run(IntegerProduct::<Bytes> { layer: self, weights, x, y, small, scales });
            }
        }
    }
}

/// Packs weights into panels of as many columns as a tile has.
struct Pack<'a> {
    format: Format,
    weights: &'a [f32],
    outputs: usize,
    inputs: usize,
}

impl Kernel for Pack<'_> {
    /// The weights, and the number of outputs padded to whole panels.
    type Output = (Weights, usize);

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (Weights, usize) {
        let weights = match self.format {
            Format::F32 => Weights::Floats(self.floats::<S>()),
            Format::I16 => {
                let (activations, weights) = word_limits(self.inputs);
                Weights::Words(self.integers::<S, 2>(simd, activations, weights, 0))
            }
            Format::I8 => {
                let zero = S::BYTE_LIMIT + 1;
                let activations = f32::from(S::BYTE_LIMIT);
                Weights::Bytes(self.integers::<S, 4>(simd, activations, BYTE_LIMIT, zero))
            }
        };
        (weights, self.outputs.next_multiple_of(columns::<S>()))
    }
}

/// The greatest magnitudes of activations and of weights in 16 bits, such that
/// no sum over `inputs` products leaves 32 bits. Activations have outliers and
/// get eight times as many steps.
fn word_limits(inputs: usize) -> (f32, f32) {
    let product = f64::from(i32::MAX) / inputs as f64;
    let activations = (8.0 * product).sqrt().floor().min(WORD_LIMIT);
    let weights = (product / activations).floor().min(WORD_LIMIT);
    (activations as f32, weights as f32)
}

impl Pack<'_> {
    /// The place of a column's first word, and how far apart its words are.
    #[inline(always)]
    fn place<S: Simd>(column: usize, words: usize) -> (usize, usize) {
        let width = columns::<S>();
        ((column / width) * words * width + column % width, width)
    }

    #[inline(always)]
    fn floats<S: Simd>(&self) -> Aligned<f32> {
        let padded = self.outputs.next_multiple_of(columns::<S>());
        let mut panels = Aligned::new(padded * self.inputs);
        let packed = panels.as_mut_slice();
        for (column, row) in self.weights.chunks_exact(self.inputs).enumerate() {
            let (first, apart) = Self::place::<S>(column, self.inputs);
            for (place, &weight) in packed[first..].iter_mut().step_by(apart).zip(row) {
                *place = weight;
            }
        }
        panels
    }

    /// - `PER_WORD`: integers to a word of 32 bits.
    #[inline(always)]
    fn integers<S: Simd, const PER_WORD: usize>(
        &self,
        simd: S,
        activation_limit: f32,
        weight_limit: f32,
        zero: u8,
    ) -> Integers {
        let words = self.inputs.div_ceil(PER_WORD);
        let padded = self.outputs.next_multiple_of(columns::<S>());
        let mut panels = Aligned::new(padded * words);
        let mut offsets = vec![0; padded];
        let mut scales = vec![0.0; padded];
        let mut small = vec![0_i16; words * PER_WORD];
        for (column, row) in self.weights.chunks_exact(self.inputs).enumerate() {
            scales[column] = quantise_row(simd, row, weight_limit, 0, &mut small);
            let sum: i32 = small.iter().map(|&weight| i32::from(weight)).sum();
            offsets[column] = i32::from(zero) * sum;
            let (first, apart) = Self::place::<S>(column, words);
            let places = panels.as_mut_slice()[first..].iter_mut().step_by(apart);
            for (place, weights) in places.zip(small.chunks_exact(PER_WORD)) {
                *place = word(weights);
            }
        }
        Integers { words, limit: activation_limit, zero, panels, offsets, scales }
    }
}

/// Two integers of 16 bits, or four of 8, as they lie in memory.
#[inline(always)]
fn word(small: &[i16]) -> i32 {
    match *small {
        [a, b] => {
            let ([a, b], [c, d]) = (a.to_ne_bytes(), b.to_ne_bytes());
            i32::from_ne_bytes([a, b, c, d])
        }
        [a, b, c, d] => {
            i32::from_ne_bytes([a, b, c, d].map(|weight| (weight as i8).cast_unsigned()))
        }
        _ => 0,
    }
}

/// Whole rows of the left matrix to a block.
#[inline(always)]
fn block_rows(row_bytes: usize, tile_rows: usize) -> usize {
    (BLOCK_BYTES / row_bytes / tile_rows).max(1) * tile_rows
}

/// A product that is computed tile by tile.
trait Tiled {
    /// Computes `rows` rows, at most as many as a tile has, by one panel's columns.
    fn tile<S: Simd>(&self, simd: S, first: usize, rows: usize, panel: usize, y: &mut RowsMut);
}

/// Computes a product in blocks of rows: for each block all panels, for each
/// panel all tiles.
#[inline(always)]
fn by_tiles<S: Simd, T: Tiled>(
    simd: S,
    tiled: &T,
    (block, tile_rows): (usize, usize),
    outputs: usize,
    y: &mut [f32],
) {
    let width = columns::<S>();
    let mut partial: TileBuffer = [0.0; MOST_TILE_ROWS * MOST_TILE_COLUMNS];
    for (index, y) in y.chunks_mut(block * outputs).enumerate() {
        for panel in 0..outputs.div_ceil(width) {
            let column = panel * width;
            let wanted = width.min(outputs - column);
            for (row, rows) in split(y.len() / outputs, tile_rows) {
                let first = index * block + row;
                let y = &mut y[row * outputs + column..];
                if wanted == width {
                    let mut y = RowsMut { values: y, stride: outputs };
                    tiled.tile(simd, first, rows, panel, &mut y);
                } else {
                    let mut tile = RowsMut { values: &mut partial, stride: width };
                    tiled.tile(simd, first, rows, panel, &mut tile);
                    for (y, tile) in y.chunks_mut(outputs).zip(partial.chunks(width)).take(rows) {
                        y[..wanted].copy_from_slice(&tile[..wanted]);
                    }
                }
            }
        }
    }
}

struct FloatProduct<'a> {
    layer: &'a Linear,
    panels: &'a [f32],
    x: &'a [f32],
    y: &'a mut [f32],
}

/// What a tile of a product of `f32` reads.
struct FloatTiles<'a> {
    depth: usize,
    x: &'a [f32],
    panels: &'a [f32],
    bias: &'a [f32],
}

impl Kernel for FloatProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Linear { inputs: depth, outputs, ref bias, .. } = *self.layer;
        if outputs == 0 {
            return;
        }
        let tiles = FloatTiles { depth, x: self.x, panels: self.panels, bias };
        let block = block_rows(4 * depth, S::FLOAT_ROWS);
        by_tiles(simd, &tiles, (block, S::FLOAT_ROWS), outputs, self.y);
    }
}

impl Tiled for FloatTiles<'_> {
    #[inline(always)]
    fn tile<S: Simd>(&self, simd: S, first: usize, rows: usize, panel: usize, y: &mut RowsMut) {
        let (depth, width) = (self.depth, columns::<S>());
        let left = Rows { values: &self.x[first * depth..], stride: depth };
        let bias = &self.bias[panel * width..];
        let panel = &self.panels[panel * depth * width..];
        with_rows!(
            rows,
            S::FLOAT_ROWS,
            float_tile::<S>(simd, depth, left, panel, Start::Bias(bias), y)
        );
    }
}

struct IntegerProduct<'a, P: Product> {
    layer: &'a Linear,
    weights: &'a Integers,
    x: &'a [f32],
    y: &'a mut [f32],
    small: &'a mut Vec<P::Small>,
    scales: &'a mut Vec<f32>,
}

/// What a tile of a product of integers reads.
struct IntegerTiles<'a, P: Product> {
    weights: &'a Integers,
    small: &'a [P::Small],
    stride: usize,
    scales: &'a [f32],
    bias: &'a [f32],
}

impl<P: Product> Kernel for IntegerProduct<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Linear { inputs, outputs, ref bias, .. } = *self.layer;
        let (weights, small, scales) = (self.weights, self.small, self.scales);
        let rows = self.x.len() / inputs;
        if outputs == 0 || rows == 0 {
            return;
        }
        let stride = weights.words * 4 / size_of::<P::Small>();
        small.resize(rows * stride, P::Small::from_bits(0, 0));
        scales.clear();
        for (x, small) in self.x.chunks_exact(inputs).zip(small.chunks_exact_mut(stride)) {
            scales.push(quantise_row(simd, x, weights.limit, weights.zero, small));
        }
        let tiles = IntegerTiles::<P> { weights, small, stride, scales, bias };
        let block = block_rows(4 * weights.words, S::INTEGER_ROWS);
        by_tiles(simd, &tiles, (block, S::INTEGER_ROWS), outputs, self.y);
    }
}

impl<P: Product> Tiled for IntegerTiles<'_, P> {
    #[inline(always)]
    fn tile<S: Simd>(&self, simd: S, first: usize, rows: usize, panel: usize, y: &mut RowsMut) {
        let (words, width) = (self.weights.words, columns::<S>());
        let left = Rows { values: &self.small[first * self.stride..], stride: self.stride };
        let scales = &self.scales[first..];
        let column = panel * width;
        let of_columns = Columns {
            offsets: &self.weights.offsets[column..],
            scales: &self.weights.scales[column..],
            bias: &self.bias[column..],
        };
        let panel = &self.weights.panels.as_slice()[column * words..];
        with_rows!(
            rows,
            S::INTEGER_ROWS,
            integer_tile::<S, P>(simd, words, left, scales, panel, of_columns, y)
        );
    }
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;
