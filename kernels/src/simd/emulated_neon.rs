//! The intrinsics of NEON in plain Rust, after the architecture's manual, so
//! that tests on other processors run what is written in them. Nothing but
//! tests uses these.
#![allow(
    non_camel_case_types,
    clippy::missing_safety_doc,
    clippy::cast_lossless,
    clippy::cast_sign_loss,
    reason = "names as the compiler's own module has them"
)]

use std::array::from_fn;

pub(crate) type float32x4_t = [f32; 4];
pub(crate) type int32x4_t = [i32; 4];
pub(crate) type int16x8_t = [i16; 8];
pub(crate) type int16x4_t = [i16; 4];
pub(crate) type int8x8_t = [i8; 8];
pub(crate) type int8x16_t = [i8; 16];
pub(crate) type uint8x8_t = [u8; 8];
pub(crate) type uint8x16_t = [u8; 16];
pub(crate) type uint16x8_t = [u16; 8];

/// Defines intrinsics; each is `unsafe`, as calls to the real ones are.
macro_rules! intrinsics {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty $body:block)+) => {
        $(pub(crate) unsafe fn $name($($argument: $type),*) -> $output $body)+
    };
}

intrinsics! {
    vdupq_n_f32(value: f32) -> float32x4_t { [value; 4] }
    vaddq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t { from_fn(|i| a[i] + b[i]) }
    vsubq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t { from_fn(|i| a[i] - b[i]) }
    vmulq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t { from_fn(|i| a[i] * b[i]) }
    vdivq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t { from_fn(|i| a[i] / b[i]) }
    vfmaq_f32(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        from_fn(|i| b[i].mul_add(c[i], a[i]))
    }
    vminq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t { from_fn(|i| a[i].min(b[i])) }
    vmaxq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t { from_fn(|i| a[i].max(b[i])) }
    // By pairs, as the instruction does.
    vaddvq_f32(a: float32x4_t) -> f32 { (a[0] + a[1]) + (a[2] + a[3]) }
    vmaxvq_f32(a: float32x4_t) -> f32 { a[0].max(a[1]).max(a[2].max(a[3])) }
    vreinterpretq_s32_f32(a: float32x4_t) -> int32x4_t { a.map(|it| it.to_bits().cast_signed()) }
    vreinterpretq_f32_s32(a: int32x4_t) -> float32x4_t {
        a.map(|it| f32::from_bits(it.cast_unsigned()))
    }
    vdupq_n_s32(value: i32) -> int32x4_t { [value; 4] }
    vaddq_s32(a: int32x4_t, b: int32x4_t) -> int32x4_t { from_fn(|i| a[i].wrapping_add(b[i])) }
    vsubq_s32(a: int32x4_t, b: int32x4_t) -> int32x4_t { from_fn(|i| a[i].wrapping_sub(b[i])) }
    vpaddq_s32(a: int32x4_t, b: int32x4_t) -> int32x4_t {
        let sum = |pair: [i32; 2]| pair[0].wrapping_add(pair[1]);
        [sum([a[0], a[1]]), sum([a[2], a[3]]), sum([b[0], b[1]]), sum([b[2], b[3]])]
    }
    vaddvq_s32(a: int32x4_t) -> i32 { a.iter().fold(0, |sum, it| sum.wrapping_add(*it)) }
    vcvtq_f32_s32(a: int32x4_t) -> float32x4_t { a.map(|it| it as f32) }
    vmull_s16(a: int16x4_t, b: int16x4_t) -> int32x4_t {
        from_fn(|i| i32::from(a[i]) * i32::from(b[i]))
    }
    vmull_high_s16(a: int16x8_t, b: int16x8_t) -> int32x4_t {
        from_fn(|i| i32::from(a[4 + i]) * i32::from(b[4 + i]))
    }
    vget_low_s16(a: int16x8_t) -> int16x4_t { from_fn(|i| a[i]) }
    vget_low_s8(a: int8x16_t) -> int8x8_t { from_fn(|i| a[i]) }
    vget_low_u8(a: uint8x16_t) -> uint8x8_t { from_fn(|i| a[i]) }
    vmovl_s8(a: int8x8_t) -> int16x8_t { a.map(i16::from) }
    vmovl_high_s8(a: int8x16_t) -> int16x8_t { from_fn(|i| i16::from(a[8 + i])) }
    vmovl_u8(a: uint8x8_t) -> uint16x8_t { a.map(u16::from) }
    vmovl_high_u8(a: uint8x16_t) -> uint16x8_t { from_fn(|i| u16::from(a[8 + i])) }
    vreinterpretq_s16_u16(a: uint16x8_t) -> int16x8_t { a.map(u16::cast_signed) }
    vreinterpretq_s16_s32(a: int32x4_t) -> int16x8_t {
        from_fn(|i| (a[i / 2] >> (16 * (i % 2))) as i16)
    }
    vreinterpretq_s32_s16(a: int16x8_t) -> int32x4_t {
        from_fn(|i| i32::from(a[2 * i]) & 0xffff | i32::from(a[2 * i + 1]) << 16)
    }
    vreinterpretq_s8_s32(a: int32x4_t) -> int8x16_t {
        from_fn(|i| (a[i / 4] >> (8 * (i % 4))) as i8)
    }
    vreinterpretq_u8_s32(a: int32x4_t) -> uint8x16_t {
        from_fn(|i| (a[i / 4] >> (8 * (i % 4))) as u8)
    }
    vld1q_f32(from: *const f32) -> float32x4_t {
        // SAFETY: the caller vouches for four readable values.
        unsafe { from.cast::<float32x4_t>().read_unaligned() }
    }
    vld1q_s32(from: *const i32) -> int32x4_t {
        // SAFETY: the caller vouches for four readable values.
        unsafe { from.cast::<int32x4_t>().read_unaligned() }
    }
    vld1_s8(from: *const i8) -> int8x8_t {
        // SAFETY: the caller vouches for eight readable values.
        unsafe { from.cast::<int8x8_t>().read_unaligned() }
    }
    vst1q_f32(to: *mut f32, value: float32x4_t) -> () {
        // SAFETY: the caller vouches for four writable values.
        unsafe { to.cast::<float32x4_t>().write_unaligned(value) }
    }
}

pub(crate) unsafe fn vshlq_n_s32<const N: i32>(a: int32x4_t) -> int32x4_t {
    a.map(|it| it << N)
}
