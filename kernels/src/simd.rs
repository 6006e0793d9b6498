//! The few vector operations that the kernels are written in.
//!
//! A kernel is written once, generic over [`Simd`], and compiled once for each
//! instruction set. Only the files below this one differ between them.

pub(crate) mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;

#[cfg(any(target_arch = "aarch64", test))]
pub(crate) mod neon;

#[cfg(all(test, not(target_arch = "aarch64")))]
mod emulated_neon;

/// The most lanes that a vector has on any instruction set.
pub(crate) const MOST_LANES: usize = 16;

/// The most rows that a tile has on any instruction set.
pub(crate) const MOST_TILE_ROWS: usize = 12;

/// The most columns that a tile has on any instruction set.
pub(crate) const MOST_TILE_COLUMNS: usize = 2 * MOST_LANES;

/// Adding this to a number of magnitude below 2²² rounds it to the nearest
/// integer, half to even, and leaves that integer in the low bits.
pub(crate) const ROUNDING: f32 = 12_582_912.0;

/// Operations on vectors of one instruction set.
///
/// A value of an implementing type is the proof that the processor has the
/// instructions: it is made in [`Isa::run`](crate::Isa::run) alone, which has
/// asked. So every method that touches no memory is safe.
///
/// Every method must be inlined into a function that is compiled for the
/// instruction set, or it becomes a call. Hence `#[inline(always)]` throughout.
pub(crate) trait Simd: Copy {
    /// How many `f32` or `i32` a vector holds.
    const LANES: usize;

    /// Rows of a tile of a product of `f32`: as many as the registers hold.
    const FLOAT_ROWS: usize;

    /// Rows of a tile of a product of integers.
    const INTEGER_ROWS: usize;

    /// The greatest magnitude of an activation that is kept in eight bits, for
    /// which [`dot_bytes`](Self::dot_bytes) is exact.
    const BYTE_LIMIT: u8;

    /// `LANES` numbers.
    type Floats: Copy;

    /// `LANES` integers of 32 bits, or twice as many of 16, or four times as
    /// many of 8.
    type Integers: Copy;

    /// The same number in every lane.
    fn splat(self, value: f32) -> Self::Floats;

    /// Reads `LANES` numbers.
    ///
    /// # Safety
    ///
    /// `from` is valid for reading `LANES` values of `f32`. It need not be
    /// aligned to a vector.
    unsafe fn load(self, from: *const f32) -> Self::Floats;

    /// Writes `LANES` numbers.
    ///
    /// # Safety
    ///
    /// `to` is valid for writing `LANES` values of `f32`. It need not be
    /// aligned to a vector.
    unsafe fn store(self, to: *mut f32, value: Self::Floats);

    /// a + b.
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// a − b.
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// a × b.
    fn multiply(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// a ÷ b.
    fn divide(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// a × b + c, rounded once where the processor can.
    fn multiply_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;

    /// The smaller of each pair. What a NaN gives is left open.
    fn minimum(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// The greater of each pair. What a NaN gives is left open.
    fn maximum(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// Multiplies normal numbers by 2 to the power of whole numbers, where the
    /// result is a normal number too.
    ///
    /// - `shifted`: the whole number plus [`ROUNDING`], which leaves it in the
    ///   low bits.
    fn scale_by_power(self, value: Self::Floats, shifted: Self::Floats) -> Self::Floats;

    /// The sum over the lanes.
    fn sum(self, value: Self::Floats) -> f32;

    /// The greatest lane.
    fn greatest(self, value: Self::Floats) -> f32;

    /// The same integer in every lane.
    fn splat_integer(self, value: i32) -> Self::Integers;

    /// Reads a vector of integers.
    ///
    /// # Safety
    ///
    /// `from` is valid for reading `LANES` values of `i32`. It need not be
    /// aligned to a vector.
    unsafe fn load_integers(self, from: *const i32) -> Self::Integers;

    /// Reads `2 × LANES` bytes and widens each to 16 bits, with its sign.
    ///
    /// # Safety
    ///
    /// `from` is valid for reading `2 × LANES` bytes.
    unsafe fn load_widened(self, from: *const i8) -> Self::Integers;

    /// a − b for integers of 32 bits.
    fn subtract_integers(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;

    /// Integers of 32 bits as numbers.
    fn to_floats(self, value: Self::Integers) -> Self::Floats;

    /// Adds a₀b₀ + a₁b₁ to each lane of `sum`, for pairs of 16 bits with sign.
    fn dot_words(self, sum: Self::Integers, a: Self::Integers, b: Self::Integers)
    -> Self::Integers;

    /// Adds a₀b₀ + … + a₃b₃ to each lane of `sum`, for fours of 8 bits: `a`
    /// without sign and at most `2 × BYTE_LIMIT + 1`, `b` with sign and at
    /// least −127.
    fn dot_bytes(self, sum: Self::Integers, a: Self::Integers, b: Self::Integers)
    -> Self::Integers;

    /// The sum over the lanes of 32 bits.
    fn sum_integers(self, value: Self::Integers) -> i32;
}
