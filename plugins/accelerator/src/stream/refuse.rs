//! Waits that a stream does not take yet, as they would hold up others of its native stream.
//!
//! What they wait for is in host memory or known to the runtime, so the host looks: whoever submits comes
//! again, and who sleeps is woken by the watcher.
#![allow(unsafe_code, reason = "flags are words at addresses")]

use std::sync::atomic::{AtomicU64, Ordering};

use unisono_plugin::{Command, Event, Result};

use super::AcceleratorStream;
use crate::Runtime;
use crate::event::AcceleratorEvent;
use crate::state::Tenure;

/// A wait that was refused: whether it is over.
pub(super) type Refused = Box<dyn Fn() -> bool + Send + Sync>;

impl<R: Runtime> AcceleratorStream<R> {
    /// Whether a command has to stay with the caller for now; then the watcher knows of it.
    pub(super) fn refuses(&mut self, command: &Command<'_, AcceleratorEvent<R>>) -> Result<bool> {
        if self.tenure != Tenure::Common {
            return Ok(false);
        }
        let refused: Refused = match command {
            Command::Wait(command) => {
                let (flag, counter) = (self.host_of(command.flag)?, self.host_of(command.counter)?);
                // SAFETY: signal memory, checked; one queue writes a counter, and this is it.
                let counter = unsafe { AtomicU64::from_ptr(counter as usize as *mut u64) };
                let value = counter.load(Ordering::Relaxed).wrapping_add(1);
                Box::new(move || {
                    // SAFETY: signal memory, checked; who offers a wait keeps its flag until it is
                    // taken and complete, or gives the stream up, which ends the looks at it.
                    let flag = unsafe { AtomicU64::from_ptr(flag as usize as *mut u64) };
                    let found = flag.load(Ordering::Acquire);
                    found.wrapping_sub(value).cast_signed() >= 0
                })
            }
            Command::WaitEvent(event) => {
                let event = (*event).clone();
                // A device that is lost is told by what comes behind.
                Box::new(move || event.host_query().unwrap_or(true))
            }
            _ => return Ok(false),
        };
        let waits = !refused();
        if waits {
            self.shared.refuse(Some(refused));
        }
        Ok(waits)
    }
}
