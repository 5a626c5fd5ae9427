//! Memory: allocated, registered, wrapped, imported.
//!
//! Data, flags and staging are all ordinary memory to a CPU. What is exportable is a sealed memory
//! file ([`shared`]), what is not is anonymous ([`mapping`]).

mod beside;
mod description;
mod mapping;
pub(crate) mod proc;
pub(crate) mod process;
mod registry;
mod shared;

use std::sync::Arc;

use unisono_plugin::{
    DeviceId, Error, HostRange, Memory, MemoryExport, MemoryKind, MemoryRequest, MemoryView, Place,
    Result,
};

use crate::bell::{self, PeerBell};
use crate::fork;
use description::Description;
use mapping::{Mapping, Source};
use process::{Process, Token};
pub(crate) use registry::{shared_epoch, shared_ranges};
use shared::Shared;

/// Memory of the host device. Dropping it lets go of what it holds.
#[derive(Debug)]
pub struct HostMemory {
    view: MemoryView,
    keep: Keep,
}

/// What keeps the memory there.
#[derive(Debug)]
enum Keep {
    /// It is the caller's, or the process's own bell, which stays.
    Nothing,
    Private(#[allow(dead_code, reason = "unmaps when dropped")] Mapping),
    Shared(Arc<Shared>),
    OwnBell,
    /// Stands for a process; its address is the base.
    Process(#[allow(dead_code, reason = "READs reach it by its address")] Arc<Process>),
    PeerBell(#[allow(dead_code, reason = "unmaps when dropped")] Arc<PeerBell>),
}

/// A mapping that a bell lives in.
#[derive(Debug)]
pub(crate) struct BellMemory(Arc<Shared>);

impl BellMemory {
    /// One new page.
    pub(crate) fn create() -> Result<Self> {
        let shared = Arc::new(Shared::create(bell::BYTES, 64, true, false)?);
        registry::add(&shared);
        Ok(Self(shared))
    }

    /// Its first byte.
    pub(crate) fn address(&self) -> *mut u8 {
        self.0.address()
    }

    /// The process that it belongs to.
    pub(crate) fn pid(&self) -> u32 {
        self.0.description().pid
    }
}

impl HostMemory {
    fn new(place: Place, base: u64, bytes: u64, device: DeviceId, keep: Keep) -> Self {
        let generation = registry::next_generation();
        let view = MemoryView {
            place,
            base,
            host: base,
            bytes,
            generation,
            device,
        };
        registry::insert(view);
        if matches!(keep, Keep::Shared(_)) {
            registry::add_shared(base, bytes);
        }
        Self { view, keep }
    }

    /// Zeroed memory, or the process's bell.
    pub(crate) fn alloc(request: &MemoryRequest, device: DeviceId) -> Result<Self> {
        fork::check()?;
        if request.kind == MemoryKind::Bell {
            let base = bell::own()?.address();
            return Ok(Self::new(
                Place::Device,
                base,
                bell::BYTES,
                device,
                Keep::OwnBell,
            ));
        }
        if request.kind == MemoryKind::Process {
            let own = Arc::new(Process::own());
            return Ok(Self::of_process(own, Place::Device, device));
        }
        let bytes = request.bytes;
        if request.exportable {
            let shared = Arc::new(Shared::create(bytes, request.align, false, request.lazy)?);
            registry::add(&shared);
            let base = shared.address() as u64;
            return Ok(Self::new(
                Place::Device,
                base,
                bytes,
                device,
                Keep::Shared(shared),
            ));
        }
        let length = mapping::whole_pages(bytes)?;
        let align = usize::try_from(request.align)
            .map_err(|_| Error::invalid(format!("cannot align to {}", request.align)))?;
        let mapping = Mapping::new(Source::Anonymous, length, align)?;
        if !request.lazy {
            mapping.populate(length);
        }
        let base = mapping.address() as u64;
        Ok(Self::new(
            Place::Device,
            base,
            bytes,
            device,
            Keep::Private(mapping),
        ))
    }

    /// Memory of the caller's. To a CPU all memory is alike: nothing is done to it.
    pub(crate) fn borrow(range: HostRange, device: DeviceId) -> Result<Self> {
        fork::check()?;
        Ok(Self::new(
            Place::Device,
            range.address,
            range.bytes,
            device,
            Keep::Nothing,
        ))
    }

    /// What lies at an address, `None` if this plugin knows of nothing there.
    pub(crate) fn query(address: u64) -> Result<Option<MemoryView>> {
        fork::check()?;
        Ok(registry::find(address))
    }

    /// What stands for a process, at an address of its own.
    fn of_process(process: Arc<Process>, place: Place, device: DeviceId) -> Self {
        let base = Arc::as_ptr(&process) as u64;
        Self::new(place, base, process::BYTES, device, Keep::Process(process))
    }

    /// Maps what was exported, or finds the process that told of itself.
    pub(crate) fn import(description: &[u8], device: DeviceId) -> Result<Self> {
        fork::check()?;
        if let Some(token) = Token::parse(description) {
            let process = Process::reach(&token)?;
            return Ok(Self::of_process(process, Place::Imported, device));
        }
        let description = Description::parse(description)?;
        let shared = registry::find_or_import(description)?;
        let (base, bytes) = (shared.address() as u64, description.bytes);
        if description.bell {
            if bell::own()?.address() == base {
                return Ok(Self::new(Place::Device, base, bytes, device, Keep::OwnBell));
            }
            let peer = bell::import(BellMemory(shared))?;
            return Ok(Self::new(
                Place::Imported,
                base,
                bytes,
                device,
                Keep::PeerBell(peer),
            ));
        }
        let own = description.pid == std::process::id();
        let place = if own { Place::Device } else { Place::Imported };
        Ok(Self::new(place, base, bytes, device, Keep::Shared(shared)))
    }
}

impl Memory for HostMemory {
    fn view(&self) -> MemoryView {
        self.view
    }

    fn export(&self, how: MemoryExport) -> Result<Vec<u8>> {
        fork::check()?;
        let description = match (&self.keep, how) {
            (Keep::Process(_), MemoryExport::Process) => return Ok(Token::own()?.pack()),
            (Keep::Shared(shared), MemoryExport::Process) => *shared.description(),
            (Keep::OwnBell, MemoryExport::Process) => *bell::own()?.memory().0.description(),
            (_, MemoryExport::Dmabuf) => {
                return Err(Error::unsupported(
                    "host memory cannot be exported as a dma-buf",
                ));
            }
            (Keep::Nothing | Keep::Private(_) | Keep::PeerBell(_), MemoryExport::Process) => {
                return Err(Error::unsupported(
                    "this memory cannot be mapped by others: allocate it as exportable",
                ));
            }
        };
        Ok(description.pack().to_vec())
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if !fork::is_child() {
            registry::remove(&self.view);
            if matches!(self.keep, Keep::Shared(_)) {
                registry::remove_shared(self.view.base);
            }
        }
    }
}
