//! The log of one case: each queue's commands in order, and the memory that they are about.
//!
//! There is one recorder in the process. Queues that are made between [`begin`] and [`take`] are
//! recorded, and no others.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::command::Command;
use crate::program::flags::of_pair;

/// What the ranks of a case gave their streams and links.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub(crate) queues: Vec<Queue>,
    /// Memory that a rank asked for as signal memory: its flags and counters.
    pub(crate) signals: Vec<Region>,
    /// Memory for data, in the order of asking: slots, windows, scratch.
    pub(crate) data: Vec<Region>,
    /// By call, the buffers of each rank. They are kept until the log is complete.
    pub(crate) calls: Vec<Vec<Buffers>>,
}

/// A stream, or one end of a link.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub rank: u32,
    /// The other end's rank, of a link.
    pub peer: Option<u32>,
    /// Windows that this end exported: number, address, bytes.
    pub windows: Vec<(u32, u64, u64)>,
    pub commands: Vec<Command>,
}

/// Memory of a rank.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub rank: u32,
    pub at: Range<u64>,
}

/// The buffers of one rank in one call; empty where it has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    pub input: Range<u64>,
    pub output: Range<u64>,
}

#[derive(Default)]
struct Recorder {
    /// The queues of the handles that are alive, by plugin and handle.
    alive: HashMap<usize, usize>,
    log: Option<Log>,
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

thread_local! {
    static RANK: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Says that this thread is a rank.
pub(crate) fn enter(rank: u32) {
    RANK.set(rank);
}

/// Starts to record what is made from now on.
pub(crate) fn begin() {
    *lock() = Some(Recorder {
        log: Some(Log::default()),
        ..Recorder::default()
    });
}

/// Ends recording.
pub(crate) fn take() -> Log {
    let recorder = lock().take().unwrap_or_default();
    let mut log = recorder.log.unwrap_or_default();
    // Ranks make their queues in any order.
    log.queues.sort_by_key(|queue| (queue.rank, queue.peer));
    log
}

/// The buffers of a call on the calling thread's rank.
pub(crate) fn buffers(call: u32, ranks: u32, buffers: Buffers) {
    with(|_, log| {
        let (calls, call) = (&mut log.calls, call as usize);
        calls.resize_with(calls.len().max(call + 1), || {
            vec![Buffers::default(); ranks as usize]
        });
        calls[call][RANK.get() as usize] = buffers;
    });
}

/// A call has returned on the calling thread's rank.
pub(crate) fn end(call: u32) {
    with(|_, log| {
        let rank = RANK.get();
        // The first stream of a rank is that of its communicator's calls.
        let stream = log
            .queues
            .iter_mut()
            .find(|q| q.rank == rank && q.peer.is_none());
        stream.expect("a stream").commands.push(Command::End(call));
    });
}

/// A queue was made by the calling thread's rank.
pub(crate) fn created(handle: usize, peer: Option<u32>) {
    with(|alive, log| {
        alive.insert(handle, log.queues.len());
        log.queues.push(Queue {
            rank: RANK.get(),
            peer,
            windows: Vec::new(),
            commands: Vec::new(),
        });
    });
}

/// A handle is no more.
pub(crate) fn destroyed(handle: usize) {
    with(|alive, _| alive.remove(&handle));
}

/// Runs something on the log's queue of a handle, if it is recorded.
pub(crate) fn of(handle: usize, then: impl FnOnce(&mut Queue)) {
    with(|alive, log| {
        alive
            .get(&handle)
            .map(|index| then(&mut log.queues[*index]))
    });
}

/// Memory was allocated by the calling thread's rank.
pub(crate) fn allocated(is_signal: bool, at: Range<u64>) {
    with(|_, log| {
        let list = if is_signal {
            &mut log.signals
        } else {
            &mut log.data
        };
        list.push(Region {
            rank: RANK.get(),
            at,
        });
    });
}

/// Whether an address is of memory in which one rank tells another something: of flags, but those of what it shows to all.
pub(crate) fn is_told(address: u64) -> bool {
    let found = with(|_, log| {
        (log.signals.iter()).any(|region| {
            region.at.contains(&address) && of_pair(address - region.at.start).0 != region.rank
        })
    });
    found.unwrap_or(false)
}

fn with<T>(then: impl FnOnce(&mut HashMap<usize, usize>, &mut Log) -> T) -> Option<T> {
    let mut recorder = lock();
    let recorder = recorder.as_mut()?;
    Some(then(&mut recorder.alive, recorder.log.as_mut()?))
}

fn lock() -> MutexGuard<'static, Option<Recorder>> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}
