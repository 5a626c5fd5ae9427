//! A call as C gives it, checked, and run in one of its forms.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use std::ffi::c_void;

use unisono_collectives::{DataType, Op, RawCall, Reduction, Sizes, Stream, Work};
use unisono_plan::Buffer;

use super::comm::{Comm, answer, borrow, wanted};
use super::group;
use super::result::{Outcome, guard, invalid};

/// The arguments of a call, as C gives them.
pub(super) struct Call {
    op: Op,
    send: u64,
    recv: u64,
    counts: Given,
    datatype: i32,
    reduction: i32,
}

/// How long the blocks are, as C says it.
enum Given {
    /// Elements of one rank's block, or of the message where there are no blocks.
    Block(usize),
    /// Elements of each rank's block.
    Blocks(*const usize),
    /// What goes to each rank, and what comes from each.
    Pairs(*const usize, *const usize),
}

/// A call whose arguments were checked.
pub(super) struct Checked {
    op: Op,
    send: u64,
    recv: u64,
    counts: Counts,
    datatype: DataType,
    reduction: Option<Reduction>,
}

/// How long the message is.
enum Counts {
    /// Elements of the whole.
    Equal(u64),
    /// Elements of each part.
    Parts(Vec<u64>),
}

impl Checked {
    /// What the engine takes.
    pub(super) fn raw(&self) -> RawCall<'_> {
        RawCall {
            op: self.op,
            input: self.send,
            output: self.recv,
            sizes: match &self.counts {
                Counts::Equal(count) => Sizes::Equal(*count),
                Counts::Parts(parts) => Sizes::Parts(parts),
            },
            dtype: self.datatype,
            reduction: self.reduction.clone(),
        }
    }
}

impl Call {
    /// A call whose blocks are all `count` elements long.
    pub(super) fn new(
        op: Op,
        send: *const c_void,
        recv: *mut c_void,
        count: usize,
        datatype: i32,
    ) -> Self {
        Self {
            op,
            send: send as u64,
            recv: recv as u64,
            counts: Given::Block(count),
            datatype,
            reduction: 0,
        }
    }

    pub(super) fn barrier() -> Self {
        let (nothing, byte) = (std::ptr::null_mut(), i32::from(DataType::U8.code()));
        Self::new(Op::Barrier, nothing, nothing, 0, byte)
    }

    /// The same with a reduction.
    pub(super) fn reducing(self, reduction: i32) -> Self {
        Self { reduction, ..self }
    }

    /// The same with a length of its own for each rank's block.
    pub(super) fn blocks(self, counts: *const usize) -> Self {
        let counts = Given::Blocks(counts);
        Self { counts, ..self }
    }

    /// The same with a length for what goes to each rank, and one for what comes from it.
    pub(super) fn pairs(self, sent: *const usize, received: *const usize) -> Self {
        let counts = Given::Pairs(sent, received);
        Self { counts, ..self }
    }

    /// # Safety
    /// Arrays of counts hold one for each rank, or are NULL.
    unsafe fn check(self, comm: &Comm) -> Outcome<Checked> {
        let call = self.op.name();
        let (rank, size) = (comm.communicator.rank(), comm.communicator.size());
        let datatype = datatype(call, self.datatype)?;
        let reduction = match self.op.reduces() {
            false => None,
            true => Some(comm.reductions.find(call, self.reduction)?),
        };
        // SAFETY: the caller's promise.
        let counts = unsafe { self.counts(size, datatype) }?;
        let uses = |buffer| {
            let parts = self.op.holds(buffer, rank, size);
            match &counts {
                Counts::Equal(count) => *count > 0 && !parts.is_empty(),
                Counts::Parts(of) => of
                    .get(parts.start as usize..parts.end as usize)
                    .is_some_and(|of| of.iter().any(|count| *count > 0)),
            }
        };
        let (sends, receives) = (uses(Buffer::In), uses(Buffer::Out));
        for (name, address, used) in [("send", self.send, sends), ("recv", self.recv, receives)] {
            if used && address == 0 {
                return Err(invalid(format!("{call}: {name} is NULL")));
            }
        }
        // A buffer that takes no part is none, wherever it lies. That of a broadcast is one for both
        // ends, which ranks in a window must agree on.
        let (mut send, mut recv) = (self.send, self.recv);
        match self.op {
            Op::Reduce { .. } | Op::Gather { .. } if !receives => recv = 0,
            Op::Scatter { .. } if !sends => send = 0,
            _ => {}
        }
        Ok(Checked {
            op: self.op,
            send,
            recv,
            counts,
            datatype,
            reduction,
        })
    }

    /// # Safety
    /// As [`Call::check`].
    unsafe fn counts(&self, size: u32, datatype: DataType) -> Outcome<Counts> {
        let call = self.op.name();
        let of = |name: &str, counts: *const usize| {
            if counts.is_null() {
                return Err(invalid(format!("{call}: {name} is NULL")));
            }
            // SAFETY: the caller gives one for each rank.
            let counts = unsafe { std::slice::from_raw_parts(counts, size as usize) };
            Ok(counts.iter().map(|count| *count as u64).collect())
        };
        Ok(match self.counts {
            Given::Block(count) => {
                let blocks = match self.op.has_block_per_rank() {
                    true => u64::from(size),
                    false => 1,
                };
                let whole = (count as u64).checked_mul(blocks);
                Counts::Equal(whole.ok_or_else(|| {
                    invalid(format!(
                        "{call}: {count} elements of {datatype} are too many"
                    ))
                })?)
            }
            Given::Blocks(counts) => Counts::Parts(of("counts", counts)?),
            Given::Pairs(sent, received) => {
                let mut parts: Vec<u64> = of("send_counts", sent)?;
                parts.extend(of("recv_counts", received)?);
                Counts::Parts(parts)
            }
        })
    }

    /// Runs it; in a group, notes it.
    ///
    /// # Safety
    /// `comm` is NULL or a live handle; the buffers and counts are as `unisono.h` says.
    pub(super) unsafe fn run(self, comm: *const Comm) -> i32 {
        guard(|| {
            let check = || -> Outcome<(&Comm, Checked)> {
                // SAFETY: the caller gives a live handle, and counts.
                let live = unsafe { borrow(comm) }?;
                // SAFETY: as above.
                Ok((live, unsafe { self.check(live) }?))
            };
            if group::is_open() {
                return group::note(comm, None, || Ok(check()?.1));
            }
            let (comm, call) = check()?;
            // SAFETY: the caller gives buffers that hold what the call says, until it returns.
            Ok(unsafe { comm.communicator.call_raw(call.raw()) }?)
        })
    }

    /// Starts it on a stream; in a group, notes it.
    ///
    /// # Safety
    /// As [`Call::run`], until the stream has done it; `stream` is NULL or a live handle.
    pub(super) unsafe fn on(self, comm: *const Comm, stream: *const Stream) -> i32 {
        guard(|| {
            // SAFETY: the caller gives a live handle.
            let check_stream = || unsafe { super::stream::stream(stream) };
            let check = || -> Outcome<(&Comm, Checked)> {
                // SAFETY: the caller gives a live handle, and counts.
                let live = unsafe { borrow(comm) }?;
                // SAFETY: as above.
                Ok((live, unsafe { self.check(live) }?))
            };
            if group::is_open() {
                let on = check_stream().ok().cloned();
                return group::note(comm, on, || check_stream().and_then(|_| Ok(check()?.1)));
            }
            let on = check_stream()?;
            let (comm, call) = check()?;
            // SAFETY: the caller gives buffers that hold what the call says, until it is done.
            let started = unsafe { comm.communicator.on(on).start_raw(call.raw()) }?;
            drop(started);
            Ok(())
        })
    }

    /// Starts it.
    ///
    /// # Safety
    /// As [`Call::run`], until the work is done; `work` is NULL or can be written.
    pub(super) unsafe fn start(self, comm: *const Comm, work: *mut *mut Work) -> i32 {
        guard(|| {
            wanted("work", work)?;
            group::refuse(
                self.op.name(),
                "call the blocking form, which a group starts",
            )?;
            // SAFETY: the caller gives a live handle, and counts.
            let comm = unsafe { borrow(comm) }?;
            // SAFETY: as above.
            let call = unsafe { self.check(comm) }?;
            // SAFETY: the caller gives buffers that hold what the call says, until it is done.
            let started = unsafe { comm.communicator.start_raw(call.raw()) }?;
            // SAFETY: the caller gives a place for the answer.
            unsafe { answer("work", work, Box::into_raw(Box::new(started))) }
        })
    }
}

/// The type of this number.
pub(super) fn datatype(call: &str, code: i32) -> Outcome<DataType> {
    let known = u16::try_from(code).ok().and_then(DataType::from_code);
    known.ok_or_else(|| invalid(format!("{call}: {code} is no data type")))
}
