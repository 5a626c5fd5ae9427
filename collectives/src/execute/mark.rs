//! What ties a lane to a stream of the user's: flags that one raises and the other waits for, and
//! events.
//!
//! Flags and not events tie the two, since a wait for a flag may be handed over before what raises
//! it: the user's stream must have its wait when the call returns, but the lane may come to the call
//! much later. And an abort can release a wait for a flag on every device.

use std::sync::Arc;

use unisono_hal::{Batch, Device, Event, Memory, MemoryKind, MemoryRequest};

use crate::arena::{LINE, poison};
use crate::error::{Error, Result};

/// Two flags between one stream and one lane.
///
/// Lines of its memory: the flag of each side, then the counters of each.
pub(crate) struct Gate {
    memory: Memory,
    /// Where the CPU sees the memory.
    host: u64,
    /// What wakes this process, 0 if there is no such thing.
    bell: u64,
}

/// Which of a gate's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    /// The stream has come to the call: its buffers are ready.
    Ready,
    /// The lane is done with the call.
    Done,
}

/// A command that is no part of a plan.
#[derive(Clone)]
pub(crate) enum Mark {
    /// Raises a flag.
    Raise(Arc<Gate>, Flag),
    /// Waits for a flag.
    Await(Arc<Gate>, Flag),
    /// Completes an event.
    Record(Event),
    /// Waits for an event.
    WaitEvent(Event),
}

impl Gate {
    /// A gate in memory of `device`, whose streams wait at it. `bell` is this process's own.
    pub(crate) fn new(device: &Device, bell: Option<&Memory>) -> Result<Arc<Self>> {
        let request = MemoryRequest::new(MemoryKind::Signal, 4 * LINE).align(LINE);
        let memory = device.alloc(&request)?;
        let host = memory.host_ptr().ok_or_else(|| Error::Unsupported {
            call: "stream",
            why: "the device's signal memory cannot be seen by the CPU, so an abort could not \
                  release its waits"
                .to_owned(),
        })?;
        Ok(Arc::new(Self {
            host: host as u64,
            bell: bell.map_or(0, Memory::base),
            memory,
        }))
    }

    /// Releases every wait at it, now and later.
    pub(crate) fn release(&self) {
        for flag in [Flag::Ready, Flag::Done] {
            poison(self.host + flag.line());
        }
    }

    fn flag(&self, flag: Flag) -> u64 {
        self.memory.base() + flag.line()
    }

    /// The counter of who raises the flag, or of who waits for it.
    fn counter(&self, flag: Flag, waits: bool) -> u64 {
        self.memory.base() + 2 * LINE + flag.line() + if waits { LINE / 2 } else { 0 }
    }
}

impl Flag {
    fn line(self) -> u64 {
        match self {
            Self::Ready => 0,
            Self::Done => LINE,
        }
    }
}

impl Mark {
    /// Appends the command.
    pub(super) fn write(&self, batch: &mut Batch) {
        match self {
            Self::Raise(gate, flag) => {
                let counter = gate.counter(*flag, false);
                batch.signal(gate.flag(*flag), counter, gate.bell, None);
            }
            Self::Await(gate, flag) => {
                batch.wait(gate.flag(*flag), gate.counter(*flag, true), None);
            }
            Self::Record(event) => batch.record(event),
            Self::WaitEvent(event) => batch.wait_event(event),
        }
    }
}
