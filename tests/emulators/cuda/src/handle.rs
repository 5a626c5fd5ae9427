//! Handles: numbers that look like pointers and are none, so that a wrong one is found out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::answer::Answer;
use crate::code;

/// Objects of one kind, by their handles.
pub struct Table<T>(OnceLock<Mutex<HashMap<u64, Arc<T>>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Table<T> {
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<T>>> {
        let map = self.0.get_or_init(Mutex::default);
        map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new handle. No two kinds share one.
    pub fn add(&self, object: Arc<T>) -> Answer<u64> {
        let machine = crate::context::machine()?;
        let handle = 0x7ace_0000_0000 | machine.next_id() << 4;
        self.map().insert(handle, object);
        Ok(handle)
    }

    /// The object of a handle.
    pub fn get(&self, handle: u64) -> Answer<Arc<T>> {
        let object = self.map().get(&handle).cloned();
        object.ok_or(code::INVALID_HANDLE)
    }

    /// Takes an object away.
    pub fn remove(&self, handle: u64) -> Answer<Arc<T>> {
        self.map().remove(&handle).ok_or(code::INVALID_HANDLE)
    }
}
