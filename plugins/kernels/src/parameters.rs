//! What kernels take: one struct each, as the sources lay it out.

use unisono_abi::{CommandCopy, CommandReduce, CommandScale};

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

/// Copies of one launch of `unisono_copies`, at most.
pub const COPIES: usize = 8;

/// The parameter of `unisono_copies`, as in `kernels.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// How many there are.
    pub count: u64,
    /// The first so many.
    pub at: [Apart; COPIES],
}

/// A copy to somewhere that no other of its launch goes to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Where to.
    pub dst: u64,
    /// From where.
    pub src: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// The parameter of `unisono_scale_*`, as in `reduce.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Where results go.
    pub dst: u64,
    /// What is scaled.
    pub src: u64,
    /// Of one piece.
    pub elements: u64,
    /// Pieces.
    pub repeat: u64,
    /// Bytes from one piece to the next.
    pub dst_stride: u64,
    /// As above.
    pub src_stride: u64,
    /// One element, in the first bytes.
    pub factor: [u8; 8],
}

/// Operations of one launch of `unisono_operate`, at most.
pub const OPERATIONS: usize = 8;

/// The parameter of `unisono_operate`, as in `kernels.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// How many there are.
    pub count: u64,
    /// The first so many.
    pub at: [Operation; OPERATIONS],
}

/// The parameter of `unisono_replay`, as in `kernels.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Where the first operation lies.
    pub at: u64,
    /// How many there are.
    pub count: u64,
}

/// A write to memory or a wait for it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// 1: until what lies there is not behind the value, cyclically. 0: store it.
    pub wait: u64,
    /// Where, a multiple of 8.
    pub address: u64,
    /// The number.
    pub value: u64,
}

/// Steps of one launch of `unisono_steps`, at most.
pub const STEPS: usize = 80;

/// The parameter of `unisono_steps`, as in `steps.h`. What adds a step panics where there are [`STEPS`] already.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How many there are.
    count: u64,
    /// The first so many.
    at: [Step; STEPS],
}

/// One of several steps.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    kind: u64,
    at: [u64; 5],
}

impl Default for Steps {
    /// None.
    fn default() -> Self {
        Self {
            count: 0,
            at: [Step::default(); STEPS],
        }
    }
}

impl Steps {
    fn push(&mut self, kind: u64, at: [u64; 5]) {
        self.at[self.count as usize] = Step { kind, at };
        self.count += 1;
    }

    /// Waits until what lies at an address is not behind a number, cyclically.
    pub fn wait(&mut self, address: u64, value: u64) {
        self.push(0, [address, value, 0, 0, 0]);
    }

    /// Waits for a flag, and compares its words; where they differ the number of the command goes to `found`, and the words
    /// behind it. Takes two.
    pub fn expect(&mut self, flag: u64, value: u64, words: [u64; 3], found: u64, command: u64) {
        self.push(1, [flag, value, found, command, 0]);
        self.push(2, [words[0], words[1], words[2], 0, 0]);
    }

    /// Stores a word that a later flag tells of.
    pub fn word(&mut self, address: u64, value: u64) {
        self.push(3, [address, value, 0, 0, 0]);
    }

    /// Stores a number behind all that came before.
    pub fn flag(&mut self, address: u64, value: u64) {
        self.push(4, [address, value, 0, 0, 0]);
    }

    /// Copies one piece.
    pub fn copy(&mut self, copy: &CommandCopy) {
        self.push(5, [copy.dst, copy.src, copy.bytes, 0, 0]);
    }

    /// Reduces one piece.
    pub fn reduce(&mut self, r: &CommandReduce) {
        let what = u64::from(r.dtype) << 16 | u64::from(r.reduction);
        let how = what << 32 | u64::from(r.divisor);
        self.push(6, [r.dst, r.a, r.b, r.elements, how]);
    }
}

impl From<&CommandReduce> for Reduce {
    fn from(command: &CommandReduce) -> Self {
        Self {
            dst: command.dst,
            a: command.a,
            b: command.b,
            elements: command.elements,
            repeat: command.repeat,
            dst_stride: command.dst_stride,
            a_stride: command.a_stride,
            b_stride: command.b_stride,
            divisor: command.divisor,
            reserved: 0,
        }
    }
}

impl From<&CommandCopy> for Pieces {
    fn from(command: &CommandCopy) -> Self {
        Self {
            dst: command.dst,
            src: command.src,
            bytes: command.bytes,
            repeat: command.repeat,
            dst_stride: command.dst_stride,
            src_stride: command.src_stride,
        }
    }
}

impl Copies {
    /// The first [`COPIES`] of these commands, each of one piece.
    #[must_use]
    pub fn of(commands: &[CommandCopy]) -> Self {
        let mut all = Self::default();
        for (to, command) in all.at.iter_mut().zip(commands) {
            *to = Apart {
                dst: command.dst,
                src: command.src,
                bytes: command.bytes,
            };
            all.count += 1;
        }
        all
    }
}

impl From<&CommandScale> for Scale {
    fn from(command: &CommandScale) -> Self {
        Self {
            dst: command.dst,
            src: command.src,
            elements: command.elements,
            repeat: command.repeat,
            dst_stride: command.dst_stride,
            src_stride: command.src_stride,
            factor: command.factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PTX;

    #[test]
    fn parameters_are_as_long_as_in_the_sources() {
        let said = |name: &str, bytes: usize| {
            let parameter = format!("{name}_param_0[{bytes}]");
            assert!(PTX.contains(&parameter), "{parameter}");
        };
        said("unisono_reduce_sum_f32", size_of::<Reduce>());
        said("unisono_copy", size_of::<Pieces>());
        said("unisono_copies", size_of::<Copies>());
        said("unisono_scale_f8e5m2", size_of::<Scale>());
        said("unisono_operate", size_of::<Operations>());
        said("unisono_replay", size_of::<Table>());
        said("unisono_steps", size_of::<Steps>());
    }
}
