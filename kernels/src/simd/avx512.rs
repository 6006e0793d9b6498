//! AVX-512 with its instructions for bytes and for dot products.

use std::arch::asm;
use std::arch::x86_64::{
    __m512, __m512i, _mm256_loadu_si256, _mm512_add_epi32, _mm512_add_ps, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cvtepi8_epi16, _mm512_cvtepi32_ps, _mm512_div_ps,
    _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_reduce_add_epi32, _mm512_reduce_add_ps,
    _mm512_reduce_max_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_slli_epi32, _mm512_storeu_ps,
    _mm512_sub_epi32, _mm512_sub_ps,
};

use super::Simd;

/// The proof that the processor has AVX-512 F, BW, DQ, VL and VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// Vouches for the processor.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 F, BW, DQ, VL and VNNI.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self(())
    }
}

/// Adds to each lane the products of its two words.
///
/// The compiler turns the intrinsic for this into a product and an addition,
/// which take twice as many of the slots that a matrix product is short of.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn dot_words(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    let mut sum = sum;
    // SAFETY: the instruction is there, by the features of this function, and
    // touches no memory.
    unsafe {
        asm!(
            "vpdpwssd {sum}, {a}, {b}",
            sum = inout(zmm_reg) sum,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

impl Simd for Avx512 {
    const LANES: usize = 16;
    // Twelve would fit the vector registers, but not the rows' addresses the others.
    const FLOAT_ROWS: usize = 11;
    const INTEGER_ROWS: usize = 11;
    const BYTE_LIMIT: u8 = 127;

    type Floats = __m512;
    type Integers = __m512i;

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        // SAFETY: AVX-512 is there, and the caller vouches for 16 readable values.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, value: __m512) {
        // SAFETY: AVX-512 is there, and the caller vouches for 16 writable values.
        unsafe { _mm512_storeu_ps(to, value) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn subtract(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn multiply(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn divide(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn multiply_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn minimum(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn maximum(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn scale_by_power(self, value: __m512, shifted: __m512) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe {
            let power = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(value), power))
        }
    }

    #[inline(always)]
    fn sum(self, value: __m512) -> f32 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_reduce_add_ps(value) }
    }

    #[inline(always)]
    fn greatest(self, value: __m512) -> f32 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_reduce_max_ps(value) }
    }

    #[inline(always)]
    fn splat_integer(self, value: i32) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load_integers(self, from: *const i32) -> __m512i {
        // SAFETY: AVX-512 is there, and the caller vouches for 16 readable values.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_widened(self, from: *const i8) -> __m512i {
        // SAFETY: AVX-512 BW is there, and the caller vouches for 32 readable bytes.
        unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    fn subtract_integers(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_sub_epi32(a, b) }
    }

    #[inline(always)]
    fn to_floats(self, value: __m512i) -> __m512 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_cvtepi32_ps(value) }
    }

    #[inline(always)]
    fn dot_words(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: AVX-512 VNNI is there.
        unsafe { dot_words(sum, a, b) }
    }

    #[inline(always)]
    fn dot_bytes(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: AVX-512 VNNI is there.
        unsafe { _mm512_dpbusd_epi32(sum, a, b) }
    }

    #[inline(always)]
    fn sum_integers(self, value: __m512i) -> i32 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_reduce_add_epi32(value) }
    }
}
