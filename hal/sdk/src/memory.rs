//! Memory: allocated, registered, wrapped or imported.

use unisono_abi::{export, memory_flag, memory_kind};

use crate::{DeviceId, Error, Place, Result};

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MemoryKind {
    /// Data.
    Data = memory_kind::DATA,
    /// Flags and counters: host and device see each other's writes.
    Signal = memory_kind::SIGNAL,
    /// At least one bell, laid out as the plugin likes; the same for the whole process.
    Bell = memory_kind::BELL,
    /// Pinned host memory for copies in and out.
    Staging = memory_kind::STAGING,
    /// All memory of the process, for READs of those that import it; since 1.7.
    Process = memory_kind::PROCESS,
}

/// What memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRequest {
    /// What it is for.
    pub kind: MemoryKind,
    /// Its size, never 0.
    pub bytes: u64,
    /// Its alignment: a power of two, at least 1 (what the host leaves open is 64).
    pub align: u64,
    /// Another process is to import it.
    pub exportable: bool,
    /// Pages are to appear only when touched.
    pub lazy: bool,
}

impl MemoryRequest {
    pub(crate) fn parse(raw: &unisono_abi::MemoryRequest) -> Result<Self> {
        let kind = match raw.kind {
            memory_kind::DATA => MemoryKind::Data,
            memory_kind::SIGNAL => MemoryKind::Signal,
            memory_kind::BELL => MemoryKind::Bell,
            memory_kind::STAGING => MemoryKind::Staging,
            memory_kind::PROCESS => MemoryKind::Process,
            other => {
                return Err(Error::unsupported(format!(
                    "memory of unknown kind {other}"
                )));
            }
        };
        let align = if raw.align == 0 { 64 } else { raw.align };
        if !align.is_power_of_two() || raw.bytes == 0 {
            return Err(Error::invalid(format!(
                "cannot allocate {} bytes aligned to {align}: size must not be 0 and alignment a power of two",
                raw.bytes
            )));
        }
        if raw.flags & !(memory_flag::EXPORTABLE | memory_flag::LAZY) != 0 {
            return Err(Error::unsupported(format!(
                "unknown memory flags {:#x}",
                raw.flags
            )));
        }
        Ok(Self {
            kind,
            bytes: raw.bytes,
            align,
            exportable: raw.flags & memory_flag::EXPORTABLE != 0,
            lazy: raw.flags & memory_flag::LAZY != 0,
        })
    }
}

/// A range of this process's memory, by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    /// Its address, never 0.
    pub address: u64,
    /// Its size, never 0; address + bytes does not wrap.
    pub bytes: u64,
}

impl HostRange {
    pub(crate) fn parse(address: u64, bytes: u64) -> Result<Self> {
        if address == 0 || bytes == 0 || address.checked_add(bytes).is_none() {
            return Err(Error::invalid(format!(
                "no range: {bytes} bytes at {address:#x}"
            )));
        }
        Ok(Self { address, bytes })
    }
}

/// What lies where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryView {
    /// As seen from the device that was asked.
    pub place: Place,
    /// Address for commands on this device.
    pub base: u64,
    /// Address for the CPU, 0 if it cannot load and store it.
    pub host: u64,
    /// Size.
    pub bytes: u64,
    /// The vendor's allocation id: another allocation at the same address differs.
    pub generation: u64,
    /// The device that it belongs to.
    pub device: DeviceId,
}

impl MemoryView {
    pub(crate) fn raw(&self) -> unisono_abi::MemoryView {
        unisono_abi::MemoryView {
            struct_size: 0,
            place: self.place as u32,
            base: self.base,
            host: self.host,
            bytes: self.bytes,
            generation: self.generation,
            device: self.device.0,
        }
    }
}

/// A way to export memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MemoryExport {
    /// To another process's device of this plugin.
    Process = export::PROCESS,
    /// As a dma-buf.
    Dmabuf = export::DMABUF,
}

impl MemoryExport {
    pub(crate) fn parse(raw: u32) -> Result<Self> {
        match raw {
            export::PROCESS => Ok(Self::Process),
            export::DMABUF => Ok(Self::Dmabuf),
            other => Err(Error::unsupported(format!(
                "unknown way {other} to export memory"
            ))),
        }
    }
}

/// Memory that a device made or took. Any thread may call. Dropping it frees, deregisters, unwraps
/// or unmaps, by how it was made; that may block.
pub trait Memory: Send + Sync + 'static {
    /// Whether the plugin has memory.
    const PRESENT: bool = true;

    /// Where it lies.
    fn view(&self) -> MemoryView;

    /// A description that another process's device can import: 256 bytes at most.
    ///
    /// # Errors
    /// Unsupported if it cannot leave that way.
    fn export(&self, how: MemoryExport) -> Result<Vec<u8>> {
        Err(Error::unsupported(format!(
            "this memory cannot be exported ({how:?})"
        )))
    }
}

/// For plugins without memory.
#[derive(Clone, Copy, Debug)]
pub enum NoMemory {}

impl Memory for NoMemory {
    const PRESENT: bool = false;

    fn view(&self) -> MemoryView {
        match *self {}
    }
}
