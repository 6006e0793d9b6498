//! Plain Rust that any compiler turns into what its processor has.

use super::Simd;

/// Every processor has this.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const LANES: usize = 8;

type Floats = [f32; LANES];
type Integers = [i32; LANES];

#[inline(always)]
fn map2(a: Floats, b: Floats, f: impl Fn(f32, f32) -> f32) -> Floats {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

/// Byte `index` of a word, without sign.
#[inline(always)]
fn unsigned_byte(word: i32, index: u32) -> i32 {
    (word >> (8 * index)) & 0xff
}

/// Byte `index` of a word, with its sign.
#[inline(always)]
fn signed_byte(word: i32, index: u32) -> i32 {
    (word << (24 - 8 * index)) >> 24
}

impl Simd for Portable {
    const LANES: usize = LANES;
    const FLOAT_ROWS: usize = 4;
    const INTEGER_ROWS: usize = 4;
    const BYTE_LIMIT: u8 = 127;

    type Floats = Floats;
    type Integers = Integers;

    #[inline(always)]
    fn splat(self, value: f32) -> Floats {
        [value; LANES]
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Floats {
        // SAFETY: the caller vouches for LANES readable values.
        unsafe { from.cast::<Floats>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, value: Floats) {
        // SAFETY: the caller vouches for LANES writable values.
        unsafe { to.cast::<Floats>().write_unaligned(value) }
    }

    #[inline(always)]
    fn add(self, a: Floats, b: Floats) -> Floats {
        map2(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn subtract(self, a: Floats, b: Floats) -> Floats {
        map2(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn multiply(self, a: Floats, b: Floats) -> Floats {
        map2(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn divide(self, a: Floats, b: Floats) -> Floats {
        map2(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn multiply_add(self, a: Floats, b: Floats, c: Floats) -> Floats {
        // Where fused multiplication is not in the baseline, `mul_add` is a slow call.
        if cfg!(target_arch = "aarch64") {
            std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]))
        } else {
            std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
        }
    }

    #[inline(always)]
    fn minimum(self, a: Floats, b: Floats) -> Floats {
        map2(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn maximum(self, a: Floats, b: Floats) -> Floats {
        map2(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn scale_by_power(self, value: Floats, shifted: Floats) -> Floats {
        map2(value, shifted, |value, shifted| {
            f32::from_bits(value.to_bits().wrapping_add(shifted.to_bits() << 23))
        })
    }

    #[inline(always)]
    fn sum(self, value: Floats) -> f32 {
        value.iter().sum()
    }

    #[inline(always)]
    fn greatest(self, value: Floats) -> f32 {
        value.iter().fold(f32::NEG_INFINITY, |most, &lane| if lane > most { lane } else { most })
    }

    #[inline(always)]
    fn splat_integer(self, value: i32) -> Integers {
        [value; LANES]
    }

    #[inline(always)]
    unsafe fn load_integers(self, from: *const i32) -> Integers {
        // SAFETY: the caller vouches for LANES readable values.
        unsafe { from.cast::<Integers>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_widened(self, from: *const i8) -> Integers {
        // SAFETY: the caller vouches for 2 × LANES readable bytes.
        let bytes = unsafe { from.cast::<[[i8; 2]; LANES]>().read_unaligned() };
        bytes.map(|[low, high]| (i32::from(low) & 0xffff) | (i32::from(high) << 16))
    }

    #[inline(always)]
    fn subtract_integers(self, a: Integers, b: Integers) -> Integers {
        std::array::from_fn(|lane| a[lane].wrapping_sub(b[lane]))
    }

    #[inline(always)]
    fn to_floats(self, value: Integers) -> Floats {
        value.map(|lane| lane as f32)
    }

    #[inline(always)]
    fn dot_words(self, sum: Integers, a: Integers, b: Integers) -> Integers {
        std::array::from_fn(|lane| {
            let low = ((a[lane] << 16) >> 16) * ((b[lane] << 16) >> 16);
            let high = (a[lane] >> 16) * (b[lane] >> 16);
            sum[lane].wrapping_add(low).wrapping_add(high)
        })
    }

    #[inline(always)]
    fn dot_bytes(self, sum: Integers, a: Integers, b: Integers) -> Integers {
        std::array::from_fn(|lane| {
            (0..4).fold(sum[lane], |sum, byte| {
                sum.wrapping_add(unsigned_byte(a[lane], byte) * signed_byte(b[lane], byte))
            })
        })
    }

    #[inline(always)]
    fn sum_integers(self, value: Integers) -> i32 {
        value.iter().fold(0, |sum, &lane| sum.wrapping_add(lane))
    }
}
