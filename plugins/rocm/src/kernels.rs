//! The kernels, loaded when a device is opened: loading one later could wait for a stream that waits.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ffi::CString;
use std::ops::Deref;
use std::ptr;
use std::sync::OnceLock;

use unisono_kernels::{Loaded, bundle};
use unisono_plugin::{Error, Result};

use crate::api::{Api, Handle};
use crate::error::check;

/// Kept as long as the process: the runtime may look at it again for another device.
static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();

/// The loaded kernels of one device.
#[derive(Debug)]
pub(crate) struct Kernels {
    module: Handle,
    loaded: Loaded<Handle>,
}

// SAFETY: handles of the runtime's, usable from any thread.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

impl Deref for Kernels {
    type Target = Loaded<Handle>;

    fn deref(&self) -> &Self::Target {
        &self.loaded
    }
}

impl Kernels {
    /// Loads all; the device is current. The runtime takes the code object that fits it.
    pub(crate) fn load(api: &Api) -> Result<Self> {
        let (image, mut module) = (IMAGE.get_or_init(bundle), ptr::null_mut());
        // SAFETY: a bundle of code objects, which is kept.
        let code = unsafe { (api.module_load)(&raw mut module, image.as_ptr().cast()) };
        let what = "loading the kernels (for gfx90a, gfx942, gfx1100): hipModuleLoadData";
        check(api, what, code)?;
        let loaded = Loaded::load(|name| {
            let text = CString::new(name).map_err(|_| Error::invalid("a name with a NUL"))?;
            let mut function = ptr::null_mut();
            // SAFETY: writes a handle; the name is terminated.
            let code = unsafe { (api.module_function)(&raw mut function, module, text.as_ptr()) };
            let what = format!("the kernel {name}: hipModuleGetFunction");
            check(api, &what, code)?;
            Ok::<_, Error>(function)
        })?;
        Ok(Self { module, loaded })
    }

    /// Gives them back; the device is current.
    pub(crate) fn unload(&self, api: &Api) {
        // SAFETY: loaded once by this, and used by nobody any more.
        let _ = unsafe { (api.module_unload)(self.module) };
    }
}
