//! A device's primary context, current for the length of one call.
#![allow(unsafe_code, reason = "calls the driver")]

use cudarc::driver::sys::CUcontext;
use unisono_plugin::Result;

use crate::api::Api;
use crate::error::check;

/// A primary context that is held.
#[derive(Debug)]
pub(crate) struct Context {
    api: &'static Api,
    device: i32,
    raw: CUcontext,
}

// SAFETY: a context may be used from any thread that makes it current.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Pops what was pushed, on every path.
struct Current<'a>(&'a Context);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: pops what `with` pushed on this thread.
        let _ = unsafe { (self.0.api.pop_context)(&raw mut popped) };
    }
}

impl Context {
    pub(crate) fn retain(api: &'static Api, device: i32) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: writes a handle.
        let code = unsafe { (api.retain_context)(&raw mut raw, device) };
        check(api, "cuDevicePrimaryCtxRetain", code)?;
        Ok(Self { api, device, raw })
    }

    /// Calls with the context current, and the caller's own current again behind it.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        // SAFETY: a context that is held.
        let code = unsafe { (self.api.push_context)(self.raw) };
        check(self.api, "cuCtxPushCurrent", code)?;
        let _current = Current(self);
        call(self.api)
    }

    pub(crate) fn raw(&self) -> CUcontext {
        self.raw
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: held once by this.
        let _ = unsafe { (self.api.release_context)(self.device) };
    }
}
