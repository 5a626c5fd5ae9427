//! The loops, and their compilation for each instruction set.
//!
//! One plain loop serves every type and reduction. It is inlined into a wrapper for each
//! instruction set, and the compiler vectorises it there. Operands of a command are either
//! distinct or the same memory; each case has its loop, because only then can the compiler assume
//! that a store changes no operand that it has yet to load.
#![allow(unsafe_code, reason = "kernels take the addresses that commands carry")]

use super::element::Element;
use super::op::Op;

/// `dst[i] = a[i] op b[i]` for `elements` elements.
///
/// # Safety
/// Each pointer is good for that many elements, at any alignment; `dst` overlaps neither operand.
pub(super) type Combine = unsafe fn(dst: *mut u8, a: *const u8, b: *const u8, elements: usize);
/// `dst[i] = dst[i] op b[i]`.
///
/// # Safety
/// As for [`Combine`].
pub(super) type Fold = unsafe fn(dst: *mut u8, b: *const u8, elements: usize);
/// `dst[i] = (a[i] op b[i]) / divisor`, rounded once.
///
/// # Safety
/// As for [`Combine`]; `divisor` is not 0.
pub(super) type CombineDivided =
    unsafe fn(dst: *mut u8, a: *const u8, b: *const u8, elements: usize, divisor: u32);
/// `dst[i] = dst[i] / divisor`.
///
/// # Safety
/// As for [`Combine`]; `divisor` is not 0.
pub(super) type Divide = unsafe fn(dst: *mut u8, elements: usize, divisor: u32);

/// How a result is divided.
#[derive(Clone, Copy, Debug)]
pub(super) enum Division {
    /// In the type of computation, before it is rounded to the type of the element.
    Within(CombineDivided),
    /// After the reduction: for types that are computed in themselves.
    After(Divide),
}

/// The loops of one type and reduction, for one instruction set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loops {
    pub(super) combine: Combine,
    pub(super) fold: Fold,
    pub(super) division: Division,
}

/// An element at any address.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Unaligned<T>(T);

#[inline(always)]
fn combine_body<T: Element, O: Op<T::Wide>>(
    dst: &mut [Unaligned<T>],
    a: &[Unaligned<T>],
    b: &[Unaligned<T>],
) {
    for ((dst, a), b) in dst.iter_mut().zip(a).zip(b) {
        *dst = Unaligned(T::narrow(O::apply({ a.0 }.widen(), { b.0 }.widen())));
    }
}

#[inline(always)]
fn fold_body<T: Element, O: Op<T::Wide>>(dst: &mut [Unaligned<T>], b: &[Unaligned<T>]) {
    for (dst, b) in dst.iter_mut().zip(b) {
        *dst = Unaligned(T::narrow(O::apply({ dst.0 }.widen(), { b.0 }.widen())));
    }
}

#[inline(always)]
fn combine_divided_body<T: Element, O: Op<T::Wide>>(
    dst: &mut [Unaligned<T>],
    a: &[Unaligned<T>],
    b: &[Unaligned<T>],
    divisor: u32,
) {
    for ((dst, a), b) in dst.iter_mut().zip(a).zip(b) {
        let wide = O::apply({ a.0 }.widen(), { b.0 }.widen());
        *dst = Unaligned(T::narrow(T::divide(wide, divisor)));
    }
}

#[inline(always)]
fn divide_body<T: Element>(dst: &mut [Unaligned<T>], divisor: u32) {
    for dst in dst {
        *dst = Unaligned(T::narrow(T::divide({ dst.0 }.widen(), divisor)));
    }
}

/// # Safety
/// Good for `elements` elements, shared with no writer for as long as the slice lives.
#[inline(always)]
unsafe fn operand<'a, T>(ptr: *const u8, elements: usize) -> &'a [Unaligned<T>] {
    // SAFETY: the caller's promise; the packed wrapper needs no alignment.
    unsafe { core::slice::from_raw_parts(ptr.cast(), elements) }
}

/// # Safety
/// Good for `elements` elements, used by nobody else for as long as the slice lives.
#[inline(always)]
unsafe fn result<'a, T>(ptr: *mut u8, elements: usize) -> &'a mut [Unaligned<T>] {
    // SAFETY: the caller's promise; the packed wrapper needs no alignment.
    unsafe { core::slice::from_raw_parts_mut(ptr.cast(), elements) }
}

/// One module with every loop, compiled for one instruction set.
macro_rules! loops_for {
    ($isa:ident $(, #[$feature:meta])?) => {
        pub(super) mod $isa {
            use super::*;

            $(#[$feature])?
            pub(in super::super) unsafe fn combine<T: Element, O: Op<T::Wide>>(
                dst: *mut u8, a: *const u8, b: *const u8, elements: usize,
            ) {
                // SAFETY: the contract of `Combine`.
                unsafe {
                    let (a, b) = (operand::<T>(a, elements), operand::<T>(b, elements));
                    combine_body::<T, O>(result(dst, elements), a, b);
                }
            }

            $(#[$feature])?
            pub(in super::super) unsafe fn fold<T: Element, O: Op<T::Wide>>(
                dst: *mut u8, b: *const u8, elements: usize,
            ) {
                // SAFETY: the contract of `Fold`.
                unsafe { fold_body::<T, O>(result(dst, elements), operand(b, elements)) };
            }

            $(#[$feature])?
            pub(in super::super) unsafe fn combine_divided<T: Element, O: Op<T::Wide>>(
                dst: *mut u8, a: *const u8, b: *const u8, elements: usize, divisor: u32,
            ) {
                // SAFETY: the contract of `CombineDivided`.
                unsafe {
                    let (a, b) = (operand::<T>(a, elements), operand::<T>(b, elements));
                    combine_divided_body::<T, O>(result(dst, elements), a, b, divisor);
                }
            }

            $(#[$feature])?
            pub(in super::super) unsafe fn divide<T: Element>(
                dst: *mut u8, elements: usize, divisor: u32,
            ) {
                // SAFETY: the contract of `Divide`.
                unsafe { divide_body::<T>(result(dst, elements), divisor) };
            }

            /// Integers, `f32`, `f64`: `T` is reduced, `Q` divided (they differ in the sign alone).
            pub(in super::super) const fn plain<T: Element, Q: Element, O: Op<T::Wide>>() -> Loops {
                Loops {
                    combine: combine::<T, O>,
                    fold: fold::<T, O>,
                    division: Division::After(divide::<Q>),
                }
            }

            /// Bitwise: the bytes of `BYTES`-byte elements `Q`.
            pub(in super::super) const fn bitwise<Q: Element, O: Op<u8>>() -> Loops {
                unsafe fn combine_bytes<Q, O: Op<u8>>(
                    dst: *mut u8, a: *const u8, b: *const u8, elements: usize,
                ) {
                    // SAFETY: the contract of `Combine`, in bytes.
                    unsafe { combine::<u8, O>(dst, a, b, elements * size_of::<Q>()) };
                }
                unsafe fn fold_bytes<Q, O: Op<u8>>(dst: *mut u8, b: *const u8, elements: usize) {
                    // SAFETY: the contract of `Fold`, in bytes.
                    unsafe { fold::<u8, O>(dst, b, elements * size_of::<Q>()) };
                }
                Loops {
                    combine: combine_bytes::<Q, O>,
                    fold: fold_bytes::<Q, O>,
                    division: Division::After(divide::<Q>),
                }
            }

            /// Floats narrower than 32 bits.
            pub(in super::super) const fn narrow<T: Element, O: Op<T::Wide>>() -> Loops {
                Loops {
                    combine: combine::<T, O>,
                    fold: fold::<T, O>,
                    division: Division::Within(combine_divided::<T, O>),
                }
            }
        }
    };
}

loops_for!(baseline);

/// IEEE half without instructions for it.
pub(super) const fn half<O: Op<f32>>() -> Loops {
    baseline::narrow::<super::element::F16, O>()
}

#[cfg(target_arch = "x86_64")]
loops_for!(avx2, #[target_feature(enable = "avx2,f16c")]);
#[cfg(target_arch = "x86_64")]
loops_for!(avx512, #[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")]);
