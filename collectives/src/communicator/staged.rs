//! Calls on slices, where the device does not reach a program's ordinary memory: the input is copied
//! to the device, the call runs there, the output is copied back.

use std::sync::Arc;

use unisono_hal::Memory;
use unisono_plan::geometry::Sizes;
use unisono_plan::{Buffer, Op};

use super::asked::{Asked, Ends, Here};
use super::shared::Shared;
use super::start::Request;
use crate::error::{Error, Result};
use crate::transfer::Transfer;

/// Bytes at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    address: u64,
    bytes: u64,
}

/// What stands on the device for the slices of one call.
pub(super) struct Staged {
    transfer: Arc<Transfer>,
    /// One piece of memory, or two where input and output are apart.
    memories: Vec<Memory>,
    /// Where the output is to go, and where it lies on the device.
    output: Extent,
    result: u64,
}

impl Shared {
    /// Runs a request whose buffers are slices; returns when it is complete.
    #[inline]
    pub(super) fn run_slices(&self, request: Request<'_>) -> Result<()> {
        match self.world.transfer {
            None => self.run(request),
            Some(_) => self.run_staged(request),
        }
    }

    fn run_staged(&self, request: Request<'_>) -> Result<()> {
        let Some((staged, request)) = self.stage(&request, false)? else {
            return self.run(request);
        };
        let done = self.run(request);
        self.unstage(staged, done)
    }

    /// After a call of a group: copies its output back, if it ended well.
    pub(super) fn unstage(&self, staged: Staged, done: Result<()>) -> Result<()> {
        self.told(staged.end(done))
    }

    /// A copy that failed on this rank alone ends the communicator on all: they would wait for it.
    fn told<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.is_harmless() {
            true => error,
            false => self.end_with(error),
        })
    }

    /// A request whose buffers are slices as one whose buffers lie on the device, with the input copied
    /// there. `None` if the device reaches them by itself, or there is nothing to copy. `on_stream`: the
    /// call begins when a stream has come to it, which may be too late for that.
    pub(super) fn stage<'a>(
        &self,
        request: &Request<'a>,
        on_stream: bool,
    ) -> Result<Option<(Staged, Request<'a>)>> {
        let Some(transfer) = &self.world.transfer else {
            return Ok(None);
        };
        let here = Here {
            rank: self.rank,
            ranks: self.size(),
        };
        let [input, output] = extents(&request.asked, here, request.dtype.size() as u64);
        if input.bytes + output.bytes == 0 {
            return Ok(None);
        }
        self.usable()?;
        if on_stream {
            return Err(Error::Unsupported {
                call: request.asked.kind.name(),
                why: "the device does not reach slices, and the program's stream may fill them after \
                      this call: give the device's own memory"
                    .to_owned(),
            });
        }
        let (staged, ends) = self.told(Staged::new(transfer, input, output))?;
        let asked = Asked {
            ends,
            ..request.asked
        };
        let request = Request {
            asked,
            dtype: request.dtype,
            reduction: request.reduction.clone(),
            forced: request.forced,
            deadline: request.deadline,
        };
        Ok(Some((staged, request)))
    }
}

impl Staged {
    #[allow(unsafe_code, reason = "reads slices of the caller's by address")]
    fn new(transfer: &Arc<Transfer>, input: Extent, output: Extent) -> Result<(Self, Ends)> {
        let (memories, ends) = match joined(input, output) {
            // In place: the buffers keep their places relative to each other.
            Some(both) => {
                let memory = transfer.lend(both.bytes)?;
                let at = |end: Extent| memory.base() + (end.address - both.address);
                let ends = Ends {
                    input: at(input),
                    output: at(output),
                };
                (vec![memory], ends)
            }
            None => {
                let [a, b] = [transfer.lend(input.bytes)?, transfer.lend(output.bytes)?];
                let ends = Ends {
                    input: a.base(),
                    output: b.base(),
                };
                (vec![a, b], ends)
            }
        };
        let staged = Self {
            transfer: transfer.clone(),
            memories,
            output,
            result: ends.output,
        };
        // SAFETY: the caller's slice is borrowed for the call, and the memory was lent to this.
        let copied = unsafe {
            let from = input.address as *const u8;
            transfer.copy_in(ends.input, from, input.bytes)
        };
        match copied {
            Ok(()) => Ok((staged, ends)),
            Err(error) => {
                staged.end(Err(error.clone()))?;
                Err(error)
            }
        }
    }

    /// Nothing was started: the memory is free again.
    pub(super) fn unused(self) {
        let memories = self.memories.into_iter();
        memories.for_each(|memory| self.transfer.give_back(memory));
    }

    /// The call is done: copies its output back, if it ended well.
    #[allow(unsafe_code, reason = "writes slices of the caller's by address")]
    fn end(self, done: Result<()>) -> Result<()> {
        // SAFETY: the caller's slice is borrowed for the call; the memory was lent to this.
        let copied = done.and_then(|()| unsafe {
            let to = self.output.address as *mut u8;
            (self.transfer).copy_out(to, self.result, self.output.bytes)
        });
        let harmless = copied.as_ref().err().is_none_or(Error::is_harmless);
        for memory in self.memories {
            if harmless {
                self.transfer.give_back(memory);
            } else {
                self.transfer.keep_away(memory);
            }
        }
        copied
    }
}

/// The smallest range that holds both, if they touch: one is part of the other, or empty.
fn joined(a: Extent, b: Extent) -> Option<Extent> {
    let empty = |end: Extent| end.bytes == 0;
    if empty(a) || empty(b) {
        // What is empty lies anywhere: let it begin where the other does.
        return (a.address == b.address).then_some(if empty(a) { b } else { a });
    }
    let (start, end) = (
        a.address.min(b.address),
        (a.address + a.bytes).max(b.address + b.bytes),
    );
    let apart = a.address + a.bytes <= b.address || b.address + b.bytes <= a.address;
    (!apart).then_some(Extent {
        address: start,
        bytes: end - start,
    })
}

/// Where the input and the output of a call lie; `element` is bytes of one.
fn extents(asked: &Asked<'_>, here: Here, element: u64) -> [Extent; 2] {
    let Ends { input, output } = asked.ends;
    [(Buffer::In, input), (Buffer::Out, output)].map(|(buffer, address)| Extent {
        address,
        bytes: elements(asked.op, asked.sizes, buffer, here) * element,
    })
}

/// Elements that a rank has in a buffer.
fn elements(op: Op, sizes: Sizes<'_>, buffer: Buffer, here: Here) -> u64 {
    let held = op.holds(buffer, here.rank, here.ranks);
    match sizes {
        Sizes::Equal(count) if op.has_block_per_rank() => {
            u64::from(held.end - held.start) * (count / u64::from(here.ranks))
        }
        Sizes::Equal(_) if held.is_empty() => 0,
        Sizes::Equal(count) => count,
        Sizes::Parts(parts) => {
            let held = parts.get(held.start as usize..held.end as usize);
            held.unwrap_or_default().iter().sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Here = Here { rank: 1, ranks: 3 };

    #[test]
    fn each_call_has_as_many_elements_as_its_slices() {
        let of = |op, count| {
            [Buffer::In, Buffer::Out].map(|buffer| elements(op, Sizes::Equal(count), buffer, HERE))
        };
        assert_eq!(of(Op::AllReduce, 7), [7, 7]);
        assert_eq!(of(Op::Reduce { root: 0 }, 7), [7, 0]);
        assert_eq!(of(Op::Reduce { root: 1 }, 7), [7, 7]);
        assert_eq!(of(Op::Broadcast { root: 0 }, 7), [0, 7]);
        assert_eq!(of(Op::Broadcast { root: 1 }, 7), [7, 7]);
        assert_eq!(of(Op::AllGather, 12), [4, 12]);
        assert_eq!(of(Op::Gather { root: 1 }, 12), [4, 12]);
        assert_eq!(of(Op::Gather { root: 2 }, 12), [4, 0]);
        assert_eq!(of(Op::Scatter { root: 1 }, 12), [12, 4]);
        assert_eq!(of(Op::ReduceScatter, 12), [12, 4]);
        assert_eq!(of(Op::AllToAll, 12), [12, 12]);
        assert_eq!(of(Op::Send { to: 0 }, 7), [7, 0]);
        assert_eq!(of(Op::Recv { from: 0 }, 7), [0, 7]);
        assert_eq!(of(Op::Barrier, 0), [0, 0]);
        let parts = |op, parts: &[u64]| {
            [Buffer::In, Buffer::Out].map(|buffer| elements(op, Sizes::Parts(parts), buffer, HERE))
        };
        assert_eq!(parts(Op::AllGather, &[5, 0, 2]), [0, 7]);
        assert_eq!(parts(Op::ReduceScatter, &[5, 1, 2]), [8, 1]);
        assert_eq!(parts(Op::AllToAll, &[1, 2, 3, 4, 2, 6]), [6, 12]);
    }

    #[test]
    fn buffers_in_place_stay_one() {
        let extent = |address, bytes| Extent { address, bytes };
        assert_eq!(joined(extent(100, 10), extent(120, 10)), None);
        assert_eq!(joined(extent(100, 10), extent(110, 10)), None);
        let block = joined(extent(120, 10), extent(100, 40));
        assert_eq!(block, Some(extent(100, 40)));
        let same = joined(extent(100, 40), extent(100, 40));
        assert_eq!(same, Some(extent(100, 40)));
        // A broadcast where this rank gives nothing.
        let taken = joined(extent(100, 0), extent(100, 40));
        assert_eq!(taken, Some(extent(100, 40)));
        assert_eq!(joined(extent(8, 0), extent(100, 40)), None);
    }
}
