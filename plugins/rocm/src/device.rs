//! An opened device, current for the length of one call.
#![allow(unsafe_code, reason = "calls the runtime")]

use unisono_plugin::{DeviceId, Result};

use crate::api::Api;
use crate::error::check;
use crate::facts::Facts;
use crate::params::Options;

/// What a device's memory and runtime share.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) api: &'static Api,
    pub(crate) facts: Facts,
    pub(crate) options: Options,
    /// Identities of all devices, by the runtime's number.
    pub(crate) ids: Vec<DeviceId>,
}

/// Makes the caller's device current again, on every path.
struct Before<'a>(&'a Api, i32);

impl Drop for Before<'_> {
    fn drop(&mut self) {
        // SAFETY: the device that was current.
        let _ = unsafe { (self.0.set_device)(self.1) };
    }
}

impl Opened {
    /// Calls with this device current, and the caller's own current again behind it, his last error too.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        self.api.quietly(|api| self.with_current(api, call))
    }

    fn with_current<T>(&self, api: &Api, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        let (own, mut before) = (self.facts.device, 0);
        // SAFETY: writes a number.
        check(api, "hipGetDevice", unsafe {
            (api.get_device)(&raw mut before)
        })?;
        let _before = if before == own {
            None
        } else {
            // SAFETY: a device that the runtime listed.
            check(api, "hipSetDevice", unsafe { (api.set_device)(own) })?;
            Some(Before(api, before))
        };
        call(api)
    }
}
