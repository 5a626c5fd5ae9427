//! Writes to memory and waits for it, in a stream's order.
//!
//! The runtime's own wait (`hipStreamWaitValue64`) is for signal memory: words of 8 bytes, of one process.
//! Flags lie in lines that peers map, so streams wait for them by a kernel of one thread. Writes are the
//! runtime's own, which makes visible what came before them, or the same kernel's.

use unisono_kernels::parameters::{OPERATIONS, Operation, Operations};
use unisono_plugin_accelerator::MemoryOperation;

/// What is handed to the runtime at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A write of the runtime's own.
    Write {
        /// Where.
        address: u64,
        /// What.
        value: u64,
    },
    /// One launch of the kernel.
    Launch(Operations),
}

/// Hands operations over, in order, in as few steps as they fit in.
pub(crate) fn steps<E>(
    operations: &[MemoryOperation],
    write_by_kernel: bool,
    mut hand: impl FnMut(&Step) -> Result<(), E>,
) -> Result<(), E> {
    let mut launch = Operations::default();
    for operation in operations {
        let (wait, address, value) = match *operation {
            MemoryOperation::Word { address, value }
            | MemoryOperation::Write { address, value } => (0, address, value),
            MemoryOperation::Wait { address, value } => (1, address, value),
        };
        let by_kernel = wait == 1 || write_by_kernel;
        if launch.count > 0 && (!by_kernel || launch.count as usize == OPERATIONS) {
            hand(&Step::Launch(std::mem::take(&mut launch)))?;
        }
        if by_kernel {
            launch.at[launch.count as usize] = Operation {
                wait,
                address,
                value,
            };
            launch.count += 1;
        } else {
            hand(&Step::Write { address, value })?;
        }
    }
    if launch.count > 0 {
        hand(&Step::Launch(launch))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(operations: &[MemoryOperation], by_kernel: bool) -> Vec<u64> {
        let mut out = Vec::new();
        let done: Result<(), ()> = steps(operations, by_kernel, |step| {
            out.push(match step {
                Step::Write { .. } => 0,
                Step::Launch(launch) => launch.count,
            });
            Ok(())
        });
        assert_eq!(done, Ok(()));
        out
    }

    #[test]
    fn order_is_kept_and_neighbours_share_a_launch() {
        let write = MemoryOperation::Write {
            address: 8,
            value: 1,
        };
        let wait = MemoryOperation::Wait {
            address: 8,
            value: 1,
        };
        assert_eq!(shape(&[write, wait, wait, write], false), [0, 2, 0]);
        assert_eq!(shape(&[write, wait, wait, write], true), [4]);
        assert_eq!(shape(&[wait; 9], false), [8, 1]);
        assert_eq!(shape(&[], false), [0; 0]);
    }
}
