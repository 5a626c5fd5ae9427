//! REDUCE by the runtime, which can only fold one range of a device's own memory into another.
//!
//! What lies elsewhere goes through scratch memory of the device, block by block.

use unisono_plugin::Result;
use unisono_plugin::abi::{CommandReduce, dtype, reduction};

use crate::places::Place;

/// Bytes that go through scratch memory at once.
pub(crate) const BLOCK: u64 = 1 << 20;
/// Bytes of scratch memory.
pub(crate) const SCRATCH: u64 = 2 * BLOCK;

/// The runtime's numbers of a type and a reduction, and the bytes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Native {
    pub(crate) dtype: i32,
    pub(crate) kind: i32,
    pub(crate) bytes: u64,
}

/// What the runtime can reduce. Least and greatest floats are not among it: what it does with NaN is
/// not said.
pub(crate) fn native(of: u16, how: u16) -> Option<Native> {
    let (dtype, bytes, integer) = match of {
        dtype::F32 => (0, 4, false),
        dtype::F16 => (1, 2, false),
        dtype::I8 => (2, 1, true),
        dtype::I32 => (3, 4, true),
        dtype::I16 => (6, 2, true),
        dtype::BF16 => (27, 2, false),
        _ => return None,
    };
    let kind = match how {
        reduction::SUM => 10,
        reduction::MAX if integer => 11,
        reduction::MIN if integer => 12,
        _ => return None,
    };
    Some(Native { dtype, kind, bytes })
}

/// One call of the runtime's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A copy.
    Copy { dst: u64, src: u64, bytes: u64 },
    /// `dst op= src`, both of the device's own memory and apart.
    Fold { dst: u64, src: u64, bytes: u64 },
}

/// Calls that a command takes, if its operands lie badly.
pub(crate) fn cost(command: &CommandReduce) -> u64 {
    let bytes = command.elements.saturating_mul(8);
    (bytes.div_ceil(BLOCK) * 4).saturating_mul(command.repeat)
}

/// The calls of a command, in order. `scratch` is asked for memory of [`SCRATCH`] bytes if need be.
pub(crate) fn steps(
    command: &CommandReduce,
    element: u64,
    place: impl Fn(u64) -> Place,
    scratch: impl Fn() -> Result<u64>,
    mut emit: impl FnMut(Step) -> Result<()>,
) -> Result<()> {
    let bytes = command.elements * element;
    for piece in 0..command.repeat {
        let dst = command.dst + piece * command.dst_stride;
        let a = command.a + piece * command.a_stride;
        let b = command.b + piece * command.b_stride;
        let near = |address| place(address) == Place::Near;
        // What `dst` starts with, and what is folded into it.
        let (first, second) = if dst == b { (b, a) } else { (a, b) };
        if near(dst) && near(second) && dst != second {
            if first != dst {
                emit(Step::Copy {
                    dst,
                    src: first,
                    bytes,
                })?;
            }
            emit(Step::Fold {
                dst,
                src: second,
                bytes,
            })?;
            continue;
        }
        let near_scratch = scratch()?;
        let other = near_scratch + BLOCK;
        for from in (0..bytes).step_by(BLOCK as usize) {
            let bytes = BLOCK.min(bytes - from);
            let copy = |dst, src| Step::Copy { dst, src, bytes };
            if near(dst) {
                emit(copy(other, second + from))?;
                if first != dst {
                    emit(copy(dst + from, first + from))?;
                }
                emit(Step::Fold {
                    dst: dst + from,
                    src: other,
                    bytes,
                })?;
                continue;
            }
            emit(copy(near_scratch, first + from))?;
            let src = if near(second) {
                second + from
            } else {
                emit(copy(other, second + from))?;
                other
            };
            emit(Step::Fold {
                dst: near_scratch,
                src,
                bytes,
            })?;
            emit(copy(dst + from, near_scratch))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Addresses from 1000 on are far.
    fn place(address: u64) -> Place {
        if (1000..1 << 30).contains(&address) {
            Place::Far
        } else {
            Place::Near
        }
    }

    fn run(dst: u64, a: u64, b: u64) -> Vec<Step> {
        let command = CommandReduce {
            dst,
            a,
            b,
            elements: 1,
            repeat: 1,
            dtype: dtype::F32,
            reduction: reduction::SUM,
            ..CommandReduce::zeroed()
        };
        let mut out = Vec::new();
        let take = |step| {
            out.push(step);
            Ok(())
        };
        steps(&command, 4, place, || Ok(1 << 40), take).unwrap();
        out
    }

    /// Every way that operands can lie, on a memory of numbers.
    #[test]
    fn the_sum_is_right_wherever_operands_lie() {
        let spots = [8, 16, 24, 1000, 1008, 1016];
        for dst in spots {
            for a in spots {
                for b in spots {
                    let mut memory: HashMap<u64, u64> =
                        spots.iter().map(|at| (*at, at * at + 1)).collect();
                    let expected = memory[&a] + memory[&b];
                    let before = memory.clone();
                    for step in run(dst, a, b) {
                        match step {
                            Step::Copy { dst, src, .. } => {
                                let value = memory[&src];
                                memory.insert(dst, value);
                            }
                            Step::Fold { dst, src, .. } => {
                                assert!(place(dst) == Place::Near && place(src) == Place::Near);
                                assert_ne!(dst, src);
                                *memory.get_mut(&dst).unwrap() += memory[&src];
                            }
                        }
                    }
                    for at in spots {
                        let wanted = if at == dst { expected } else { before[&at] };
                        assert_eq!(memory[&at], wanted, "{dst} = {a} + {b}: {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn in_place_is_one_call() {
        assert_eq!(
            run(8, 8, 16),
            [Step::Fold {
                dst: 8,
                src: 16,
                bytes: 4
            }]
        );
        assert_eq!(
            run(8, 16, 8),
            [Step::Fold {
                dst: 8,
                src: 16,
                bytes: 4
            }]
        );
    }

    #[test]
    fn floats_have_no_least() {
        assert!(native(dtype::F32, reduction::SUM).is_some());
        assert!(native(dtype::F32, reduction::MIN).is_none());
        assert!(native(dtype::I16, reduction::MIN).is_some());
        assert!(native(dtype::I32, reduction::PROD).is_none());
        assert!(native(dtype::I64, reduction::SUM).is_none());
    }
}
