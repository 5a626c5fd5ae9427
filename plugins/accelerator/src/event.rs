//! Events: the runtime's own, with a host's side beside it.
//!
//! A stream that waits for a recording waits for it by the runtime. One that waits for an event which
//! nothing has recorded waits for a *gate*, a line that the host opens, or the stream that records the
//! event later. So no side blocks another, and an abort can end every wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_plugin::{Error, Event, Result};

use crate::state::State;
use crate::{Line, Runtime, fork};

/// An event of a device.
pub struct AcceleratorEvent<R: Runtime>(Arc<Inner<R>>);

struct Inner<R: Runtime> {
    device: Arc<State<R>>,
    native: R::Event,
    /// The caller's, who records it by himself, too.
    wrapped: bool,
    state: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    recorded: bool,
    /// The host has completed it since.
    signalled: bool,
    gates: Vec<Arc<Line>>,
}

/// What a stream does for a WAIT_EVENT.
pub(crate) enum Awaited<R: Runtime> {
    /// Nothing: it is complete.
    Nothing,
    /// Wait for a recording.
    Native(R::Event),
    /// Wait for a gate.
    Gate(Arc<Line>),
}

impl<R: Runtime> Clone for AcceleratorEvent<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Runtime> AcceleratorEvent<R> {
    pub(crate) fn new(device: &Arc<State<R>>, native: R::Event, wrapped: bool) -> Self {
        Self(Arc::new(Inner {
            device: Arc::clone(device),
            native,
            wrapped,
            state: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, Recorded> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A RECORD is handed over: the gates that it opens.
    pub(crate) fn record(&self) -> (R::Event, Vec<Arc<Line>>) {
        let mut state = self.state();
        state.recorded = true;
        state.signalled = false;
        (self.0.native, std::mem::take(&mut state.gates))
    }

    /// A WAIT_EVENT is handed over.
    pub(crate) fn await_now(&self) -> Result<Awaited<R>> {
        let mut state = self.state();
        if state.signalled {
            return Ok(Awaited::Nothing);
        }
        if state.recorded || self.0.wrapped {
            return Ok(Awaited::Native(self.0.native));
        }
        let gate = Arc::new(self.0.device.line()?);
        // Gates whose stream is done with them are nobody else's.
        state.gates.retain(|gate| Arc::strong_count(gate) > 1);
        state.gates.push(Arc::clone(&gate));
        Ok(Awaited::Gate(gate))
    }
}

impl<R: Runtime> Event for AcceleratorEvent<R> {
    fn host_signal(&self) -> Result<()> {
        fork::check()?;
        if self.0.wrapped {
            return Err(Error::unsupported(
                "the host cannot complete an event of the runtime's own: record it on a stream",
            ));
        }
        let mut state = self.state();
        state.signalled = true;
        for gate in state.gates.drain(..) {
            gate.open();
        }
        Ok(())
    }

    fn host_query(&self) -> Result<bool> {
        fork::check()?;
        let (recorded, signalled) = {
            let state = self.state();
            (state.recorded, state.signalled)
        };
        if signalled {
            return Ok(true);
        }
        Ok((recorded || self.0.wrapped) && self.0.device.runtime.event_done(self.0.native)?)
    }

    fn native(&self) -> u64 {
        R::event_handle(self.0.native)
    }
}

impl<R: Runtime> Drop for Inner<R> {
    fn drop(&mut self) {
        if !self.wrapped && !fork::is_child() {
            self.device.runtime.destroy_event(self.native);
        }
    }
}

impl<R: Runtime> std::fmt::Debug for AcceleratorEvent<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AcceleratorEvent")
            .field(&self.0.native)
            .finish()
    }
}
