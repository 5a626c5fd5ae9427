//! From the buffers of a call to what is asked of the engine: lengths that must fit, and where
//! blocks of calls in place lie.

use unisono_plan::Op;
use unisono_plan::geometry::Sizes;

use crate::error::{Error, Result};
use crate::signature::CallKind;

/// A buffer of a call, as elements at an address.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub address: u64,
    pub len: usize,
    /// Bytes of one element.
    pub size: usize,
}

/// Where a call's data lies. For calls in place both are one buffer's addresses; a buffer that
/// this rank has no part in is 0.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub input: u64,
    pub output: u64,
}

impl Ends {
    /// Input and output.
    pub(super) fn both(self) -> [u64; 2] {
        [self.input, self.output]
    }
}

/// A call whose lengths fit.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub op: Op,
    pub kind: CallKind,
    pub sizes: Sizes<'a>,
    pub ends: Ends,
}

/// This rank's place in its communicator.
#[derive(Clone, Copy)]
pub(super) struct Here {
    pub rank: u32,
    pub ranks: u32,
}

impl Span {
    pub(super) const NONE: Self = Self {
        address: 0,
        len: 0,
        size: 1,
    };

    pub(super) fn of<T>(data: &[T]) -> Self {
        Self {
            address: data.as_ptr() as u64,
            len: data.len(),
            size: size_of::<T>(),
        }
    }

    pub(super) fn of_mut<T>(data: &mut [T]) -> Self {
        Self {
            address: data.as_mut_ptr() as u64,
            ..Self::of(data)
        }
    }

    /// `len` elements from the one at `start` on.
    fn part(self, start: usize, len: usize) -> Self {
        Self {
            address: self.address + (start * self.size) as u64,
            len,
            ..self
        }
    }
}

impl Here {
    fn is(self, root: u32) -> bool {
        self.rank == root
    }

    /// Elements of one block of `whole`, which has one for each rank.
    fn block(self, call: &'static str, whole: usize) -> Result<usize> {
        let ranks = self.ranks as usize;
        if whole.is_multiple_of(ranks) {
            return Ok(whole / ranks);
        }
        Err(Error::invalid(
            call,
            format!("{whole} elements are no multiple of {ranks} ranks"),
        ))
    }

    /// This rank's block of a buffer that has one for each rank.
    pub(super) fn own(self, call: &'static str, whole: Span) -> Result<Span> {
        let block = self.block(call, whole.len)?;
        Ok(whole.part(self.rank as usize * block, block))
    }

    /// This rank's part of a buffer that is cut by `counts`.
    pub(super) fn own_part(self, whole: Span, counts: &[u64]) -> Span {
        let rank = self.rank as usize;
        let before: u64 = counts.iter().take(rank).sum();
        let own = counts.get(rank).copied().unwrap_or(0);
        whole.part(before as usize, own as usize)
    }

    /// Refuses unless `whole` has a block as long as `block` for each rank.
    #[inline]
    fn fits(self, call: &'static str, whole: (&str, Span), block: (&str, Span)) -> Result<()> {
        let wanted = block.1.len.checked_mul(self.ranks as usize);
        match wanted == Some(whole.1.len) {
            true => Ok(()),
            false => Err(self.does_not_fit(call, whole, block)),
        }
    }

    #[cold]
    #[inline(never)]
    fn does_not_fit(self, call: &'static str, whole: (&str, Span), block: (&str, Span)) -> Error {
        Error::invalid(
            call,
            format!(
                "{} has {} elements; {} ranks times the {} of {} are needed",
                whole.0, whole.1.len, self.ranks, block.1.len, block.0
            ),
        )
    }

    /// Refuses unless there is a count for each rank and they add up to `whole`.
    fn adds_up(self, call: &'static str, what: &str, whole: Span, counts: &[u64]) -> Result<()> {
        if counts.len() != self.ranks as usize {
            return Err(Error::invalid(
                call,
                format!("{} counts for {} ranks", counts.len(), self.ranks),
            ));
        }
        let sum = counts
            .iter()
            .try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if sum == Some(whole.len as u64) {
            return Ok(());
        }
        Err(Error::invalid(
            call,
            format!(
                "{what} has {} elements, its counts add up to {}",
                whole.len,
                sum.map_or("more than there can be".to_owned(), |sum| sum.to_string())
            ),
        ))
    }
}

#[inline]
fn same(call: &'static str, send: Span, recv: Span) -> Result<()> {
    match send.len == recv.len {
        true => Ok(()),
        false => Err(differ(call, send, recv)),
    }
}

#[cold]
#[inline(never)]
fn differ(call: &'static str, send: Span, recv: Span) -> Error {
    Error::invalid(
        call,
        format!(
            "send has {} elements, recv has {}; they must be equal",
            send.len, recv.len
        ),
    )
}

fn equal(op: Op, kind: CallKind, count: usize, send: Span, recv: Span) -> Asked<'static> {
    Asked {
        op,
        kind,
        sizes: Sizes::Equal(count as u64),
        ends: Ends {
            input: send.address,
            output: recv.address,
        },
    }
}

/// The calls, each from its buffers. In place, both are (parts of) one.
impl Asked<'_> {
    #[inline]
    pub(super) fn all_reduce(send: Span, recv: Span) -> Result<Self> {
        same("all_reduce", send, recv)?;
        Ok(equal(
            Op::AllReduce,
            CallKind::AllReduce,
            send.len,
            send,
            recv,
        ))
    }

    /// `recv` counts on the root alone.
    #[inline]
    pub(super) fn reduce(here: Here, send: Span, recv: Span, root: u32) -> Result<Self> {
        let recv = if here.is(root) { recv } else { Span::NONE };
        if here.is(root) {
            same("reduce", send, recv)?;
        }
        let op = Op::Reduce { root };
        Ok(equal(op, CallKind::Reduce, send.len, send, recv))
    }

    #[inline]
    pub(super) fn reduce_scatter(here: Here, send: Span, recv: Span) -> Result<Self> {
        here.fits("reduce_scatter", ("send", send), ("recv", recv))?;
        let (op, kind) = (Op::ReduceScatter, CallKind::ReduceScatter);
        Ok(equal(op, kind, send.len, send, recv))
    }

    #[inline]
    pub(super) fn all_gather(here: Here, send: Span, recv: Span) -> Result<Self> {
        here.fits("all_gather", ("recv", recv), ("send", send))?;
        let (op, kind) = (Op::AllGather, CallKind::AllGather);
        Ok(equal(op, kind, recv.len, send, recv))
    }

    /// `recv` counts on the root alone.
    #[inline]
    pub(super) fn gather(here: Here, send: Span, recv: Span, root: u32) -> Result<Self> {
        let recv = if here.is(root) { recv } else { Span::NONE };
        if here.is(root) {
            here.fits("gather", ("recv", recv), ("send", send))?;
        }
        let count = here.times("gather", send.len)?;
        Ok(equal(
            Op::Gather { root },
            CallKind::Gather,
            count,
            send,
            recv,
        ))
    }

    /// `send` counts on the root alone.
    #[inline]
    pub(super) fn scatter(here: Here, send: Span, recv: Span, root: u32) -> Result<Self> {
        let send = if here.is(root) { send } else { Span::NONE };
        if here.is(root) {
            here.fits("scatter", ("send", send), ("recv", recv))?;
        }
        let count = here.times("scatter", recv.len)?;
        Ok(equal(
            Op::Scatter { root },
            CallKind::Scatter,
            count,
            send,
            recv,
        ))
    }

    #[inline]
    pub(super) fn broadcast(data: Span, root: u32) -> Self {
        let (op, kind) = (Op::Broadcast { root }, CallKind::Broadcast);
        equal(op, kind, data.len, data, data)
    }

    #[inline]
    pub(super) fn all_to_all(here: Here, send: Span, recv: Span) -> Result<Self> {
        same("all_to_all", send, recv)?;
        here.block("all_to_all", send.len)?;
        let (op, kind) = (Op::AllToAll, CallKind::AllToAll);
        Ok(equal(op, kind, send.len, send, recv))
    }

    #[inline]
    pub(super) fn barrier() -> Self {
        equal(Op::Barrier, CallKind::Barrier, 0, Span::NONE, Span::NONE)
    }

    #[inline]
    pub(super) fn send(data: Span, to: u32) -> Self {
        let (op, kind) = (Op::Send { to }, CallKind::SendRecv);
        equal(op, kind, data.len, data, Span::NONE)
    }

    #[inline]
    pub(super) fn recv(data: Span, from: u32) -> Self {
        let (op, kind) = (Op::Recv { from }, CallKind::SendRecv);
        equal(op, kind, data.len, Span::NONE, data)
    }
}

impl<'a> Asked<'a> {
    pub(super) fn all_gather_v(
        here: Here,
        send: Span,
        recv: Span,
        counts: &'a [u64],
    ) -> Result<Self> {
        const CALL: &str = "all_gather_v";
        here.adds_up(CALL, "recv", recv, counts)?;
        own_is(CALL, "send", send, counts[here.rank as usize])?;
        Ok(Self {
            sizes: Sizes::Parts(counts),
            ..equal(Op::AllGather, CallKind::AllGatherV, 0, send, recv)
        })
    }

    pub(super) fn reduce_scatter_v(
        here: Here,
        send: Span,
        recv: Span,
        counts: &'a [u64],
    ) -> Result<Self> {
        const CALL: &str = "reduce_scatter_v";
        here.adds_up(CALL, "send", send, counts)?;
        own_is(CALL, "recv", recv, counts[here.rank as usize])?;
        Ok(Self {
            sizes: Sizes::Parts(counts),
            ..equal(Op::ReduceScatter, CallKind::ReduceScatterV, 0, send, recv)
        })
    }

    /// `counts` are those of `send`, then those of `recv`.
    pub(super) fn all_to_all_v(
        here: Here,
        send: Span,
        recv: Span,
        counts: &'a [u64],
    ) -> Result<Self> {
        const CALL: &str = "all_to_all_v";
        let ranks = here.ranks as usize;
        if counts.len() != 2 * ranks {
            return Err(Error::invalid(
                CALL,
                format!(
                    "{} counts for {ranks} ranks: one is needed for what is sent to each, and one \
                     for what comes from each",
                    counts.len()
                ),
            ));
        }
        let (sent, received) = counts.split_at(ranks);
        here.adds_up(CALL, "send", send, sent)?;
        here.adds_up(CALL, "recv", recv, received)?;
        here.fit(Op::AllToAll, counts)?;
        Ok(Self {
            sizes: Sizes::Parts(counts),
            ..equal(Op::AllToAll, CallKind::AllToAllV, 0, send, recv)
        })
    }
}

impl Here {
    /// Refuses parts that no buffer can have, and an all_to_all in which this rank sends itself
    /// something else than it gets from itself.
    pub(super) fn fit(self, op: Op, parts: &[u64]) -> Result<()> {
        let (rank, ranks) = (self.rank as usize, self.ranks as usize);
        let sum = |parts: &[u64]| parts.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
        let mut buffers = parts.chunks(ranks);
        if buffers.any(|buffer| sum(buffer).is_none()) {
            return Err(Error::invalid(
                op.name(),
                "its counts add up to more than there can be",
            ));
        }
        let of_self = (parts.get(rank), parts.get(ranks + rank));
        if let (Some(sent), Some(received)) = of_self
            && sent != received
        {
            return Err(Error::invalid(
                "all_to_all_v",
                format!("rank {rank} sends itself {sent} elements and receives {received}"),
            ));
        }
        Ok(())
    }

    fn times(self, call: &'static str, block: usize) -> Result<usize> {
        block
            .checked_mul(self.ranks as usize)
            .ok_or_else(|| Error::invalid(call, format!("{block} elements are too many")))
    }
}

fn own_is(call: &'static str, what: &str, own: Span, count: u64) -> Result<()> {
    if own.len as u64 == count {
        return Ok(());
    }
    Err(Error::invalid(
        call,
        format!(
            "{what} has {} elements, this rank's count is {count}",
            own.len
        ),
    ))
}
