//! Events.

use std::sync::Arc;

use unisono_emulator::{Capturing, Event};

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

/// `CU_EVENT_WAIT_EXTERNAL`.
const EXTERNAL: u32 = 1;

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
        stream.record_event(&event.event).map_err(code::of_refused)
    }

    fn cuEventQuery(handle: u64) {
        let event = EVENTS.get(handle)?;
        event.event.not_captured().map_err(code::of_refused)?;
        if let Some(broken) = machine()?.device(event.device).and_then(|d| d.broken()) {
            return Err(code::of(broken));
        }
        if event.event.is_reached(event.event.last()) {
            Ok(())
        } else {
            Err(code::NOT_READY)
        }
    }

    /// With the flag EXTERNAL a stream that records waits at each run of the graph, for what is none of it.
    fn cuStreamWaitEvent(handle: u64, event: u64, flags: u32) {
        let (event, stream) = (EVENTS.get(event)?, stream::of(handle)?);
        let is_external = flags == EXTERNAL;
        if flags > EXTERNAL || is_external && stream.capturing() == Capturing::No {
            return Err(code::INVALID_VALUE);
        }
        // The default stream takes part in no recording.
        if handle == 0 {
            event.event.not_captured().map_err(|_| code::STREAM_CAPTURE_IMPLICIT)?;
        }
        stream.wait_event(&event.event, is_external).map_err(code::of_refused)
    }
}
