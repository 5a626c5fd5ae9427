//! The data types and reductions of the contract, parsed once.

use unisono_plugin::abi::{dtype, reduction};

macro_rules! codes {
    ($(#[$meta:meta])* $name:ident, $module:ident { $($variant:ident = $code:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum $name { $(#[doc = concat!("`", stringify!($code), "`.")] $variant = $module::$code,)+ }

        impl $name {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// From the code in a command, `None` if the contract has no such code.
            #[must_use]
            pub const fn from_code(code: u16) -> Option<Self> {
                match code {
                    $($module::$code => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// A data type.
    Dtype, dtype {
        I8 = I8, U8 = U8, I16 = I16, U16 = U16, I32 = I32, U32 = U32, I64 = I64, U64 = U64,
        F16 = F16, Bf16 = BF16, F32 = F32, F64 = F64, F8e4m3 = F8E4M3FN, F8e5m2 = F8E5M2,
    }
}

codes! {
    /// A reduction.
    Reduction, reduction {
        Sum = SUM, Prod = PROD, Min = MIN, Max = MAX, And = AND, Or = OR, Xor = XOR,
    }
}

impl Dtype {
    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::F8e4m3 | Self::F8e5m2 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it is an integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        (self as u16) <= Self::U64 as u16
    }
}

impl Reduction {
    /// Whether it is defined on this type: bitwise reductions are for integers.
    #[must_use]
    pub const fn applies_to(self, dtype: Dtype) -> bool {
        dtype.is_integer() || (self as u16) <= Self::Max as u16
    }
}
