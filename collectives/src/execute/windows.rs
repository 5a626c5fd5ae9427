//! The windows of a communicator, as this rank sees them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_hal::Memory;

use super::told::Seen;

/// All windows of one communicator.
#[derive(Default)]
pub(crate) struct Windows {
    any: AtomicBool,
    /// Peers have, or had, one of them mapped.
    reached: AtomicBool,
    all: Mutex<Vec<Arc<Mapped>>>,
    /// Windows made so far: making one is collective, so the numbers agree.
    made: AtomicU64,
}

/// One window.
pub(crate) struct Mapped {
    pub number: u64,
    /// This rank's part.
    pub memory: Memory,
    /// Where each rank's part is seen from here; empty if not all can be mapped.
    pub bases: Vec<u64>,
    /// What keeps `bases` mapped.
    #[expect(dead_code, reason = "held, and unmapped with the window")]
    pub imports: Vec<Memory>,
}

impl Windows {
    /// Whether there are any.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Whether peers may reach memory of this rank directly.
    pub(crate) fn are_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// The number of the next window.
    pub(crate) fn next_number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn add(&self, window: Arc<Mapped>) {
        if !window.bases.is_empty() {
            self.reached.store(true, Ordering::Relaxed);
        }
        self.all().push(window);
        self.any.store(true, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, window: &Arc<Mapped>) {
        self.all().retain(|w| !Arc::ptr_eq(w, window));
    }

    /// What this rank tells of memory of its own, which begins at an address: the number of a window that peers reach, or 0,
    /// and where in it.
    pub(crate) fn told(&self, address: u64) -> [u64; 2] {
        let all = self.all();
        let window = all.iter().find(|window| window.is_reached_at(address));
        window.map_or([0; 2], |w| [w.number, address - w.memory.base()])
    }

    /// A rank's windows, as seen from here.
    pub(crate) fn of(&self, rank: u32) -> Box<[Seen]> {
        let seen = |window: &Arc<Mapped>| {
            window.bases.get(rank as usize).map(|base| Seen {
                number: window.number,
                base: *base,
                bytes: window.memory.len(),
            })
        };
        self.all().iter().filter_map(seen).collect()
    }

    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<Arc<Mapped>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mapped {
    /// Whether an address of this rank's lies there, and peers reach it.
    pub(crate) fn is_reached_at(&self, address: u64) -> bool {
        let memory = &self.memory;
        !self.bases.is_empty() && (memory.base()..memory.base() + memory.len()).contains(&address)
    }
}
