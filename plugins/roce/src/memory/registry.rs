//! What is registered, on every rail at once.
#![allow(unsafe_code, reason = "registers memory by address")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use unisono_plugin::{Dmabuf, Error, Flush, HostRange, Result, Status};

use crate::nic::Rails;
use crate::verbs::{Access, Region};

/// Memory that the devices of all rails may reach, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Memory {
    range: HostRange,
    /// Whether the CPU can load and store it.
    host: bool,
    /// What makes finished writes visible to the device that it belongs to.
    flush: Option<Flush>,
    /// By rail.
    regions: Vec<Region>,
}

impl Memory {
    /// Registers host memory on all rails.
    ///
    /// # Safety
    /// As for [`Region::host`].
    pub(crate) unsafe fn host(rails: &Rails, range: HostRange, access: Access) -> Result<Self> {
        let regions = rails
            .all()
            .iter()
            .map(|rail| {
                // SAFETY: by the caller's promise.
                let region = unsafe { Region::host(&rail.pd, range.address, range.bytes, access) };
                region.map_err(|error| refused(&rail.facts.name(), range, &error))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            range,
            host: true,
            flush: None,
            regions,
        })
    }

    /// Host memory that no device knows: enough for what the CPU does with a window.
    #[cfg(test)]
    pub(crate) const fn unregistered(range: HostRange) -> Self {
        Self {
            range,
            host: true,
            flush: None,
            regions: Vec::new(),
        }
    }

    pub(crate) const fn is_host(&self) -> bool {
        self.host
    }

    /// What is to be called after writes into it, before a flag that came with them is raised.
    pub(crate) const fn flush(&self) -> Option<Flush> {
        self.flush
    }

    pub(crate) fn local_key(&self, rail: usize) -> u32 {
        self.regions[rail].local_key()
    }

    /// The keys for the peer, by rail.
    pub(crate) fn remote_keys(&self) -> Vec<u32> {
        self.regions.iter().map(Region::remote_key).collect()
    }

    pub(crate) const fn holds(&self, address: u64, bytes: u64) -> bool {
        address >= self.range.address
            && bytes <= self.range.bytes
            && address - self.range.address <= self.range.bytes - bytes
    }
}

fn refused(rail: &str, range: HostRange, error: &std::io::Error) -> Error {
    let hint = match error.raw_os_error() {
        Some(libc::ENOMEM | libc::EAGAIN) => {
            ": is the limit of locked memory too low (ulimit -l, RLIMIT_MEMLOCK)?"
        }
        Some(libc::EOPNOTSUPP) => ": this device or its library cannot",
        _ => "",
    };
    let status = match error.raw_os_error() {
        Some(libc::ENOMEM | libc::EAGAIN) => Status::OutOfMemory,
        Some(libc::EOPNOTSUPP) => Status::Unsupported,
        _ => Status::Device,
    };
    let what = format!(
        "{rail}: {} bytes at {:#x} cannot be registered{hint}",
        range.bytes, range.address
    );
    Error::system(status, &what, error)
}

/// All that links of one instance have registered and keep.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    kept: Mutex<Kept>,
    /// Whether there was ever device memory: else nobody need look for it.
    devices: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    /// Windows, as long as a link exports them.
    windows: Vec<Weak<Memory>>,
    /// Device memory that its owner has made known, until the owner takes it back.
    devices: Vec<Arc<Memory>>,
}

impl Registry {
    /// The memory of a window: several links export the same, to one peer each.
    ///
    /// # Safety
    /// As for [`Region::host`], unless the range is known device memory.
    pub(crate) unsafe fn window(&self, rails: &Rails, range: HostRange) -> Result<Arc<Memory>> {
        let mut kept = self.lock();
        kept.windows.retain(|known| known.strong_count() > 0);
        let known = kept.windows.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.into_iter().find(|known| known.range == range) {
            return Ok(known);
        }
        let device = kept
            .devices
            .iter()
            .find(|memory| memory.holds(range.address, range.bytes));
        if let Some(device) = device {
            return Ok(Arc::clone(device));
        }
        // SAFETY: by the caller's promise.
        let memory = Arc::new(unsafe { Memory::host(rails, range, Access::Remote) }?);
        kept.windows.push(Arc::downgrade(&memory));
        Ok(memory)
    }

    /// What holds these bytes, if something does.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Option<Arc<Memory>> {
        let kept = self.lock();
        let windows = kept.windows.iter().filter_map(Weak::upgrade);
        windows
            .chain(kept.devices.iter().map(Arc::clone))
            .find(|memory| memory.holds(address, bytes))
    }

    /// The device memory that holds these bytes, if some does: the CPU must not touch them.
    pub(crate) fn device(&self, address: u64, bytes: u64) -> Option<Arc<Memory>> {
        // Relaxed: who puts from memory has added it before.
        if !self.devices.load(Ordering::Relaxed) {
            return None;
        }
        let kept = self.lock();
        let mut devices = kept.devices.iter();
        devices
            .find(|memory| memory.holds(address, bytes))
            .map(Arc::clone)
    }

    /// Makes device memory known by its dma-buf.
    pub(crate) fn add_device(&self, rails: &Rails, memory: &Dmabuf<'_>) -> Result<()> {
        let Dmabuf {
            fd,
            offset,
            range,
            flush,
        } = *memory;
        let regions = rails
            .all()
            .iter()
            .map(|rail| {
                Region::dmabuf(&rail.pd, fd, offset, range.bytes, range.address)
                    .map_err(|error| refused(&rail.facts.name(), range, &error))
            })
            .collect::<Result<_>>()?;
        let memory = Arc::new(Memory {
            range,
            host: false,
            flush,
            regions,
        });
        let mut kept = self.lock();
        if kept.devices.iter().any(|known| overlap(known.range, range)) {
            return Err(Error::invalid(format!(
                "device memory at {:#x} is registered already",
                range.address
            )));
        }
        kept.devices.push(memory);
        self.devices.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets device memory. Puts that still read it, and windows in it, keep it registered until
    /// they end.
    pub(crate) fn remove_device(&self, address: u64) -> Result<()> {
        let mut kept = self.lock();
        let place = kept
            .devices
            .iter()
            .position(|known| known.range.address == address)
            .ok_or_else(|| {
                Error::invalid(format!("no device memory is registered at {address:#x}"))
            })?;
        kept.devices.remove(place);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn overlap(a: HostRange, b: HostRange) -> bool {
    a.address < b.address + b.bytes && b.address < a.address + a.bytes
}
