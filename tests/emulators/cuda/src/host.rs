//! Host memory that devices reach: registered, or made for it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use unisono_emulator::Capability;
use unisono_emulator::space::Kind;

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{current, machine, synchronise};
use crate::graph::unsafe_call;

/// Flags of registration.
const PORTABLE: u32 = 1;
const DEVICEMAP: u32 = 2;

#[derive(Clone, Copy)]
struct Pinned {
    bytes: u64,
    /// The device's address.
    base: u64,
    mapped: bool,
    /// Made by `cuMemHostAlloc`.
    own: bool,
}

/// By address for the CPU.
static PINNED: Mutex<BTreeMap<u64, Pinned>> = Mutex::new(BTreeMap::new());

fn pinned() -> std::sync::MutexGuard<'static, BTreeMap<u64, Pinned>> {
    PINNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pinned memory that holds a CPU's address: its start and the device's address of that.
pub fn pinned_at(host: u64) -> Option<(u64, u64)> {
    let map = pinned();
    let (&start, pinned) = map.range(..=host).next_back()?;
    (host - start < pinned.bytes).then_some((start, pinned.base))
}

fn pin(host: u64, bytes: u64, flags: u32, own: bool) -> Answer {
    let (machine, device) = (machine()?, current()?);
    let end = host.checked_add(bytes).ok_or(code::INVALID_VALUE)?;
    let mut map = pinned();
    if map
        .range(..end)
        .next_back()
        .is_some_and(|(&s, p)| s + p.bytes > host)
    {
        return Err(code::HOST_MEMORY_ALREADY_REGISTERED);
    }
    let base = if machine.facts.has(Capability::HostPointer) {
        host
    } else {
        let pages = bytes.next_multiple_of(4096) + 4096;
        let at = machine.space.take(pages, 4096).ok_or(code::OUT_OF_MEMORY)?;
        at + host % 4096
    };
    let access = if flags & PORTABLE != 0 {
        u64::MAX
    } else {
        1 << device.index
    };
    machine.space.put(base, bytes, Kind::Host(host), access);
    let mapped = flags & DEVICEMAP != 0 || machine.facts.has(Capability::HostPointer);
    map.insert(
        host,
        Pinned {
            bytes,
            base,
            mapped,
            own,
        },
    );
    Ok(())
}

fn unpin(host: u64, own: bool) -> Answer<u64> {
    let machine = machine()?;
    let mut map = pinned();
    let entry = map.get(&host).copied().filter(|p| p.own == own);
    let entry = entry.ok_or(code::HOST_MEMORY_NOT_REGISTERED)?;
    map.remove(&host);
    machine.space.remove(entry.base);
    if entry.base != host {
        let pages = entry.bytes.next_multiple_of(4096) + 4096;
        machine.space.give_back(entry.base - host % 4096, pages);
    }
    Ok(entry.bytes)
}

/// Whether all pages of a range are mapped, as pinning them needs.
fn is_mapped(host: u64, bytes: u64) -> bool {
    let from = host & !4095;
    let len = (host + bytes).next_multiple_of(4096) - from;
    let mut present = vec![0_u8; (len / 4096) as usize];
    // SAFETY: only asks about a range; the vector has a byte for each page.
    unsafe {
        libc::mincore(
            from as usize as *mut c_void,
            len as usize,
            present.as_mut_ptr(),
        ) == 0
    }
}

driver! {
    fn cuMemHostRegister_v2(host: *mut c_void, bytes: usize, flags: u32) {
        if host.is_null() || bytes == 0 || flags & !0xf != 0 {
            return Err(code::INVALID_VALUE);
        }
        unsafe_call()?;
        synchronise("cuMemHostRegister")?;
        if machine()?.space.is_reserved(host as u64) || !is_mapped(host as u64, bytes as u64) {
            return Err(code::INVALID_VALUE);
        }
        pin(host as u64, bytes as u64, flags, false)
    }

    fn cuMemHostUnregister(host: *mut c_void) {
        synchronise("cuMemHostUnregister")?;
        unpin(host as u64, false).map(|_| ())
    }

    fn cuMemHostGetDevicePointer_v2(address: *mut u64, host: *mut c_void, flags: u32) {
        current()?;
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        let (start, base) = pinned_at(host as u64).ok_or(code::INVALID_VALUE)?;
        if !pinned().get(&start).is_some_and(|p| p.mapped) {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's.
        unsafe { give(address, base + (host as u64 - start)) }
    }

    fn cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, flags: u32) {
        current()?;
        if bytes == 0 {
            return Err(code::INVALID_VALUE);
        }
        let length = bytes.next_multiple_of(4096);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe { mmap_anonymous(ptr::null_mut(), length, protection, MapFlags::PRIVATE) };
        let at = at.map_err(|_| code::OUT_OF_MEMORY)?;
        // SAFETY: the mapping just made; garbage, as in any new memory.
        unsafe { ptr::write_bytes(at.cast::<u8>(), 0xc5, bytes) };
        pin(at as u64, bytes as u64, flags | DEVICEMAP, true)?;
        // SAFETY: the caller's.
        unsafe { give(host, at) }
    }

    fn cuMemFreeHost(host: *mut c_void) {
        synchronise("cuMemFreeHost")?;
        let bytes = unpin(host as u64, true).map_err(|_| code::INVALID_VALUE)?;
        // SAFETY: made by `cuMemHostAlloc`, and now nobody's.
        let _ = unsafe { munmap(host, bytes.next_multiple_of(4096) as usize) };
        Ok(())
    }
}
