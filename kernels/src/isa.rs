//! Which instructions the processor has.

use crate::simd::Simd;
use crate::simd::portable::Portable;

#[cfg(target_arch = "x86_64")]
use crate::simd::{avx2::Avx2, avx512::Avx512};

#[cfg(any(target_arch = "aarch64", test))]
use crate::simd::neon::Neon;

/// An instruction set that this processor has.
///
/// A value exists only for what the processor reported at run time, so every
/// operation that takes one is safe.
///
/// A scan gives the same answer on every set. Everything else differs by
/// rounding, and products of bytes by one bit of each activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Portable,
    /// Emulated in tests on other processors.
    #[cfg(any(target_arch = "aarch64", test))]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx2Vnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Work that is compiled once for each instruction set.
///
/// `run` and all that it calls must be `#[inline(always)]`: a function that
/// stands by itself is compiled without the instructions.
pub(crate) trait Kernel {
    /// What the work gives.
    type Output;

    /// Does the work with the given instructions.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

impl Isa {
    /// The fastest set of this processor.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Self(Level::Avx512);
            }
            if has_avx2_vnni() {
                return Self(Level::Avx2Vnni);
            }
            if has_avx2() {
                return Self(Level::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if has_neon() {
            return Self(Level::Neon);
        }
        Self::portable()
    }

    /// Plain code, which every processor runs.
    pub fn portable() -> Self {
        Self(Level::Portable)
    }

    /// Every set of this processor, the portable one first.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::portable()];
        #[cfg(any(target_arch = "aarch64", test))]
        if has_neon() {
            all.push(Self(Level::Neon));
        }
        #[cfg(target_arch = "x86_64")]
        {
            let rest = [
                (has_avx2(), Level::Avx2),
                (has_avx2_vnni(), Level::Avx2Vnni),
                (has_avx512(), Level::Avx512),
            ];
            all.extend(rest.into_iter().filter(|(has, _)| *has).map(|(_, level)| Self(level)));
        }
        all
    }

    /// A name for logs: `portable`, `neon`, `avx2`, `avx2-vnni` or `avx512-vnni`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(any(target_arch = "aarch64", test))]
            Level::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2Vnni => "avx2-vnni",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512-vnni",
        }
    }

    /// Whether products of integers are faster than those of `f32`.
    pub fn has_integer_products(self) -> bool {
        match self.0 {
            Level::Portable => false,
            // Widening products of 16 bits are half as many to an instruction.
            #[cfg(any(target_arch = "aarch64", test))]
            Level::Neon => false,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx2Vnni | Level::Avx512 => true,
        }
    }

    /// Whether products of bytes are faster than those of 16 bits, and keep
    /// eight bits of each activation.
    pub fn has_byte_products(self) -> bool {
        match self.0 {
            Level::Portable => false,
            #[cfg(any(target_arch = "aarch64", test))]
            Level::Neon => false,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => false,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2Vnni | Level::Avx512 => true,
        }
    }

    /// Runs a kernel with these instructions.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Portable => kernel.run(Portable),
            // SAFETY: a value of this level is made only where the processor has
            // NEON, or in a test that emulates it.
            #[cfg(any(target_arch = "aarch64", test))]
            Level::Neon => unsafe { run_neon(kernel) },
            // SAFETY of all three: a value of this level is made only where the
            // processor has reported each of the features that the function asks for.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(kernel) },
            #[cfg(target_arch = "x86_64")]
            Level::Avx2Vnni => unsafe { run_avx2_vnni(kernel) },
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "aarch64")]
fn has_neon() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

/// Here the instructions are emulated.
#[cfg(all(test, not(target_arch = "aarch64")))]
fn has_neon() -> bool {
    true
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2_vnni() -> bool {
    has_avx2() && is_x86_feature_detected!("avxvnni")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

#[cfg(any(target_arch = "aarch64", test))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
unsafe fn run_neon<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function is compiled for, and so only called with, NEON.
    kernel.run(unsafe { Neon::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function is compiled for, and so only called with, these features.
    kernel.run(unsafe { Avx2::<false>::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avxvnni")]
fn run_avx2_vnni<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function is compiled for, and so only called with, these features.
    kernel.run(unsafe { Avx2::<true>::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function is compiled for, and so only called with, these features.
    kernel.run(unsafe { Avx512::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_set_is_the_last_of_all() {
        let all = Isa::all();
        assert_eq!(all[0], Isa::portable());
        // A processor with both kinds of VNNI prefers the wider.
        assert_eq!(all.last(), Some(&Isa::best()));
    }
}
