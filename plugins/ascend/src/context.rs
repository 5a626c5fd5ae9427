//! A device's default context, current for the length of one call.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ptr;

use unisono_plugin::{Error, Result, Status, spawn_quiet};

use crate::api::{Api, Handle};
use crate::error::check;

/// A context. It is the process's, and never reset: others may use the device.
#[derive(Debug)]
pub(crate) struct Context {
    api: &'static Api,
    raw: Handle,
}

// SAFETY: a context may be made current on any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Sets the caller's context back, on every path.
struct Current<'a>(&'a Api, Handle);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        // SAFETY: the context that this thread had.
        let _ = unsafe { (self.0.set_context)(self.1) };
    }
}

impl Context {
    /// The default context of a device. A thread of its own asks for it, as the question would make
    /// the device the asking thread's.
    pub(crate) fn of(api: &'static Api, device: i32) -> Result<Self> {
        let ask = move || {
            let mut raw: Handle = ptr::null_mut();
            // SAFETY: a number, and room for a handle.
            unsafe {
                check("aclrtSetDevice", (api.set_device)(device))?;
                check("aclrtGetCurrentContext", (api.get_context)(&raw mut raw))?;
            }
            Ok(raw as usize)
        };
        let asked = spawn_quiet("unisono-context", ask)?;
        let panicked = || Error::new(Status::Device, "the runtime panicked in aclrtSetDevice");
        let raw: usize = asked.join().map_err(|_| panicked())??;
        Ok(Self {
            api,
            raw: raw as Handle,
        })
    }

    /// Calls with the context current, and the caller's own current again behind it. A thread that had
    /// none keeps this one: the runtime has no way back to none.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        let mut before: Handle = ptr::null_mut();
        // SAFETY: room for a handle; a thread without a context is answered by a code.
        let had = unsafe { (self.api.get_context)(&raw mut before) } == 0 && !before.is_null();
        if had && before == self.raw {
            return call(self.api);
        }
        // SAFETY: a context that is never destroyed.
        check("aclrtSetCurrentContext", unsafe {
            (self.api.set_context)(self.raw)
        })?;
        let _current = had.then(|| Current(self.api, before));
        call(self.api)
    }
}
