//! The kernels that plugins of accelerators load: one source, compiled ahead.
//!
//! `sources/` is compiled by clang for each vendor ([`PTX`] for NVIDIA's devices from sm_70 on), and for
//! the host, where the emulators run it. What is compiled is committed, so that users need no compiler;
//! `tests/made.rs` proves that it is what the sources give.
//!
//! A kernel takes one struct as its only parameter: [`Reduce`], [`Pieces`], and for flags the struct of
//! `kernels.cpp`.

/// PTX of every kernel, NUL-terminated, for sm_70 and later.
pub const PTX: &str = concat!(include_str!("../made/kernels.ptx"), "\0");

/// Threads of a block that the kernels are made for.
pub const THREADS: u32 = 256;

/// The parameter of `unisono_reduce_*`, as in `reduce.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reduce {
    /// Where results go.
    pub dst: u64,
    /// The first operands.
    pub a: u64,
    /// The second operands.
    pub b: u64,
    /// Of one piece.
    pub elements: u64,
    /// Pieces.
    pub repeat: u64,
    /// Bytes from one piece to the next.
    pub dst_stride: u64,
    /// As above.
    pub a_stride: u64,
    /// As above.
    pub b_stride: u64,
    /// Results are divided by it, unless it is 0.
    pub divisor: u32,
    /// Zero.
    pub reserved: u32,
}

/// The parameter of `unisono_copy`, as in `kernels.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Where to.
    pub dst: u64,
    /// From where.
    pub src: u64,
    /// Of one piece.
    pub bytes: u64,
    /// Pieces.
    pub repeat: u64,
    /// Bytes from one piece to the next.
    pub dst_stride: u64,
    /// As above.
    pub src_stride: u64,
}

/// Types by their numbers in the contract, from 1, as kernels are named; and their sizes in bytes.
pub const TYPES: [(&str, u64); 12] = [
    ("i8", 1),
    ("u8", 1),
    ("i16", 2),
    ("u16", 2),
    ("i32", 4),
    ("u32", 4),
    ("i64", 8),
    ("u64", 8),
    ("f16", 2),
    ("bf16", 2),
    ("f32", 4),
    ("f64", 8),
];

/// Reductions by their numbers in the contract, from 1, as kernels are named.
pub const REDUCTIONS: [&str; 7] = ["sum", "prod", "min", "max", "and", "or", "xor"];

/// Types whose reductions may be bitwise: the first so many.
const INTEGERS: u16 = 8;
/// The first bitwise reduction.
const BITWISE: u16 = 5;

/// The name of the kernel for a reduction of a type, both by their numbers in the contract; none if
/// there is no such kernel.
#[must_use]
pub fn reduction(dtype: u16, reduction: u16) -> Option<String> {
    let (name, _) = TYPES.get(usize::from(dtype).checked_sub(1)?)?;
    let op = REDUCTIONS.get(usize::from(reduction).checked_sub(1)?)?;
    let there = reduction < BITWISE || dtype <= INTEGERS;
    there.then(|| format!("unisono_reduce_{op}_{name}"))
}

/// Blocks for work of so many bytes a piece: enough to fill a device of so many processors.
#[must_use]
pub fn blocks(bytes: u64, processors: u32) -> u32 {
    // A thread moves 16 bytes at a time, some times over.
    let wanted = bytes.div_ceil(u64::from(THREADS) * 16 * 4).max(1);
    wanted.min(u64::from(processors.max(1)) * 8) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_that_is_named_is_there() {
        let mut kernels = 0;
        for dtype in 0..20 {
            for op in 0..10 {
                let Some(name) = reduction(dtype, op) else {
                    continue;
                };
                kernels += 1;
                assert!(PTX.contains(&format!(".entry {name}(")), "{name}");
            }
        }
        assert_eq!(kernels, 12 * 4 + 8 * 3);
        let all = PTX.matches(".visible .entry ").count();
        assert_eq!(all, kernels + 4, "copy, check, signal, wait");
    }

    #[test]
    fn parameters_are_as_long_as_in_the_sources() {
        let said = |name: &str, bytes: usize| {
            let parameter = format!("{name}_param_0[{bytes}]");
            assert!(PTX.contains(&parameter), "{parameter}");
        };
        said("unisono_reduce_sum_f32", size_of::<Reduce>());
        said("unisono_copy", size_of::<Pieces>());
    }

    #[test]
    fn small_work_takes_one_block_and_large_work_a_device() {
        assert_eq!(blocks(0, 132), 1);
        assert_eq!(blocks(8192, 132), 1);
        assert_eq!(blocks(1 << 30, 132), 132 * 8);
    }
}
