//! Streams and events of the user's own: what a program queues on a device around its collectives.
//!
//! A collective that is called *on* a stream ([`Communicator::on`](crate::Communicator::on)) begins
//! when the stream has come to it, and what the stream does next waits for it. The call returns at
//! once. The commands run on the communicator's own queue; two flags tie the two.
//!
//! A stream is a lane without peers: whoever waits drives it, the progress thread when nobody does.

mod event;
mod inner;

use std::sync::{Arc, Mutex, MutexGuard};

use unisono_hal::{Device, EventReach, Side};

pub use event::Event;
use inner::{Inner, Tell, Tie};

use crate::arena::Arena;
use crate::communicator::Shared;
use crate::error::{Error, Result};
use crate::execute::{Flag, Gate, Holdings, Lane, Mark, Op, Own, State};
use crate::fork;
use crate::progress::progress;
use crate::signature::{Call, CallKind};

/// An ordered queue of a device. Clones are the same stream.
///
/// Any thread. Dropping it ends nothing: what it was given still runs.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

impl Stream {
    /// Makes `stream`, of the communicator's device, one to call collectives on.
    pub(crate) fn new(shared: &Shared, stream: unisono_hal::Stream) -> Self {
        let device = shared.world.device.clone();
        let arena = Arena {
            ranks: 0,
            depth: 0,
            slot_bytes: 0,
        };
        let own = Own::new(shared.world.rank, arena);
        let lane = Lane::new(own, Vec::new(), device.clone(), stream, Holdings::default());
        let inner = Arc::new(Inner {
            lane: Arc::new(lane),
            device,
            policy: shared.policy,
            generation: shared.generation,
            ties: Mutex::default(),
        });
        let hook = Box::new(Tell(Arc::downgrade(&inner)));
        inner.lane.set_on_failure(hook);
        Self(inner)
    }

    /// Completes `event` when the stream has come here. Returns at once.
    ///
    /// # Errors
    /// If the event's device is another, or its streams cannot complete events; what broke the
    /// stream.
    pub fn record(&self, event: &Event) -> Result<()> {
        let sides = event.0.device().info().events;
        self.with_event("stream.record", event, sides.device_signal)?;
        self.put(Mark::Record(event.0.clone()))
    }

    /// What is put on the stream from now on waits for what `event` was recorded for last, or for
    /// the host to signal it. Returns at once.
    ///
    /// # Errors
    /// If the event does not reach the stream's device, or its streams cannot wait; what broke the
    /// stream.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let sides = event.0.device().info().events;
        self.with_event("stream.wait", event, sides.device_wait)?;
        self.put(Mark::WaitEvent(event.0.clone()))
    }

    /// Waits until all that the library was asked to put on the stream is done, doing the process's
    /// work meanwhile.
    ///
    /// # Errors
    /// What broke the stream, or a communicator that had calls on it.
    pub fn synchronize(&self) -> Result<()> {
        let inner = &self.0;
        self.usable()?;
        let lane = &inner.lane;
        let number = lane.enqueued();
        let mut result = Ok(());
        if lane.completed() < number {
            result = progress().wait(lane, lane.lock(), number, inner.policy, &**inner);
        }
        // A failed communicator has let go of the buffers when its wait returns.
        for (shared, last) in inner.unfinished() {
            let state = shared.lane.lock();
            let waited = progress().wait(&shared.lane, state, last, shared.policy, &*shared);
            result = result.and(waited);
        }
        result
    }

    /// Whether all that the library was asked to put on the stream is done. Does not block.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn is_done(&self) -> Result<bool> {
        self.usable()?;
        let failed = self.0.unfinished().into_iter().find_map(|(shared, _)| {
            let failure = shared.lane.failure();
            failure.cloned()
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(self.0.lane.completed() >= self.0.lane.enqueued()),
        }
    }

    /// The vendor's own handle, 0 if there is none.
    #[must_use]
    pub fn native(&self) -> u64 {
        self.0.lane.lock().native()
    }

    /// The device whose queue it is.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Whether `shared`'s collectives can be called on it.
    pub(crate) fn fits(&self, shared: &Shared) -> Result<()> {
        self.usable()?;
        let (ours, theirs) = (self.0.device.info(), shared.world.device.info());
        if (ours.id, &ours.name) == (theirs.id, &theirs.name) {
            return Ok(());
        }
        Err(Error::invalid(
            "on",
            format!(
                "the stream is of device `{}`, the communicator uses device `{}`",
                ours.name, theirs.name
            ),
        ))
    }

    /// Locks the stream. Before any communicator's lane, and of several by their [`Stream::place`].
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lane.lock()
    }

    /// A number by which streams are ordered.
    pub(crate) fn place(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Where the stream and the communicator wait for each other. `state` is the communicator's.
    pub(crate) fn gate(&self, shared: &Arc<Shared>, state: &mut State) -> Result<Arc<Gate>> {
        let mut ties = self.0.ties();
        ties.retain(|tie| tie.shared.strong_count() > 0);
        let known = ties.iter().find(|tie| tie.is_of(shared));
        if let Some(tie) = known {
            return Ok(tie.gate.clone());
        }
        let gate = Gate::new(&shared.world.device, shared.world.bell.as_ref())?;
        state.add_gate(&gate);
        ties.push(Tie {
            shared: Arc::downgrade(shared),
            gate: gate.clone(),
            last: 0,
        });
        Ok(gate)
    }

    /// Lets the stream open the gate, and wait until call `last` of the communicator's lane has
    /// passed it. `on` is the stream's.
    pub(crate) fn pass(
        &self,
        on: &mut State,
        shared: &Arc<Shared>,
        gate: &Arc<Gate>,
        last: u64,
    ) -> Result<()> {
        let mut ties = self.0.ties();
        if let Some(tie) = ties.iter_mut().find(|tie| tie.is_of(shared)) {
            tie.last = last;
        }
        drop(ties);
        let raise = Mark::Raise(gate.clone(), Flag::Ready);
        let wait = Mark::Await(gate.clone(), Flag::Done);
        self.0.lane.enqueue(on, op(vec![raise, wait])?);
        Ok(())
    }

    /// Gives the device what the stream has been given: what the program puts there next by the
    /// vendor's own means must come after it. With no lane locked.
    pub(crate) fn hand_over(&self) -> Result<()> {
        let lane = &self.0.lane;
        loop {
            let mut on = lane.lock();
            lane.advance(&mut on);
            if on.is_handed_over() || lane.failure().is_some() {
                break;
            }
            // Without a handle of the vendor's nothing comes behind but by this lane, and by the events
            // that are on their way: whoever is told of a recording must find it made.
            if on.native() == 0 && !on.has_events() {
                break;
            }
            // The queue is full: what makes room may be another lane's work.
            drop(on);
            if !progress().drive() {
                std::thread::yield_now();
            }
        }
        progress().activate(lane);
        lane.failure().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Refuses while the program records what is put on the stream: the other side of each flag
    /// would run once, now, and not with each replay.
    pub(crate) fn runs(&self, call: &'static str) -> Result<()> {
        if self.lock().recording().is_some() {
            return Err(Error::Unsupported {
                call,
                why: "the stream records a graph, of which this cannot be a part; call it before \
                      or after"
                    .to_owned(),
            });
        }
        Ok(())
    }

    fn put(&self, mark: Mark) -> Result<()> {
        let mut on = self.lock();
        self.0.lane.enqueue(&mut on, op(vec![mark])?);
        drop(on);
        self.hand_over()
    }

    fn with_event(&self, call: &'static str, event: &Event, side: Side) -> Result<()> {
        self.usable()?;
        self.runs(call)?;
        if side == Side::Absent {
            return Err(Error::Unsupported {
                call,
                why: format!(
                    "events of device `{}` lack it",
                    event.0.device().info().name
                ),
            });
        }
        let info = event.0.device().info();
        if info.event_reach == EventReach::Device && info.id != self.0.device.info().id {
            return Err(Error::invalid(
                call,
                format!(
                    "the event is of device `{}` and reaches no stream of device `{}`",
                    info.name,
                    self.0.device.info().name
                ),
            ));
        }
        Ok(())
    }

    fn usable(&self) -> Result<()> {
        if !fork::is(self.0.generation) {
            return Err(Error::ForkedProcess);
        }
        let failure = self.0.lane.failure();
        failure.map_or(Ok(()), |error| Err(error.clone()))
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({})", self.0.device.info().name)
    }
}

/// An op of a stream.
fn op(marks: Vec<Mark>) -> Result<Op> {
    // A name for errors, which a stream's ops have none of.
    let call = Call {
        kind: CallKind::Barrier,
        sequence: 0,
        count: 0,
        dtype: None,
        op: None,
        root: None,
        plan: 0,
        recorded: false,
    };
    Op::marks(marks, call)
}
