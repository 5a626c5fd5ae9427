//! What the devices of one vendor share in a process: known memory, exports, opened devices.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use unisono_plugin::{DeviceId, Result};

use crate::memory::Kept;
use crate::regions::Regions;
use crate::state::State;
use crate::{Runtime, fork};

/// Proves that what was mapped is what was exported.
pub(crate) type Nonce = [u8; 16];

/// Its proof; and of another process's device memory the device that it is mapped for, as each maps it
/// anew.
pub(crate) type Key = (Nonce, Option<DeviceId>);

/// One a vendor: a static of its plugin.
pub struct Process<R: Runtime> {
    pub(crate) regions: Regions,
    /// Memory that can be exported or was imported.
    shared: Mutex<Option<HashMap<Key, Weak<Kept<R>>>>>,
    /// Held by who imports.
    importing: Mutex<()>,
    /// Host memory of callers', by address and length.
    registered: Mutex<Option<HashMap<(u64, u64), Registered>>>,
    /// Opened devices by number: streams and pinned lines are kept for all who open one.
    devices: Mutex<Option<HashMap<u32, Weak<State<R>>>>>,
}

/// A range that callers registered.
struct Registered {
    /// Handles of it.
    count: u64,
    /// Whether it was this plugin that registered it with the runtime.
    own: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Runtime> Default for Process<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Runtime> Process<R> {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            regions: Regions::new(),
            shared: Mutex::new(None),
            importing: Mutex::new(()),
            registered: Mutex::new(None),
            devices: Mutex::new(None),
        }
    }

    /// The state of a device, made if nobody has it open.
    pub(crate) fn device(
        &self,
        number: u32,
        make: impl FnOnce() -> Result<State<R>>,
    ) -> Result<Arc<State<R>>> {
        fork::check()?;
        let mut devices = lock(&self.devices);
        let devices = devices.get_or_insert_default();
        if let Some(state) = devices.get(&number).and_then(Weak::upgrade) {
            return Ok(state);
        }
        let state = Arc::new(make()?);
        devices.insert(number, Arc::downgrade(&state));
        Ok(state)
    }

    /// Does something that may block behind all that this plugin's devices have under way in this process: only
    /// while that is nothing, and no stream is given anything. None where it is not so.
    pub(crate) fn alone<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        // Held, so that none is opened meanwhile.
        let devices = self.devices.try_lock().ok()?;
        let open = devices.iter().flat_map(HashMap::values);
        let open: Vec<_> = open.filter_map(Weak::upgrade).collect();
        let quiet = open.iter().map(|device| device.freed.alone());
        let quiet: Option<Vec<_>> = quiet.collect();
        let _quiet = quiet?;
        Some(call())
    }

    /// Registers host memory, once for all who ask: ranks that are threads of one process reach the same
    /// memory of a peer's, and the runtime knows it once.
    ///
    /// # Safety
    /// As [`Runtime::register`], until as many [`unregister`](Self::unregister).
    #[allow(unsafe_code, reason = "registers memory by address")]
    pub(crate) unsafe fn register(&self, runtime: &R, host: u64, bytes: u64) -> Result<()> {
        let mut registered = lock(&self.registered);
        let registered = registered.get_or_insert_default();
        if let Some(known) = registered.get_mut(&(host, bytes)) {
            known.count += 1;
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let own = unsafe { runtime.register(host, bytes) }?;
        registered.insert((host, bytes), Registered { count: 1, own });
        Ok(())
    }

    /// Ends a registration, with the last who asked.
    pub(crate) fn unregister(&self, runtime: &R, host: u64, bytes: u64) {
        let mut registered = lock(&self.registered);
        let registered = registered.get_or_insert_default();
        let Some(known) = registered.get_mut(&(host, bytes)) else {
            return;
        };
        known.count -= 1;
        if known.count == 0 {
            if known.own {
                runtime.unregister(host);
            }
            registered.remove(&(host, bytes));
        }
    }

    /// Nobody else imports as long as this is held, so that who looks for memory and does not find it can
    /// import it.
    pub(crate) fn import(&self) -> MutexGuard<'_, ()> {
        lock(&self.importing)
    }

    /// Remembers memory.
    pub(crate) fn share(&self, key: Key, memory: &Arc<Kept<R>>) {
        let mut shared = lock(&self.shared);
        let shared = shared.get_or_insert_default();
        shared.retain(|_, known| known.strong_count() > 0);
        shared.insert(key, Arc::downgrade(memory));
    }

    /// What is remembered.
    pub(crate) fn shared(&self, key: &Key) -> Option<Arc<Kept<R>>> {
        lock(&self.shared).as_ref()?.get(key)?.upgrade()
    }
}

impl<R: Runtime> std::fmt::Debug for Process<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process")
            .field("of", &R::NAME)
            .finish_non_exhaustive()
    }
}
