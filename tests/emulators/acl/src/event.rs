//! Events, of the kind that need no reset: some can be waited for, others only asked.

use std::sync::Arc;

use unisono_emulator::{Event, Op};
use unisono_emulator_cuda::handle::Table;

use crate::answer::{PARAM_INVALID, give, runtime};
use crate::context::{current, machine};
use crate::stream;

/// Flags.
const SYNC: u32 = 1;
const PROGRESS: u32 = 2;
const TIME_LINE: u32 = 8;

/// An event, and the device that it is of.
pub struct Owned {
    device: u32,
    flags: u32,
    event: Arc<Event>,
}

static EVENTS: Table<Owned> = Table::new();

runtime! {
    fn aclrtCreateEventExWithFlag(handle: *mut u64, flags: u32) {
        let device = current()?.index;
        if flags == 0 || flags & !(SYNC | PROGRESS | TIME_LINE) != 0 {
            return Err(PARAM_INVALID);
        }
        let event = Owned { device, flags, event: Arc::default() };
        let made = EVENTS.add(Arc::new(event))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn aclrtDestroyEvent(handle: u64) {
        machine()?;
        Ok(EVENTS.remove(handle).map(|_| ())?)
    }

    fn aclrtRecordEvent(handle: u64, stream: u64) {
        let (event, stream) = (EVENTS.get(handle)?, stream::of(stream)?);
        if event.device != stream.device.index {
            return Err(PARAM_INVALID);
        }
        let number = event.event.record();
        stream::submit(&stream, Op::Record(Arc::clone(&event.event), number))
    }

    /// 1 if its last recording is reached, 0 if not, or if there is none.
    fn aclrtQueryEventStatus(handle: u64, status: *mut i32) {
        let event = EVENTS.get(handle)?;
        current()?;
        if let Some(broken) = machine()?.device(event.device).and_then(|d| d.broken()) {
            return Err(broken.into());
        }
        let last = event.event.last();
        let reached = last > 0 && event.event.is_reached(last);
        // SAFETY: the caller's.
        unsafe { give(status, i32::from(reached)) }
    }

    fn aclrtStreamWaitEvent(stream: u64, handle: u64) {
        let (event, stream) = (EVENTS.get(handle)?, stream::of(stream)?);
        if event.flags & SYNC == 0 {
            return Err(PARAM_INVALID);
        }
        let number = event.event.last();
        stream::submit(&stream, Op::Await(Arc::clone(&event.event), number))
    }
}
