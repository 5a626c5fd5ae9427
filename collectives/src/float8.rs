//! The two 8-bit floats of the OCP standard, as elements of messages.
//!
//! "OCP 8-bit Floating Point Specification (OFP8)", revision 1.0, 2023. Reductions compute them in
//! `f32` and round once a step.

use std::fmt;

/// An 8-bit format: where its fields lie and where finite numbers end.
struct Format {
    mantissa: u32,
    bias: u32,
    /// What a number that is too large becomes: infinity, or the largest.
    overflow: u8,
    /// Magnitudes above it are NaN.
    last: u8,
    infinity: Option<u8>,
}

const E4M3: Format = Format {
    mantissa: 3,
    bias: 7,
    overflow: 0x7e,
    last: 0x7e,
    infinity: None,
};
const E5M2: Format = Format {
    mantissa: 2,
    bias: 15,
    overflow: 0x7c,
    last: 0x7c,
    infinity: Some(0x7c),
};

impl Format {
    fn widen(&self, code: u8) -> f32 {
        let magnitude = code & 0x7f;
        let exponent = u32::from(magnitude) >> self.mantissa;
        let fraction = u32::from(magnitude) & ((1 << self.mantissa) - 1);
        let value = if magnitude > self.last {
            f32::NAN
        } else if self.infinity == Some(magnitude) {
            f32::INFINITY
        } else {
            let (digits, power) = match exponent {
                0 => (fraction, 1),
                _ => (fraction | 1 << self.mantissa, exponent),
            };
            let power = power as i32 - self.bias as i32 - self.mantissa as i32;
            digits as f32 * f32::powi(2.0, power)
        };
        value.copysign(if code & 0x80 == 0 { 1.0 } else { -1.0 })
    }

    /// The nearest code; of two that are as near the even one.
    fn narrow(&self, value: f32) -> u8 {
        let sign = u8::from(value.is_sign_negative()) << 7;
        if value.is_nan() {
            return sign | 0x7f;
        }
        let magnitude = value.abs();
        // The last place of a result this large, and never less than a subnormal's.
        let least = 1 - self.bias as i32;
        let exponent = (magnitude.to_bits() >> 23) as i32 - 127;
        let exponent = exponent.max(least);
        if exponent > 16 {
            return sign | self.overflow;
        }
        // Both factors are powers of two and no step leaves the range of `f32`: exact.
        let places = magnitude * f32::powi(2.0, self.mantissa as i32 - exponent);
        let code = ((exponent - least) << self.mantissa) as u32 + places.round_ties_even() as u32;
        sign | (code.min(u32::from(self.overflow)) as u8)
    }
}

macro_rules! float8 {
    ($($(#[$doc:meta])* $name:ident: $format:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// From the code.
            #[must_use]
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// The code.
            #[must_use]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest, ties to even. Every NaN becomes one NaN.
            #[must_use]
            pub fn from_f32(value: f32) -> Self {
                Self($format.narrow(value))
            }

            /// The same number, exactly.
            #[must_use]
            pub fn to_f32(self) -> f32 {
                $format.widen(self.0)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f32().fmt(f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f32().fmt(f)
            }
        }
    )+};
}
float8! {
    /// E4M3FN: 4 bits of exponent, 3 of mantissa, no infinity. What is too large becomes ±448.
    F8E4M3: E4M3;
    /// E5M2: 5 bits of exponent, 2 of mantissa, with infinities. Its largest number is 57344.
    F8E5M2: E5M2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_the_nearest_to_itself() {
        for code in 0..=255 {
            let (a, b) = (F8E4M3::from_bits(code), F8E5M2::from_bits(code));
            assert_eq!(a.to_f32().is_nan(), code & 0x7f == 0x7f);
            assert_eq!(b.to_f32().is_nan(), code & 0x7f > 0x7c);
            if a == a {
                assert_eq!(F8E4M3::from_f32(a.to_f32()).to_bits(), code);
            }
            if b == b {
                assert_eq!(F8E5M2::from_f32(b.to_f32()).to_bits(), code);
            }
        }
    }

    #[test]
    fn what_lies_between_goes_to_the_nearest() {
        // Halves go to the even one, what is a little off to the nearer one.
        for code in 0..0x7b_u8 {
            let step = |c: u8| (F8E4M3::from_bits(c).to_f32(), F8E5M2::from_bits(c).to_f32());
            let ((a, x), (b, y)) = (step(code), step(code + 1));
            let even = code + (code & 1);
            assert_eq!(F8E4M3::from_f32((a + b) / 2.0).to_bits(), even);
            assert_eq!(F8E5M2::from_f32((x + y) / 2.0).to_bits(), even);
            assert_eq!(F8E4M3::from_f32(a + (b - a) * 0.51).to_bits(), code + 1);
            assert_eq!(F8E5M2::from_f32(x + (y - x) * 0.49).to_bits(), code);
        }
    }

    #[test]
    fn the_ends_are_those_of_the_standard() {
        assert_eq!(F8E4M3::from_bits(0x7e).to_f32(), 448.0);
        assert_eq!(F8E4M3::from_bits(0x01).to_f32(), f32::powi(2.0, -9));
        assert_eq!(F8E5M2::from_bits(0x7b).to_f32(), 57344.0);
        assert_eq!(F8E5M2::from_bits(0x01).to_f32(), f32::powi(2.0, -16));
        for large in [465.0, 1e9, f32::INFINITY] {
            assert_eq!(F8E4M3::from_f32(large).to_f32(), 448.0);
            assert_eq!(F8E4M3::from_f32(-large).to_f32(), -448.0);
        }
        assert_eq!(F8E5M2::from_f32(61439.0).to_f32(), 57344.0);
        for large in [61440.0, 1e9, f32::INFINITY] {
            assert_eq!(F8E5M2::from_f32(large).to_f32(), f32::INFINITY);
        }
        assert!(F8E4M3::from_f32(f32::NAN).to_f32().is_nan());
        assert!(F8E5M2::from_f32(-f32::NAN).to_f32().is_nan());
        assert_eq!(F8E5M2::from_f32(-0.0).to_bits(), 0x80);
        assert_eq!(F8E4M3::from_f32(1e-45).to_bits(), 0);
    }
}
