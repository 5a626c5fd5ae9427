//! Host memory: made for devices, or registered with them one by one.
//!
//! A registered range has an address of its own for each device. That address is for the device alone:
//! copies name host memory by its address for the CPU.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use unisono_emulator::Capability;
use unisono_emulator::space::Kind;

use crate::answer::{Answer, FEATURE_NOT_SUPPORT, MEMORY_ALLOCATION, PARAM_INVALID, give, runtime};
use crate::context::{current, machine, synchronise};

/// `ACL_HOST_REGISTER_MAPPED`.
const MAPPED: i32 = 0;
const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug)]
struct Pinned {
    bytes: u64,
    /// Where the device finds it.
    base: u64,
    /// Made by `aclrtMallocHost`.
    own: bool,
}

/// By device and address for the CPU. What the runtime made is pinned for all, as device -1.
static PINNED: Mutex<BTreeMap<(i64, u64), Pinned>> = Mutex::new(BTreeMap::new());

fn pinned() -> MutexGuard<'static, BTreeMap<(i64, u64), Pinned>> {
    PINNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a device finds host memory that a copy names, if copies from and to it run in order.
pub fn pinned_at(device: u32, host: u64, bytes: u64) -> Option<u64> {
    let map = pinned();
    [i64::from(device), -1].into_iter().find_map(|of| {
        let (&(_, start), pinned) = map.range((of, 0)..=(of, host)).next_back()?;
        let offset = host - start;
        let inside = offset < pinned.bytes && bytes <= pinned.bytes - offset;
        inside.then_some(pinned.base + offset)
    })
}

/// Puts host memory where devices find it.
fn pin(of: i64, host: u64, bytes: u64, own: bool) -> Answer<u64> {
    let machine = machine()?;
    let mut map = pinned();
    let end = host.checked_add(bytes).ok_or(PARAM_INVALID)?;
    let before = map.range((of, 0)..(of, end)).next_back();
    if before.is_some_and(|(&(_, start), pinned)| start + pinned.bytes > host) {
        return Err(PARAM_INVALID);
    }
    let room = bytes.next_multiple_of(PAGE);
    let base = machine.space.take(room, PAGE).ok_or(MEMORY_ALLOCATION)?;
    let access = u32::try_from(of).map_or(u64::MAX, |device| 1 << device);
    machine.space.put(base, bytes, Kind::Host(host), access);
    map.insert((of, host), Pinned { bytes, base, own });
    Ok(base)
}

fn unpin(of: i64, host: u64, own: bool) -> Answer<u64> {
    let machine = machine()?;
    let mut map = pinned();
    let entry = map
        .get(&(of, host))
        .copied()
        .filter(|pinned| pinned.own == own);
    let entry = entry.ok_or(PARAM_INVALID)?;
    map.remove(&(of, host));
    machine.space.remove(entry.base);
    let room = entry.bytes.next_multiple_of(PAGE);
    machine.space.give_back(entry.base, room);
    Ok(entry.bytes)
}

/// Whether all pages of a range are mapped.
fn is_mapped(host: u64, bytes: u64) -> bool {
    let mut present = vec![0_u8; bytes.div_ceil(PAGE) as usize];
    // SAFETY: only asks about a range; the vector has a byte for each page.
    unsafe { libc::mincore(host as *mut c_void, bytes as usize, present.as_mut_ptr()) == 0 }
}

runtime! {
    fn aclrtHostRegister(host: u64, bytes: u64, kind: i32, address: *mut u64) {
        let device = current()?;
        if !machine()?.facts.has(Capability::HostRegister) {
            return Err(FEATURE_NOT_SUPPORT);
        }
        let whole = host.is_multiple_of(PAGE) && bytes > 0 && kind == MAPPED;
        if !whole || machine()?.space.is_reserved(host) || !is_mapped(host, bytes) {
            return Err(PARAM_INVALID);
        }
        synchronise("aclrtHostRegister")?;
        let base = pin(device.index.into(), host, bytes, false)?;
        // SAFETY: the caller's.
        unsafe { give(address, base) }
    }

    fn aclrtHostUnregister(host: u64) {
        let device = current()?;
        synchronise("aclrtHostUnregister")?;
        unpin(device.index.into(), host, false).map(|_| ())
    }

    fn aclrtMallocHost(host: *mut *mut c_void, bytes: usize) {
        current()?;
        if bytes == 0 || host.is_null() {
            return Err(PARAM_INVALID);
        }
        let length = (bytes as u64).next_multiple_of(PAGE) as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe { mmap_anonymous(ptr::null_mut(), length, protection, MapFlags::PRIVATE) };
        let at = at.map_err(|_| MEMORY_ALLOCATION)?;
        // SAFETY: the mapping just made; garbage, as in any new memory.
        unsafe { ptr::write_bytes(at.cast::<u8>(), 0xc5, bytes) };
        pin(-1, at as u64, bytes as u64, true)?;
        // SAFETY: the caller's.
        unsafe { give(host, at) }
    }

    fn aclrtFreeHost(host: *mut c_void) {
        synchronise("aclrtFreeHost")?;
        let bytes = unpin(-1, host as u64, true)?;
        // SAFETY: made by `aclrtMallocHost`, and now nobody's.
        let _ = unsafe { munmap(host, bytes.next_multiple_of(PAGE) as usize) };
        Ok(())
    }
}
