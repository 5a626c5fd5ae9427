//! Elements as they lie in memory, and the type that they are computed in.

use super::small_float::{E4m3Format, E5m2Format, Half, narrow, narrow_bf16, widen, widen_bf16};

/// An element: how it is stored, and how it is computed with.
pub(super) trait Element: Copy {
    /// The type of computation.
    type Wide: Copy;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    /// `wide / divisor`, where `divisor` is not 0: integers round toward zero.
    fn divide(wide: Self::Wide, divisor: u32) -> Self::Wide;
}

macro_rules! computed_in_itself {
    ($($t:ty as $quotient:ty,)+) => {$(
        impl Element for $t {
            type Wide = $t;
            #[inline(always)]
            fn widen(self) -> $t {
                self
            }
            #[inline(always)]
            fn narrow(wide: $t) -> $t {
                wide
            }
            #[inline(always)]
            fn divide(wide: $t, divisor: u32) -> $t {
                ((wide as $quotient) / (divisor as $quotient)) as $t
            }
        }
    )+};
}
// The quotient's type holds both the element and any divisor.
computed_in_itself! {
    i8 as i64, u8 as u32, i16 as i64, u16 as u32, i32 as i64, u32 as u32, i64 as i64, u64 as u64,
    f32 as f32, f64 as f64,
}

macro_rules! computed_in_f32 {
    ($($(#[$meta:meta])* $name:ident($bits:ty), $widen:expr, $narrow:expr;)+) => {$(
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub(super) struct $name($bits);
        impl Element for $name {
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                $widen(self.0.into())
            }
            #[inline(always)]
            fn narrow(wide: f32) -> Self {
                Self($narrow(wide) as $bits)
            }
            #[inline(always)]
            fn divide(wide: f32, divisor: u32) -> f32 {
                wide / divisor as f32
            }
        }
    )+};
}
computed_in_f32! {
    /// IEEE binary16.
    F16(u16), widen::<Half>, narrow::<Half>;
    /// bfloat16.
    Bf16(u16), widen_bf16, narrow_bf16;
    /// OCP FP8 E4M3FN.
    F8e4m3(u8), widen::<E4m3Format>, narrow::<E4m3Format>;
    /// OCP FP8 E5M2.
    F8e5m2(u8), widen::<E5m2Format>, narrow::<E5m2Format>;
}
