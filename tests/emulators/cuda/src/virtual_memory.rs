//! Memory made apart from its addresses: `cuMemCreate`, `cuMemMap` and what belongs to them.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::fd::{AsFd, IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use unisono_emulator::space::{Kind, Range};
use unisono_emulator::{Backing, Capability};

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{current, device, machine};
use crate::export;
use crate::handle::Table;

/// What sizes and addresses are a multiple of.
const GRANULE: u64 = 2 << 20;
/// Handle type: POSIX file descriptor.
const DESCRIPTOR: u32 = 1;

/// `CUmemAllocationProp`.
#[repr(C)]
pub struct Properties {
    kind: u32,
    handles: u32,
    location_kind: u32,
    location: i32,
    windows: *mut c_void,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
pub struct Access {
    location_kind: u32,
    location: i32,
    flags: u32,
}

/// Memory that a handle or a mapping keeps.
pub struct Physical {
    backing: Arc<Backing>,
    exportable: bool,
    own: bool,
}

impl Drop for Physical {
    fn drop(&mut self) {
        if let (true, Ok(machine)) = (self.own, machine())
            && let Some(device) = machine.device(self.backing.owner())
        {
            device.release(self.backing.bytes());
        }
    }
}

struct Mapped {
    range: Arc<Range>,
    /// Keeps the memory, whatever becomes of its handle.
    _physical: Arc<Physical>,
}

static PHYSICAL: Table<Physical> = Table::new();
static RESERVED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());
static MAPPED: Mutex<BTreeMap<u64, Mapped>> = Mutex::new(BTreeMap::new());

fn reserved() -> std::sync::MutexGuard<'static, BTreeMap<u64, u64>> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mapped() -> std::sync::MutexGuard<'static, BTreeMap<u64, Mapped>> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn supported() -> Answer {
    if machine()?.facts.has(Capability::VirtualMemory) {
        Ok(())
    } else {
        Err(code::NOT_SUPPORTED)
    }
}

fn properties<'a>(at: *const Properties) -> Answer<&'a Properties> {
    // SAFETY: NULL or the caller's.
    let properties = unsafe { at.as_ref() }.ok_or(code::INVALID_VALUE)?;
    // Pinned memory on a device.
    if properties.kind != 1 || properties.location_kind != 1 || !properties.windows.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let _ = properties.flags;
    Ok(properties)
}

fn whole(n: u64) -> Answer<u64> {
    if n > 0 && n.is_multiple_of(GRANULE) {
        Ok(n)
    } else {
        Err(code::INVALID_VALUE)
    }
}

driver! {
    fn cuMemGetAllocationGranularity(bytes: *mut usize, of: *const Properties, _option: u32) {
        supported()?;
        properties(of)?;
        // SAFETY: the caller's.
        unsafe { give(bytes, GRANULE as usize) }
    }

    fn cuMemAddressReserve(address: *mut u64, bytes: usize, align: usize, fixed: u64, flags: u64) {
        supported()?;
        let bytes = whole(bytes as u64)?;
        let align = (align as u64).max(GRANULE);
        if fixed != 0 || flags != 0 || !align.is_power_of_two() {
            return Err(code::INVALID_VALUE);
        }
        let at = machine()?.space.take(bytes, align).ok_or(code::OUT_OF_MEMORY)?;
        reserved().insert(at, bytes);
        // SAFETY: the caller's.
        unsafe { give(address, at) }
    }

    fn cuMemAddressFree(address: u64, bytes: usize) {
        let mut all = reserved();
        let still = mapped().range(address..address + bytes as u64).next().is_some();
        if all.get(&address) != Some(&(bytes as u64)) || still {
            return Err(code::INVALID_VALUE);
        }
        all.remove(&address);
        machine()?.space.give_back(address, bytes as u64);
        Ok(())
    }

    fn cuMemCreate(handle: *mut u64, bytes: usize, of: *const Properties, flags: u64) {
        supported()?;
        let (of, bytes) = (properties(of)?, whole(bytes as u64)?);
        let device = device(of.location)?;
        if flags != 0 || of.handles & !DESCRIPTOR != 0 {
            return Err(code::INVALID_VALUE);
        }
        if !device.reserve(bytes, machine()?.facts.memory_bytes) {
            return Err(code::OUT_OF_MEMORY);
        }
        let backing = Backing::new(device.index, bytes).map_err(|_| {
            device.release(bytes);
            code::OUT_OF_MEMORY
        })?;
        let made = PHYSICAL.add(Arc::new(Physical {
            backing: Arc::new(backing),
            exportable: of.handles & DESCRIPTOR != 0,
            own: true,
        }))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn cuMemRelease(handle: u64) {
        machine()?;
        PHYSICAL.remove(handle).map(|_| ())
    }

    fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) {
        let (physical, bytes) = (PHYSICAL.get(handle)?, whole(bytes as u64)?);
        let all = reserved();
        let room = all.range(..=address).next_back();
        let inside = room.is_some_and(|(at, length)| address + bytes <= at + length);
        let fits = offset == 0 && flags == 0 && bytes == physical.backing.bytes();
        if !inside || !fits || !address.is_multiple_of(GRANULE) {
            return Err(code::INVALID_VALUE);
        }
        let mut mapped = mapped();
        if mapped.range(..address + bytes).next_back().is_some_and(|(a, m)| a + m.range.bytes > address) {
            return Err(code::INVALID_VALUE);
        }
        let backing = Arc::clone(&physical.backing);
        let kind = if physical.own { Kind::Own(backing) } else { Kind::Imported(backing) };
        // Nobody may access it before `cuMemSetAccess`.
        let range = machine()?.space.put(address, bytes, kind, 0);
        mapped.insert(address, Mapped { range, _physical: physical });
        Ok(())
    }

    fn cuMemUnmap(address: u64, bytes: usize) {
        let mut mapped = mapped();
        let known = mapped.get(&address).is_some_and(|m| m.range.bytes == bytes as u64);
        if !known {
            return Err(code::INVALID_VALUE);
        }
        machine()?.space.remove(address);
        mapped.remove(&address);
        Ok(())
    }

    fn cuMemSetAccess(address: u64, bytes: usize, wanted: *const Access, count: usize) {
        let mapped = mapped();
        let known = mapped.get(&address).filter(|m| m.range.bytes == bytes as u64);
        let known = known.ok_or(code::INVALID_VALUE)?;
        let owner = known.range.backing().map(|backing| backing.owner());
        for index in 0..count {
            // SAFETY: the caller says that there are `count`.
            let wanted = unsafe { &*wanted.add(index) };
            let device = device(wanted.location)?;
            if wanted.location_kind != 1 || ![0, 1, 3].contains(&wanted.flags) {
                return Err(code::INVALID_VALUE);
            }
            let machine = machine()?;
            if owner.is_none_or(|owner| !machine.can_map(device.index, owner)) {
                return Err(code::PEER_ACCESS_UNSUPPORTED);
            }
            known.range.set_access(1 << device.index, wanted.flags == 3);
        }
        Ok(())
    }

    fn cuMemExportToShareableHandle(to: *mut c_void, handle: u64, kind: u32, flags: u64) {
        supported()?;
        let physical = PHYSICAL.get(handle)?;
        if kind != DESCRIPTOR || flags != 0 || !physical.exportable || !physical.own {
            return Err(code::INVALID_VALUE);
        }
        let file = export::wrap(physical.backing.file()).map_err(|_| code::OUT_OF_MEMORY)?;
        // SAFETY: the caller's: room for an int.
        unsafe { give(to.cast::<RawFd>(), file.into_raw_fd()) }
    }

    fn cuMemImportFromShareableHandle(handle: *mut u64, from: *mut c_void, kind: u32) {
        supported()?;
        current()?;
        if kind != DESCRIPTOR {
            return Err(code::INVALID_VALUE);
        }
        let file = RawFd::try_from(from as isize).map_err(|_| code::INVALID_VALUE)?;
        let backing = export::unwrap(file).and_then(Backing::open);
        let made = PHYSICAL.add(Arc::new(Physical {
            backing: Arc::new(backing.map_err(|_| code::INVALID_VALUE)?),
            exportable: false,
            own: false,
        }))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    /// As a dma-buf: a descriptor of the memory's own file.
    fn cuMemGetHandleForAddressRange(to: *mut c_void, address: u64, bytes: usize, kind: u32, _flags: u64) {
        let machine = machine()?;
        if !machine.facts.has(Capability::Dmabuf) || kind != 1 {
            return Err(code::NOT_SUPPORTED);
        }
        let range = machine.space.find(address).ok_or(code::INVALID_VALUE)?;
        // The descriptor is of a whole file: what begins within it cannot be told.
        let first = address == range.base;
        let whole = first && address.is_multiple_of(4096) && (bytes as u64).is_multiple_of(4096);
        let backing = range.backing().filter(|_| whole && bytes > 0);
        let file = backing.ok_or(code::INVALID_VALUE)?.file().as_fd().try_clone_to_owned();
        let file = file.map_err(|_| code::OUT_OF_MEMORY)?;
        // SAFETY: the caller's: room for an int.
        unsafe { give(to.cast::<RawFd>(), file.into_raw_fd()) }
    }

    fn cuFlushGPUDirectRDMAWrites(target: u32, scope: u32) {
        current()?;
        if !machine()?.facts.has(Capability::Flush) {
            return Err(code::NOT_SUPPORTED);
        }
        if target != 0 || ![100, 200].contains(&scope) {
            return Err(code::INVALID_VALUE);
        }
        Ok(())
    }
}
