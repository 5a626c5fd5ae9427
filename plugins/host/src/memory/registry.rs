//! What memory this process holds, by proof and by address.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use unisono_plugin::{MemoryView, Result};

use super::description::{Description, Nonce};
use super::shared::Shared;

static SHARED: Mutex<Option<HashMap<Nonce, Weak<Shared>>>> = Mutex::new(None);
/// By address, then by generation: a range may lie within another.
static VIEWS: RwLock<BTreeMap<(u64, u64), MemoryView>> = RwLock::new(BTreeMap::new());
/// Where memory lies that several ranks map, by address: how many bytes, and how often it is held here.
static RANGES: Mutex<BTreeMap<u64, (u64, u32)>> = Mutex::new(BTreeMap::new());
/// Counts what changed `RANGES`.
static EPOCH: AtomicU64 = AtomicU64::new(0);
static GENERATION: AtomicU64 = AtomicU64::new(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers shared memory that this process made.
pub(super) fn add(shared: &Arc<Shared>) {
    let mut map = lock(&SHARED);
    let map = map.get_or_insert_default();
    map.retain(|_, known| known.strong_count() > 0);
    map.insert(shared.description().nonce, Arc::downgrade(shared));
}

/// The memory of a description: the mapping that this process has of it, its own if it is the
/// exporter, or a new one.
pub(super) fn find_or_import(description: Description) -> Result<Arc<Shared>> {
    let known = |map: &HashMap<Nonce, Weak<Shared>>| {
        let shared = map.get(&description.nonce)?.upgrade()?;
        (*shared.description() == description).then_some(shared)
    };
    if let Some(shared) = lock(&SHARED).as_ref().and_then(known) {
        return Ok(shared);
    }
    let shared = Arc::new(Shared::import(description)?);
    add(&shared);
    Ok(shared)
}

/// The next allocation id, which no other memory of this process ever has.
pub(super) fn next_generation() -> u64 {
    GENERATION.fetch_add(1, Ordering::Relaxed)
}

/// Makes memory known to [`find`].
pub(super) fn insert(view: MemoryView) {
    let mut views = VIEWS.write().unwrap_or_else(PoisonError::into_inner);
    views.insert((view.base, view.generation), view);
}

/// Forgets it.
pub(super) fn remove(view: &MemoryView) {
    let mut views = VIEWS.write().unwrap_or_else(PoisonError::into_inner);
    views.remove(&(view.base, view.generation));
}

/// The innermost known memory around an address.
pub(super) fn find(address: u64) -> Option<MemoryView> {
    let views = VIEWS.read().unwrap_or_else(PoisonError::into_inner);
    let below = views.range(..=(address, u64::MAX)).rev();
    below
        .map(|(_, view)| *view)
        .find(|view| address - view.base < view.bytes)
}

/// Memory that other ranks can map, or gave, lies at these addresses now.
pub(super) fn add_shared(base: u64, bytes: u64) {
    let mut ranges = lock(&RANGES);
    ranges.entry(base).or_insert((bytes, 0)).1 += 1;
    EPOCH.fetch_add(1, Ordering::Release);
}

/// One holder of it is gone.
pub(super) fn remove_shared(base: u64) {
    let mut ranges = lock(&RANGES);
    if let Some((_, holders)) = ranges.get_mut(&base) {
        *holders -= 1;
        if *holders == 0 {
            ranges.remove(&base);
        }
    }
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Changes when [`shared_ranges`] may have changed. Any thread, without a lock.
#[inline]
pub(crate) fn shared_epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Where memory lies that several ranks map, by address, and the epoch of that.
pub(crate) fn shared_ranges() -> (u64, Vec<Range<u64>>) {
    let ranges = lock(&RANGES);
    let list = ranges
        .iter()
        .map(|(base, (bytes, _))| *base..*base + *bytes);
    // Under the lock: the next change has another.
    (shared_epoch(), list.collect())
}
