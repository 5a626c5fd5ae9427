//! The collectives, in their blocking forms.
//!
//! Slices are borrowed for the call: when it returns, also with an error, no device, link or peer
//! touches them any more.

use std::sync::Arc;

use unisono_plan::Op as PlanOp;

use super::Communicator;
use super::start::Request;
use crate::error::{Error, Result};
use crate::{DataType, Element, ReduceOp};

/// Where a call's data lies. For calls in place both are one buffer's addresses.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub input: u64,
    pub output: u64,
}

impl Communicator {
    /// Every rank gets the reduction of all ranks' `send`, element by element.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the slices differ in length; else as [`Error`] says. Any thread, one
    /// call at a time a communicator.
    pub fn all_reduce<T: Element>(&self, send: &[T], recv: &mut [T], op: ReduceOp) -> Result<()> {
        same("all_reduce", "send", send.len(), "recv", recv.len())?;
        let ends = ends(send, recv);
        self.reduce::<T>(PlanOp::AllReduce, send.len(), op, ends)
    }

    /// [`Communicator::all_reduce`] in place.
    ///
    /// # Errors
    /// As there.
    pub fn all_reduce_in_place<T: Element>(&self, data: &mut [T], op: ReduceOp) -> Result<()> {
        self.reduce::<T>(PlanOp::AllReduce, data.len(), op, whole(data))
    }

    /// Rank r gets block r of the reduction of all ranks' `send`; `send` has `size` blocks of the
    /// length of `recv`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the lengths do not fit; else as [`Error`] says.
    pub fn reduce_scatter<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<()> {
        let expected = recv.len().saturating_mul(self.size() as usize);
        same(
            "reduce_scatter",
            "send",
            send.len(),
            "recv times ranks",
            expected,
        )?;
        let ends = ends(send, recv);
        self.reduce::<T>(PlanOp::ReduceScatter, send.len(), op, ends)
    }

    /// [`Communicator::reduce_scatter`] in place: the result is this rank's block of `data`, the
    /// other blocks are undefined.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the length is no multiple of the number of ranks; else as [`Error`].
    pub fn reduce_scatter_in_place<T: Element>(&self, data: &mut [T], op: ReduceOp) -> Result<()> {
        let block = self.block("reduce_scatter", data.len())?;
        let mut ends = whole(data);
        ends.output += u64::from(self.rank()) * (block * size_of::<T>()) as u64;
        self.reduce::<T>(PlanOp::ReduceScatter, data.len(), op, ends)
    }

    /// Every rank gets the `send` of all, in rank order; `recv` has `size` blocks of the length of
    /// `send`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the lengths do not fit; else as [`Error`] says.
    pub fn all_gather<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let expected = send.len().saturating_mul(self.size() as usize);
        same(
            "all_gather",
            "recv",
            recv.len(),
            "send times ranks",
            expected,
        )?;
        let count = recv.len();
        let ends = ends(send, recv);
        self.call(PlanOp::AllGather, count, T::TYPE, None, ends)
    }

    /// [`Communicator::all_gather`] in place: this rank's block of `data` is its input.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the length is no multiple of the number of ranks; else as [`Error`].
    pub fn all_gather_in_place<T: Element>(&self, data: &mut [T]) -> Result<()> {
        let block = self.block("all_gather", data.len())?;
        let mut ends = whole(data);
        ends.input += u64::from(self.rank()) * (block * size_of::<T>()) as u64;
        self.call(PlanOp::AllGather, data.len(), T::TYPE, None, ends)
    }

    /// Every rank gets the root's `data`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such root; else as [`Error`] says.
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: u32) -> Result<()> {
        let ends = whole(data);
        self.call(PlanOp::Broadcast { root }, data.len(), T::TYPE, None, ends)
    }

    /// No rank leaves before every rank has entered.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub fn barrier(&self) -> Result<()> {
        let nothing = Ends {
            input: 0,
            output: 0,
        };
        self.call(PlanOp::Barrier, 0, DataType::U8, None, nothing)
    }

    /// Sends to one rank, which calls [`Communicator::recv`] with as many elements. Returns when
    /// `data` may be reused; that may be before the peer has called.
    ///
    /// # Errors
    /// [`Error::Invalid`] for this rank itself or none; else as [`Error`] says.
    pub fn send<T: Element>(&self, data: &[T], to: u32) -> Result<()> {
        let ends = Ends {
            input: data.as_ptr() as u64,
            output: 0,
        };
        self.call(PlanOp::Send { to }, data.len(), T::TYPE, None, ends)
    }

    /// Receives what one rank sends.
    ///
    /// # Errors
    /// [`Error::Invalid`] for this rank itself or none; else as [`Error`] says.
    pub fn recv<T: Element>(&self, data: &mut [T], from: u32) -> Result<()> {
        let ends = Ends {
            input: 0,
            output: data.as_mut_ptr() as u64,
        };
        self.call(PlanOp::Recv { from }, data.len(), T::TYPE, None, ends)
    }

    fn reduce<T: Element>(
        &self,
        op: PlanOp,
        count: usize,
        how: ReduceOp,
        ends: Ends,
    ) -> Result<()> {
        self.call(op, count, T::TYPE, Some(how), ends)
    }

    fn call(
        &self,
        op: PlanOp,
        count: usize,
        dtype: DataType,
        reduction: Option<ReduceOp>,
        ends: Ends,
    ) -> Result<()> {
        let request = Request {
            op,
            count: count as u64,
            dtype,
            reduction,
            ends,
            deadline: self.shared.world.options.timeouts.op,
        };
        self.shared.run(&request)
    }

    fn block(&self, call: &'static str, len: usize) -> Result<usize> {
        let ranks = self.size() as usize;
        if len.is_multiple_of(ranks) {
            return Ok(len / ranks);
        }
        Err(Error::invalid(
            call,
            format!("{len} elements are no multiple of {ranks} ranks"),
        ))
    }
}

fn ends<T>(send: &[T], recv: &mut [T]) -> Ends {
    Ends {
        input: send.as_ptr() as u64,
        output: recv.as_mut_ptr() as u64,
    }
}

fn whole<T>(data: &mut [T]) -> Ends {
    let address = data.as_mut_ptr() as u64;
    Ends {
        input: address,
        output: address,
    }
}

fn same(call: &'static str, what: &str, len: usize, other: &str, expected: usize) -> Result<()> {
    if len == expected {
        return Ok(());
    }
    Err(Error::invalid(
        call,
        format!("{what} has {len} elements, {other} is {expected}; they must be equal"),
    ))
}

impl Communicator {
    /// The raw form of every collective, for callers with their own addresses: C, Python, devices.
    ///
    /// `count` is in elements of the whole message: all_gather's output, reduce_scatter's input.
    /// Blocks until the call is complete.
    ///
    /// # Safety
    /// `input` and `output` are addresses that this communicator's device can read and write for
    /// as many elements as the op says (see [`unisono_plan::Op::holds`]); nothing else writes them,
    /// nor reads the output, until the call returns. They may overlap only in the way of an
    /// in-place call.
    ///
    /// # Errors
    /// As the safe forms.
    #[allow(unsafe_code, reason = "takes addresses")]
    pub unsafe fn call_raw(
        &self,
        op: PlanOp,
        input: u64,
        output: u64,
        count: u64,
        dtype: DataType,
        reduction: Option<ReduceOp>,
    ) -> Result<()> {
        self.shared.run(&Request {
            op,
            count,
            dtype,
            reduction,
            ends: Ends { input, output },
            deadline: self.shared.world.options.timeouts.op,
        })
    }

    /// [`Communicator::call_raw`] that returns at once; the call is complete when the work is.
    ///
    /// # Safety
    /// As there, until the work is complete.
    ///
    /// # Errors
    /// As the safe forms.
    #[allow(unsafe_code, reason = "takes addresses")]
    pub unsafe fn start_raw(
        &self,
        op: PlanOp,
        input: u64,
        output: u64,
        count: u64,
        dtype: DataType,
        reduction: Option<ReduceOp>,
    ) -> Result<super::Work> {
        let request = Request {
            op,
            count,
            dtype,
            reduction,
            ends: Ends { input, output },
            deadline: self.shared.world.options.timeouts.op,
        };
        let number = self.shared.start(&request, None)?;
        Ok(super::Work::new(Arc::clone(&self.shared), number))
    }
}
