//! IEEE half on x86-64: the CPU converts, sixteen or eight at a time.
#![allow(
    unsafe_code,
    reason = "vector instructions, and the addresses that commands carry"
)]

use core::arch::x86_64::{
    _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_storeu_ps, _mm256_storeu_si256, _mm512_cvtph_ps,
    _mm512_cvtps_ph, _mm512_loadu_ps, _mm512_storeu_ps,
};

use super::element::F16;
use super::kernel::{Division, Loops};
use super::op::Op;

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;

macro_rules! half_loops {
    (
        $isa:ident, $lanes:literal, #[$feature:meta],
        $load:ident, $widen:ident, $narrow:ident, $store:ident, $spill:ident, $fill:ident
    ) => {
        pub(super) mod $isa {
            use super::*;

            /// The operands of one vector, widened.
            ///
            /// # Safety
            /// The pointer is good for one vector of halves, the CPU has the instructions.
            #[inline]
            #[$feature]
            unsafe fn load(from: *const u8) -> [f32; $lanes] {
                let mut wide = [0.0; $lanes];
                // SAFETY: the caller's promise; `wide` has the room.
                unsafe { $spill(wide.as_mut_ptr(), $widen($load(from.cast()))) };
                wide
            }

            /// # Safety
            /// As for `load`.
            #[inline]
            #[$feature]
            unsafe fn store(to: *mut u8, wide: [f32; $lanes]) {
                // SAFETY: the caller's promise.
                unsafe { $store(to.cast(), $narrow::<NEAREST>($fill(wide.as_ptr()))) };
            }

            /// Reduces as many whole vectors as fit and returns how many elements that were. The
            /// pointers may be equal: each vector is loaded before it is stored.
            ///
            /// # Safety
            /// As for `Combine`, but `dst` may be an operand.
            #[inline]
            #[$feature]
            unsafe fn vectors<O: Op<f32>>(
                dst: *mut u8,
                a: *const u8,
                b: *const u8,
                elements: usize,
                divisor: Option<f32>,
            ) -> usize {
                let whole = elements - elements % $lanes;
                for start in (0..whole).step_by($lanes) {
                    // SAFETY: the vector at `start` lies within `elements`.
                    unsafe {
                        let (a, b) = (load(a.add(start * 2)), load(b.add(start * 2)));
                        let mut wide = [0.0; $lanes];
                        for i in 0..$lanes {
                            wide[i] = O::apply(a[i], b[i]);
                        }
                        if let Some(divisor) = divisor {
                            for value in &mut wide {
                                *value /= divisor;
                            }
                        }
                        store(dst.add(start * 2), wide);
                    }
                }
                whole
            }

            /// # Safety
            /// The contract of `Combine`.
            #[$feature]
            unsafe fn combine<O: Op<f32>>(dst: *mut u8, a: *const u8, b: *const u8, n: usize) {
                // SAFETY: the same contract; the rest begins where the vectors end.
                unsafe {
                    let done = vectors::<O>(dst, a, b, n, None);
                    let rest = super::super::kernel::$isa::combine::<F16, O>;
                    rest(
                        dst.add(done * 2),
                        a.add(done * 2),
                        b.add(done * 2),
                        n - done,
                    );
                }
            }

            /// # Safety
            /// The contract of `Fold`.
            #[$feature]
            unsafe fn fold<O: Op<f32>>(dst: *mut u8, b: *const u8, n: usize) {
                // SAFETY: as above.
                unsafe {
                    let done = vectors::<O>(dst, dst, b, n, None);
                    let rest = super::super::kernel::$isa::fold::<F16, O>;
                    rest(dst.add(done * 2), b.add(done * 2), n - done);
                }
            }

            /// # Safety
            /// The contract of `CombineDivided`.
            #[$feature]
            unsafe fn combine_divided<O: Op<f32>>(
                dst: *mut u8,
                a: *const u8,
                b: *const u8,
                n: usize,
                divisor: u32,
            ) {
                // SAFETY: as above.
                unsafe {
                    let done = vectors::<O>(dst, a, b, n, Some(divisor as f32));
                    let rest = super::super::kernel::$isa::combine_divided::<F16, O>;
                    rest(
                        dst.add(done * 2),
                        a.add(done * 2),
                        b.add(done * 2),
                        n - done,
                        divisor,
                    );
                }
            }

            pub(in super::super) const fn half<O: Op<f32>>() -> Loops {
                Loops {
                    combine: combine::<O>,
                    fold: fold::<O>,
                    division: Division::Within(combine_divided::<O>),
                }
            }
        }
    };
}

half_loops!(
    avx2, 8, #[target_feature(enable = "avx2,f16c")],
    _mm_loadu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm_storeu_si128,
    _mm256_storeu_ps, _mm256_loadu_ps
);
half_loops!(
    avx512, 16, #[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")],
    _mm256_loadu_si256, _mm512_cvtph_ps, _mm512_cvtps_ph, _mm256_storeu_si256,
    _mm512_storeu_ps, _mm512_loadu_ps
);
