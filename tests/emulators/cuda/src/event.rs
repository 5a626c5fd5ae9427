//! Events.

use std::sync::Arc;

use unisono_emulator::{Capture, Event, Op};

use crate::answer::{driver, give};
use crate::code;
use crate::context::{current, machine};
use crate::handle::Table;
use crate::stream;

/// An event, and the device that it is of.
pub struct Owned {
    device: u32,
    event: Arc<Event>,
}

pub static EVENTS: Table<Owned> = Table::new();

driver! {
    fn cuEventCreate(handle: *mut u64, flags: u32) {
        let device = current()?.index;
        // INTERPROCESS requires DISABLE_TIMING.
        if flags & !7 != 0 || flags & 4 != 0 && flags & 2 == 0 {
            return Err(code::INVALID_VALUE);
        }
        let made = EVENTS.add(Arc::new(Owned { device, event: Arc::default() }))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn cuEventDestroy_v2(handle: u64) {
        machine()?;
        EVENTS.remove(handle).map(|_| ())
    }

    fn cuEventRecord(handle: u64, stream: u64) {
        let (event, stream) = (EVENTS.get(handle)?, stream::of(stream)?);
        if event.device != stream.device.index {
            return Err(code::INVALID_HANDLE);
        }
        let recording = matches!(*stream.capture(), Capture::Recording(_));
        let number = if recording { 0 } else { event.event.record() };
        stream::submit(&stream, Op::Record(Arc::clone(&event.event), number))
    }

    fn cuEventQuery(handle: u64) {
        let event = EVENTS.get(handle)?;
        if let Some(broken) = machine()?.device(event.device).and_then(|d| d.broken()) {
            return Err(code::of(broken));
        }
        if event.event.is_reached(event.event.last()) {
            Ok(())
        } else {
            Err(code::NOT_READY)
        }
    }

    fn cuStreamWaitEvent(stream: u64, handle: u64, flags: u32) {
        let (event, stream) = (EVENTS.get(handle)?, stream::of(stream)?);
        if flags > 1 {
            return Err(code::INVALID_VALUE);
        }
        let number = event.event.last();
        stream::submit(&stream, Op::Await(Arc::clone(&event.event), number))
    }
}
