//! Progress is process-wide: whoever waits does the work.
//!
//! A blocking call drives its own lane and, each time that it would yield or sleep, every other
//! lane with work. When nobody waits, one thread does: started lazily, all signals blocked, asleep
//! unless something is ready. That thread also turns the control channels and watches deadlines.

mod lag;
mod parker;
mod patience;
mod sleep;
mod spin;
mod thread;
mod wait;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use lag::Lag;
pub(crate) use parker::Parker;
pub(crate) use patience::{Alongside, Patience};
pub(crate) use spin::Policy;
pub(crate) use thread::Service;
pub(crate) use wait::Watch;

use crate::execute::{Lane, State};

/// The process's progress.
pub(crate) struct Progress {
    /// Lanes with work that nobody waits for.
    lanes: Mutex<Vec<Arc<Lane>>>,
    services: Mutex<Vec<Arc<dyn Service>>>,
    /// Blocking calls now waiting; while there are any, the thread leaves the lanes to them.
    drivers: AtomicUsize,
    thread: OnceLock<Arc<Parker>>,
}

/// The one progress of this process.
pub(crate) fn progress() -> &'static Progress {
    static PROGRESS: OnceLock<Progress> = OnceLock::new();
    PROGRESS.get_or_init(|| Progress {
        lanes: Mutex::new(Vec::new()),
        services: Mutex::new(Vec::new()),
        drivers: AtomicUsize::new(0),
        thread: OnceLock::new(),
    })
}

impl Progress {
    /// Puts a lane on the list until it is idle.
    pub(crate) fn activate(&self, lane: &Arc<Lane>) {
        let mut lanes = lock(&self.lanes);
        if !lane.active.swap(true, Ordering::Relaxed) {
            lanes.push(lane.clone());
        }
        drop(lanes);
        self.kick();
    }

    /// Adds a control channel for the thread to turn.
    pub(crate) fn add_service(&self, service: Arc<dyn Service>) {
        lock(&self.services).push(service);
        self.kick();
    }

    pub(crate) fn remove_service(&self, service: &Arc<dyn Service>) {
        lock(&self.services).retain(|s| !Arc::ptr_eq(s, service));
    }

    /// Drives every lane on the list that nobody else drives; true if anything moved.
    pub(crate) fn drive(&self) -> bool {
        let mut moved = false;
        for lane in self.active() {
            if let Some(mut state) = lane.try_lock() {
                moved |= lane.advance(&mut state);
                if !state.is_busy() {
                    self.watch_answers(&lane, &state);
                    self.deactivate(&lane);
                }
            }
        }
        moved
    }

    /// Whether any lane has work that nobody waits for.
    pub(super) fn has_work(&self) -> bool {
        !lock(&self.lanes).is_empty()
    }

    /// After calls of a lane, with its lock: the thread looks for answers that they held back.
    pub(crate) fn watch_answers(&self, lane: &Lane, state: &State) {
        if lane.watch_answers(state) {
            self.kick();
        }
    }

    /// Wakes the thread, starting it if need be.
    pub(crate) fn kick(&self) {
        self.thread.get_or_init(thread::start).unpark();
    }

    fn active(&self) -> Vec<Arc<Lane>> {
        let lanes = lock(&self.lanes);
        if lanes.is_empty() {
            return Vec::new();
        }
        lanes.clone()
    }

    /// Called with the lane's state locked and idle, so no op can be added meanwhile.
    fn deactivate(&self, lane: &Arc<Lane>) {
        let mut lanes = lock(&self.lanes);
        lane.active.store(false, Ordering::Relaxed);
        lanes.retain(|l| !Arc::ptr_eq(l, lane));
    }

    fn services(&self) -> Vec<Arc<dyn Service>> {
        lock(&self.services).clone()
    }

    fn enter(&self) -> Driver<'_> {
        self.drivers.fetch_add(1, Ordering::AcqRel);
        Driver(self)
    }
}

/// A blocking call that waits; when the last one leaves, the thread takes over what is left.
struct Driver<'a>(&'a Progress);

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        if self.0.drivers.fetch_sub(1, Ordering::AcqRel) == 1 && !lock(&self.0.lanes).is_empty() {
            self.0.kick();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
