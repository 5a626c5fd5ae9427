//! Events: points in a stream's work that the host and other streams can see.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::fmt;
use std::sync::Arc;

use unisono_abi as abi;

use crate::error::{Answer, call, call_done};
use crate::{Device, Result};

/// An event. Clones share it; the last one destroys it. Any thread.
#[derive(Clone)]
pub struct Event(Arc<Inner>);

struct Inner {
    raw: abi::Event,
    device: Device,
}

// SAFETY: an event handle may be used from any thread ([any] in the contract).
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the last reference to a live handle; its device lives until after this.
        unsafe { (self.device.data().tables.event.destroy)(self.raw) }
    }
}

impl Event {
    pub(crate) fn create(device: &Device) -> Result<Self> {
        let function = device.data().tables.event.create;
        Self::make(device, "event.create", |out, error| {
            // SAFETY: the device is live.
            unsafe { function(device.raw(), out, error) }
        })
    }

    /// # Safety
    /// `native` is a live event of this device that outlives the answer.
    pub(crate) unsafe fn wrap(device: &Device, native: u64) -> Result<Self> {
        let function = device.data().tables.event.wrap;
        Self::make(device, "event.wrap", |out, error| {
            // SAFETY: the device is live; the native event is by the caller's promise.
            unsafe { function(device.raw(), native, out, error) }
        })
    }

    fn make(
        device: &Device,
        name: &'static str,
        function: impl FnOnce(*mut abi::Event, &mut abi::Error) -> abi::Status,
    ) -> Result<Self> {
        let mut raw = abi::Event::NULL;
        call_done(device.data().name, name, |error| {
            function(&raw mut raw, error)
        })?;
        if raw == abi::Event::NULL {
            return Err(device.data().null_handle(name));
        }
        Ok(Self(Arc::new(Inner {
            raw,
            device: device.clone(),
        })))
    }

    /// Completes it from the host. Never blocks.
    ///
    /// # Errors
    /// What the plugin says;
    /// [`Status::Unsupported`](crate::Status::Unsupported) if its events lack this side.
    pub fn signal(&self) -> Result<()> {
        let data = self.0.device.data();
        call_done(data.name, "event.host_signal", |error| {
            // SAFETY: the event is live.
            unsafe { (data.tables.event.host_signal)(self.0.raw, error) }
        })
    }

    /// Whether it is complete. A new event, or one recorded again, is not.
    ///
    /// # Errors
    /// What the plugin says, also of the work that the event stands for.
    pub fn is_complete(&self) -> Result<bool> {
        let data = self.0.device.data();
        let answer = call(data.name, "event.host_query", |error| {
            // SAFETY: the event is live.
            unsafe { (data.tables.event.host_query)(self.0.raw, error) }
        })?;
        Ok(answer == Answer::Done)
    }

    /// The vendor's own handle, 0 if there is none.
    #[must_use]
    pub fn native(&self) -> u64 {
        // SAFETY: the event is live.
        unsafe { (self.0.device.data().tables.event.native)(self.0.raw) }
    }

    /// The device that made it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The handle as commands hold it.
    pub(crate) fn address(&self) -> u64 {
        self.0.raw.0 as u64
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.0.raw.0).finish()
    }
}
