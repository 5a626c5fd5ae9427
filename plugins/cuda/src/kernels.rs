//! The kernels, loaded when a device is opened: loading one later could wait for a stream that waits.
#![allow(unsafe_code, reason = "calls the driver")]

use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;

use cudarc::driver::sys::{CUfunction, CUmodule};
use unisono_kernels::{PTX, REDUCTIONS, TYPES};
use unisono_plugin::{Error, Result};

use crate::api::Api;
use crate::error::check;

/// The loaded kernels of one context.
#[derive(Debug)]
pub(crate) struct Kernels {
    module: CUmodule,
    reductions: HashMap<(u16, u16), CUfunction>,
    pub(crate) copy: CUfunction,
    pub(crate) check: CUfunction,
    pub(crate) signal: CUfunction,
    pub(crate) wait: CUfunction,
}

// SAFETY: handles of the driver's, usable from any thread.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

impl Kernels {
    /// Loads all; the context is current.
    pub(crate) fn load(api: &Api) -> Result<Self> {
        let mut module = ptr::null_mut();
        // SAFETY: PTX, NUL-terminated.
        let code = unsafe { (api.module_load)(&raw mut module, PTX.as_ptr().cast()) };
        check(api, "loading the kernels: cuModuleLoadData", code)?;
        let get = |name: &str| {
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
        let mut reductions = HashMap::new();
        for dtype in 1..=TYPES.len() as u16 {
            for reduction in 1..=REDUCTIONS.len() as u16 {
                if let Some(name) = unisono_kernels::reduction(dtype, reduction) {
                    reductions.insert((dtype, reduction), get(&name)?);
                }
            }
        }
        Ok(Self {
            module,
            reductions,
            copy: get("unisono_copy")?,
            check: get("unisono_check")?,
            signal: get("unisono_signal")?,
            wait: get("unisono_wait")?,
        })
    }

    /// The kernel for a reduction of a type.
    pub(crate) fn reduction(&self, dtype: u16, reduction: u16) -> Option<CUfunction> {
        self.reductions.get(&(dtype, reduction)).copied()
    }

    /// Gives them back; the context is current.
    pub(crate) fn unload(&self, api: &Api) {
        // SAFETY: loaded once by this, and used by nobody any more.
        let _ = unsafe { (api.module_unload)(self.module) };
    }
}
