//! What lies at an address: the runtime wants to be told the direction of each copy, and says little
//! of memory itself.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use unisono_plugin::{Error, Result};

use crate::device::Opened;

/// Where memory lies, as a device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The host's, and whether copies to and from it run in a stream's order.
    Host { pinned: bool },
    /// The device's own.
    Near,
    /// Another device's, or another process's: copies between devices reach it, nothing else does.
    Far,
}

impl Place {
    /// Whether it is the host's.
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Host { .. })
    }
}

/// A known range.
#[derive(Debug)]
struct Known {
    bytes: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Host memory, and its address for each device that it is registered with.
    Host(Vec<Mapped>),
    /// Of a device of this process, by its number.
    Device(i32),
    Imported,
}

#[derive(Debug)]
struct Mapped {
    device: Arc<Opened>,
    address: u64,
}

type Map = BTreeMap<u64, Known>;

/// All devices' memory that this process knows, and the host's that was registered.
static KNOWN: RwLock<Map> = RwLock::new(BTreeMap::new());

fn read() -> RwLockReadGuard<'static, Map> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Map> {
    KNOWN.write().unwrap_or_else(PoisonError::into_inner)
}

fn find(map: &Map, address: u64) -> Option<(u64, &Known)> {
    let (base, known) = map.range(..=address).next_back()?;
    (address - base < known.bytes).then_some((*base, known))
}

/// Where an address lies for a device. What nobody told of is the device's own, by its user's word.
pub(crate) fn place(device: i32, address: u64) -> Place {
    match find(&read(), address).map(|(_, known)| &known.what) {
        Some(What::Host(mapped)) => Place::Host {
            pinned: !mapped.is_empty(),
        },
        Some(What::Device(of)) if *of != device => Place::Far,
        Some(What::Imported) => Place::Far,
        _ => Place::Near,
    }
}

/// A device's address of registered host memory.
pub(crate) fn mapped(device: i32, host: u64) -> Result<u64> {
    let map = read();
    let (base, known) = find(&map, host).ok_or_else(|| not_registered(host))?;
    let What::Host(mapped) = &known.what else {
        return Err(not_registered(host));
    };
    let of = mapped.iter().find(|of| of.device.number() == device);
    of.map(|of| of.address + (host - base))
        .ok_or_else(|| not_registered(host))
}

fn not_registered(host: u64) -> Error {
    Error::invalid(format!(
        "the device has no address of host memory at {host:#x}"
    ))
}

/// New memory of a device of this process.
pub(crate) fn add_device(base: u64, bytes: u64, device: i32) {
    let what = What::Device(device);
    write().insert(base, Known { bytes, what });
}

/// Memory of another process.
pub(crate) fn add_imported(base: u64, bytes: u64) {
    let what = What::Imported;
    write().insert(base, Known { bytes, what });
}

/// Forgets memory.
pub(crate) fn remove(base: u64) {
    write().remove(&base);
}

/// Registers host memory with a device, as far as the device can; false if part of it is known.
pub(crate) fn register(device: &Arc<Opened>, host: u64, bytes: u64) -> bool {
    {
        let mut map = write();
        let before = map.range(..host.saturating_add(bytes)).next_back();
        if before.is_some_and(|(base, known)| base + known.bytes > host) {
            return false;
        }
        let what = What::Host(Vec::new());
        map.insert(host, Known { bytes, what });
    }
    let _ = reach(device, host);
    true
}

/// Registers known host memory with one more device; true if that device reaches it.
pub(crate) fn reach(device: &Arc<Opened>, host: u64) -> Result<bool> {
    let (base, bytes) = {
        let map = read();
        let (base, known) = find(&map, host).ok_or_else(|| not_registered(host))?;
        let What::Host(mapped) = &known.what else {
            return Err(not_registered(host));
        };
        let number = device.number();
        if mapped.iter().any(|of| of.device.number() == number) {
            return Ok(true);
        }
        (base, known.bytes)
    };
    // Without the lock: it may block behind pending work.
    let Some(address) = device.register(base, bytes) else {
        return Ok(false);
    };
    let mut map = write();
    if let Some(Known {
        what: What::Host(mapped),
        ..
    }) = map.get_mut(&base)
    {
        let device = Arc::clone(device);
        mapped.push(Mapped { device, address });
    }
    Ok(true)
}

/// Ends a registration, with all devices.
pub(crate) fn unregister(host: u64) {
    let known = write().remove(&host);
    if let Some(Known {
        what: What::Host(mapped),
        ..
    }) = known
    {
        for of in mapped {
            of.device.unregister(host);
        }
    }
}
