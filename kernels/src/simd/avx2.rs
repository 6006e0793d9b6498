//! AVX2 with fused multiplication, and with VNNI where the processor has it.

use std::arch::x86_64::{
    __m256, __m256i, _mm_add_epi32, _mm_add_ps, _mm_add_ss, _mm_cvtsi128_si32, _mm_cvtss_f32,
    _mm_loadu_si128, _mm_max_ps, _mm_max_ss, _mm_movehl_ps, _mm_shuffle_epi32, _mm_shuffle_ps,
    _mm256_add_epi32, _mm256_add_ps, _mm256_castps_si256, _mm256_castps256_ps128,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps,
    _mm256_div_ps, _mm256_dpbusd_avx_epi32, _mm256_dpwssd_avx_epi32, _mm256_extractf128_ps,
    _mm256_extracti128_si256, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_slli_epi32, _mm256_storeu_ps,
    _mm256_sub_epi32, _mm256_sub_ps,
};

use super::Simd;

/// The proof that the processor has AVX2 and FMA, and AVX-VNNI if `VNNI`.
#[derive(Clone, Copy)]
pub(crate) struct Avx2<const VNNI: bool>(());

impl<const VNNI: bool> Avx2<VNNI> {
    /// Vouches for the processor.
    ///
    /// # Safety
    ///
    /// The processor has AVX2 and FMA, and AVX-VNNI if `VNNI`.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self(())
    }
}

// SAFETY of the blocks below: a value of this type is the proof that the
// processor has the instructions; where memory is touched, the caller vouches
// for it as the trait demands.
impl<const VNNI: bool> Simd for Avx2<VNNI> {
    const LANES: usize = 8;
    const FLOAT_ROWS: usize = 6;
    const INTEGER_ROWS: usize = 6;
    // Without VNNI two products are added in 16 bits: 2 × 127 × 127 fits, 2 × 255 × 127 does not.
    const BYTE_LIMIT: u8 = if VNNI { 127 } else { 63 };

    type Floats = __m256;
    type Integers = __m256i;

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        // SAFETY: AVX2 is there, and the caller vouches for eight readable values.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, value: __m256) {
        // SAFETY: AVX2 is there, and the caller vouches for eight writable values.
        unsafe { _mm256_storeu_ps(to, value) }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn subtract(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn multiply(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn divide(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn multiply_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: FMA is there.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn minimum(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    fn maximum(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    fn scale_by_power(self, value: __m256, shifted: __m256) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe {
            let power = _mm256_slli_epi32::<23>(_mm256_castps_si256(shifted));
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(value), power))
        }
    }

    #[inline(always)]
    fn sum(self, value: __m256) -> f32 {
        // SAFETY: AVX2 is there.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps::<1>(value));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    fn greatest(self, value: __m256) -> f32 {
        // SAFETY: AVX2 is there.
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps::<1>(value));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    fn splat_integer(self, value: i32) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load_integers(self, from: *const i32) -> __m256i {
        // SAFETY: AVX2 is there, and the caller vouches for eight readable values.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_widened(self, from: *const i8) -> __m256i {
        // SAFETY: AVX2 is there, and the caller vouches for 16 readable bytes.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    fn subtract_integers(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_sub_epi32(a, b) }
    }

    #[inline(always)]
    fn to_floats(self, value: __m256i) -> __m256 {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_cvtepi32_ps(value) }
    }

    #[inline(always)]
    fn dot_words(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: AVX2 is there, and AVX-VNNI if VNNI.
        unsafe {
            if VNNI {
                _mm256_dpwssd_avx_epi32(sum, a, b)
            } else {
                _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
            }
        }
    }

    #[inline(always)]
    fn dot_bytes(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: AVX2 is there, and AVX-VNNI if VNNI.
        unsafe {
            if VNNI {
                _mm256_dpbusd_avx_epi32(sum, a, b)
            } else {
                let pairs = _mm256_maddubs_epi16(a, b);
                _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            }
        }
    }

    #[inline(always)]
    fn sum_integers(self, value: __m256i) -> i32 {
        // SAFETY: AVX2 is there.
        unsafe {
            let (low, high) = (_mm256_castsi256_si128(value), _mm256_extracti128_si256::<1>(value));
            let four = _mm_add_epi32(low, high);
            let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b00_00_11_10>(four));
            _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
        }
    }
}
