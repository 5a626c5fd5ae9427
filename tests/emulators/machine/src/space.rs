//! Device addresses: one space for all devices of a process, in which the CPU can touch nothing.
//!
//! The space is one reservation without access rights, made once. A range of it that holds memory
//! knows where its bytes really lie, which only emulated devices look up ([`Space::resolve`]).
#![allow(unsafe_code, reason = "reserves addresses, and hands out secret ones")]

use std::collections::BTreeMap;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::{Backing, Place};

/// Bytes of address space: nothing but page tables' room.
const RESERVED: u64 = 1 << 42;

/// Addresses, and what lies there.
#[derive(Debug)]
pub struct Space {
    start: u64,
    free: Mutex<BTreeMap<u64, u64>>,
    ranges: RwLock<BTreeMap<u64, Arc<Range>>>,
    next: AtomicU64,
}

/// What memory a range is of.
#[derive(Debug)]
pub enum Kind {
    /// Of a device, made by this process.
    Own(Arc<Backing>),
    /// Of a device, made by another process.
    Imported(Arc<Backing>),
    /// Of the host, registered or made for devices. The address for the CPU.
    Host(u64),
}

/// A range of device addresses with memory behind it.
#[derive(Debug)]
pub struct Range {
    /// First device address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// What is behind.
    pub kind: Kind,
    /// The vendor's allocation id.
    pub id: u64,
    /// Devices that may access it: bits.
    access: AtomicU64,
}

/// Device memory, for the CPU to work on as the device would.
#[derive(Debug)]
pub struct Resolved {
    /// Where the bytes lie.
    pub at: *mut u8,
    /// Whose they are.
    pub place: Place,
    /// Keeps them there.
    pub range: Arc<Range>,
}

/// No memory there, or not for this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Space {
    /// A new reservation.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let length = RESERVED as usize;
        // SAFETY: a new mapping where the kernel finds room; nobody can touch it.
        let at = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), flags) }?;
        let start = (at as u64).next_multiple_of(2 << 20);
        Ok(Self {
            start,
            free: Mutex::new(BTreeMap::from([(start, RESERVED - (2 << 20))])),
            ranges: RwLock::default(),
            next: AtomicU64::new(1),
        })
    }

    /// Takes addresses; the lowest that are free, so that what was freed is soon used again.
    #[must_use]
    pub fn take(&self, bytes: u64, align: u64) -> Option<u64> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().find_map(|(&from, &length)| {
            let at = from.next_multiple_of(align);
            let end = at.checked_add(bytes)?;
            (end <= from + length).then_some((from, length, at, end))
        });
        let (from, length, at, end) = found?;
        free.remove(&from);
        if at > from {
            free.insert(from, at - from);
        }
        if from + length > end {
            free.insert(end, from + length - end);
        }
        Some(at)
    }

    /// Gives addresses back.
    pub fn give_back(&self, at: u64, bytes: u64) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut from, mut end) = (at, at + bytes);
        if let Some((&before, &length)) = free.range(..at).next_back()
            && before + length == at
        {
            free.remove(&before);
            from = before;
        }
        if let Some(&length) = free.get(&end) {
            free.remove(&end);
            end += length;
        }
        free.insert(from, end - from);
    }

    /// Puts memory behind addresses. `access` says for which devices.
    pub fn put(&self, base: u64, bytes: u64, kind: Kind, access: u64) -> Arc<Range> {
        let range = Arc::new(Range {
            base,
            bytes,
            kind,
            id: self.next.fetch_add(1, Ordering::Relaxed),
            access: AtomicU64::new(access),
        });
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.insert(base, Arc::clone(&range));
        range
    }

    /// Takes memory away that begins at an address.
    pub fn remove(&self, base: u64) -> Option<Arc<Range>> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.remove(&base)
    }

    /// The memory that holds an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Arc<Range>> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (_, range) = ranges.range(..=address).next_back()?;
        (address - range.base < range.bytes).then(|| Arc::clone(range))
    }

    /// Whether an address is a device address, with memory behind it or not.
    #[must_use]
    pub const fn is_reserved(&self, address: u64) -> bool {
        address >= self.start && address - self.start < RESERVED - (2 << 20)
    }

    /// What a device finds at an address.
    ///
    /// # Errors
    /// Where it would fault.
    pub fn resolve(&self, device: u32, address: u64, bytes: u64) -> Result<Resolved, Illegal> {
        let illegal = Illegal { address, bytes };
        let range = self.find(address).ok_or(illegal)?;
        range.resolve(device, address, bytes)
    }
}

impl Range {
    /// What a device finds at an address of this range.
    ///
    /// # Errors
    /// Where it would fault.
    pub fn resolve(
        self: &Arc<Self>,
        device: u32,
        address: u64,
        bytes: u64,
    ) -> Result<Resolved, Illegal> {
        let illegal = Illegal { address, bytes };
        let offset = address.checked_sub(self.base).ok_or(illegal)?;
        let inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.bytes);
        if !inside || !self.is_accessible(device) {
            return Err(illegal);
        }
        let (at, place) = match &self.kind {
            Kind::Own(backing) | Kind::Imported(backing) => {
                if !backing.is_alive() {
                    return Err(illegal);
                }
                (backing.at(), Place::Device(backing.owner()))
            }
            Kind::Host(host) => (*host as usize as *mut u8, Place::Host),
        };
        Ok(Resolved {
            at: at.wrapping_add(offset as usize),
            place,
            range: Arc::clone(self),
        })
    }

    /// Whether a device may access it.
    #[must_use]
    pub fn is_accessible(&self, device: u32) -> bool {
        self.access.load(Ordering::Acquire) & 1 << device != 0
    }

    /// Lets devices access it, or not.
    pub fn set_access(&self, devices: u64, allowed: bool) {
        if allowed {
            self.access.fetch_or(devices, Ordering::AcqRel);
        } else {
            self.access.fetch_and(!devices, Ordering::AcqRel);
        }
    }

    /// The memory's own device, if it is not the host's.
    #[must_use]
    pub fn backing(&self) -> Option<&Arc<Backing>> {
        match &self.kind {
            Kind::Own(backing) | Kind::Imported(backing) => Some(backing),
            Kind::Host(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_used_again_and_merge() {
        let space = Space::new().unwrap();
        let a = space.take(1 << 20, 512).unwrap();
        let b = space.take(1 << 20, 512).unwrap();
        assert_eq!(b, a + (1 << 20));
        space.give_back(a, 1 << 20);
        assert_eq!(space.take(4096, 512), Some(a));
        space.give_back(a, 4096);
        space.give_back(b, 1 << 20);
        assert_eq!(space.free.lock().unwrap().len(), 1);
        assert_eq!(space.take(RESERVED, 512), None);
    }

    #[test]
    fn only_what_is_there_and_allowed_is_found() {
        let space = Space::new().unwrap();
        let at = space.take(8192, 512).unwrap();
        let backing = Arc::new(Backing::new(3, 8000).unwrap());
        let range = space.put(at, 8000, Kind::Own(backing.clone()), 1 << 3);
        let found = space.resolve(3, at + 100, 7900).unwrap();
        assert_eq!(found.at, backing.at().wrapping_add(100));
        assert_eq!(found.place, Place::Device(3));
        assert!(space.resolve(3, at + 100, 7901).is_err(), "past the end");
        assert!(space.resolve(2, at, 1).is_err(), "another device");
        range.set_access(1 << 2, true);
        assert!(space.resolve(2, at, 1).is_ok());
        backing.kill();
        assert!(space.resolve(3, at, 1).is_err(), "freed by its maker");
        space.remove(at);
        assert!(space.find(at).is_none());
        assert!(space.is_reserved(at) && !space.is_reserved(&raw const space as u64));
    }
}
