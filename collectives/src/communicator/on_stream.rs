//! Collectives on a stream of the user's: ordered with what else it does.

use std::any::Any;
use std::sync::Arc;

use unisono_hal::Memory;

use super::asked::{Asked, Here};
use super::shared::Shared;
use super::start::Request;
use super::{Buffer, Communicator, Pending, RawCall, Work};
use crate::error::{Error, Result};
use crate::execute::{Flag, Mark};
use crate::progress::progress;
use crate::stream::{Event, Stream};
use crate::{Element, Reduction};

/// Both buffers of a call.
type Two<T> = (Buffer<T>, Buffer<T>);

/// A communicator whose calls run on a stream; see [`Communicator::on`].
#[derive(Clone, Copy, Debug)]
pub struct OnStream<'a> {
    communicator: &'a Communicator,
    stream: &'a Stream,
}

impl Communicator {
    /// A new stream of this communicator's device.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn stream(&self) -> Result<Stream> {
        self.shared.not_forked()?;
        Ok(Stream::new(&self.shared, self.device().stream(0)?))
    }

    /// A stream of the program's own, by the vendor's handle, of this communicator's device.
    ///
    /// # Safety
    /// `native` is a live stream of that device until the answer and its clones are dropped and all
    /// that was put on it is done. A graph that is recorded from it runs only while what
    /// [`Communicator::on`] says holds.
    ///
    /// # Errors
    /// What the plugin says; not every device has streams of its own.
    #[allow(unsafe_code, reason = "takes a handle")]
    pub unsafe fn wrap_stream(&self, native: u64) -> Result<Stream> {
        self.shared.not_forked()?;
        // SAFETY: the caller's promise.
        let stream = unsafe { self.device().wrap_stream(native) };
        let stream = stream.map_err(|error| refused("wrap_stream", error))?;
        Ok(Stream::new(&self.shared, stream))
    }

    /// A new event of this communicator's device, not complete.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn event(&self) -> Result<Event> {
        self.shared.not_forked()?;
        Ok(Event::new(self.device().event()?))
    }

    /// An event of the program's own, by the vendor's handle, of this communicator's device.
    ///
    /// # Safety
    /// `native` is a live event of that device until the answer and its clones are dropped.
    ///
    /// # Errors
    /// What the plugin says; not every device has events of its own.
    #[allow(unsafe_code, reason = "takes a handle")]
    pub unsafe fn wrap_event(&self, native: u64) -> Result<Event> {
        self.shared.not_forked()?;
        // SAFETY: the caller's promise.
        let event = unsafe { self.device().wrap_event(native) };
        Ok(Event::new(
            event.map_err(|error| refused("wrap_event", error))?,
        ))
    }

    /// The calls of this communicator on a stream: each returns at once, begins when the stream has
    /// come to it, and what is put on the stream next begins when the call is complete. While the
    /// stream has not come to a call, its deadline does not run; that of ranks which wait for this
    /// one in the call does.
    ///
    /// A call that fails lets the stream go on; [`Stream::synchronize`] and
    /// [`Communicator::async_error`] tell of it.
    ///
    /// While the stream records a graph of the vendor's, a call becomes a part of it: nothing runs, what
    /// is started is done at once, and the call is made with each replay, with no work of the host's. All
    /// ranks must record it, in one order with their other calls, and replay alike: graphs of one
    /// communicator run one after another, in one order on all ranks, with any calls between them. If the
    /// recording forks, calls on its streams come in the order in which they were called, whatever streams
    /// they are on; only where a plugin cannot tell recordings apart (contract before 1.5) must the program
    /// order them. Calls of other communicators are ordered by the program alone, alike on all ranks. The
    /// buffers stay as they were recorded, and are kept until the communicator is dropped or
    /// [`Communicator::forget_recorded`]; no graph may run after that. [`Communicator::async_error`] tells
    /// of a replay that failed. Recorded are calls of ranks whose devices all reach each other's memory
    /// and record; others are refused, and groups and events are.
    ///
    /// ```no_run
    /// # fn step(world: &unisono_collectives::Communicator) -> unisono_collectives::Result<()> {
    /// use unisono_collectives::ReduceOp;
    /// let (stream, reduced) = (world.stream()?, world.event()?);
    /// let pending = world.on(&stream).all_reduce(world.buffer::<f32>(1 << 20)?, ReduceOp::Sum)?;
    /// stream.record(&reduced)?; // complete when the sums are there
    /// stream.synchronize()?;
    /// let sums = pending.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on<'a>(&'a self, stream: &'a Stream) -> OnStream<'a> {
        OnStream {
            communicator: self,
            stream,
        }
    }
}

/// What a plugin says about a handle: nothing is broken by it.
fn refused(call: &'static str, error: unisono_hal::Error) -> Error {
    use unisono_hal::Status::{Invalid, Unsupported};
    match error.status {
        Unsupported => Error::Unsupported {
            call,
            why: error.to_string(),
        },
        Invalid => Error::invalid(call, error.to_string()),
        _ => error.into(),
    }
}

impl OnStream<'_> {
    /// A call by addresses.
    ///
    /// # Safety
    /// As [`Communicator::call_raw`], from when the stream comes to the call until the work is done;
    /// the buffers stay where they are from now on.
    ///
    /// # Errors
    /// As the safe forms.
    #[allow(unsafe_code, reason = "takes addresses")]
    pub unsafe fn start_raw(&self, call: RawCall<'_>) -> Result<Work> {
        let asked = self.communicator.asked(&call)?;
        let request = self.communicator.request(asked, call.dtype, call.reduction);
        self.start(request, None)
    }

    /// [`Communicator::start_all_reduce`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn all_reduce<T: Element>(
        &self,
        data: Buffer<T>,
        op: impl Into<Reduction>,
    ) -> Result<Pending<Buffer<T>>> {
        let asked = Asked::all_reduce(data.span(), data.span())?;
        self.one(asked, Some(op.into()), data)
    }

    /// [`Communicator::start_reduce`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn reduce<T: Element>(
        &self,
        data: Buffer<T>,
        op: impl Into<Reduction>,
        root: u32,
    ) -> Result<Pending<Buffer<T>>> {
        let asked = Asked::reduce(self.here(), data.span(), data.span(), root)?;
        self.one(asked, Some(op.into()), data)
    }

    /// [`Communicator::start_reduce_scatter`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn reduce_scatter<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        op: impl Into<Reduction>,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::reduce_scatter(self.here(), send.span(), recv.span())?;
        self.two(asked, Some(op.into()), send, recv)
    }

    /// [`Communicator::start_all_gather`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn all_gather<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::all_gather(self.here(), send.span(), recv.span())?;
        self.two(asked, None, send, recv)
    }

    /// [`Communicator::start_gather`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn gather<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        root: u32,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::gather(self.here(), send.span(), recv.span(), root)?;
        self.two(asked, None, send, recv)
    }

    /// [`Communicator::start_scatter`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn scatter<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        root: u32,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::scatter(self.here(), send.span(), recv.span(), root)?;
        self.two(asked, None, send, recv)
    }

    /// [`Communicator::start_all_to_all`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn all_to_all<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
    ) -> Result<Pending<Two<T>>> {
        let asked = Asked::all_to_all(self.here(), send.span(), recv.span())?;
        self.two(asked, None, send, recv)
    }

    /// [`Communicator::start_broadcast`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn broadcast<T: Element>(&self, data: Buffer<T>, root: u32) -> Result<Pending<Buffer<T>>> {
        self.one(Asked::broadcast(data.span(), root), None, data)
    }

    /// [`Communicator::start_send`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn send<T: Element>(&self, data: Buffer<T>, to: u32) -> Result<Pending<Buffer<T>>> {
        self.one(Asked::send(data.span(), to), None, data)
    }

    /// [`Communicator::start_recv`].
    ///
    /// # Errors
    /// As there, and if the stream is another device's.
    pub fn recv<T: Element>(&self, data: Buffer<T>, from: u32) -> Result<Pending<Buffer<T>>> {
        self.one(Asked::recv(data.span(), from), None, data)
    }

    fn here(&self) -> Here {
        self.communicator.here()
    }

    fn one<T: Element>(
        &self,
        asked: Asked<'_>,
        reduction: Option<Reduction>,
        data: Buffer<T>,
    ) -> Result<Pending<Buffer<T>>> {
        let work = self.begin::<T>(asked, reduction, vec![data.memory()])?;
        Ok(Pending::new(work, data))
    }

    fn two<T: Element>(
        &self,
        asked: Asked<'_>,
        reduction: Option<Reduction>,
        send: Buffer<T>,
        recv: Buffer<T>,
    ) -> Result<Pending<Two<T>>> {
        let work = self.begin::<T>(asked, reduction, vec![send.memory(), recv.memory()])?;
        Ok(Pending::new(work, (send, recv)))
    }

    fn begin<T: Element>(
        &self,
        asked: Asked<'_>,
        reduction: Option<Reduction>,
        keep: Vec<Memory>,
    ) -> Result<Work> {
        let request = self.communicator.request(asked, T::TYPE, reduction);
        self.start(request, Some(Box::new(keep)))
    }

    fn start(&self, request: Request<'_>, keep: Option<Box<dyn Any + Send>>) -> Result<Work> {
        let shared = &self.communicator.shared;
        let number = shared.start_on(request, keep, self.stream)?;
        Ok(Work::new(Arc::clone(shared), number))
    }
}

impl Shared {
    fn start_on(
        self: &Arc<Self>,
        request: Request<'_>,
        keep: Option<Box<dyn Any + Send>>,
        stream: &Stream,
    ) -> Result<u64> {
        let checked = self.prepare(request)?;
        stream.fits(self)?;
        // Both at once: calls come in one order on the stream and on the lane.
        let mut on = stream.lock();
        if let Some(recording) = on.recording() {
            return self.record_on(checked, keep, &mut on, recording);
        }
        let mut state = self.lane.lock();
        if let Some(error) = self.lane.failure() {
            return Err(error.clone());
        }
        let gate = stream.gate(self, &mut state)?;
        let mut op = self.bind_checked(&mut state, checked, keep);
        op.before = Box::new([Mark::Await(gate.clone(), Flag::Ready)]);
        op.after = Box::new([Mark::Raise(gate.clone(), Flag::Done)]);
        let number = self.lane.enqueue(&mut state, op);
        let passed = stream.pass(&mut on, self, &gate, number);
        drop((state, on));
        self.handed_over(passed.and_then(|()| stream.hand_over()))?;
        progress().activate(&self.lane);
        Ok(number)
    }

    /// A stream that could not take what a call waits for ends the communicator.
    pub(super) fn handed_over(&self, result: Result<()>) -> Result<()> {
        result.map_err(|error| self.end_with(error))
    }
}
