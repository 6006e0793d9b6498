//! NEON, which every 64-bit ARM processor has.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64 as neon;

#[cfg(not(target_arch = "aarch64"))]
use super::emulated_neon as neon;

use super::Simd;

/// The proof that the processor has NEON.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// Vouches for the processor.
    ///
    /// # Safety
    ///
    /// The processor has NEON.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self(())
    }
}

/// Multiplies eight integers of 16 bits with eight others, and adds up the
/// products by pairs.
#[inline(always)]
fn pairs(a: neon::int16x8_t, b: neon::int16x8_t) -> neon::int32x4_t {
    // SAFETY: a `Neon` has been made, so NEON is there.
    unsafe {
        let low = neon::vmull_s16(neon::vget_low_s16(a), neon::vget_low_s16(b));
        neon::vpaddq_s32(low, neon::vmull_high_s16(a, b))
    }
}

// SAFETY of the blocks below: a value of this type is the proof that the
// processor has the instructions; where memory is touched, the caller vouches
// for it as the trait demands.
impl Simd for Neon {
    const LANES: usize = 4;
    // Twelve rows of two registers leave eight of the 32 for what is multiplied.
    const FLOAT_ROWS: usize = 12;
    const INTEGER_ROWS: usize = 8;
    const BYTE_LIMIT: u8 = 127;

    type Floats = neon::float32x4_t;
    type Integers = neon::int32x4_t;

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vdupq_n_f32(value) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::Floats {
        // SAFETY: NEON is there, and the caller vouches for four readable values.
        unsafe { neon::vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, value: Self::Floats) {
        // SAFETY: NEON is there, and the caller vouches for four writable values.
        unsafe { neon::vst1q_f32(to, value) }
    }

    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vsubq_f32(a, b) }
    }

    #[inline(always)]
    fn multiply(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn divide(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vdivq_f32(a, b) }
    }

    #[inline(always)]
    fn multiply_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    fn minimum(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vminq_f32(a, b) }
    }

    #[inline(always)]
    fn maximum(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vmaxq_f32(a, b) }
    }

    #[inline(always)]
    fn scale_by_power(self, value: Self::Floats, shifted: Self::Floats) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe {
            let power = neon::vshlq_n_s32::<23>(neon::vreinterpretq_s32_f32(shifted));
            let value = neon::vaddq_s32(neon::vreinterpretq_s32_f32(value), power);
            neon::vreinterpretq_f32_s32(value)
        }
    }

    #[inline(always)]
    fn sum(self, value: Self::Floats) -> f32 {
        // SAFETY: NEON is there.
        unsafe { neon::vaddvq_f32(value) }
    }

    #[inline(always)]
    fn greatest(self, value: Self::Floats) -> f32 {
        // SAFETY: NEON is there.
        unsafe { neon::vmaxvq_f32(value) }
    }

    #[inline(always)]
    fn splat_integer(self, value: i32) -> Self::Integers {
        // SAFETY: NEON is there.
        unsafe { neon::vdupq_n_s32(value) }
    }

    #[inline(always)]
    unsafe fn load_integers(self, from: *const i32) -> Self::Integers {
        // SAFETY: NEON is there, and the caller vouches for four readable values.
        unsafe { neon::vld1q_s32(from) }
    }

    #[inline(always)]
    unsafe fn load_widened(self, from: *const i8) -> Self::Integers {
        // SAFETY: NEON is there, and the caller vouches for eight readable bytes.
        unsafe { neon::vreinterpretq_s32_s16(neon::vmovl_s8(neon::vld1_s8(from))) }
    }

    #[inline(always)]
    fn subtract_integers(self, a: Self::Integers, b: Self::Integers) -> Self::Integers {
        // SAFETY: NEON is there.
        unsafe { neon::vsubq_s32(a, b) }
    }

    #[inline(always)]
    fn to_floats(self, value: Self::Integers) -> Self::Floats {
        // SAFETY: NEON is there.
        unsafe { neon::vcvtq_f32_s32(value) }
    }

    #[inline(always)]
    fn dot_words(
        self,
        sum: Self::Integers,
        a: Self::Integers,
        b: Self::Integers,
    ) -> Self::Integers {
        // SAFETY: NEON is there.
        unsafe {
            let (a, b) = (neon::vreinterpretq_s16_s32(a), neon::vreinterpretq_s16_s32(b));
            neon::vaddq_s32(sum, pairs(a, b))
        }
    }

    #[inline(always)]
    fn dot_bytes(
        self,
        sum: Self::Integers,
        a: Self::Integers,
        b: Self::Integers,
    ) -> Self::Integers {
        // SAFETY: NEON is there.
        unsafe {
            let (a, b) = (neon::vreinterpretq_u8_s32(a), neon::vreinterpretq_s8_s32(b));
            let low = pairs(
                neon::vreinterpretq_s16_u16(neon::vmovl_u8(neon::vget_low_u8(a))),
                neon::vmovl_s8(neon::vget_low_s8(b)),
            );
            let high =
                pairs(neon::vreinterpretq_s16_u16(neon::vmovl_high_u8(a)), neon::vmovl_high_s8(b));
            neon::vaddq_s32(sum, neon::vpaddq_s32(low, high))
        }
    }

    #[inline(always)]
    fn sum_integers(self, value: Self::Integers) -> i32 {
        // SAFETY: NEON is there.
        unsafe { neon::vaddvq_s32(value) }
    }
}
