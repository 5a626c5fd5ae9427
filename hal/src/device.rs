//! One opened device: where memory, streams and events are made.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use unisono_abi as abi;

use crate::error::call_done;
use crate::memory::MemoryCall;
use crate::plugin::PluginData;
use crate::stream::Stream;
use crate::{
    DeviceInfo, Error, Event, Instance, Memory, MemoryRequest, MemoryView, Result, Status,
};

/// An opened device. Clones share it; the last one closes it. Any thread.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    raw: abi::Device,
    info: DeviceInfo,
    instance: Instance,
}

// SAFETY: a device handle may be used from any thread ([any] in the contract).
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the last reference to a live handle; its instance lives until after this.
        unsafe { (self.instance.data().tables.device.close)(self.raw) }
    }
}

/// A command that is to be planned, as [`Device::supports`] is asked about it.
#[derive(Clone, Copy, Debug)]
pub struct SupportQuery {
    /// One of [`unisono_abi::command_kind`].
    pub command: u16,
    /// One of [`unisono_abi::dtype`], 0 where there is none.
    pub dtype: u16,
    /// One of [`unisono_abi::reduction`], 0 where there is none.
    pub reduction: u16,
    /// Where the source lies.
    pub source: Place,
    /// Where the destination lies.
    pub destination: Place,
}

/// Where memory lies, seen from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On the device.
    Device,
    /// In the host's memory.
    Host,
    /// On another device or in another process.
    Imported,
}

impl Place {
    const fn raw(self) -> u32 {
        match self {
            Self::Device => abi::place::DEVICE,
            Self::Host => abi::place::HOST,
            Self::Imported => abi::place::IMPORTED,
        }
    }

    pub(crate) const fn from_raw(place: u32) -> Option<Self> {
        Some(match place {
            abi::place::DEVICE => Self::Device,
            abi::place::HOST => Self::Host,
            abi::place::IMPORTED => Self::Imported,
            _ => return None,
        })
    }
}

impl Device {
    pub(crate) fn open(instance: &Instance, info: DeviceInfo) -> Result<Self> {
        let data = instance.data();
        let mut raw = abi::Device::NULL;
        call_done(data.name, "device.open", |error| {
            // SAFETY: the instance is live; the pointers are valid for the call.
            unsafe { (data.tables.device.open)(instance.raw(), info.index, &raw mut raw, error) }
        })?;
        if raw == abi::Device::NULL {
            return Err(data.null_handle("device.open"));
        }
        Ok(Self(Arc::new(Inner {
            raw,
            info,
            instance: instance.clone(),
        })))
    }

    pub(crate) fn raw(&self) -> abi::Device {
        self.0.raw
    }

    pub(crate) fn data(&self) -> &'static PluginData {
        self.0.instance.data()
    }

    /// What the device is and can do.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    /// The instance that it belongs to.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.0.instance
    }

    /// Whether its streams can run such a command.
    #[must_use]
    pub fn supports(&self, query: &SupportQuery) -> bool {
        let raw = abi::SupportQuery {
            struct_size: size_of::<abi::SupportQuery>() as u32,
            command: query.command.into(),
            dtype: query.dtype.into(),
            reduction: query.reduction.into(),
            source: query.source.raw(),
            destination: query.destination.raw(),
        };
        // SAFETY: the device is live; the query is borrowed for the call.
        unsafe {
            (self.data().tables.device.supports)(self.raw(), &raw const raw) == abi::status::OK
        }
    }

    /// Zeroed memory. May block.
    ///
    /// # Errors
    /// What the plugin says; [`Status::Invalid`] if it gives less than was asked for.
    pub fn alloc(&self, request: &MemoryRequest) -> Result<Memory> {
        Memory::alloc(self, request)
    }

    /// Makes existing host memory fast to use for this device. May block.
    ///
    /// # Errors
    /// What the plugin says.
    ///
    /// # Safety
    /// `[ptr, ptr + bytes)` is memory of this process that stays mapped, at that address, until
    /// the answer is dropped and no queue uses it.
    pub unsafe fn register_host(&self, ptr: *mut c_void, bytes: u64) -> Result<Memory> {
        let function = self.data().tables.memory.register_host;
        let call = MemoryCall::new("memory.register_host", bytes);
        call.run(self, |out, view, error| {
            // SAFETY: the device is live; the range is valid by the caller's promise.
            unsafe { function(self.raw(), ptr, bytes, out, view, error) }
        })
    }

    /// Takes device memory that the caller owns.
    ///
    /// # Errors
    /// What the plugin says.
    ///
    /// # Safety
    /// `[base, base + bytes)` is memory of this device that stays allocated until the answer is
    /// dropped and no queue uses it.
    pub unsafe fn wrap(&self, base: u64, bytes: u64) -> Result<Memory> {
        let function = self.data().tables.memory.wrap;
        MemoryCall::new("memory.wrap", bytes).run(self, |out, view, error| {
            // SAFETY: the device is live; the range is valid by the caller's promise.
            unsafe { function(self.raw(), base, bytes, out, view, error) }
        })
    }

    /// What lies at an address; `None` if it is not this plugin's.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn query(&self, address: u64) -> Result<Option<MemoryView>> {
        MemoryView::query(self, address)
    }

    /// Maps memory that another process's device exported. May block.
    ///
    /// # Errors
    /// What the plugin says: not its memory, changed since, or not reachable from here.
    pub fn import(&self, description: &[u8]) -> Result<Memory> {
        let function = self.data().tables.memory.import_memory;
        MemoryCall::new("memory.import_memory", 0).run(self, |out, view, error| {
            let (ptr, len) = (description.as_ptr().cast(), description.len() as u64);
            // SAFETY: the device is live; the description is borrowed for the call.
            unsafe { function(self.raw(), ptr, len, out, view, error) }
        })
    }

    /// Makes a NIC's finished writes to this device's memory visible to it.
    ///
    /// # Errors
    /// What the plugin says; [`Status::Unsupported`] where nothing makes them visible: no NIC is to write
    /// there.
    pub fn flush_remote_writes(&self) -> Result<()> {
        let function = self.data().tables.memory.flush_remote_writes;
        call_done(self.data().name, "memory.flush_remote_writes", |error| {
            // SAFETY: the device is live.
            unsafe { function(self.raw(), error) }
        })
    }

    /// A new stream. A higher priority is sooner, 0 is usual.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn stream(&self, priority: i64) -> Result<Stream> {
        Stream::create(self, priority)
    }

    /// A stream of the vendor's own, for the library's use.
    ///
    /// # Errors
    /// What the plugin says.
    ///
    /// # Safety
    /// `native` is a live stream of this device that outlives the answer.
    pub unsafe fn wrap_stream(&self, native: u64) -> Result<Stream> {
        // SAFETY: the caller's promise.
        unsafe { Stream::wrap(self, native) }
    }

    /// A new event, not complete.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn event(&self) -> Result<Event> {
        Event::create(self)
    }

    /// An event of the vendor's own, for the library's use.
    ///
    /// # Errors
    /// What the plugin says.
    ///
    /// # Safety
    /// `native` is a live event of this device that outlives the answer.
    pub unsafe fn wrap_event(&self, native: u64) -> Result<Event> {
        // SAFETY: the caller's promise.
        unsafe { Event::wrap(self, native) }
    }

    /// An error that the host finds in what the device's plugin answered.
    pub(crate) fn broken(&self, call: &'static str, what: impl Into<String>) -> Error {
        Error::host(self.data().name, call, Status::Invalid, what)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("plugin", &self.data().name)
            .field("index", &self.0.info.index)
            .field("name", &self.0.info.name)
            .finish_non_exhaustive()
    }
}
