//! Streams and events.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use std::ffi::c_void;

use unisono_collectives::{Event, Stream};

use super::comm::{Comm, answer, borrow, wanted};
use super::result::{Outcome, guard, invalid};

/// Borrows a stream.
///
/// # Safety
/// `stream` is NULL or a handle that lives for `'a`.
pub(super) unsafe fn stream<'a>(stream: *const Stream) -> Outcome<&'a Stream> {
    // SAFETY: the caller promises a live handle.
    unsafe { stream.as_ref() }.ok_or_else(|| {
        invalid("stream is NULL; the vendor's default stream is wrapped like any other")
    })
}

/// Borrows an event.
///
/// # Safety
/// `event` is NULL or a handle that lives for `'a`.
unsafe fn event<'a>(event: *const Event) -> Outcome<&'a Event> {
    // SAFETY: the caller promises a live handle.
    unsafe { event.as_ref() }.ok_or_else(|| invalid("event is NULL"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_stream_create(comm: *const Comm, made: *mut *mut Stream) -> i32 {
    guard(|| {
        wanted("stream", made)?;
        // SAFETY: the caller gives a live handle.
        let stream = unsafe { borrow(comm) }?.communicator.stream()?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("stream", made, Box::into_raw(Box::new(stream))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_stream_wrap(
    comm: *const Comm,
    native: *mut c_void,
    made: *mut *mut Stream,
) -> i32 {
    guard(|| {
        wanted("stream", made)?;
        // SAFETY: the caller gives a live handle.
        let communicator = &unsafe { borrow(comm) }?.communicator;
        // SAFETY: the caller gives a live stream of the device, and keeps it.
        let stream = unsafe { communicator.wrap_stream(native as u64) }?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("stream", made, Box::into_raw(Box::new(stream))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_stream_native(of: *const Stream, native: *mut *mut c_void) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let native_handle = unsafe { stream(of) }?.native();
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("native", native, native_handle as usize as *mut c_void) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_stream_synchronize(of: *const Stream) -> i32 {
    // SAFETY: the caller gives a live handle.
    guard(|| Ok(unsafe { stream(of) }?.synchronize()?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_stream_query(of: *const Stream, done: *mut i32) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let is_done = unsafe { stream(of) }?.is_done()?;
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("done", done, i32::from(is_done)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_stream_destroy(of: *mut Stream) -> i32 {
    guard(|| {
        if !of.is_null() {
            // SAFETY: it comes from a function that makes streams, and the caller gives it back
            // once.
            drop(unsafe { Box::from_raw(of) });
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_event_create(comm: *const Comm, made: *mut *mut Event) -> i32 {
    guard(|| {
        wanted("event", made)?;
        // SAFETY: the caller gives a live handle.
        let event = unsafe { borrow(comm) }?.communicator.event()?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("event", made, Box::into_raw(Box::new(event))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_event_wrap(
    comm: *const Comm,
    native: *mut c_void,
    made: *mut *mut Event,
) -> i32 {
    guard(|| {
        wanted("event", made)?;
        // SAFETY: the caller gives a live handle.
        let communicator = &unsafe { borrow(comm) }?.communicator;
        // SAFETY: the caller gives a live event of the device, and keeps it.
        let event = unsafe { communicator.wrap_event(native as u64) }?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("event", made, Box::into_raw(Box::new(event))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_event_record(of: *const Event, on: *const Stream) -> i32 {
    // SAFETY: the caller gives live handles.
    guard(|| Ok(unsafe { stream(on)?.record(event(of)?) }?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_event_wait(of: *const Event, on: *const Stream) -> i32 {
    // SAFETY: the caller gives live handles.
    guard(|| Ok(unsafe { stream(on)?.wait(event(of)?) }?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_event_signal(of: *const Event) -> i32 {
    // SAFETY: the caller gives a live handle.
    guard(|| Ok(unsafe { event(of) }?.signal()?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_event_query(of: *const Event, done: *mut i32) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let is_complete = unsafe { event(of) }?.is_complete()?;
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("done", done, i32::from(is_complete)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_event_destroy(of: *mut Event) -> i32 {
    guard(|| {
        if !of.is_null() {
            // SAFETY: it comes from a function that makes events, and the caller gives it back once.
            drop(unsafe { Box::from_raw(of) });
        }
        Ok(())
    })
}
