//! Groups: calls that are collected, started together and waited for together.
//!
//! Of one communicator the collectives run in the order of their calls; then its messages (send,
//! recv) run all beside each other, so that it does not matter in which order ranks name them.
//! Communicators run beside each other.

use std::sync::Arc;

use super::Communicator;
use super::asked::{Asked, Here, Span};
use super::ops::{counts, pairs};
use super::shared::Shared;
use super::staged::Staged;
use super::start::Checked;
use crate::error::{Error, Result};
use crate::progress::progress;
use crate::stream::Stream;
use crate::{DataType, Element, RawCall, Reduction};

/// Streams that the calls of a group on one communicator may be ordered on: what they wait for must
/// fit into a batch.
const STREAMS: usize = 64;

/// Runs the calls that `calls` makes, on any communicators, together; returns when all are complete.
///
/// Nothing is started before `calls` has returned, and nothing at all if one of the calls can't be
/// made: the error says which.
///
/// ```no_run
/// # fn exchange(world: &unisono_collectives::Communicator, rows: &unisono_collectives::Communicator,
/// #     mine: &[f32], theirs: &mut [f32], sums: &mut [f32]) -> unisono_collectives::Result<()> {
/// use unisono_collectives::{ReduceOp, group};
/// group(|group| {
///     group.on(world).send(mine, 1)?;
///     group.on(world).recv(theirs, 1)?;
///     group.on(rows).all_reduce_in_place(sums, ReduceOp::Sum)
/// })
/// # }
/// ```
///
/// # Errors
/// The first error of `calls`, the first call that can't be made, or what broke a communicator.
pub fn group<'env>(calls: impl FnOnce(&mut Group<'env>) -> Result<()>) -> Result<()> {
    let mut group = Group {
        calls: Vec::new(),
        streams: Vec::new(),
    };
    calls(&mut group)?;
    group.run()
}

/// Calls that are being collected. What they borrow outlives the group.
pub struct Group<'env> {
    calls: Vec<Collected<'env>>,
    /// Streams that communicators' calls are ordered on.
    streams: Vec<(&'env Communicator, Stream)>,
}

/// The calls of a group on one communicator.
pub struct OnCommunicator<'group, 'env> {
    group: &'group mut Group<'env>,
    communicator: &'env Communicator,
}

struct Collected<'env> {
    on: &'env Communicator,
    asked: Owned,
    dtype: DataType,
    reduction: Option<Reduction>,
    /// Whether its buffers are slices, else addresses for the device.
    slices: bool,
}

/// A group that was started.
struct Started {
    /// The number of the last call on each communicator that is to be waited for.
    last: Vec<(Arc<Shared>, u64)>,
    /// Slices that stand on a device, with whose call they belong to.
    staged: Vec<(Arc<Shared>, Staged)>,
    /// What broke a communicator meanwhile.
    broken: Option<Error>,
}

/// What is asked, with counts of its own.
struct Owned {
    /// Its sizes are of no meaning where there are counts.
    asked: Asked<'static>,
    counts: Option<Box<[u64]>>,
}

impl Communicator {
    /// Runs the calls that `calls` makes on this communicator together; see [`group`].
    ///
    /// ```no_run
    /// # fn shift(world: &unisono_collectives::Communicator, mine: &[f32], theirs: &mut [f32])
    /// # -> unisono_collectives::Result<()> {
    /// let (rank, size) = (world.rank(), world.size());
    /// world.group(|group| {
    ///     group.send(mine, (rank + 1) % size)?;
    ///     group.recv(theirs, (rank + size - 1) % size)
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn group<'env>(
        &'env self,
        calls: impl FnOnce(&mut OnCommunicator<'_, 'env>) -> Result<()>,
    ) -> Result<()> {
        group(|group| calls(&mut group.on(self)))
    }
}

impl<'env> Group<'env> {
    /// Calls on this communicator.
    pub fn on(&mut self, communicator: &'env Communicator) -> OnCommunicator<'_, 'env> {
        OnCommunicator {
            group: self,
            communicator,
        }
    }

    fn run(self) -> Result<()> {
        let mut result = Ok(());
        // All are waited for, also after an error: until then devices may touch the buffers.
        let started = self.start()?;
        for (shared, number) in started.last {
            let lane = &shared.lane;
            if lane.completed() < number {
                let state = lane.lock();
                let waited = progress().wait(lane, state, number, shared.policy, &*shared);
                result = result.and(waited);
            }
        }
        let mut result = started.broken.map_or(result, Err);
        for (shared, staged) in started.staged {
            let of_call = shared.lane.failure().cloned().map_or(Ok(()), Err);
            result = result.and(shared.unstage(staged, of_call));
        }
        result
    }

    /// Starts all.
    fn start(self) -> Result<Started> {
        let mut staged = Vec::new();
        let started = self.start_staged(&mut staged);
        match started {
            Ok(started) => Ok(Started { staged, ..started }),
            Err(error) => {
                // Nothing was started.
                staged.into_iter().for_each(|(_, staged)| staged.unused());
                Err(error)
            }
        }
    }

    fn start_staged(&self, staged: &mut Vec<(Arc<Shared>, Staged)>) -> Result<Started> {
        let mut by_communicator: Vec<(&Communicator, Vec<Checked<'_>>)> = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            let request = call
                .on
                .request(call.asked.borrow(), call.dtype, call.reduction.clone());
            let shared = &call.on.shared;
            let on_stream = !self.streams_of(call.on).is_empty();
            let slices = match call.slices {
                true => (shared.stage(&request, on_stream)).map_err(|e| named(e, index))?,
                false => None,
            };
            let request = match slices {
                None => request,
                Some((slices, request)) => {
                    staged.push((shared.clone(), slices));
                    request
                }
            };
            let checked = (call.on.shared)
                .prepare(request)
                .map_err(|error| named(error, index))?;
            let known = by_communicator
                .iter_mut()
                .find(|(on, _)| Arc::ptr_eq(&on.shared, &call.on.shared));
            match known {
                Some((_, calls)) => calls.push(checked),
                None => by_communicator.push((call.on, vec![checked])),
            }
        }
        let (mut last, mut broken) = (Vec::new(), None);
        for (on, calls) in by_communicator {
            let streams = self.streams_of(on);
            match on.shared.start_together(calls, &streams) {
                Ok(number) if streams.is_empty() => last.push((on.shared.clone(), number)),
                Ok(_) => {}
                Err(error) => broken = broken.or(Some(error)),
            }
        }
        Ok(Started {
            last,
            staged: Vec::new(),
            broken,
        })
    }

    /// The streams of a communicator's calls, each once, in the order in which they are locked.
    fn streams_of(&self, on: &Communicator) -> Vec<Stream> {
        let of = |(other, _): &&(&Communicator, _)| Arc::ptr_eq(&other.shared, &on.shared);
        let streams = self.streams.iter().filter(of);
        let mut streams: Vec<_> = streams.map(|(_, stream)| stream.clone()).collect();
        streams.sort_by_key(Stream::place);
        streams.dedup_by_key(|stream| stream.place());
        streams
    }
}

/// The error of a call, with its place in the group.
fn named(error: Error, index: usize) -> Error {
    let place = |text: String| format!("{text} (call {} of the group)", index + 1);
    match error {
        Error::Invalid { call, what } => Error::Invalid {
            call,
            what: place(what),
        },
        Error::Unsupported { call, why } => Error::Unsupported {
            call,
            why: place(why),
        },
        other => other,
    }
}

impl Owned {
    fn new(asked: Asked<'_>) -> Self {
        use unisono_plan::geometry::Sizes;
        let (sizes, counts) = match asked.sizes {
            Sizes::Equal(count) => (Sizes::Equal(count), None),
            Sizes::Parts(parts) => (Sizes::Equal(0), Some(parts.into())),
        };
        Self {
            asked: Asked {
                op: asked.op,
                kind: asked.kind,
                ends: asked.ends,
                sizes,
            },
            counts,
        }
    }

    fn borrow(&self) -> Asked<'_> {
        use unisono_plan::geometry::Sizes;
        match &self.counts {
            None => self.asked,
            Some(counts) => Asked {
                sizes: Sizes::Parts(counts),
                ..self.asked
            },
        }
    }
}

/// The calls, as those of [`Communicator`] with the same names. Buffers are borrowed until the group
/// is complete.
#[allow(
    clippy::missing_errors_doc,
    reason = "each fails as the call of the same name, if its lengths do not fit"
)]
impl<'env> OnCommunicator<'_, 'env> {
    /// [`Communicator::all_reduce`].
    pub fn all_reduce<T: Element>(
        &mut self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let asked = Asked::all_reduce(Span::of(send), Span::of_mut(recv));
        self.add::<T>(asked, Some(op.into()))
    }

    /// [`Communicator::all_reduce_in_place`].
    pub fn all_reduce_in_place<T: Element>(
        &mut self,
        data: &'env mut [T],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let data = Span::of_mut(data);
        self.add::<T>(Asked::all_reduce(data, data), Some(op.into()))
    }

    /// [`Communicator::reduce`].
    pub fn reduce<T: Element>(
        &mut self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Into<Reduction>,
        root: u32,
    ) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        let asked = Asked::reduce(self.here(), send, recv, root);
        self.add::<T>(asked, Some(op.into()))
    }

    /// [`Communicator::reduce_scatter`].
    pub fn reduce_scatter<T: Element>(
        &mut self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        let asked = Asked::reduce_scatter(self.here(), send, recv);
        self.add::<T>(asked, Some(op.into()))
    }

    /// [`Communicator::reduce_scatter_v`].
    pub fn reduce_scatter_v<T: Element>(
        &mut self,
        send: &'env [T],
        recv: &'env mut [T],
        counts: &[usize],
        op: impl Into<Reduction>,
    ) -> Result<()> {
        let counts = self::counts(counts);
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        let asked = Asked::reduce_scatter_v(self.here(), send, recv, &counts);
        self.add::<T>(asked, Some(op.into()))
    }

    /// [`Communicator::all_gather`].
    pub fn all_gather<T: Element>(&mut self, send: &'env [T], recv: &'env mut [T]) -> Result<()> {
        let asked = Asked::all_gather(self.here(), Span::of(send), Span::of_mut(recv));
        self.add::<T>(asked, None)
    }

    /// [`Communicator::all_gather_v`].
    pub fn all_gather_v<T: Element>(
        &mut self,
        send: &'env [T],
        recv: &'env mut [T],
        counts: &[usize],
    ) -> Result<()> {
        let counts = self::counts(counts);
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.add::<T>(Asked::all_gather_v(self.here(), send, recv, &counts), None)
    }

    /// [`Communicator::gather`].
    pub fn gather<T: Element>(
        &mut self,
        send: &'env [T],
        recv: &'env mut [T],
        root: u32,
    ) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.add::<T>(Asked::gather(self.here(), send, recv, root), None)
    }

    /// [`Communicator::scatter`].
    pub fn scatter<T: Element>(
        &mut self,
        send: &'env [T],
        recv: &'env mut [T],
        root: u32,
    ) -> Result<()> {
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.add::<T>(Asked::scatter(self.here(), send, recv, root), None)
    }

    /// [`Communicator::broadcast`].
    pub fn broadcast<T: Element>(&mut self, data: &'env mut [T], root: u32) -> Result<()> {
        self.add::<T>(Ok(Asked::broadcast(Span::of_mut(data), root)), None)
    }

    /// [`Communicator::all_to_all`].
    pub fn all_to_all<T: Element>(&mut self, send: &'env [T], recv: &'env mut [T]) -> Result<()> {
        let asked = Asked::all_to_all(self.here(), Span::of(send), Span::of_mut(recv));
        self.add::<T>(asked, None)
    }

    /// [`Communicator::all_to_all_v`].
    pub fn all_to_all_v<T: Element>(
        &mut self,
        send: &'env [T],
        send_counts: &[usize],
        recv: &'env mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let counts = pairs(send_counts, recv_counts)?;
        let (send, recv) = (Span::of(send), Span::of_mut(recv));
        self.add::<T>(Asked::all_to_all_v(self.here(), send, recv, &counts), None)
    }

    /// [`Communicator::barrier`].
    pub fn barrier(&mut self) -> Result<()> {
        self.add::<u8>(Ok(Asked::barrier()), None)
    }

    /// [`Communicator::send`].
    pub fn send<T: Element>(&mut self, data: &'env [T], to: u32) -> Result<()> {
        self.add::<T>(Ok(Asked::send(Span::of(data), to)), None)
    }

    /// [`Communicator::recv`].
    pub fn recv<T: Element>(&mut self, data: &'env mut [T], from: u32) -> Result<()> {
        self.add::<T>(Ok(Asked::recv(Span::of_mut(data), from)), None)
    }

    /// A call by addresses.
    ///
    /// # Safety
    /// As [`Communicator::start_raw`], until the group is complete.
    #[allow(unsafe_code, reason = "takes addresses")]
    pub unsafe fn raw(&mut self, call: RawCall<'_>) -> Result<()> {
        let asked = self.communicator.asked(&call);
        self.collect(asked, call.dtype, call.reduction, false)
    }

    /// The group's calls on this communicator run on `stream`: they begin when it has come to them,
    /// what is put on it next waits for them, and the group does not wait for them. With several
    /// streams they begin when all have come to them.
    ///
    /// # Safety
    /// The buffers of these calls stay alive, and are not touched by anything but the stream, until
    /// the stream has come to its end: [`Stream::synchronize`] returns then.
    #[allow(unsafe_code, reason = "buffers outlive their borrow")]
    pub unsafe fn on_stream(&mut self, stream: &Stream) -> Result<()> {
        stream.fits(&self.communicator.shared)?;
        stream.runs("on_stream")?;
        if self.group.streams_of(self.communicator).len() >= STREAMS {
            return Err(Error::invalid(
                "group",
                format!("more than {STREAMS} streams of one communicator"),
            ));
        }
        let both = (self.communicator, stream.clone());
        self.group.streams.push(both);
        Ok(())
    }

    fn here(&self) -> Here {
        self.communicator.here()
    }

    fn add<T: Element>(
        &mut self,
        asked: Result<Asked<'_>>,
        reduction: Option<Reduction>,
    ) -> Result<()> {
        self.collect(asked, T::TYPE, reduction, true)
    }

    fn collect(
        &mut self,
        asked: Result<Asked<'_>>,
        dtype: DataType,
        reduction: Option<Reduction>,
        slices: bool,
    ) -> Result<()> {
        let index = self.group.calls.len();
        let asked = asked.map_err(|error| named(error, index))?;
        self.group.calls.push(Collected {
            on: self.communicator,
            asked: Owned::new(asked),
            dtype,
            reduction,
            slices,
        });
        Ok(())
    }
}

impl std::fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({} calls)", self.calls.len())
    }
}

impl std::fmt::Debug for OnCommunicator<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnCommunicator({})", self.communicator.name())
    }
}
