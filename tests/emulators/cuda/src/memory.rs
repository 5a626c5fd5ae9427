//! Memory in the plain way: `cuMemAlloc` and `cuMemFree`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use unisono_emulator::space::{Kind, Range};
use unisono_emulator::{Backing, Capability, Internal, Op};

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{current, machine, synchronise};
use crate::graph::unsafe_call;
use crate::stream;

/// Memory that `cuMemFree` or `cuMemFreeAsync` frees.
struct Plain {
    range: Arc<Range>,
    /// Bytes of addresses.
    taken: u64,
    /// Of a pool: for its own device, and not for other processes.
    pooled: bool,
}

static PLAIN: Mutex<BTreeMap<u64, Plain>> = Mutex::new(BTreeMap::new());

/// What allocations are a multiple of.
const GRANULE: u64 = 512;

fn plain() -> std::sync::MutexGuard<'static, BTreeMap<u64, Plain>> {
    PLAIN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets devices access all plain memory of a device.
pub fn let_peer(owner: u32, devices: u64) {
    for Plain { range, pooled, .. } in plain().values() {
        if !pooled && range.backing().is_some_and(|b| b.owner() == owner) {
            range.set_access(devices, true);
        }
    }
}

/// The memory that holds an address, if it can be shared by handle.
pub fn plain_at(address: u64) -> Option<Arc<Range>> {
    let range = machine().ok()?.space.find(address)?;
    let all = plain();
    let plain = all.get(&range.base)?;
    (!plain.pooled).then_some(range)
}

fn alloc(bytes: u64, pooled: bool) -> Answer<u64> {
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
    let access = if pooled {
        1 << device.index
    } else {
        device.peers.load(Ordering::Acquire)
    };
    let range = machine.space.put(base, bytes, Kind::Own(backing), access);
    plain().insert(
        base,
        Plain {
            range,
            taken,
            pooled,
        },
    );
    Ok(base)
}

/// Frees what nobody uses any more.
fn release(address: u64) -> Answer {
    let Plain { range, taken, .. } = plain().remove(&address).ok_or(code::INVALID_VALUE)?;
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

driver! {
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        unsafe_call()?;
        let base = alloc(bytes as u64, false)?;
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
        unsafe_call()?;
        synchronise("cuMemFree")?;
        release(address)
    }

    /// The addresses are there at once; the real ones only in the stream's order.
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, handle: u64) {
        if !machine()?.facts.has(Capability::Pools) {
            return Err(code::NOT_SUPPORTED);
        }
        stream::of(handle)?;
        let base = alloc(bytes as u64, true)?;
        // SAFETY: the caller's.
        unsafe { give(address, base) }
    }

    fn cuMemFreeAsync(address: u64, handle: u64) {
        let stream = stream::of(handle)?;
        if !plain().contains_key(&address) {
            return Err(code::INVALID_VALUE);
        }
        let free = Internal(Arc::new(move || {
            let _ = release(address);
        }));
        stream::submit(&stream, Op::Do(free))
    }
}
