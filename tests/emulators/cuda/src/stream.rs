//! Streams.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use unisono_emulator::{Capturing, Device, HostCall, Op, Stream};

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{context_of, current, machine};
use crate::graph::unsafe_call;
use crate::handle::Table;

pub static STREAMS: Table<Stream> = Table::new();
/// The stream of each device that is named by 0.
static DEFAULT: Mutex<Option<HashMap<u32, Arc<Stream>>>> = Mutex::new(None);

fn new(device: &Arc<Device>) -> Answer<Arc<Stream>> {
    device.stream(machine()?).map_err(|_| code::OUT_OF_MEMORY)
}

/// A stream of the current context.
pub fn of(handle: u64) -> Answer<Arc<Stream>> {
    let device = current()?;
    if handle != 0 {
        let stream = STREAMS.get(handle)?;
        if stream.device.index != device.index {
            return Err(code::INVALID_HANDLE);
        }
        return Ok(stream);
    }
    let mut defaults = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    let defaults = defaults.get_or_insert_default();
    if let Some(stream) = defaults.get(&device.index) {
        return Ok(Arc::clone(stream));
    }
    let stream = new(device)?;
    defaults.insert(device.index, Arc::clone(&stream));
    Ok(stream)
}

/// Hands an operation over.
pub fn submit(stream: &Arc<Stream>, op: Op) -> Answer {
    if stream.capturing() == Capturing::Invalid {
        return Err(code::STREAM_CAPTURE_INVALIDATED);
    }
    stream.submit(op).map_err(code::of)
}

/// What a stream that records cannot be asked; it spoils the recording.
pub fn not_recording(stream: &Stream) -> Answer {
    stream.not_capturing().map_err(code::of_refused)
}

driver! {
    fn cuStreamCreateWithPriority(handle: *mut u64, flags: u32, _priority: i32) {
        if flags & !1 != 0 {
            return Err(code::INVALID_VALUE);
        }
        unsafe_call()?;
        let made = STREAMS.add(new(current()?)?)?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn cuStreamCreate(handle: *mut u64, flags: u32) {
        // SAFETY: the caller's.
        match unsafe { cuStreamCreateWithPriority(handle, flags, 0) } {
            code::SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) {
        current()?;
        // SAFETY: the caller's.
        unsafe {
            give(least, 0)?;
            give(greatest, -5)
        }
    }

    /// What it was given still runs.
    fn cuStreamDestroy_v2(handle: u64) {
        current()?;
        unsafe_call()?;
        STREAMS.remove(handle).map(|_| ())
    }

    fn cuStreamQuery(handle: u64) {
        let stream = of(handle)?;
        not_recording(&stream)?;
        match stream.is_done() {
            Ok(true) => Ok(()),
            Ok(false) => Err(code::NOT_READY),
            Err(broken) => Err(code::of(broken)),
        }
    }

    fn cuStreamSynchronize(handle: u64) {
        let stream = of(handle)?;
        not_recording(&stream)?;
        loop {
            match stream.is_done() {
                Ok(true) => return Ok(()),
                Ok(false) => std::thread::sleep(std::time::Duration::from_micros(50)),
                Err(broken) => return Err(code::of(broken)),
            }
        }
    }

    fn cuStreamGetCtx(handle: u64, context: *mut u64) {
        machine()?;
        let device = if handle == 0 {
            Arc::clone(current()?)
        } else {
            Arc::clone(&STREAMS.get(handle)?.device)
        };
        // SAFETY: the caller's.
        unsafe { give(context, context_of(&device)) }
    }

    fn cuLaunchHostFunc(handle: u64, call: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void) {
        let stream = of(handle)?;
        let call = call.ok_or(code::INVALID_VALUE)?;
        submit(&stream, Op::Call(HostCall { call, data }))
    }
}
