//! The innermost loops of a matrix product: one tile of the result, held in
//! registers.
//!
//! The right-hand matrix comes in **panels** of [`columns`] columns. A panel
//! holds, for each step down the shared side, one value (or one word of two or
//! four small integers) for each of its columns, side by side.

use std::sync::atomic::{Ordering, compiler_fence};

use crate::quantise::Small;
use crate::simd::{MOST_TILE_COLUMNS, MOST_TILE_ROWS, Simd};

/// Columns of a tile, and so of a panel.
#[inline(always)]
pub(crate) const fn columns<S: Simd>() -> usize {
    2 * S::LANES
}

/// Room for the largest tile.
pub(crate) type TileBuffer = [f32; MOST_TILE_ROWS * MOST_TILE_COLUMNS];

/// Splits rows into as few tiles as possible, of sizes as equal as possible: a
/// tile of one or two rows leaves the multipliers idle.
///
/// - Gives the first row and the number of rows of each tile.
#[inline(always)]
pub(crate) fn split(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let tiles = rows.div_ceil(most);
    let (size, larger) = (rows / tiles.max(1), rows % tiles.max(1));
    (0..tiles).map(move |tile| (tile * size + tile.min(larger), size + usize::from(tile < larger)))
}

/// Calls a function that is generic over the rows of a tile with the number of
/// rows that is known only at run time.
macro_rules! with_rows {
    ($rows:expr, $most:expr, $tile:ident :: <$($generic:ty),+> $arguments:tt) => {
        with_rows!(@ $rows, $most, $tile, [$($generic),+], $arguments,
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    };
    (@ $rows:expr, $most:expr, $tile:ident, $generics:tt, $arguments:tt, [$($count:literal),+]) => {
        match $rows {
            $($count if $count <= $most =>
                with_rows!(@@ $tile, $generics, $count, $arguments),)+
            _ => {}
        }
    };
    (@@ $tile:ident, [$($generic:ty),+], $count:literal, ($($argument:expr),+ $(,)?)) => {
        $tile::<$($generic),+, $count>($($argument),+)
    };
}
pub(crate) use with_rows;

/// Rows of a matrix, of which each starts `stride` values after the one before.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, T> {
    /// From the first value of the first row on.
    pub(crate) values: &'a [T],
    /// From one row to the next.
    pub(crate) stride: usize,
}

/// Rows of a matrix that are written.
pub(crate) struct RowsMut<'a> {
    /// From the first value of the first row on.
    pub(crate) values: &'a mut [f32],
    /// From one row to the next.
    pub(crate) stride: usize,
}

/// Checks that `rows` rows of `width` values, `stride` apart, lie in `length` values.
#[inline(always)]
fn assert_holds(length: usize, rows: usize, stride: usize, width: usize) {
    assert!((rows - 1) * stride + width <= length, "a tile lies in its matrix");
}

/// Adds one step down the shared side to the sums of a tile.
///
/// # Safety
///
/// `left` is valid for reading a value at each of `ROWS` multiples of `stride`,
/// and `panel` for reading [`columns`] values.
#[inline(always)]
unsafe fn multiply_step<S: Simd, const ROWS: usize>(
    simd: S,
    left: *const f32,
    stride: usize,
    panel: *const f32,
    sums: &mut [[S::Floats; 2]; ROWS],
) {
    // SAFETY: the caller vouches for what is read.
    unsafe {
        let right = [simd.load(panel), simd.load(panel.add(S::LANES))];
        for (row, sums) in sums.iter_mut().enumerate() {
            let left = simd.splat(*left.add(row * stride));
            sums[0] = simd.multiply_add(left, right[0], sums[0]);
            sums[1] = simd.multiply_add(left, right[1], sums[1]);
        }
    }
    keep_loads_here();
}

/// Keeps the compiler from moving what comes later in front of what came before.
/// It costs no instruction. Without it the compiler may gather the loads of
/// several steps at the start of a round, run out of registers, and send every
/// value through the stack, which makes a tile six times as slow.
#[inline(always)]
fn keep_loads_here() {
    compiler_fence(Ordering::SeqCst);
}

/// What a tile is added to.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// The same [`columns`] values for each row.
    Bias(&'a [f32]),
    /// What the tile holds already.
    Tile,
}

/// A tile of a product of `f32`: `y = left · panel + start`.
///
/// - `left`: `ROWS` rows of `depth` values.
/// - `panel`: `depth` × [`columns`] values.
/// - `y`: `ROWS` rows of `columns` values.
///
/// Each value is summed up in the order of the shared side, so it does not
/// depend on the rows beside it.
#[inline(always)]
pub(crate) fn float_tile<S: Simd, const ROWS: usize>(
    simd: S,
    depth: usize,
    left: Rows<f32>,
    panel: &[f32],
    start: Start,
    y: &mut RowsMut,
) {
    let lanes = S::LANES;
    assert_holds(left.values.len(), ROWS, left.stride, depth);
    assert_holds(panel.len(), depth + 1, columns::<S>(), 0);
    assert_holds(y.values.len(), ROWS, y.stride, columns::<S>());
    let (a, panel) = (left.values.as_ptr(), panel.as_ptr());
    let to = y.values.as_mut_ptr();
    let from = match start {
        Start::Bias(bias) => {
            assert_holds(bias.len(), 1, 0, columns::<S>());
            Rows { values: bias, stride: 0 }
        }
        Start::Tile => Rows { values: &*y.values, stride: y.stride },
    };
    // SAFETY: the assertions are about exactly the values that are read and written.
    unsafe {
        let mut sums = [[simd.splat(0.0); 2]; ROWS];
        for (row, sums) in sums.iter_mut().enumerate() {
            let from = from.values.as_ptr().add(row * from.stride);
            *sums = [simd.load(from), simd.load(from.add(lanes))];
        }
        let mut step = 0;
        // Four steps to a round, so that the processor foresees the end of a short loop.
        while step + 4 <= depth {
            for _ in 0..4 {
                multiply_step(
                    simd,
                    a.add(step),
                    left.stride,
                    panel.add(step * 2 * lanes),
                    &mut sums,
                );
                step += 1;
            }
        }
        while step < depth {
            multiply_step(simd, a.add(step), left.stride, panel.add(step * 2 * lanes), &mut sums);
            step += 1;
        }
        for (row, sums) in sums.iter().enumerate() {
            simd.store(to.add(row * y.stride), sums[0]);
            simd.store(to.add(row * y.stride + lanes), sums[1]);
        }
    }
}

/// How small integers are multiplied.
pub(crate) trait Product {
    /// The integers of the left matrix.
    type Small: Small;

    /// Adds the products of each lane's small integers to the lane's sum.
    fn dot<S: Simd>(simd: S, sum: S::Integers, a: S::Integers, b: S::Integers) -> S::Integers;
}

/// Two integers of 16 bits to a word.
pub(crate) struct Words;

/// Four integers of 8 bits to a word, those of the left matrix without sign.
pub(crate) struct Bytes;

impl Product for Words {
    type Small = i16;

    #[inline(always)]
    fn dot<S: Simd>(simd: S, sum: S::Integers, a: S::Integers, b: S::Integers) -> S::Integers {
        simd.dot_words(sum, a, b)
    }
}

impl Product for Bytes {
    type Small = u8;

    #[inline(always)]
    fn dot<S: Simd>(simd: S, sum: S::Integers, a: S::Integers, b: S::Integers) -> S::Integers {
        simd.dot_bytes(sum, a, b)
    }
}

/// What turns sums of integers back into numbers, a value for each column.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// What the zero point of the left matrix has added to each sum.
    pub(crate) offsets: &'a [i32],
    /// The value of one step of each column's weights.
    pub(crate) scales: &'a [f32],
    /// What is added at the end.
    pub(crate) bias: &'a [f32],
}

/// A tile of a product of small integers:
/// `y = (left · panel − offset) × scale of the row × scale of the column + bias`.
///
/// - `left`: `ROWS` rows of `words` words of 32 bits, in small integers `T`,
///   with a scale each in `scales`.
/// - `panel`: `words` × [`columns`] words.
/// - `y`: `ROWS` rows of `columns` values.
#[inline(always)]
pub(crate) fn integer_tile<S: Simd, P: Product, const ROWS: usize>(
    simd: S,
    words: usize,
    left: Rows<P::Small>,
    scales: &[f32],
    panel: &[i32],
    of_columns: Columns,
    y: &mut RowsMut,
) {
    let lanes = S::LANES;
    let row_bytes = left.stride * size_of::<P::Small>();
    assert_holds(size_of_val(left.values), ROWS, row_bytes, 4 * words);
    assert_holds(scales.len(), 1, 0, ROWS);
    assert_holds(panel.len(), words + 1, columns::<S>(), 0);
    assert_holds(of_columns.offsets.len(), 1, 0, columns::<S>());
    assert_holds(of_columns.scales.len(), 1, 0, columns::<S>());
    assert_holds(of_columns.bias.len(), 1, 0, columns::<S>());
    assert_holds(y.values.len(), ROWS, y.stride, columns::<S>());
    let (a, panel) = (left.values.as_ptr().cast::<u8>(), panel.as_ptr());
    let to = y.values.as_mut_ptr();
    // SAFETY: the assertions are about exactly the values that are read and
    // written; words are read without regard to alignment.
    unsafe {
        let mut sums = [[simd.splat_integer(0); 2]; ROWS];
        for word in 0..words {
            let right = panel.add(word * columns::<S>());
            let right = [simd.load_integers(right), simd.load_integers(right.add(lanes))];
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = a.add(row * row_bytes + 4 * word).cast::<i32>().read_unaligned();
                let left = simd.splat_integer(left);
                sums[0] = P::dot(simd, sums[0], left, right[0]);
                sums[1] = P::dot(simd, sums[1], left, right[1]);
            }
            keep_loads_here();
        }
        for half in 0..2 {
            let column = half * lanes;
            let offsets = simd.load_integers(of_columns.offsets.as_ptr().add(column));
            let of_weights = simd.load(of_columns.scales.as_ptr().add(column));
            let bias = simd.load(of_columns.bias.as_ptr().add(column));
            for (row, sums) in sums.iter().enumerate() {
                let sum = simd.to_floats(simd.subtract_integers(sums[half], offsets));
                let scale = simd.multiply(of_weights, simd.splat(scales[row]));
                let value = simd.multiply_add(sum, scale, bias);
                simd.store(to.add(row * y.stride + column), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_evenly_and_none_is_lost() {
        for most in [1, 4, 6, 12] {
            for rows in 0..50 {
                let tiles: Vec<_> = split(rows, most).collect();
                let mut next = 0;
                for &(first, size) in &tiles {
                    assert_eq!(first, next);
                    assert!((1..=most).contains(&size));
                    next += size;
                }
                assert_eq!(next, rows);
                let sizes = tiles.iter().map(|tile| tile.1);
                assert!(sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1);
            }
        }
    }
}
