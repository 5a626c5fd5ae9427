//! The kernels, loaded when a device is opened: loading one later could wait for a stream that waits.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::CString;
use std::ops::Deref;
use std::ptr;

use cudarc::driver::sys::{CUfunction, CUmodule};
use unisono_kernels::{Loaded, PTX, STEPS};
use unisono_plugin::{Error, Result};

use crate::api::Api;
use crate::error::check;

/// The loaded kernels of one context.
#[derive(Debug)]
pub(crate) struct Kernels {
    module: CUmodule,
    loaded: Loaded<CUfunction>,
    /// Does short steps one after the other.
    pub(crate) steps: CUfunction,
}

// SAFETY: handles of the driver's, usable from any thread.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

impl Deref for Kernels {
    type Target = Loaded<CUfunction>;

    fn deref(&self) -> &Self::Target {
        &self.loaded
    }
}

impl Kernels {
    /// Loads all; the context is current.
    pub(crate) fn load(api: &Api) -> Result<Self> {
        let mut module = ptr::null_mut();
        // SAFETY: PTX, NUL-terminated.
        let code = unsafe { (api.module_load)(&raw mut module, PTX.as_ptr().cast()) };
        check(api, "loading the kernels: cuModuleLoadData", code)?;
        let function = |name: &str| {
            let text = CString::new(name).map_err(|_| Error::invalid("a name with a NUL"))?;
            let mut function = ptr::null_mut();
            // SAFETY: writes a handle; the name is terminated.
            let code = unsafe { (api.module_function)(&raw mut function, module, text.as_ptr()) };
            check(
                api,
                &format!("the kernel {name}: cuModuleGetFunction"),
                code,
            )?;
            Ok::<_, Error>(function)
        };
        Ok(Self {
            module,
            loaded: Loaded::load(function)?,
            steps: function(STEPS)?,
        })
    }

    /// Gives them back; the context is current.
    pub(crate) fn unload(&self, api: &Api) {
        // SAFETY: loaded once by this, and used by nobody any more.
        let _ = unsafe { (api.module_unload)(self.module) };
    }
}
