//! all_gather, gather, scatter, broadcast.

use super::counts;
use crate::Element;
use crate::communicator::Communicator;
use crate::communicator::asked::{Asked, Span};
use crate::error::Result;

impl Communicator {
    /// Every rank gets the `send` of all, in rank order; `recv` has `size` blocks of the length of
    /// `send`.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the lengths do not fit; else as
    /// [`Error`](crate::Error) says.
    pub fn all_gather<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.moves::<T>(Asked::all_gather(self.here(), send, recv)?)
    }

    /// [`Communicator::all_gather`] in place: this rank's block of `data` is its input.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the length is no multiple of the number of
    /// ranks; else as [`Error`](crate::Error) says.
    pub fn all_gather_in_place<T: Element>(&self, data: &mut [T]) -> Result<()> {
        let (here, data) = (self.here(), Span::of_mut(data));
        let own = here.own("all_gather", data)?;
        self.moves::<T>(Asked::all_gather(here, own, data)?)
    }

    /// [`Communicator::all_gather`] with blocks of unequal lengths: rank r gives `counts[r]`
    /// elements. `counts` is the same on all ranks.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the lengths do not fit the counts; else as
    /// [`Error`](crate::Error) says.
    pub fn all_gather_v<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        let counts = self::counts(counts);
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.moves::<T>(Asked::all_gather_v(self.here(), send, recv, &counts)?)
    }

    /// [`Communicator::all_gather_v`] in place: this rank's block of `data` is its input.
    ///
    /// # Errors
    /// As there.
    pub fn all_gather_v_in_place<T: Element>(
        &self,
        data: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        let counts = self::counts(counts);
        let (here, data) = (self.here(), Span::of_mut(data));
        let own = here.own_part(data, &counts);
        self.moves::<T>(Asked::all_gather_v(here, own, data, &counts)?)
    }

    /// The root gets the `send` of all, in rank order; its `recv` has `size` blocks of the length
    /// of `send`. Elsewhere `recv` is not touched, and may be empty.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if there is no such root, or on the root if the
    /// lengths do not fit; else as [`Error`](crate::Error) says.
    pub fn gather<T: Element>(&self, send: &[T], recv: &mut [T], root: u32) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.moves::<T>(Asked::gather(self.here(), send, recv, root)?)
    }

    /// [`Communicator::gather`] in place: on the root `data` is the whole, and its own block of it
    /// the input; elsewhere `data` is the input.
    ///
    /// # Errors
    /// As there.
    pub fn gather_in_place<T: Element>(&self, data: &mut [T], root: u32) -> Result<()> {
        let (here, data) = (self.here(), Span::of_mut(data));
        let own = if here.rank == root {
            here.own("gather", data)?
        } else {
            data
        };
        self.moves::<T>(Asked::gather(here, own, data, root)?)
    }

    /// Rank r gets block r of the root's `send`, which has `size` blocks of the length of `recv`.
    /// Elsewhere `send` is not read, and may be empty.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if there is no such root, or on the root if the
    /// lengths do not fit; else as [`Error`](crate::Error) says.
    pub fn scatter<T: Element>(&self, send: &[T], recv: &mut [T], root: u32) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.moves::<T>(Asked::scatter(self.here(), send, recv, root)?)
    }

    /// [`Communicator::scatter`] in place: on the root `data` is the whole, of which its own block
    /// stays where it is; elsewhere `data` is the output.
    ///
    /// # Errors
    /// As there.
    pub fn scatter_in_place<T: Element>(&self, data: &mut [T], root: u32) -> Result<()> {
        let (here, data) = (self.here(), Span::of_mut(data));
        let own = if here.rank == root {
            here.own("scatter", data)?
        } else {
            data
        };
        self.moves::<T>(Asked::scatter(here, data, own, root)?)
    }

    /// Every rank gets the root's `data`.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if there is no such root; else as
    /// [`Error`](crate::Error) says.
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: u32) -> Result<()> {
        self.moves::<T>(Asked::broadcast(Span::of_mut(data), root))
    }
}
