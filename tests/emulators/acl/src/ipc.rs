//! Keys for memory: whoever knows one may import it, if the maker has named his process.
//!
//! The list of processes lies in a file beside the memory's own, which importers find by the key.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, memfd_create, openat};
use unisono_emulator::space::Kind;
use unisono_emulator::{Backing, Capability};
use unisono_emulator_cuda::memory::plain_at;

use crate::answer::{
    Answer, DRV_INTERNAL, FEATURE_NOT_SUPPORT, INVALID_DEVICE, MEMORY_ALLOCATION, PARAM_INVALID,
    give, runtime,
};
use crate::context::{current, machine, synchronise};

/// Bytes of a key, with its NUL.
const KEY: usize = 65;
/// Export: anybody may import.
const ANYBODY: u64 = 1;
/// Import: between devices.
const PEER_ACCESS: u64 = 1;
/// Processes that can be named.
const NAMED: u64 = 1024;

/// Memory that this process exported, by key.
struct Exported {
    base: u64,
    /// Process numbers, one behind the other.
    named: File,
}

/// Memory that this process imported, by key.
struct Imported {
    base: u64,
    taken: u64,
}

static EXPORTED: Mutex<BTreeMap<String, Exported>> = Mutex::new(BTreeMap::new());
static IMPORTED: Mutex<BTreeMap<String, Imported>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory with a key must be closed before it is freed.
pub fn refuse_exported(base: u64) -> Answer {
    if lock(&EXPORTED)
        .values()
        .any(|exported| exported.base == base)
    {
        return Err(PARAM_INVALID);
    }
    Ok(())
}

/// A key's text.
///
/// # Safety
/// NULL, or a NUL-terminated text.
unsafe fn text(key: *const c_char) -> Answer<String> {
    if key.is_null() {
        return Err(PARAM_INVALID);
    }
    // SAFETY: the caller's promise.
    let key = unsafe { CStr::from_ptr(key) };
    key.to_str().map(str::to_owned).map_err(|_| PARAM_INVALID)
}

/// What a key says: the maker, and the descriptors of its memory and its list.
fn parse(key: &str) -> Option<(u32, i32, i32, u64)> {
    let mut parts = key.strip_prefix("acl-")?.split('-');
    let mut next = || u64::from_str_radix(parts.next()?, 16).ok();
    let found = (next()? as u32, next()? as i32, next()? as i32, next()?);
    Some(found)
}

fn export(base: u64, bytes: u64, flags: u64) -> Answer<String> {
    let range = plain_at(base).ok_or(PARAM_INVALID)?;
    let Kind::Own(backing) = &range.kind else {
        return Err(PARAM_INVALID);
    };
    // Only whole allocations, by their first byte, and once.
    let mut all = lock(&EXPORTED);
    let twice = all.values().any(|exported| exported.base == base);
    if range.base != base || bytes > range.bytes || flags & !ANYBODY != 0 || twice {
        return Err(DRV_INTERNAL);
    }
    let named = memfd_create("acl-named", MemfdFlags::CLOEXEC).map_err(|_| MEMORY_ALLOCATION)?;
    let named = File::from(named);
    let pid = std::process::id();
    let memory = backing.file().as_raw_fd();
    let list = named.as_raw_fd();
    let key = format!("acl-{pid:x}-{memory:x}-{list:x}-{flags:x}-{:x}", range.id);
    all.insert(key.clone(), Exported { base, named });
    Ok(key)
}

fn open(pid: u32, descriptor: i32) -> Answer<OwnedFd> {
    let path = format!("/proc/{pid}/fd/{descriptor}");
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|_| DRV_INTERNAL)
}

/// Whether this process was named.
fn is_named(list: &File) -> bool {
    let own = std::process::id().to_le_bytes();
    (0..NAMED).any(|at| {
        let mut found = [0; 4];
        list.read_exact_at(&mut found, at * 4).is_ok() && found == own
    })
}

fn import(key: &str, flags: u64) -> Answer<u64> {
    let (machine, device) = (machine()?, current()?);
    let (pid, memory, list, how) = parse(key).ok_or(PARAM_INVALID)?;
    if flags & !PEER_ACCESS != 0 {
        return Err(PARAM_INVALID);
    }
    // The maker has it already; one import a process.
    if pid == std::process::id() || lock(&IMPORTED).contains_key(key) {
        return Err(DRV_INTERNAL);
    }
    if how & ANYBODY == 0 && !is_named(&File::from(open(pid, list)?)) {
        eprintln!(
            "emulator: process {} is not named by the maker of {key}",
            std::process::id()
        );
        return Err(DRV_INTERNAL);
    }
    let backing = Backing::open(open(pid, memory)?).map_err(|_| DRV_INTERNAL)?;
    if !backing.is_alive() {
        return Err(DRV_INTERNAL);
    }
    let between = backing.owner() != device.index;
    if between && flags & PEER_ACCESS == 0 || !machine.can_map(device.index, backing.owner()) {
        return Err(INVALID_DEVICE);
    }
    let bytes = backing.bytes();
    let taken = bytes.next_multiple_of(2 << 20);
    let base = machine
        .space
        .take(taken, 2 << 20)
        .ok_or(MEMORY_ALLOCATION)?;
    let access = 1 << device.index;
    machine
        .space
        .put(base, bytes, Kind::Imported(Arc::new(backing)), access);
    lock(&IMPORTED).insert(key.to_owned(), Imported { base, taken });
    Ok(base)
}

runtime! {
    fn aclrtIpcMemGetExportKey(base: u64, bytes: usize, key: *mut c_char, room: usize, flags: u64) {
        current()?;
        if !machine()?.facts.has(Capability::Ipc) {
            return Err(FEATURE_NOT_SUPPORT);
        }
        if key.is_null() || room < KEY || bytes == 0 {
            return Err(PARAM_INVALID);
        }
        let made = export(base, bytes as u64, flags)?;
        // SAFETY: the caller's: `room` bytes, of which a key takes fewer.
        unsafe {
            std::ptr::copy_nonoverlapping(made.as_ptr().cast(), key, made.len());
            give(key.add(made.len()), 0)
        }
    }

    fn aclrtIpcMemSetImportPid(key: *const c_char, processes: *mut i32, count: usize) {
        // SAFETY: the caller's.
        let key = unsafe { text(key) }?;
        let all = lock(&EXPORTED);
        let list = &all.get(&key).ok_or(PARAM_INVALID)?.named;
        if processes.is_null() && count > 0 {
            return Err(PARAM_INVALID);
        }
        for index in 0..count {
            // SAFETY: the caller says that there are `count`.
            let process = unsafe { *processes.add(index) };
            let end = list.metadata().map_err(|_| DRV_INTERNAL)?.len();
            if end >= NAMED * 4 {
                return Err(DRV_INTERNAL);
            }
            list.write_all_at(&process.to_le_bytes(), end).map_err(|_| DRV_INTERNAL)?;
        }
        Ok(())
    }

    fn aclrtIpcMemImportByKey(address: *mut u64, key: *const c_char, flags: u64) {
        if !machine()?.facts.has(Capability::Ipc) {
            return Err(FEATURE_NOT_SUPPORT);
        }
        // SAFETY: the caller's.
        let key = unsafe { text(key) }?;
        let base = import(&key, flags)?;
        // SAFETY: the caller's.
        unsafe { give(address, base) }
    }

    /// By the maker or by an importer.
    fn aclrtIpcMemClose(key: *const c_char) {
        // SAFETY: the caller's.
        let key = unsafe { text(key) }?;
        if lock(&EXPORTED).remove(&key).is_some() {
            return Ok(());
        }
        synchronise("aclrtIpcMemClose")?;
        let Imported { base, taken } = lock(&IMPORTED).remove(&key).ok_or(PARAM_INVALID)?;
        let space = &machine()?.space;
        space.remove(base);
        space.give_back(base, taken);
        Ok(())
    }
}
