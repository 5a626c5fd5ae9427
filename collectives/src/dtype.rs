//! Data types, as callers name them.

use std::fmt;
use std::str::FromStr;

use unisono_abi::dtype;

use crate::float8::{F8E4M3, F8E5M2};

/// The type of one element of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum DataType {
    I8 = dtype::I8,
    U8 = dtype::U8,
    I16 = dtype::I16,
    U16 = dtype::U16,
    I32 = dtype::I32,
    U32 = dtype::U32,
    I64 = dtype::I64,
    U64 = dtype::U64,
    F16 = dtype::F16,
    Bf16 = dtype::BF16,
    F32 = dtype::F32,
    F64 = dtype::F64,
    F8E4M3 = dtype::F8E4M3FN,
    F8E5M2 = dtype::F8E5M2,
}

impl DataType {
    /// Every type, in the order of its number in the contract.
    pub const ALL: [Self; 14] = [
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
        Self::F8E4M3,
        Self::F8E5M2,
    ];

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::F8E4M3 | Self::F8E5M2 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The name, as in Rust: `f32`, `bf16`, `u8`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F8E4M3 => "f8e4m3",
            Self::F8E5M2 => "f8e5m2",
        }
    }

    /// Whether it is an integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        self.code() <= dtype::U64
    }

    /// The number in the plugin contract (`unisono_dtype`).
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The type with this number.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.code() == code)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DataType {
    type Err = String;

    /// Takes Rust's names, those of nccl-tests (`float`, `half`, `bfloat16`, `int8`, …) and PyTorch's.
    fn from_str(text: &str) -> Result<Self, String> {
        let name = match text {
            "int8" | "char" => "i8",
            "uint8" => "u8",
            "int16" => "i16",
            "uint16" => "u16",
            "int32" | "int" => "i32",
            "uint32" => "u32",
            "int64" => "i64",
            "uint64" => "u64",
            "half" | "float16" => "f16",
            "bfloat16" => "bf16",
            "float" | "float32" => "f32",
            "double" | "float64" => "f64",
            "f8e4m3fn" | "float8_e4m3fn" | "float8e4m3" => "f8e4m3",
            "float8_e5m2" | "float8e5m2" => "f8e5m2",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|t| t.name() == name)
            .ok_or_else(|| {
                let known: Vec<_> = Self::ALL.iter().map(|t| t.name()).collect();
                format!("unknown data type `{text}`; known: {}", known.join(", "))
            })
    }
}

/// A Rust type that messages can be made of. Sealed: the plugin contract fixes the list.
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// Its [`DataType`].
    const TYPE: DataType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $ty:ident),+ $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const TYPE: DataType = DataType::$ty;
        }
    )+};
}
elements! {
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    half::f16 => F16, half::bf16 => Bf16, f32 => F32, f64 => F64, F8E4M3 => F8E4M3, F8E5M2 => F8E5M2,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip() {
        for t in DataType::ALL {
            assert_eq!(t.name().parse(), Ok(t));
            assert_eq!(DataType::from_code(t.code()), Some(t));
        }
        assert_eq!("float8_e4m3fn".parse(), Ok(DataType::F8E4M3));
        assert_eq!("float".parse(), Ok(DataType::F32));
        assert!("complex".parse::<DataType>().is_err());
    }
}
