//! all_reduce, reduce, reduce_scatter.

use super::counts;
use crate::communicator::Communicator;
use crate::communicator::asked::{Asked, Span};
use crate::error::Result;
use crate::{Element, Reduction};

impl Communicator {
    /// Every rank gets the reduction of all ranks' `send`, element by element.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the slices differ in length; else as
    /// [`Error`](crate::Error) says. Any thread, one call at a time a communicator.
    pub fn all_reduce<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let asked = Asked::all_reduce(Span::of(send), Span::of_mut(recv))?;
        self.reduces::<T>(asked, op)
    }

    /// [`Communicator::all_reduce`] in place.
    ///
    /// # Errors
    /// As there.
    pub fn all_reduce_in_place<T: Element>(
        &self,
        data: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let data = Span::of_mut(data);
        self.reduces::<T>(Asked::all_reduce(data, data)?, op)
    }

    /// The root gets the reduction of all ranks' `send`. Elsewhere `recv` is not touched, and may
    /// be empty.
    ///
    /// If `send` lies in a window ([`Communicator::alloc`]), then on all ranks at the same offset. The root may have `recv`
    /// in any window; where it has it elsewhere it reduces alone.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if there is no such root, or on the root if the
    /// slices differ in length; on other ranks if they have freed the window in which it has `recv`; else as
    /// [`Error`](crate::Error) says.
    pub fn reduce<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Into<Reduction>,
        root: u32,
    ) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        let asked = Asked::reduce(self.here(), send, recv, root)?;
        self.reduces::<T>(asked, op)
    }

    /// [`Communicator::reduce`] in place: the root's `data` becomes the result, the others' is
    /// only read.
    ///
    /// # Errors
    /// As there.
    pub fn reduce_in_place<T: Element>(
        &self,
        data: &mut [T],
        op: impl Into<Reduction>,
        root: u32,
    ) -> Result<()> {
        let data = Span::of_mut(data);
        self.reduces::<T>(Asked::reduce(self.here(), data, data, root)?, op)
    }

    /// Rank r gets block r of the reduction of all ranks' `send`; `send` has `size` blocks of the
    /// length of `recv`.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the lengths do not fit; else as
    /// [`Error`](crate::Error) says.
    pub fn reduce_scatter<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.reduces::<T>(Asked::reduce_scatter(self.here(), send, recv)?, op)
    }

    /// [`Communicator::reduce_scatter`] in place: the result is this rank's block of `data`, the
    /// other blocks are undefined.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the length is no multiple of the number of
    /// ranks; else as [`Error`](crate::Error) says.
    pub fn reduce_scatter_in_place<T: Element>(
        &self,
        data: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let (here, data) = (self.here(), Span::of_mut(data));
        let own = here.own("reduce_scatter", data)?;
        self.reduces::<T>(Asked::reduce_scatter(here, data, own)?, op)
    }

    /// [`Communicator::reduce_scatter`] with blocks of unequal lengths: rank r gets `counts[r]`
    /// elements. `counts` is the same on all ranks.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the lengths do not fit the counts; else as
    /// [`Error`](crate::Error) says.
    pub fn reduce_scatter_v<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let counts = self::counts(counts);
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.reduces::<T>(
            Asked::reduce_scatter_v(self.here(), send, recv, &counts)?,
            op,
        )
    }

    /// [`Communicator::reduce_scatter_v`] in place: the result is this rank's block of `data`, the
    /// other blocks are undefined.
    ///
    /// # Errors
    /// As there.
    pub fn reduce_scatter_v_in_place<T: Element>(
        &self,
        data: &mut [T],
        counts: &[usize],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let counts = self::counts(counts);
        let (here, data) = (self.here(), Span::of_mut(data));
        let own = here.own_part(data, &counts);
        self.reduces::<T>(Asked::reduce_scatter_v(here, data, own, &counts)?, op)
    }
}
