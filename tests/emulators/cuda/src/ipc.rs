//! Memory for other processes by handle, the older way.
//!
//! Narrower than the real one in what it forgives: a handle opened in the process that made it, or
//! memory freed while another has it open, fails where the real driver's behaviour is undefined.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, openat};
use unisono_emulator::space::{Kind, Range};
use unisono_emulator::{Backing, Capability};

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{current, machine, synchronise};
use crate::memory::plain_at;

const MAGIC: u64 = 0x6970_632d_6d65_6d21;

/// A handle of 64 bytes, and what it holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handle([u64; 8]);

static OPEN: Mutex<BTreeMap<u64, (Arc<Range>, u64)>> = Mutex::new(BTreeMap::new());

fn open(handle: &Handle) -> Answer<u64> {
    let [magic, pid, fd, bytes, ..] = handle.0;
    if magic != MAGIC {
        return Err(code::INVALID_VALUE);
    }
    if pid == u64::from(std::process::id()) {
        return Err(code::INVALID_CONTEXT);
    }
    let (machine, device) = (machine()?, current()?);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let file = openat(CWD, format!("/proc/{pid}/fd/{fd}"), flags, Mode::empty());
    let backing = file.ok().and_then(|file| Backing::open(file).ok());
    let backing = backing.filter(|b| b.bytes() == bytes && b.is_alive());
    let backing = Arc::new(backing.ok_or(code::INVALID_VALUE)?);
    let access = 1 << device.index;
    if !machine.can_map(device.index, backing.owner()) {
        return Err(code::PEER_ACCESS_UNSUPPORTED);
    }
    let taken = bytes.next_multiple_of(2 << 20);
    let base = machine
        .space
        .take(taken, 2 << 20)
        .ok_or(code::OUT_OF_MEMORY)?;
    let range = machine
        .space
        .put(base, bytes, Kind::Imported(backing), access);
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    all.insert(base, (range, taken));
    Ok(base)
}

driver! {
    fn cuIpcGetMemHandle(handle: *mut Handle, address: u64) {
        current()?;
        if !machine()?.facts.has(Capability::Ipc) {
            return Err(code::NOT_SUPPORTED);
        }
        let range = plain_at(address).ok_or(code::INVALID_VALUE)?;
        let Kind::Own(backing) = &range.kind else {
            return Err(code::INVALID_VALUE);
        };
        let fd = backing.file().as_raw_fd() as u64;
        let pid = u64::from(std::process::id());
        // SAFETY: the caller's.
        unsafe { give(handle, Handle([MAGIC, pid, fd, range.bytes, 0, 0, 0, 0])) }
    }

    fn cuIpcOpenMemHandle_v2(address: *mut u64, handle: Handle, flags: u32) {
        current()?;
        // LAZY_ENABLE_PEER_ACCESS is the only mode.
        if flags != 1 {
            return Err(code::INVALID_VALUE);
        }
        if !machine()?.facts.has(Capability::Ipc) {
            return Err(code::NOT_SUPPORTED);
        }
        let base = open(&handle)?;
        // SAFETY: the caller's.
        unsafe { give(address, base) }
    }

    fn cuIpcCloseMemHandle(address: u64) {
        synchronise("cuIpcCloseMemHandle")?;
        let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, taken) = all.remove(&address).ok_or(code::INVALID_VALUE)?;
        let space = &machine()?.space;
        space.remove(address);
        space.give_back(address, taken);
        Ok(())
    }
}
