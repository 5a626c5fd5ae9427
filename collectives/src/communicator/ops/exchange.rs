//! all_to_all, send, recv, barrier.

use std::time::Duration;

use super::pairs;
use crate::communicator::Communicator;
use crate::communicator::asked::{Asked, Span};
use crate::communicator::start::Request;
use crate::error::Result;
use crate::{DataType, Element};

impl Communicator {
    /// Rank r gets block r of every rank's `send`, in rank order. Both slices have `size` equal
    /// blocks.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the lengths differ or are no multiple of the number of ranks; else as
    /// [`Error`](crate::Error) says.
    pub fn all_to_all<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.moves::<T>(Asked::all_to_all(self.here(), send, recv)?)
    }

    /// [`Communicator::all_to_all`] in place: what comes takes the place of what went. It makes no use of windows.
    ///
    /// # Errors
    /// As there.
    pub fn all_to_all_in_place<T: Element>(&self, data: &mut [T]) -> Result<()> {
        let data = Span::of_mut(data);
        self.moves::<T>(Asked::all_to_all(self.here(), data, data)?)
    }

    /// [`Communicator::all_to_all`] with a length for each two ranks: `send` holds
    /// `send_counts[r]` elements for each rank r, one block after another, and `recv` gets
    /// `recv_counts[r]` from it. What r sends to this rank must be what this rank receives from r.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if a slice is not as long as its counts say; [`Error::Mismatch`](crate::Error::Mismatch) if two
    /// ranks disagree; else as [`Error`](crate::Error) says.
    pub fn all_to_all_v<T: Element>(
        &self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let counts = pairs(send_counts, recv_counts)?;
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.moves::<T>(Asked::all_to_all_v(self.here(), send, recv, &counts)?)
    }

    /// No rank leaves before every rank has entered.
    ///
    /// # Errors
    /// As [`Error`](crate::Error) says.
    pub fn barrier(&self) -> Result<()> {
        self.moves::<u8>(Asked::barrier())
    }

    /// [`Communicator::barrier`] with a deadline of its own.
    pub(in crate::communicator) fn barrier_within(&self, deadline: Duration) -> Result<()> {
        self.shared.run(Request {
            deadline,
            ..self.request(Asked::barrier(), DataType::U8, None)
        })
    }

    /// Sends to one rank, which calls [`Communicator::recv`] with as many elements. Returns when
    /// `data` may be reused; that may be before the peer has called. Where the message is longer than slots hold, or has
    /// 256 KiB and more and lies in a [`Window`](crate::Window), from which the peer may copy it, the peer has to call first:
    /// two ranks that both send and then receive wait for each other, unless they do so in a
    /// [`group`](Communicator::group).
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for this rank itself or none; else as [`Error`](crate::Error) says.
    pub fn send<T: Element>(&self, data: &[T], to: u32) -> Result<()> {
        self.moves::<T>(Asked::send(Span::of(data), to))
    }

    /// Receives what one rank sends.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for this rank itself or none; else as [`Error`](crate::Error) says.
    pub fn recv<T: Element>(&self, data: &mut [T], from: u32) -> Result<()> {
        self.moves::<T>(Asked::recv(Span::of_mut(data), from))
    }
}
