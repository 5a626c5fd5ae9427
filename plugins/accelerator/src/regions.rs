//! What memory this process knows of, by device address.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use unisono_plugin::MemoryView;

/// Allocation ids of the plugin's own are above all of the vendors'.
const OWN: u64 = 1 << 63;

/// Memory by address, then by generation: a range may lie within another.
#[derive(Debug)]
pub(crate) struct Regions {
    views: RwLock<BTreeMap<(u64, u64), MemoryView>>,
    generation: AtomicU64,
    /// Goes up when something goes away.
    removals: AtomicU64,
}

/// The ranges that one user found last: most commands name few.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    removals: u64,
    views: [Option<MemoryView>; 4],
    next: usize,
}

/// Set in ids of memory that no other process can reach.
const PRIVATE: u64 = 1 << 62;

/// Whether memory, by its allocation id, is known to no other process.
pub(crate) const fn is_private(generation: u64) -> bool {
    generation >= OWN && generation & PRIVATE != 0
}

/// Whether an allocation id is the plugin's own.
pub(crate) const fn is_own(generation: u64) -> bool {
    generation >= OWN
}

impl Regions {
    pub(crate) const fn new() -> Self {
        Self {
            views: RwLock::new(BTreeMap::new()),
            generation: AtomicU64::new(OWN),
            removals: AtomicU64::new(0),
        }
    }

    /// An allocation id that no other memory of this process ever has.
    pub(crate) fn next_generation(&self, is_private: bool) -> u64 {
        let id = self.generation.fetch_add(1, Ordering::Relaxed);
        if is_private { id | PRIVATE } else { id }
    }

    pub(crate) fn insert(&self, view: MemoryView) {
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        views.insert((view.base, view.generation), view);
    }

    pub(crate) fn remove(&self, view: &MemoryView) {
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        views.remove(&(view.base, view.generation));
        self.removals.fetch_add(1, Ordering::Release);
    }

    /// Goes up when something goes away.
    pub(crate) fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Whether memory is still there, by its start and allocation id.
    pub(crate) fn has(&self, base: u64, generation: u64) -> bool {
        let views = self.views.read().unwrap_or_else(PoisonError::into_inner);
        views.contains_key(&(base, generation))
    }

    /// The innermost known memory around an address.
    pub(crate) fn find(&self, address: u64) -> Option<MemoryView> {
        let views = self.views.read().unwrap_or_else(PoisonError::into_inner);
        let below = views.range(..=(address, u64::MAX)).rev();
        below
            .map(|(_, view)| *view)
            .find(|view| address - view.base < view.bytes)
    }
}

impl Recent {
    /// Memory that holds a whole range.
    pub(crate) fn find(
        &mut self,
        regions: &Regions,
        address: u64,
        bytes: u64,
    ) -> Option<MemoryView> {
        let removals = regions.removals();
        if removals != self.removals {
            *self = Self {
                removals,
                ..Self::default()
            };
        }
        let known = self.views.iter().flatten();
        let known = known.copied().find(|view| holds(view, address, bytes));
        known.or_else(|| {
            let view = regions
                .find(address)
                .filter(|view| holds(view, address, bytes))?;
            self.views[self.next % 4] = Some(view);
            self.next += 1;
            Some(view)
        })
    }
}

fn holds(view: &MemoryView, address: u64, bytes: u64) -> bool {
    let offset = address.wrapping_sub(view.base);
    offset < view.bytes && bytes <= view.bytes - offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_plugin::{DeviceId, Place};

    fn view(base: u64, bytes: u64, generation: u64) -> MemoryView {
        MemoryView {
            place: Place::Device,
            base,
            host: 0,
            bytes,
            generation,
            device: DeviceId::default(),
        }
    }

    #[test]
    fn what_went_away_is_not_remembered() {
        let (regions, mut recent) = (Regions::new(), Recent::default());
        regions.insert(view(1000, 100, 1));
        assert!(recent.find(&regions, 1050, 50).is_some());
        assert!(recent.find(&regions, 1050, 51).is_none(), "past the end");
        regions.remove(&view(1000, 100, 1));
        assert!(recent.find(&regions, 1050, 50).is_none());
        regions.insert(view(1000, 100, 2));
        assert_eq!(recent.find(&regions, 1099, 1).unwrap().generation, 2);
    }

    #[test]
    fn ids_say_whether_others_reach_the_memory() {
        let regions = Regions::new();
        let ids = [true, false, true].map(|is_private| regions.next_generation(is_private));
        assert_eq!(ids.map(is_private), [true, false, true]);
        assert!(ids.into_iter().all(is_own) && ids[0] != ids[2]);
        // A vendor's, whatever its bits are below the highest.
        assert!(!is_own(PRIVATE | 7) && !is_private(PRIVATE | 7));
    }

    #[test]
    fn the_innermost_counts() {
        let regions = Regions::new();
        regions.insert(view(1000, 1000, 1));
        regions.insert(view(1200, 10, 2));
        assert_eq!(regions.find(1205).unwrap().generation, 2);
        assert_eq!(regions.find(1300).unwrap().generation, 1);
        assert!(regions.find(2000).is_none());
    }
}
