//! Memory: the device's, and the host's that devices reach.
//!
//! What can be exported has a proof (`proof`).
//!
//! Signals, counters and staging are host memory. So the CPU can end every wait, other processes map
//! them without the vendor's help, and no flag is waited for across a bus that only one vendor knows.
#![allow(unsafe_code, reason = "registers memory by address")]

use std::os::fd::IntoRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use unisono_plugin::{
    DeviceId, Error, HostRange, Memory, MemoryExport, MemoryKind, MemoryRequest, MemoryView, Place,
    Result, Status,
};

use crate::description::{self, Description};
use crate::fork::Unforked;
use crate::freed::Freed;
use crate::lines::Piece;
use crate::mapping::Mapping;
use crate::proof::{PROOF, nonce, proof_of};
use crate::state::{SIGNAL, State};
use crate::{Block, Runtime, fork, start_time};

/// Memory of a device of this plugin. Dropping it lets go of what it holds.
pub struct AcceleratorMemory<R: Runtime> {
    view: MemoryView,
    device: Arc<State<R>>,
    keep: Keep<R>,
}

enum Keep<R: Runtime> {
    /// It is the caller's.
    Nothing,
    /// The caller's host memory, registered.
    Registered,
    Kept(Arc<Kept<R>>),
}

/// Memory that several handles may hold: its maker's, and importers' in the same process.
pub(crate) struct Kept<R: Runtime> {
    device: Arc<State<R>>,
    what: What<R>,
    /// What others need to import it, save a handle that is made when asked for.
    description: Option<Description>,
    imported: bool,
}

enum What<R: Runtime> {
    Device {
        block: Unforked<R::Block>,
        offset: u64,
    },
    Host {
        mapping: Mapping,
        registered: bool,
    },
    /// A part of host memory that was registered with the device, at once.
    Piece(Piece),
    /// It was dropped.
    Nothing,
}

fn too_much(bytes: u64) -> Error {
    let what = format!("{bytes} bytes are more than any device has");
    Error::new(Status::OutOfMemory, what)
}

impl<R: Runtime> AcceleratorMemory<R> {
    fn new(device: &Arc<State<R>>, mut view: MemoryView, keep: Keep<R>) -> Self {
        let regions = &device.process().regions;
        let is_private = matches!(&keep, Keep::Kept(kept) if kept.description.is_none());
        view.generation = regions.next_generation(is_private);
        regions.insert(view);
        Self {
            view,
            device: Arc::clone(device),
            keep,
        }
    }

    fn kept(device: &Arc<State<R>>, kept: Arc<Kept<R>>, bytes: u64) -> Result<Self> {
        let own = device.runtime.id();
        let (place, base, host, of) = match &kept.what {
            What::Device { block, offset } => {
                let of = kept
                    .description
                    .as_ref()
                    .map_or(own, |description| description.device);
                let near = of == own && !kept.imported;
                let place = if near { Place::Device } else { Place::Imported };
                (place, block.base() + offset, 0, of)
            }
            What::Host { mapping, .. } => {
                let host = mapping.address();
                let place = if kept.imported {
                    Place::Imported
                } else {
                    Place::Host
                };
                (place, device.runtime.device_address(host)?, host, own)
            }
            What::Piece(piece) => (Place::Host, piece.device(), piece.host(), own),
            What::Nothing => return Err(Error::invalid("memory that was freed")),
        };
        let view = MemoryView {
            place,
            base,
            host,
            bytes,
            generation: 0,
            device: of,
        };
        Ok(Self::new(device, view, Keep::Kept(kept)))
    }

    /// Zeroed memory.
    pub(crate) fn alloc(device: &Arc<State<R>>, request: &MemoryRequest) -> Result<Self> {
        fork::check()?;
        let kept = match request.kind {
            MemoryKind::Data => Self::alloc_data(device, request)?,
            MemoryKind::Signal | MemoryKind::Staging => Self::alloc_host(device, request)?,
            MemoryKind::Bell => {
                return Err(Error::unsupported(
                    "streams of this device ring no bells; sleepers are woken by a waker",
                ));
            }
            MemoryKind::Process => {
                return Err(Error::unsupported(
                    "this device reads the memory of no other process",
                ));
            }
        };
        let kept = Arc::new(kept);
        if let Some(description) = &kept.description {
            device.process().share((description.nonce, None), &kept);
        }
        Self::kept(device, kept, request.bytes)
    }

    fn alloc_data(device: &Arc<State<R>>, request: &MemoryRequest) -> Result<Kept<R>> {
        let slack = if request.align > R::ALIGN {
            request.align
        } else {
            0
        };
        let proof = if request.exportable { PROOF } else { 0 };
        let whole = request.bytes.checked_next_multiple_of(PROOF);
        let whole = whole.and_then(|bytes| bytes.checked_add(slack + proof));
        let whole = whole.ok_or_else(|| too_much(request.bytes))?;
        device.freed.sweep(device);
        let block = device.runtime.alloc(whole, request.exportable)?;
        let offset = block.base().next_multiple_of(request.align) - block.base();
        let (base, bytes) = (block.base() + offset, request.bytes);
        let mut description = None;
        if request.exportable {
            let at = (block.bytes() - PROOF) & !(PROOF - 1);
            description = Some(Description {
                plugin: description::plugin(R::NAME),
                pid: std::process::id(),
                descriptor: -1,
                started: start_time(std::process::id())?,
                bytes,
                offset,
                proof: at,
                nonce: nonce()?,
                device: device.runtime.id(),
                handle: block.export()?,
            });
        }
        device.run("zeroing new memory", |runtime, stream| {
            // SAFETY: the block is new, at least so large, and kept for the call, which waits.
            unsafe { runtime.zero(stream, base, bytes) }
        })?;
        if let Some(description) = &description {
            proof_of(device, &block, description.proof, Some(&description.nonce))?;
        }
        Ok(Kept {
            device: Arc::clone(device),
            what: What::Device {
                block: Unforked::new(block),
                offset,
            },
            description,
            imported: false,
        })
    }

    fn alloc_host(device: &Arc<State<R>>, request: &MemoryRequest) -> Result<Kept<R>> {
        let page = rustix::param::page_size() as u64;
        if request.align > page {
            return Err(Error::unsupported(format!(
                "host memory for devices is aligned to pages of {page} bytes, not to {}",
                request.align
            )));
        }
        let small = request.bytes <= SIGNAL && request.align <= SIGNAL;
        if request.kind == MemoryKind::Signal && small && !request.exportable {
            // A program's stream needs one when it is first used, behind which others may wait.
            return Ok(Kept {
                device: Arc::clone(device),
                what: What::Piece(device.signal()?),
                description: None,
                imported: false,
            });
        }
        let (mapping, description) = if request.exportable {
            let nonce = nonce()?;
            let mapping = Mapping::shared(request.bytes, &nonce)?;
            let description = Description {
                plugin: description::plugin(R::NAME),
                pid: std::process::id(),
                descriptor: mapping.descriptor(),
                started: start_time(std::process::id())?,
                bytes: request.bytes,
                offset: 0,
                proof: 0,
                nonce,
                device: device.runtime.id(),
                handle: Vec::new(),
            };
            (mapping, Some(description))
        } else {
            (Mapping::private(request.bytes)?, None)
        };
        Self::register(device, mapping, request.bytes, description, false)
    }

    fn register(
        device: &Arc<State<R>>,
        mapping: Mapping,
        bytes: u64,
        description: Option<Description>,
        imported: bool,
    ) -> Result<Kept<R>> {
        // SAFETY: the mapping is kept until the registration has ended, in `Kept`'s drop.
        let registered = unsafe { device.runtime.register(mapping.address(), bytes) }?;
        Ok(Kept {
            device: Arc::clone(device),
            what: What::Host {
                mapping,
                registered,
            },
            description,
            imported,
        })
    }

    /// The caller's host memory.
    pub(crate) fn register_host(device: &Arc<State<R>>, range: HostRange) -> Result<Self> {
        fork::check()?;
        // SAFETY: the caller keeps it alive until the handle is dropped, by the contract.
        unsafe {
            device
                .process()
                .register(&device.runtime, range.address, range.bytes)
        }?;
        let base = device.runtime.device_address(range.address);
        let base = base.inspect_err(|_| {
            let process = device.process();
            process.unregister(&device.runtime, range.address, range.bytes);
        })?;
        let view = MemoryView {
            place: Place::Host,
            base,
            host: range.address,
            bytes: range.bytes,
            generation: 0,
            device: device.runtime.id(),
        };
        Ok(Self::new(device, view, Keep::Registered))
    }

    /// The caller's device memory.
    pub(crate) fn wrap(device: &Arc<State<R>>, base: u64, bytes: u64) -> Result<Self> {
        fork::check()?;
        let known = device.process().regions.find(base);
        let known = match known {
            None => device
                .runtime
                .foreign_range(base, bytes)?
                .map(|foreign| foreign.view),
            known => known,
        };
        let view = known.filter(|view| {
            let offset = base - view.base;
            view.host == 0 && bytes <= view.bytes - offset
        });
        let view = view.ok_or_else(|| {
            Error::invalid(format!(
                "{bytes} bytes at {base:#x} are no memory of a device of this plugin"
            ))
        })?;
        let view = MemoryView {
            place: place(device, view.device),
            base,
            bytes,
            ..view
        };
        Ok(Self::new(device, view, Keep::Nothing))
    }

    /// What lies at an address.
    pub(crate) fn query(device: &State<R>, address: u64) -> Result<Option<MemoryView>> {
        fork::check()?;
        if let Some(view) = device.process().regions.find(address) {
            return Ok(Some(view));
        }
        let foreign = device.runtime.foreign(address)?;
        Ok(foreign.map(|foreign| MemoryView {
            place: match foreign.view.host {
                0 => place(device, foreign.view.device),
                _ => Place::Host,
            },
            ..foreign.view
        }))
    }

    /// Maps what was exported.
    pub(crate) fn import(device: &Arc<State<R>>, bytes: &[u8]) -> Result<Self> {
        fork::check()?;
        let description = Description::parse(bytes, description::plugin(R::NAME))?;
        let (process, own) = (device.process(), device.runtime.id());
        if description.device == own {
            // Whether or not the memory is known here, or its maker can be looked at: a peer uses the device.
            device.is_shared.store(true, Ordering::Relaxed);
            let peers = match description.pid == std::process::id() {
                true => &device.has_ranks,
                false => &device.takes_turns,
            };
            peers.store(true, Ordering::Relaxed);
        }
        let length = description.bytes;
        let nonce = description.nonce;
        // Ranks that are threads of one process import the same memory at the same time.
        let _alone = process.import();
        let known = [None, Some(own)].map(|mapped_for| process.shared(&(nonce, mapped_for)));
        if let Some(kept) = known.into_iter().flatten().next() {
            if kept.description.as_ref() != Some(&description) {
                return Err(Error::invalid("a description that was tampered with"));
            }
            if let What::Device { block, .. } = &kept.what
                && !kept.imported
                && description.device != own
            {
                device.runtime.reach(block)?;
            }
            return Self::kept(device, kept, length);
        }
        if start_time(description.pid)? != description.started {
            return Err(Error::new(
                Status::Peer,
                format!("process {} is not the one that exported", description.pid),
            ));
        }
        if description.pid == std::process::id() {
            return Err(Error::new(Status::Peer, "this memory was freed"));
        }
        let (kept, mapped_for) = if description.handle.is_empty() {
            let (pid, file) = (description.pid, description.descriptor);
            let mapping = Mapping::import(pid, file, length, &nonce)?;
            let kept = Self::register(device, mapping, length, Some(description), true)?;
            (kept, None)
        } else {
            (Self::import_block(device, description)?, Some(own))
        };
        let kept = Arc::new(kept);
        process.share((nonce, mapped_for), &kept);
        Self::kept(device, kept, length)
    }

    fn import_block(device: &Arc<State<R>>, description: Description) -> Result<Kept<R>> {
        let block = device.runtime.import(&description.handle)?;
        let within = |from: u64, bytes: u64| {
            from.checked_add(bytes)
                .is_some_and(|end| end <= block.bytes())
        };
        let fits = within(description.offset, description.bytes)
            && within(description.proof, PROOF)
            && description.proof.is_multiple_of(PROOF);
        if !fits || proof_of(device, &block, description.proof, None)? != description.nonce {
            return Err(Error::new(
                Status::Peer,
                format!(
                    "the memory of process {} is not what it exported: it was freed",
                    description.pid
                ),
            ));
        }
        Ok(Kept {
            device: Arc::clone(device),
            what: What::Device {
                block: Unforked::new(block),
                offset: description.offset,
            },
            description: Some(description),
            imported: true,
        })
    }
}

fn place<R: Runtime>(device: &State<R>, of: DeviceId) -> Place {
    if of == device.runtime.id() {
        Place::Device
    } else {
        Place::Imported
    }
}

impl<R: Runtime> Memory for AcceleratorMemory<R> {
    fn view(&self) -> MemoryView {
        self.view
    }

    fn export(&self, how: MemoryExport) -> Result<Vec<u8>> {
        fork::check()?;
        let kept = match &self.keep {
            Keep::Kept(kept) => kept,
            Keep::Nothing | Keep::Registered => {
                return Err(Error::unsupported(
                    "memory of the caller's cannot be mapped by others: allocate it as exportable",
                ));
            }
        };
        match (how, &kept.what) {
            (MemoryExport::Process, _) => {
                let description = kept.description.as_ref().ok_or_else(|| {
                    Error::unsupported(
                        "this memory cannot be mapped by others: allocate it as exportable",
                    )
                })?;
                Ok(description.pack())
            }
            (MemoryExport::Dmabuf, What::Device { block, offset }) => {
                let page = rustix::param::page_size() as u64;
                if !self.view.base.is_multiple_of(page) {
                    return Err(Error::invalid(format!(
                        "a dma-buf begins with a page: allocate memory that is aligned to {page} bytes"
                    )));
                }
                let file = block.dmabuf(*offset, self.view.bytes)?;
                Ok(file.into_raw_fd().to_ne_bytes().to_vec())
            }
            (MemoryExport::Dmabuf, What::Host { .. } | What::Piece(_) | What::Nothing) => Err(
                Error::unsupported("host memory cannot be exported as a dma-buf"),
            ),
        }
    }
}

impl<R: Runtime> Drop for AcceleratorMemory<R> {
    fn drop(&mut self) {
        if fork::is_child() {
            return;
        }
        self.device.process().regions.remove(&self.view);
        // Streams that were dropped may still be at work on it.
        self.device.settle();
        if matches!(self.keep, Keep::Registered) {
            let (runtime, view) = (&self.device.runtime, &self.view);
            self.device
                .process()
                .unregister(runtime, view.host, view.bytes);
        }
    }
}

impl<R: Runtime> Drop for Kept<R> {
    fn drop(&mut self) {
        let freed = match std::mem::replace(&mut self.what, What::Nothing) {
            What::Device { block, .. } => Freed::Block(block),
            What::Host {
                mapping,
                registered: true,
            } => Freed::Registered(mapping),
            What::Host { .. } | What::Piece(_) | What::Nothing => return,
        };
        self.device.freed.add(freed, &self.device);
    }
}

impl<R: Runtime> std::fmt::Debug for AcceleratorMemory<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AcceleratorMemory")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}
