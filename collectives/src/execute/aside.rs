//! Room for the input of calls in place that peers would find overwritten: it is first put aside.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use unisono_hal::{Device, Memory, MemoryKind, MemoryRequest};

use crate::error::Result;

/// The room of a communicator's last call, kept for the next. Fresh memory comes from the system page by page, cleared: of
/// 16 MiB that took four times as long as the call itself.
#[derive(Clone)]
pub(crate) struct Asides {
    kept: Arc<Mutex<Option<Memory>>>,
    /// Bytes that are kept, at most.
    budget: u64,
}

/// Input of a call in place.
pub(crate) struct Aside {
    /// Where it lies, and where to.
    pub of: u64,
    pub bytes: u64,
    pub memory: Room,
}

/// Memory that goes back to where it was taken from.
pub(crate) struct Room {
    memory: Option<Memory>,
    home: Asides,
}

impl Asides {
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            kept: Arc::default(),
            budget,
        }
    }

    /// Bytes that are kept for the next call now.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.kept().as_ref().map_or(0, |memory| memory.len())
    }

    /// Room for `bytes` bytes, of the last call if that is enough and done.
    pub(crate) fn take(&self, device: &Device, bytes: u64) -> Result<Room> {
        let kept = self.kept().take_if(|memory| memory.len() >= bytes);
        let memory = match kept {
            Some(memory) => memory,
            None => {
                let room = MemoryRequest::new(MemoryKind::Data, bytes.max(1));
                device.alloc(&room.lazy())?
            }
        };
        Ok(Room {
            memory: Some(memory),
            home: self.clone(),
        })
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Memory>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Room {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        self.memory.as_ref().expect("it is there until dropped")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let fits = |memory: &Memory| memory.len() <= self.home.budget;
        let Some(freed) = self.memory.take().filter(fits) else {
            return;
        };
        let mut kept = self.home.kept();
        if kept.as_ref().is_none_or(|kept| kept.len() < freed.len()) {
            *kept = Some(freed);
        }
    }
}
