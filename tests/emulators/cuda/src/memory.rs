//! Memory in the plain way: `cuMemAlloc` and `cuMemFree`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use unisono_emulator::Backing;
use unisono_emulator::space::{Kind, Range};

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{current, machine, synchronise};

/// Memory that `cuMemFree` frees, by its address; and addresses that it takes.
pub static PLAIN: Mutex<BTreeMap<u64, (Arc<Range>, u64)>> = Mutex::new(BTreeMap::new());

/// What allocations are a multiple of.
const GRANULE: u64 = 512;

fn plain() -> std::sync::MutexGuard<'static, BTreeMap<u64, (Arc<Range>, u64)>> {
    PLAIN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets devices access all plain memory of a device.
pub fn let_peer(owner: u32, devices: u64) {
    for (range, _) in plain().values() {
        if range.backing().is_some_and(|b| b.owner() == owner) {
            range.set_access(devices, true);
        }
    }
}

/// The plain memory that holds an address.
pub fn plain_at(address: u64) -> Option<Arc<Range>> {
    let range = machine().ok()?.space.find(address)?;
    plain().contains_key(&range.base).then_some(range)
}

pub fn alloc(bytes: u64) -> Answer<u64> {
    let (machine, device) = (machine()?, current()?);
    if bytes == 0 {
        return Err(code::INVALID_VALUE);
    }
    let taken = bytes
        .checked_next_multiple_of(GRANULE)
        .filter(|taken| device.reserve(*taken, machine.facts.memory_bytes))
        .ok_or(code::OUT_OF_MEMORY)?;
    let made = (|| {
        let backing = Backing::new(device.index, bytes).ok()?;
        Some((machine.space.take(taken, GRANULE)?, Arc::new(backing)))
    })();
    let Some((base, backing)) = made else {
        device.release(taken);
        return Err(code::OUT_OF_MEMORY);
    };
    let access = device.peers.load(Ordering::Acquire);
    let range = machine.space.put(base, bytes, Kind::Own(backing), access);
    plain().insert(base, (range, taken));
    Ok(base)
}

driver! {
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        let base = alloc(bytes as u64)?;
        // SAFETY: the caller's.
        unsafe { give(address, base) }
    }

    fn cuMemFree_v2(address: u64) {
        if address == 0 {
            return Ok(());
        }
        if !plain().contains_key(&address) {
            return Err(code::INVALID_VALUE);
        }
        synchronise("cuMemFree")?;
        let (range, taken) = plain().remove(&address).ok_or(code::INVALID_VALUE)?;
        let machine = machine()?;
        machine.space.remove(address);
        if let Some(backing) = range.backing() {
            backing.kill();
            if let Some(device) = machine.device(backing.owner()) {
                device.release(taken);
            }
        }
        machine.space.give_back(address, taken);
        Ok(())
    }
}
