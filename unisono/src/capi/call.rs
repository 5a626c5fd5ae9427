//! The collectives: each in a form that blocks and one that returns at once.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use std::ffi::c_void;

use unisono_collectives::{DataType, Op, RawCall, ReduceOp, Sizes, Work};
use unisono_plan::Buffer;

use super::comm::{Comm, answer, borrow, wanted};
use super::result::{Failure, Outcome, guard, invalid};

/// The arguments of a call, as C gives them.
struct Call {
    op: Op,
    send: u64,
    recv: u64,
    /// Elements of one rank's block, or of the message where there are no blocks.
    count: usize,
    datatype: i32,
    reduction: i32,
}

/// A call whose arguments were checked.
struct Checked {
    op: Op,
    send: u64,
    recv: u64,
    /// Elements of the whole message.
    count: u64,
    datatype: DataType,
    reduction: Option<ReduceOp>,
}

impl Checked {
    fn raw(&self) -> RawCall<'static> {
        RawCall {
            op: self.op,
            input: self.send,
            output: self.recv,
            sizes: Sizes::Equal(self.count),
            dtype: self.datatype,
            reduction: self.reduction.map(Into::into),
        }
    }
}

impl Call {
    fn new(op: Op, send: *const c_void, recv: *mut c_void, count: usize, datatype: i32) -> Self {
        Self {
            op,
            send: send as u64,
            recv: recv as u64,
            count,
            datatype,
            reduction: 0,
        }
    }

    fn reducing(self, reduction: i32) -> Self {
        Self { reduction, ..self }
    }

    fn barrier() -> Self {
        let nothing = std::ptr::null_mut();
        Self::new(
            Op::Barrier,
            nothing,
            nothing,
            0,
            i32::from(DataType::U8.code()),
        )
    }

    fn check(self, comm: &Comm) -> Outcome<Checked> {
        let (rank, size) = (comm.communicator.rank(), comm.communicator.size());
        let call = self.op.name();
        let datatype = u16::try_from(self.datatype)
            .ok()
            .and_then(DataType::from_code);
        let datatype = datatype
            .ok_or_else(|| invalid(format!("{call}: {} is no data type", self.datatype)))?;
        let known = || {
            ReduceOp::ALL
                .into_iter()
                .find(|op| *op as i32 == self.reduction)
        };
        let reduction =
            match self.op.reduces() {
                false => None,
                true => Some(known().ok_or_else(|| {
                    invalid(format!("{call}: {} is no reduction", self.reduction))
                })?),
            };
        let blocks = if self.op.has_block_per_rank() {
            size
        } else {
            1
        };
        let too_many = || -> Failure {
            invalid(format!(
                "{call}: {} elements of {datatype} are too many",
                self.count
            ))
        };
        let count = (self.count as u64)
            .checked_mul(u64::from(blocks))
            .ok_or_else(too_many)?;
        for (name, address, buffer) in [
            ("send", self.send, Buffer::In),
            ("recv", self.recv, Buffer::Out),
        ] {
            let used = count > 0 && !self.op.holds(buffer, rank, size).is_empty();
            if used && address == 0 {
                return Err(invalid(format!("{call}: {name} is NULL")));
            }
        }
        Ok(Checked {
            op: self.op,
            send: self.send,
            recv: self.recv,
            count,
            datatype,
            reduction,
        })
    }

    /// Runs it.
    ///
    /// # Safety
    /// `comm` is NULL or a live handle; the buffers are as `unisono.h` says.
    unsafe fn run(self, comm: *const Comm) -> i32 {
        guard(|| {
            // SAFETY: the caller gives a live handle.
            let comm = unsafe { borrow(comm) }?;
            let c = self.check(comm)?;
            let communicator = &comm.communicator;
            // SAFETY: the caller gives buffers that hold what the call says, until it returns.
            Ok(unsafe { communicator.call_raw(c.raw()) }?)
        })
    }

    /// Starts it.
    ///
    /// # Safety
    /// As [`Call::run`], until the work is done; `work` is NULL or can be written.
    unsafe fn start(self, comm: *const Comm, work: *mut *mut Work) -> i32 {
        guard(|| {
            wanted("work", work)?;
            // SAFETY: the caller gives a live handle.
            let comm = unsafe { borrow(comm) }?;
            let c = self.check(comm)?;
            let communicator = &comm.communicator;
            // SAFETY: the caller gives buffers that hold what the call says, until it is done.
            let started = unsafe { communicator.start_raw(c.raw()) }?;
            // SAFETY: the caller gives a place for the answer.
            unsafe { answer("work", work, Box::into_raw(Box::new(started))) }
        })
    }
}

/// The two forms of a collective.
macro_rules! collective {
    ($run:ident, $start:ident, ($($name:ident: $ty:ty),*), $call:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $run($($name: $ty,)* comm: *const Comm) -> i32 {
            // SAFETY: the caller keeps to `unisono.h`.
            unsafe { $call.run(comm) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $start($($name: $ty,)* comm: *const Comm, work: *mut *mut Work) -> i32 {
            // SAFETY: the caller keeps to `unisono.h`.
            unsafe { $call.start(comm, work) }
        }
    };
}

collective!(
    unisono_all_reduce,
    unisono_all_reduce_start,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, op: i32),
    Call::new(Op::AllReduce, send, recv, count, datatype).reducing(op)
);
collective!(
    unisono_reduce_scatter,
    unisono_reduce_scatter_start,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, op: i32),
    Call::new(Op::ReduceScatter, send, recv, count, datatype).reducing(op)
);
collective!(
    unisono_all_gather,
    unisono_all_gather_start,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32),
    Call::new(Op::AllGather, send, recv, count, datatype)
);
collective!(
    unisono_broadcast,
    unisono_broadcast_start,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, root: u32),
    Call::new(Op::Broadcast { root }, send, recv, count, datatype)
);
collective!(unisono_barrier, unisono_barrier_start, (), Call::barrier());
collective!(
    unisono_send,
    unisono_send_start,
    (send: *const c_void, count: usize, datatype: i32, peer: u32),
    Call::new(Op::Send { to: peer }, send, std::ptr::null_mut(), count, datatype)
);
collective!(
    unisono_recv,
    unisono_recv_start,
    (recv: *mut c_void, count: usize, datatype: i32, peer: u32),
    Call::new(Op::Recv { from: peer }, std::ptr::null(), recv, count, datatype)
);
