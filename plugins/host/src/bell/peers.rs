//! The bells of other processes.
#![allow(unsafe_code, reason = "reads a line in shared memory by its address")]

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{FileType, fstat};
use unisono_plugin::{Error, Result, Status};

use super::line_at;
use crate::memory::{BellMemory, proc};

/// An imported bell.
#[derive(Debug)]
pub(crate) struct PeerBell {
    memory: BellMemory,
    pipe: OwnedFd,
}

type Map = HashMap<u64, Weak<PeerBell>>;
static PEERS: Mutex<Option<Map>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Map>> {
    PEERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the bell in imported memory: opens the pipe that its owner may sleep on.
///
/// The pipe is opened for reading too, so that a write after its owner died raises no SIGPIPE.
pub(crate) fn import(memory: BellMemory) -> Result<Arc<PeerBell>> {
    let address = memory.address() as u64;
    let mut map = lock();
    let map = map.get_or_insert_default();
    if let Some(known) = map.get(&address).and_then(Weak::upgrade) {
        return Ok(known);
    }
    // SAFETY: the memory holds a bell, and is kept below.
    let number = unsafe { line_at(address) }.pipe.load(Ordering::Acquire);
    let pid = memory.pid();
    let pipe = proc::open_fd(pid, number).map_err(|error| {
        let what = format!("cannot open the pipe {number} of process {pid}");
        Error::system(Status::Peer, &what, &error)
    })?;
    let is_pipe =
        fstat(&pipe).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if !is_pipe {
        return Err(Error::new(
            Status::Peer,
            format!("descriptor {number} of process {pid} is not its bell's pipe"),
        ));
    }
    let bell = Arc::new(PeerBell { memory, pipe });
    map.retain(|_, known| known.strong_count() > 0);
    map.insert(address, Arc::downgrade(&bell));
    Ok(bell)
}

/// Calls `f` with the pipe of the peer whose bell lies at an address, if it is still imported.
pub(super) fn with_pipe(address: u64, f: impl FnOnce(BorrowedFd<'_>)) {
    let bell = lock().as_ref().and_then(|map| map.get(&address)?.upgrade());
    if let Some(bell) = bell {
        debug_assert_eq!(bell.memory.address() as u64, address);
        f(bell.pipe.as_fd());
    }
}
