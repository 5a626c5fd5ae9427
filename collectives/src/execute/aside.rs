//! Room for the input of calls in place that peers would find overwritten: it is first put aside.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use unisono_hal::{Device, Memory, MemoryKind, MemoryRequest};

use crate::error::Result;

/// Room that is kept for the next call, in bytes, at most. Fresh memory comes from the system page by page, cleared: of
/// 16 MiB that took four times as long as the call itself.
const KEPT: u64 = 256 << 20;

/// What a communicator's calls have set aside last.
#[derive(Clone, Default)]
pub(crate) struct Asides(Arc<Mutex<Option<Memory>>>);

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let freed = self.memory.take().filter(|memory| memory.len() <= KEPT);
        let Some(freed) = freed else { return };
        let mut kept = self.home.kept();
        if kept.as_ref().is_none_or(|kept| kept.len() < freed.len()) {
            *kept = Some(freed);
        }
    }
}
