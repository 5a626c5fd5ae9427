//! The loops by instruction set, type and reduction.

use super::element::{Bf16, F8e4m3, F8e5m2};
#[cfg(target_arch = "x86_64")]
use super::half_x86;
use super::kernel::{self, Loops};
use super::op::{And, Max, Min, Or, Prod, Sum, Xor};
use super::types::{Dtype, Reduction};
use crate::cpu::Isa;

/// Sums and products of integers have the same bits signed and unsigned.
macro_rules! integer {
    ($isa:path, $reduction:ident, $t:ty, $bits:ty) => {{
        use $isa as isa;
        match $reduction {
            Reduction::Sum => isa::plain::<$bits, $t, Sum>(),
            Reduction::Prod => isa::plain::<$bits, $t, Prod>(),
            Reduction::Min => isa::plain::<$t, $t, Min>(),
            Reduction::Max => isa::plain::<$t, $t, Max>(),
            Reduction::And => isa::bitwise::<$t, And>(),
            Reduction::Or => isa::bitwise::<$t, Or>(),
            Reduction::Xor => isa::bitwise::<$t, Xor>(),
        }
    }};
}

macro_rules! float {
    ($reduction:ident, $($make:ident)::+, $($t:ty),*) => {
        match $reduction {
            Reduction::Sum => $($make)::+::<$($t,)* Sum>(),
            Reduction::Prod => $($make)::+::<$($t,)* Prod>(),
            Reduction::Min => $($make)::+::<$($t,)* Min>(),
            Reduction::Max => $($make)::+::<$($t,)* Max>(),
            Reduction::And | Reduction::Or | Reduction::Xor => return None,
        }
    };
}

macro_rules! find_in {
    ($name:ident, $half:path) => {
        fn $name(dtype: Dtype, reduction: Reduction) -> Option<Loops> {
            use kernel::$name as isa;
            use $half as half_of;
            Some(match dtype {
                Dtype::I8 => integer!(kernel::$name, reduction, i8, u8),
                Dtype::U8 => integer!(kernel::$name, reduction, u8, u8),
                Dtype::I16 => integer!(kernel::$name, reduction, i16, u16),
                Dtype::U16 => integer!(kernel::$name, reduction, u16, u16),
                Dtype::I32 => integer!(kernel::$name, reduction, i32, u32),
                Dtype::U32 => integer!(kernel::$name, reduction, u32, u32),
                Dtype::I64 => integer!(kernel::$name, reduction, i64, u64),
                Dtype::U64 => integer!(kernel::$name, reduction, u64, u64),
                Dtype::F16 => float!(reduction, half_of::half,),
                Dtype::Bf16 => float!(reduction, isa::narrow, Bf16),
                Dtype::F32 => float!(reduction, isa::plain, f32, f32),
                Dtype::F64 => float!(reduction, isa::plain, f64, f64),
                Dtype::F8e4m3 => float!(reduction, isa::narrow, F8e4m3),
                Dtype::F8e5m2 => float!(reduction, isa::narrow, F8e5m2),
            })
        }
    };
}

find_in!(baseline, kernel);
#[cfg(target_arch = "x86_64")]
find_in!(avx2, half_x86::avx2);
#[cfg(target_arch = "x86_64")]
find_in!(avx512, half_x86::avx512);

/// The loops, `None` where the reduction is not defined on the type.
pub(super) fn find(isa: Isa, dtype: Dtype, reduction: Reduction) -> Option<Loops> {
    match isa {
        Isa::Baseline => baseline(dtype, reduction),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2(dtype, reduction),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512(dtype, reduction),
    }
}
