//! Memory that a device can use: allocated, registered, wrapped or imported.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::fmt;
use std::sync::Arc;

use unisono_abi as abi;

use crate::error::{Answer, call, call_done};
use crate::{Device, DeviceId, MemoryRequest, Place, Result};

/// Memory, freed, deregistered, unwrapped or unmapped when the last clone is dropped. Any thread.
///
/// Nothing here reads or writes it: who does so through its addresses answers for the races.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    raw: abi::Memory,
    view: MemoryView,
    device: Device,
}

// SAFETY: a memory handle may be used from any thread ([any] in the contract).
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the last reference to a live handle; its device lives until after this.
        unsafe { (self.device.data().tables.memory.free)(self.raw) }
    }
}

/// A piece of memory, seen from one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryView {
    /// Where it lies.
    pub place: Place,
    /// Its address for commands on the device.
    pub base: u64,
    /// Its address for the processor, 0 if that cannot load and store it.
    pub host: u64,
    /// Bytes.
    pub bytes: u64,
    /// The vendor's allocation id: another allocation at the same address has another.
    pub generation: u64,
    /// The device that it belongs to.
    pub device: DeviceId,
}

/// How memory leaves its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExportKind {
    /// For another process's device of the same plugin.
    Process,
    /// As a dma-buf.
    DmaBuf,
}

impl Memory {
    pub(crate) fn alloc(device: &Device, request: &MemoryRequest) -> Result<Self> {
        let raw = request.raw();
        let align = if raw.align == 0 { 64 } else { raw.align };
        if !align.is_power_of_two() {
            return Err(device.broken(
                "memory.alloc",
                format!("the alignment {align} is no power of two"),
            ));
        }
        let function = device.data().tables.memory.alloc;
        let memory =
            MemoryCall::new("memory.alloc", request.bytes).run(device, |out, view, error| {
                // SAFETY: the device is live; the request is borrowed for the call.
                unsafe { function(device.raw(), &raw const raw, out, view, error) }
            })?;
        let base = memory.base();
        if !base.is_multiple_of(align) {
            return Err(device.broken(
                "memory.alloc",
                format!("the plugin gave {base:#x}, not aligned to {align}"),
            ));
        }
        Ok(memory)
    }

    /// The memory, seen from the device that made it.
    #[must_use]
    pub fn view(&self) -> &MemoryView {
        &self.0.view
    }

    /// Its address for commands on that device.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.0.view.base
    }

    /// Its address for the processor, if that can load and store it.
    #[must_use]
    pub fn host_ptr(&self) -> Option<*mut u8> {
        match self.0.view.host {
            0 => None,
            address => Some(address as *mut u8),
        }
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.view.bytes
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that made it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// A description that another process's device can [import](Device::import); it is worth
    /// something as long as this memory lives.
    ///
    /// # Errors
    /// What the plugin says; [`Status::Unsupported`](crate::Status::Unsupported) if the memory
    /// cannot leave in that way.
    pub fn export(&self, how: ExportKind) -> Result<Vec<u8>> {
        let device = &self.0.device;
        let (mut out, mut len) = (vec![0; abi::EXPORT_MAX], 0u64);
        let how = match how {
            ExportKind::Process => abi::export::PROCESS,
            ExportKind::DmaBuf => abi::export::DMABUF,
        };
        let function = device.data().tables.memory.export_memory;
        call_done(device.data().name, "memory.export_memory", |error| {
            let (at, cap) = (out.as_mut_ptr().cast(), abi::EXPORT_MAX as u64);
            // SAFETY: the memory is live; the buffer has the room that it says.
            unsafe { function(self.0.raw, how, at, cap, &raw mut len, error) }
        })?;
        if len > abi::EXPORT_MAX as u64 {
            return Err(device.broken(
                "memory.export_memory",
                format!(
                    "the plugin gave a description of {len} bytes, at most {} are allowed",
                    abi::EXPORT_MAX
                ),
            ));
        }
        out.truncate(len as usize);
        Ok(out)
    }
}

impl MemoryView {
    fn empty() -> abi::MemoryView {
        let mut view = abi::MemoryView::zeroed();
        view.struct_size = size_of::<abi::MemoryView>() as u32;
        view
    }

    fn from_raw(device: &Device, call: &'static str, raw: &abi::MemoryView) -> Result<Self> {
        let Some(place) = Place::from_raw(raw.place) else {
            let what = format!("the plugin answered the place {}, which is none", raw.place);
            return Err(device.broken(call, what));
        };
        if raw.base.checked_add(raw.bytes).is_none() || raw.host.checked_add(raw.bytes).is_none() {
            return Err(device.broken(call, "the memory that the plugin gave wraps around"));
        }
        Ok(Self {
            place,
            base: raw.base,
            host: raw.host,
            bytes: raw.bytes,
            generation: raw.generation,
            device: raw.device,
        })
    }

    pub(crate) fn query(device: &Device, address: u64) -> Result<Option<Self>> {
        let mut view = Self::empty();
        let function = device.data().tables.memory.query;
        let answer = call(device.data().name, "memory.query", |error| {
            // SAFETY: the device is live; the address is only asked about.
            unsafe { function(device.raw(), address, &raw mut view, error) }
        })?;
        match answer {
            Answer::Again => Ok(None),
            Answer::Done => Self::from_raw(device, "memory.query", &view).map(Some),
        }
    }
}

/// One call that makes memory, and the checks of what it gave.
pub(crate) struct MemoryCall {
    name: &'static str,
    bytes: u64,
}

impl MemoryCall {
    /// `bytes` is what the memory must hold at least.
    pub(crate) const fn new(name: &'static str, bytes: u64) -> Self {
        Self { name, bytes }
    }

    pub(crate) fn run(
        &self,
        device: &Device,
        function: impl FnOnce(*mut abi::Memory, *mut abi::MemoryView, &mut abi::Error) -> abi::Status,
    ) -> Result<Memory> {
        let mut raw = abi::Memory::NULL;
        let mut view = MemoryView::empty();
        call_done(device.data().name, self.name, |error| {
            function(&raw mut raw, &raw mut view, error)
        })?;
        if raw == abi::Memory::NULL {
            return Err(device.data().null_handle(self.name));
        }
        // From here on the memory is freed if a check fails.
        let mut memory = Inner {
            raw,
            view: MemoryView {
                place: Place::Host,
                base: 0,
                host: 0,
                bytes: 0,
                generation: 0,
                device: [0; 16],
            },
            device: device.clone(),
        };
        memory.view = MemoryView::from_raw(device, self.name, &view)?;
        let bytes = memory.view.bytes;
        if bytes < self.bytes {
            return Err(device.broken(
                self.name,
                format!(
                    "the plugin gave {bytes} bytes, {} were asked for",
                    self.bytes
                ),
            ));
        }
        if bytes > 0 && memory.view.base == 0 {
            return Err(device.broken(self.name, "the plugin gave memory at address 0"));
        }
        Ok(Memory(Arc::new(memory)))
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Memory").field(&self.0.view).finish()
    }
}
