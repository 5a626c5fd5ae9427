//! Everything that the library holds, behind one lock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_void;
use std::os::unix::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::device::Folder;
use crate::packet::Socket;
use crate::queue::Queue;

const PAGE: u64 = 4096;

/// All that is there.
#[derive(Default)]
pub struct State {
    pub pairs: BTreeMap<u32, Pair>,
    /// By key; local and remote keys are the same.
    pub regions: HashMap<u32, Region>,
    /// By the address of the C struct.
    pub queues: HashMap<usize, Queue>,
    pub last_key: u32,
    /// For losses: any sequence will do.
    pub dice: u64,
}

// SAFETY: the pointers in it are those of C structs that live until they are destroyed through it.
unsafe impl Send for State {}

/// Registered memory.
pub struct Region {
    pub address: u64,
    pub bytes: u64,
    pub access: i32,
    pub domain: usize,
    /// Of a dma-buf: where the card has it. Its address is no address of the host's.
    pub mapped: Option<Mapped>,
}

/// A device's memory as a card sees it.
pub struct Mapped {
    at: *mut c_void,
    length: usize,
    /// Where the registered part begins.
    skip: usize,
}

impl Mapped {
    /// Maps `bytes` at `offset` of a dma-buf, for which any file stands here.
    pub fn new(fd: i32, offset: u64, bytes: u64) -> Option<Self> {
        // SAFETY: a plain system call.
        let end = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
        let wanted = offset.checked_add(bytes)?;
        if end < 0 || wanted > end.cast_unsigned() || bytes == 0 {
            return None;
        }
        let skip = (offset % PAGE) as usize;
        let length = bytes as usize + skip;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let from = (offset - skip as u64).cast_signed();
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe {
            let at = std::ptr::null_mut();
            libc::mmap(at, length, protection, libc::MAP_SHARED, fd, from)
        };
        (at != libc::MAP_FAILED).then_some(Self { at, length, skip })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone.
        unsafe { libc::munmap(self.at, self.length) };
    }
}

/// A queue pair.
pub struct Pair {
    pub context: usize,
    pub domain: usize,
    pub queue: usize,
    pub folder: Folder,
    pub socket: Socket,
    pub state: i32,
    pub access: i32,
    pub sends_max: u32,
    pub receives_max: u32,
    pub inline_max: u32,
    /// Slots in use: posted, and not yet freed by a polled completion.
    pub sends: u32,
    pub receives: u32,
    /// Slots of unsignalled work that the next signalled completion frees.
    pub unsignalled: u32,
    pub peer: Option<(SocketAddr, Folder)>,
    pub timeout: u8,
    pub retries_max: u8,
    pub receiver_retries_max: u8,
    pub requester: Requester,
    pub responder: Responder,
}

/// The sending half.
#[derive(Default)]
pub struct Requester {
    /// Not complete, oldest first.
    pub work: VecDeque<Work>,
    /// The next packet number to use.
    pub next: u32,
    /// The oldest that is not acknowledged.
    pub oldest: u32,
    /// Where sending goes on: which work, and bytes of it.
    pub at: usize,
    pub bytes: u32,
    pub retries: u8,
    pub receiver_retries: u8,
    /// When to try again, if nothing comes.
    pub deadline: Option<Instant>,
    /// Not before then: the peer was not ready.
    pub pause: Option<Instant>,
}

/// A posted piece of work.
pub struct Work {
    pub id: u64,
    pub opcode: i32,
    pub signalled: bool,
    pub immediate: Option<u32>,
    pub remote: u64,
    pub key: u32,
    pub source: Source,
    /// The number of its first packet, and the one after its last.
    pub first: u32,
    pub end: u32,
}

/// Where its bytes are.
pub enum Source {
    /// Taken when it was posted.
    Inline(Vec<u8>),
    /// Read when it is sent; `print` tells whether it changed.
    Memory {
        address: u64,
        bytes: u32,
        key: u32,
        print: u64,
    },
}

/// The receiving half.
#[derive(Default)]
pub struct Responder {
    /// The packet number that is wanted next.
    pub expected: u32,
    pub receives: VecDeque<Receive>,
    /// A lost packet was complained of already.
    pub complained: bool,
}

/// A posted receive.
#[derive(Clone, Copy)]
pub struct Receive {
    pub id: u64,
    pub address: u64,
    pub bytes: u32,
    pub key: u32,
}

impl Source {
    pub fn len(&self) -> u32 {
        match self {
            Self::Inline(bytes) => bytes.len() as u32,
            Self::Memory { bytes, .. } => *bytes,
        }
    }
}

/// A few bytes of a source, as a number.
pub fn print(source: *const u8, bytes: u32) -> u64 {
    let step = (bytes / 16).max(1);
    (0..bytes).step_by(step as usize).fold(7, |sum: u64, at| {
        // SAFETY: the source is registered, so it is mapped; it is the caller's to keep.
        let byte = unsafe { source.add(at as usize).read_volatile() };
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    })
}

impl State {
    /// Where the card finds bytes, if they lie in what a key stands for, with these rights, in this
    /// domain.
    pub fn find(
        &self,
        key: u32,
        domain: usize,
        address: u64,
        bytes: u64,
        access: i32,
    ) -> Option<*mut u8> {
        let region = self.regions.get(&key)?;
        let offset = address.checked_sub(region.address)?;
        let may = region.domain == domain
            && region.access & access == access
            && offset.checked_add(bytes)? <= region.bytes;
        may.then(|| match &region.mapped {
            None => address as *mut u8,
            Some(mapped) => {
                let start = mapped.at.cast::<u8>();
                start.wrapping_add(mapped.skip + offset as usize)
            }
        })
    }

    /// True with this chance in a thousand.
    pub fn roll(&mut self, chance: u32) -> bool {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % 1000 < u64::from(chance)
    }
}

/// All of it.
pub fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE
        .get_or_init(|| {
            Mutex::new(State {
                // Different in each process, so that a key of another's is no key here.
                last_key: std::process::id().wrapping_mul(4096),
                dice: u64::from(std::process::id()),
                ..State::default()
            })
        })
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}
