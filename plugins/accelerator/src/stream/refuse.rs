//! Waits that a stream does not take yet, as they would hold up others: those of its native stream, if it has none of its
//! own, and those of other ranks of this process on the same device.
//!
//! Streams of one device share more than they say. A runtime orders work that it does not know to be ordered as it likes,
//! as it does not see that a flag that is waited for is raised by another stream: of two ranks of one process on one device
//! one had a call of 71 commands under way, all behind a wait for the other, whose first copy, on a stream of its own with
//! nothing before it, never began (an H100, driver 580, in one of four or five processes). So such ranks are given nothing that
//! cannot run: a wait for another rank when it is over, and what stands behind it. A batch that one kernel does (`together`)
//! waits on the device all the same, and what comes behind it waits here until it is done. To the device go, too, waits for events and
//! for this rank's own flags, by which a call and a program's stream wait for each other: they must be there before the program
//! goes on.
//!
//! What they wait for is in host memory or known to the runtime, so the host looks: whoever submits comes
//! again, and who sleeps is woken by the watcher.
#![allow(unsafe_code, reason = "flags are words at addresses")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use unisono_plugin::abi::FlagLine;
use unisono_plugin::{Batch, Command, Event, Result};

use super::AcceleratorStream;
use super::step::Purpose;
use crate::Runtime;
use crate::event::AcceleratorEvent;
use crate::regions::is_private;
use crate::state::Tenure;

/// A wait that was refused: whether it is over.
pub(super) type Refused = Box<dyn Fn() -> bool + Send + Sync>;

impl<R: Runtime> AcceleratorStream<R> {
    /// Whether no wait may be handed over before it is over. Never of the program's own streams, on which it would come
    /// behind what the program puts there next.
    pub(super) fn keeps_waits_back(&self) -> bool {
        match self.tenure {
            Tenure::Common => true,
            Tenure::Own(_) => self.device.has_ranks.load(Ordering::Relaxed),
            Tenure::Wrapped => false,
        }
    }

    /// Whether no other rank can raise a flag.
    fn is_own_flag(&mut self, flag: u64) -> bool {
        let regions = &self.device.process().regions;
        let found = self
            .recent
            .find(regions, flag, size_of::<FlagLine>() as u64);
        found.is_some_and(|view| is_private(view.generation))
    }

    /// Where waits are kept back, a batch is written down to be done together only if one kernel does it in the end:
    /// of one that it does not, waits would have been noted that are then to be refused.
    pub(super) fn only_if_together(
        &mut self,
        batch: &Batch<'_, AcceleratorEvent<R>>,
    ) -> Result<()> {
        if !self.keeps_waits_back() {
            return Ok(());
        }
        let Some(script) = self.script.take() else {
            return Ok(());
        };
        self.spare = script.steps;
        let has_events = batch
            .iter()
            .any(|command| matches!(command, Command::Record(_) | Command::WaitEvent(_)));
        if has_events {
            return Ok(());
        }
        let steps = self.write_down(batch, Purpose::Trial)?;
        let goes = self.goes_together(&steps);
        self.spare = steps;
        if goes {
            self.begin_together();
        }
        Ok(())
    }

    /// Whether a command has to stay with the caller for now; then the watcher knows of it.
    pub(super) fn refuses(&mut self, command: &Command<'_, AcceleratorEvent<R>>) -> Result<bool> {
        if !self.keeps_waits_back() || self.script.is_some() {
            return Ok(false);
        }
        let has_queue = self.tenure != Tenure::Common;
        let refused: Refused = match command {
            _ if self.held_by > self.shared.completed() => {
                let (shared, last) = (Arc::clone(&self.shared), self.held_by);
                Box::new(move || shared.completed() >= last)
            }
            // What ends it are this rank's own streams, and the program goes on when it is handed over.
            Command::Wait(command) if has_queue && self.is_own_flag(command.flag) => {
                return Ok(false);
            }
            // The runtime knows of it.
            Command::WaitEvent(_) if has_queue => return Ok(false),
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
