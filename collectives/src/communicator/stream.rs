//! The stream forms of the collectives: they return at once.
//!
//! A started call owns its buffers until it is complete, so nobody can free or change what a device
//! still reads; [`Pending::wait`] gives them back.
//!
//! Any thread may start calls; nothing is waited for. What a short call (up to 32 KiB) can do without its peers may be
//! done by the thread that starts it, the rest by whoever waits or by the progress thread.

use super::asked::Asked;
use super::ops::{counts, pairs};
use super::{Buffer, Communicator, Pending, Work};
use crate::error::Result;
use crate::{Element, Reduction};

/// Both buffers of a call.
type Two<T> = (Buffer<T>, Buffer<T>);

impl Communicator {
    /// Starts an all_reduce in place; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    pub fn start_all_reduce<T: Element>(
        &self,
        data: Buffer<T>,
        op: impl Into<Reduction>,
    ) -> Result<Pending<Buffer<T>>> {
        let asked = Asked::all_reduce(data.span(), data.span())?;
        let work = self.begin(asked, Some(op.into()), &[&data])?;
        Ok(Pending::new(work, data))
    }

    /// Starts a reduce in place; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::reduce_in_place`].
    pub fn start_reduce<T: Element>(
        &self,
        data: Buffer<T>,
        op: impl Into<Reduction>,
        root: u32,
    ) -> Result<Pending<Buffer<T>>> {
        let asked = Asked::reduce(self.here(), data.span(), data.span(), root)?;
        let work = self.begin(asked, Some(op.into()), &[&data])?;
        Ok(Pending::new(work, data))
    }

    /// Starts a reduce_scatter; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter`].
    pub fn start_reduce_scatter<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        op: impl Into<Reduction>,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::reduce_scatter(self.here(), send.span(), recv.span())?;
        self.begin_two(asked, Some(op.into()), send, recv)
    }

    /// Starts a reduce_scatter_v; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter_v`].
    pub fn start_reduce_scatter_v<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        counts: &[usize],
        op: impl Into<Reduction>,
    ) -> Result<Pending<Two<T>>> {
        let counts = self::counts(counts);
        let asked = Asked::reduce_scatter_v(self.here(), send.span(), recv.span(), &counts)?;
        self.begin_two(asked, Some(op.into()), send, recv)
    }

    /// Starts an all_gather; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::all_gather`].
    pub fn start_all_gather<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::all_gather(self.here(), send.span(), recv.span())?;
        self.begin_two(asked, None, send, recv)
    }

    /// Starts an all_gather_v; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::all_gather_v`].
    pub fn start_all_gather_v<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        counts: &[usize],
    ) -> Result<Pending<Two<T>>> {
        let counts = self::counts(counts);
        let asked = Asked::all_gather_v(self.here(), send.span(), recv.span(), &counts)?;
        self.begin_two(asked, None, send, recv)
    }

    /// Starts a gather; returns at once. Elsewhere than on the root `recv` may be empty.
    ///
    /// # Errors
    /// As [`Communicator::gather`].
    pub fn start_gather<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        root: u32,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::gather(self.here(), send.span(), recv.span(), root)?;
        self.begin_two(asked, None, send, recv)
    }

    /// Starts a scatter; returns at once. Elsewhere than on the root `send` may be empty.
    ///
    /// # Errors
    /// As [`Communicator::scatter`].
    pub fn start_scatter<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        root: u32,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::scatter(self.here(), send.span(), recv.span(), root)?;
        self.begin_two(asked, None, send, recv)
    }

    /// Starts a broadcast; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::broadcast`].
    pub fn start_broadcast<T: Element>(
        &self,
        data: Buffer<T>,
        root: u32,
    ) -> Result<Pending<Buffer<T>>> {
        let work = self.begin(Asked::broadcast(data.span(), root), None, &[&data])?;
        Ok(Pending::new(work, data))
    }

    /// Starts an all_to_all; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`].
    pub fn start_all_to_all<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::all_to_all(self.here(), send.span(), recv.span())?;
        self.begin_two(asked, None, send, recv)
    }

    /// Starts an all_to_all_v; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::all_to_all_v`].
    pub fn start_all_to_all_v<T: Element>(
        &self,
        send: Buffer<T>,
        send_counts: &[usize],
        recv: Buffer<T>,
        recv_counts: &[usize],
    ) -> Result<Pending<Two<T>>> {
        let counts = pairs(send_counts, recv_counts)?;
        let asked = Asked::all_to_all_v(self.here(), send.span(), recv.span(), &counts)?;
        self.begin_two(asked, None, send, recv)
    }

    /// Starts a send; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::send`].
    pub fn start_send<T: Element>(&self, data: Buffer<T>, to: u32) -> Result<Pending<Buffer<T>>> {
        let work = self.begin(Asked::send(data.span(), to), None, &[&data])?;
        Ok(Pending::new(work, data))
    }

    /// Starts a receive; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::recv`].
    pub fn start_recv<T: Element>(&self, data: Buffer<T>, from: u32) -> Result<Pending<Buffer<T>>> {
        let work = self.begin(Asked::recv(data.span(), from), None, &[&data])?;
        Ok(Pending::new(work, data))
    }

    fn begin_two<T: Element>(
        &self,
        asked: Asked<'_>,
        reduction: Option<Reduction>,
        send: Buffer<T>,
        recv: Buffer<T>,
    ) -> Result<Pending<Two<T>>> {
        let work = self.begin(asked, reduction, &[&send, &recv])?;
        Ok(Pending::new(work, (send, recv)))
    }

    fn begin<T: Element>(
        &self,
        asked: Asked<'_>,
        reduction: Option<Reduction>,
        keep: &[&Buffer<T>],
    ) -> Result<Work> {
        let keep: Vec<_> = keep.iter().map(|buffer| buffer.memory()).collect();
        let request = self.request(asked, T::TYPE, reduction);
        let number = self.shared.start(request, Some(Box::new(keep)))?;
        Ok(Work::new(self.shared.clone(), number))
    }
}
