//! The host's part in streams: a thread that does what a device's streams cannot do by themselves.
//!
//! Whoever polls a stream does it, too, so that a number is stored or a wait opened at once where
//! somebody looks; the thread is for the time when nobody does. Only the thread does what takes long.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use unisono_plugin::{Error, Result, Status, spawn_quiet};
use unisono_plugin_accelerator::MemoryOperation;

use crate::api::{Api, Handle};
use crate::context::Context;
use crate::error::check;
use crate::lane::{Lane, Raw};
use crate::work::{Work, Worker};

/// Between looks: at first, and at most.
const FIRST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(1);

/// One device's.
#[derive(Debug)]
pub(crate) struct Attendant {
    context: Arc<Context>,
    /// The stream that opens notifies: nothing on it ever waits.
    opener: Raw,
    worker: Worker,
    lanes: RwLock<HashMap<usize, Arc<Lane>>>,
    /// Whether a lane has something to do.
    busy: AtomicBool,
    asleep: Mutex<()>,
    bell: Condvar,
    stopped: AtomicBool,
    /// What went wrong: nothing that it does can be left out, so the device is of no use any more.
    broken: OnceLock<Error>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Attendant {
    /// The attendant of a device. Its thread starts when there is something to do.
    pub(crate) fn start(
        api: &'static Api,
        context: Arc<Context>,
        device: i32,
    ) -> Result<Arc<Self>> {
        let stream = || {
            let mut stream: Handle = ptr::null_mut();
            // SAFETY: writes a handle.
            check("aclrtCreateStreamWithConfig", unsafe {
                (api.stream_create)(&raw mut stream, 0, 0)
            })?;
            Ok(Raw::of(stream))
        };
        let (opener, working) = context.with(|_| Ok((stream()?, stream()?)))?;
        Ok(Arc::new(Self {
            context,
            opener,
            worker: Worker::new(api, working, device),
            lanes: RwLock::default(),
            busy: AtomicBool::new(false),
            asleep: Mutex::default(),
            bell: Condvar::new(),
            stopped: AtomicBool::new(false),
            broken: OnceLock::new(),
            thread: Mutex::default(),
        }))
    }

    /// What went wrong, if something did.
    pub(crate) fn health(&self) -> Result<()> {
        self.broken.get().cloned().map_or(Ok(()), Err)
    }

    fn lane(&self, stream: Handle) -> Result<Arc<Lane>> {
        let key = stream as usize;
        if let Some(lane) = self.known(key) {
            return Ok(lane);
        }
        let lane = self.context.with(|api| Lane::new(api, stream))?;
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(lanes.entry(key).or_insert(Arc::new(lane))))
    }

    fn known(&self, key: usize) -> Option<Arc<Lane>> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.get(&key).cloned()
    }

    /// Does a stream's writes and waits for it.
    pub(crate) fn operate(
        self: &Arc<Self>,
        stream: Handle,
        operations: &[MemoryOperation],
    ) -> Result<()> {
        self.health()?;
        self.wake()?;
        let lane = self.lane(stream)?;
        self.context.with(|api| lane.operate(api, operations))?;
        self.ring();
        Ok(())
    }

    /// Does something in a stream's order.
    pub(crate) fn work(self: &Arc<Self>, stream: Handle, work: Work) -> Result<()> {
        self.health()?;
        self.wake()?;
        let lane = self.lane(stream)?;
        self.context.with(|api| lane.work(api, work))?;
        self.ring();
        Ok(())
    }

    /// Whether nothing is left to be done for a stream.
    pub(crate) fn is_idle(&self, stream: Handle) -> bool {
        self.known(stream as usize)
            .is_none_or(|lane| lane.is_idle())
    }

    /// Forgets a stream that is about to be destroyed.
    pub(crate) fn forget(&self, stream: Handle) {
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.remove(&(stream as usize));
        drop(lanes);
        if let Some(lane) = lane {
            self.close(&lane);
        }
    }

    fn close(&self, lane: &Lane) {
        let closed = self.context.with(|api| {
            lane.close(api);
            Ok(())
        });
        // A device that is lost has nothing to give back.
        drop(closed);
    }

    /// Sees to it that the thread runs, before a stream is given what waits for it.
    fn wake(self: &Arc<Self>) -> Result<()> {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let this = Arc::clone(self);
            *thread = Some(spawn_quiet("unisono-attend", move || this.attend())?);
        }
        Ok(())
    }

    /// There is something to do.
    fn ring(&self) {
        if self.busy.swap(true, Ordering::AcqRel) {
            return;
        }
        // Under the lock, so that a thread between its look and its sleep hears it.
        drop(lock(&self.asleep));
        self.bell.notify_one();
    }

    /// Does what can be done at once.
    pub(crate) fn progress(&self) {
        if self.busy.load(Ordering::Acquire) && self.broken.get().is_none() {
            let _ = self.round(false);
        }
    }

    /// One look at all lanes: whether something moved, and whether something is left.
    fn round(&self, take_work: bool) -> (bool, bool) {
        let lanes: Vec<Arc<Lane>> = {
            let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
            lanes.values().cloned().collect()
        };
        let (mut moved, mut left) = (false, false);
        let opener = self.opener.handle();
        let looked = self.context.with(|api| {
            for lane in lanes {
                let look = lane.look(api, opener, take_work)?;
                moved |= look.moved;
                left |= look.left;
                if let Some(work) = look.due {
                    self.worker.run(&work)?;
                    lane.done(api, opener)?;
                }
            }
            Ok(())
        });
        if let Err(error) = looked {
            let what = format!("the host's part in a stream failed: {}", error.message());
            let error = Error::new(Status::Device, what).with_vendor_code(error.vendor_code());
            let _ = self.broken.set(error);
        }
        (moved, left)
    }

    fn attend(&self) {
        let mut pause = FIRST;
        while !self.stopped.load(Ordering::Acquire) {
            // Taken before the look: what comes during it is seen by the next.
            self.busy.store(false, Ordering::Release);
            let (moved, left) = self.round(true);
            if self.broken.get().is_some() {
                return;
            }
            if left {
                self.busy.store(true, Ordering::Release);
            }
            let asleep = lock(&self.asleep);
            if moved {
                pause = FIRST;
                continue;
            }
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            if self.busy.load(Ordering::Acquire) {
                let _ = self.bell.wait_timeout(asleep, pause);
                pause = (pause * 2).min(LONGEST);
            } else {
                let _unlocked = self.bell.wait(asleep);
                pause = FIRST;
            }
        }
    }

    /// Ends the thread; no stream does anything any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        drop(lock(&self.asleep));
        self.bell.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
        let lanes =
            std::mem::take(&mut *self.lanes.write().unwrap_or_else(PoisonError::into_inner));
        for lane in lanes.into_values() {
            self.close(&lane);
        }
        let closed = self.context.with(|api| {
            self.worker.close();
            // SAFETY: made by this, and used by nobody any more.
            check("aclrtDestroyStream", unsafe {
                (api.stream_destroy)(self.opener.handle())
            })
        });
        drop(closed);
    }
}
