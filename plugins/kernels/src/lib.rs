//! The kernels that plugins of accelerators load: one source, compiled ahead.
//!
//! `sources/` is compiled by clang for each vendor ([`PTX`] for NVIDIA's devices from sm_70 on, a
//! [code object](CODE_OBJECTS) for each of AMD's architectures), and for the host, where the emulators run
//! it. What is compiled is committed, so that users need no compiler; `tests/made.rs` proves that it is
//! what the sources give, and `cargo xtask kernels` makes it anew.
//!
//! The kernel for [short steps](STEPS) is in the PTX alone.
//!
//! A kernel takes one struct as its only parameter ([`parameters`]).

mod bundle;
mod loaded;
pub mod parameters;

pub use bundle::bundle;
pub use loaded::Loaded;

/// PTX of every kernel, NUL-terminated, for sm_70 and later.
pub const PTX: &str = concat!(include_str!("../made/kernels.ptx"), "\0");

/// Threads of a block that the kernels are made for.
pub const THREADS: u32 = 256;
/// The kernel that does short steps one after the other ([`parameters::Steps`]).
pub const STEPS: &str = "unisono_steps";
/// Threads of its one block.
pub const STEPS_THREADS: u32 = 512;

/// Code objects with every kernel, by the architecture that each is for.
pub const CODE_OBJECTS: [(&str, &[u8]); 3] = [
    ("gfx90a", include_bytes!("../made/gfx90a.hsaco")),
    ("gfx942", include_bytes!("../made/gfx942.hsaco")),
    ("gfx1100", include_bytes!("../made/gfx1100.hsaco")),
];

/// Types by their numbers in the contract, from 1, as kernels are named; and their sizes in bytes.
pub const TYPES: [(&str, u64); 14] = [
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
    ("f8e4m3fn", 1),
    ("f8e5m2", 1),
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

/// The name of the kernel that scales a type; none if there is no such type.
#[must_use]
pub fn scale(dtype: u16) -> Option<String> {
    let (name, _) = TYPES.get(usize::from(dtype).checked_sub(1)?)?;
    Some(format!("unisono_scale_{name}"))
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
        assert_eq!(kernels, 14 * 4 + 8 * 3);
        for name in (0..20).filter_map(scale) {
            kernels += 1;
            assert!(PTX.contains(&format!(".entry {name}(")), "{name}");
        }
        assert_eq!(kernels, 14 * 5 + 8 * 3);
        let all = PTX.matches(".visible .entry ").count();
        assert_eq!(
            all,
            kernels + 8,
            "copy, copies, check, signal, wait, operate, replay, steps"
        );
    }

    #[test]
    fn small_work_takes_one_block_and_large_work_a_device() {
        assert_eq!(blocks(0, 132), 1);
        assert_eq!(blocks(8192, 132), 1);
        assert_eq!(blocks(1 << 30, 132), 132 * 8);
    }
}
