//! Memory that was freed, until nothing is under way on its device.
//!
//! Runtimes free memory, and end registrations, behind all that a device has under way. That may be a
//! call of another rank in this process which waits for the very thread that frees. So it is kept until
//! the device's streams are quiet, and freed while none is given anything. A stream from which a program
//! has recorded a graph is never quiet: a replay may be waiting for a peer, and nobody says when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use crate::fork::Unforked;
use crate::mapping::Mapping;
use crate::state::State;
use crate::stream::{Made, Shared};
use crate::{Runtime, fork};

/// What is to be freed.
pub(crate) enum Freed<R: Runtime> {
    /// The device's memory.
    Block(Unforked<R::Block>),
    /// Host memory that is registered.
    Registered(Mapping),
    /// A graph of the runtime's.
    Graph(Made<R>),
}

/// What is to be freed of one device, and the streams that keep it from that.
pub(crate) struct FreedMemory<R: Runtime> {
    any: AtomicBool,
    waiting: Mutex<Vec<Freed<R>>>,
    streams: Mutex<Vec<Weak<Shared>>>,
    /// Read while a stream is given something, written while memory is freed.
    giving: RwLock<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Runtime> FreedMemory<R> {
    pub(crate) fn new() -> Self {
        Self {
            any: AtomicBool::new(false),
            waiting: Mutex::default(),
            streams: Mutex::default(),
            giving: RwLock::default(),
        }
    }

    /// A new stream, which may be at work on any memory.
    pub(crate) fn watch(&self, stream: Weak<Shared>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(stream);
    }

    /// While this is held, nothing is freed.
    pub(crate) fn give(&self) -> RwLockReadGuard<'_, ()> {
        self.giving.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// While this is held, no stream is given anything by others, and none has anything under way; none
    /// where that is not so.
    pub(crate) fn alone(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        let nobody_gives = self.giving.try_write().ok()?;
        let quiet = !self.is_any_under_way();
        quiet.then_some(nobody_gives)
    }

    fn is_any_under_way(&self) -> bool {
        let streams = lock(&self.streams);
        let mut living = streams.iter().filter_map(Weak::upgrade);
        living.any(|stream| stream.is_under_way())
    }

    /// Frees something, now or later.
    pub(crate) fn add(&self, freed: Freed<R>, device: &State<R>) {
        if fork::is_child() {
            // It is the parent's.
            std::mem::forget(freed);
            return;
        }
        let mut waiting = lock(&self.waiting);
        waiting.push(freed);
        // With the lock held: who takes all that waits must not deny what is added behind it.
        self.any.store(true, Ordering::Release);
        drop(waiting);
        self.sweep(device);
    }

    /// Frees all that waits for it, if no stream has anything under way.
    pub(crate) fn sweep(&self, device: &State<R>) {
        if !self.any.load(Ordering::Acquire) || fork::is_child() {
            return;
        }
        let _nobody_gives = self.giving.write().unwrap_or_else(PoisonError::into_inner);
        if !self.is_any_under_way() {
            self.free_all(device);
        }
    }

    /// Frees all, whatever is under way.
    pub(crate) fn free_all(&self, device: &State<R>) {
        let mut waiting = lock(&self.waiting);
        let all = std::mem::take(&mut *waiting);
        self.any.store(false, Ordering::Release);
        drop(waiting);
        for freed in all {
            match freed {
                Freed::Block(block) => drop(block),
                Freed::Registered(mapping) => device.runtime.unregister(mapping.address()),
                Freed::Graph(made) => device.runtime.destroy_graph(made.graph),
            }
        }
    }
}
