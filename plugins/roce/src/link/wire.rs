//! One queue pair of a lane, over one pair of rails, in one generation.
#![allow(unsafe_code, reason = "posts memory that a device reads and writes")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::unit::{Over, Unit};
use crate::memory::{Block, Held, SLOT};
use crate::nic::Rail;
use crate::sys::abi::wc_status;
use crate::verbs::{Capacity, Completion, Opcode, POSTED_MAX, Path, QueuePair, Work};

/// Ids of receives; those of sends are small numbers.
const RECEIVE: u64 = 1 << 63;
/// The id of a probe.
const PROBE: u64 = 1 << 62;

/// Which rails, by their places at each end, and which of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) rail: usize,
    pub(crate) peer_rail: usize,
    pub(crate) gid: usize,
    pub(crate) peer_gid: usize,
}

#[derive(Debug)]
pub(crate) struct Wire {
    pair: QueuePair,
    /// After the pair in the order of dropping: it receives into it.
    _block: Arc<Held>,
    pub(crate) route: Route,
    pub(crate) generation: u32,
    /// Our first packet number.
    pub(crate) start: u32,
    /// Receives that are posted.
    receives: u32,
    /// Probes that are on their way.
    probes: u32,
    /// When something last came of it, as far as upkeep has noticed.
    pub(crate) heard: Instant,
    /// Whether something has come since.
    pub(crate) fresh: bool,
    completions: Vec<Completion>,
}

/// What came of a look at a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The peer has acknowledged all units up to this number.
    Acknowledged(u64),
    /// A probe was answered.
    Answered,
    /// A message: its slot, its bytes, and its number if it came with one.
    Message {
        slot: u32,
        bytes: u32,
        immediate: Option<u32>,
    },
}

/// Why a wire is dead.
#[derive(Debug)]
pub(crate) enum Broken {
    /// A piece of work failed: an `IBV_WC_*` and the device's own code.
    Status { status: i32, vendor_code: u32 },
    /// A call failed.
    System(&'static str, io::Error),
}

impl Broken {
    /// Whether the peer's device took what was asked for as wrong. Some say so of a packet that they get
    /// again; that repeats on no other queue pair.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(self, Self::Status { status, .. } if *status == wc_status::REM_INV_REQ_ERR)
    }

    /// Whether another path may do better; else what was asked for is wrong.
    pub(crate) fn is_path(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(
                *status,
                wc_status::RETRY_EXC_ERR
                    | wc_status::RNR_RETRY_EXC_ERR
                    | wc_status::RESP_TIMEOUT_ERR
                    | wc_status::WR_FLUSH_ERR
                    | wc_status::FATAL_ERR
            ),
            Self::System(..) => true,
        }
    }
}

impl Wire {
    /// A queue pair that the peer's can be connected to. It receives into the block's slots.
    pub(crate) fn new(
        rail: &Rail,
        route: Route,
        generation: u32,
        start: u32,
        block: &Block,
        capacity: Capacity,
    ) -> io::Result<Self> {
        let pair = QueuePair::new(&rail.pd, rail.facts.port, capacity)?;
        let mut wire = Self {
            pair,
            _block: block.hold(),
            route,
            generation,
            start,
            receives: 0,
            probes: 0,
            heard: Instant::now(),
            fresh: false,
            completions: Vec::new(),
        };
        for slot in 0..block.receives() {
            wire.receive(block, slot)?;
        }
        Ok(wire)
    }

    pub(crate) fn number(&self) -> u32 {
        self.pair.number()
    }

    pub(crate) fn connect(&mut self, path: &Path) -> io::Result<()> {
        self.pair.connect(path)
    }

    pub(crate) fn over(&self) -> Over {
        Over {
            rail: self.route.rail,
            peer_rail: self.route.peer_rail,
            inline_max: self.pair.inline_max(),
        }
    }

    /// Posts a receive into a slot again.
    pub(crate) fn receive(&mut self, block: &Block, slot: u32) -> io::Result<()> {
        let key = block.local_key(self.route.rail);
        let id = RECEIVE | u64::from(slot);
        // SAFETY: the slot is registered under the key and lives longer than the wire; a lane posts
        // it only when nothing that came in it is still needed.
        unsafe {
            self.pair
                .receive(id, block.receive_slot(slot), SLOT as u32, key)
        }?;
        self.receives += 1;
        Ok(())
    }

    /// Posts units in order, numbered from `first` on; the last of each call completes by itself.
    pub(crate) fn post<'a>(
        &mut self,
        mut units: impl ExactSizeIterator<Item = &'a Unit>,
        first: u64,
        block: &Block,
    ) -> Result<(), Broken> {
        let over = self.over();
        let mut ids = first..;
        while units.len() > 0 {
            let count = units.len().min(POSTED_MAX);
            let some = units.by_ref().take(count).zip(ids.by_ref());
            self.hand_over(
                (1..)
                    .zip(some)
                    .map(|(place, (unit, id))| unit.work(id, over, block, place == count)),
            )?;
        }
        Ok(())
    }

    /// Asks the peer's device for an answer: it costs the peer nothing.
    pub(crate) fn probe(&mut self) -> Result<(), Broken> {
        let work = Work {
            id: PROBE,
            opcode: Opcode::Write { remote: 0, key: 0 },
            signalled: true,
            address: 0,
            bytes: 0,
            local_key: 0,
            inline: false,
        };
        self.hand_over(std::iter::once(work))?;
        self.probes += 1;
        Ok(())
    }

    /// Whether a probe is on its way.
    pub(crate) const fn is_probing(&self) -> bool {
        self.probes > 0
    }

    fn hand_over(&mut self, work: impl Iterator<Item = Work>) -> Result<(), Broken> {
        // SAFETY: units name registered memory by its keys: the lane's own block, a window, or
        // memory that they hold registered; the host keeps a put's source as it is until the put is
        // complete, the lane its slots and staging until the unit is acknowledged.
        unsafe { self.pair.post(work) }
            .map_err(|error| Broken::System("work cannot be posted", error))
    }

    /// Takes what has come and shows it in order. What came before an error is shown before it.
    pub(crate) fn collect(&mut self, mut show: impl FnMut(Arrival)) -> Result<bool, Broken> {
        let mut any = false;
        let mut broken = None;
        for _ in 0..16 {
            self.completions.clear();
            match self.pair.queue().take() {
                Ok(None) => break,
                Ok(Some(taken)) => self.completions.extend(taken),
                Err(error) => {
                    return Err(Broken::System("completions cannot be had", error));
                }
            }
            any = true;
            for done in &self.completions {
                if done.id & RECEIVE != 0 {
                    self.receives = self.receives.saturating_sub(1);
                }
                if done.status != wc_status::SUCCESS {
                    note(&mut broken, done);
                    continue;
                }
                match done.id {
                    PROBE => {
                        self.probes = self.probes.saturating_sub(1);
                        show(Arrival::Answered);
                    }
                    id if id & RECEIVE != 0 => show(Arrival::Message {
                        slot: id as u32,
                        bytes: done.bytes,
                        immediate: done.immediate,
                    }),
                    id => show(Arrival::Acknowledged(id)),
                }
            }
        }
        match broken {
            Some(broken) => Err(broken),
            None => Ok(any),
        }
    }

    /// Makes the next completion show on the descriptor.
    pub(crate) fn request_notice(&mut self) -> Result<(), Broken> {
        self.pair
            .queue()
            .request_notice()
            .map_err(|error| Broken::System("no notice can be asked for", error))
    }

    pub(crate) fn clear_notices(&mut self) {
        self.pair.queue().clear_notices();
    }

    /// Puts the pair in error: nothing more is sent, and nothing of the peer's lands.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.pair.stop()
    }

    /// Receives that have neither brought a message nor come back.
    pub(crate) const fn receives(&self) -> u32 {
        self.receives
    }
}

/// Keeps the first failure that says something: work behind a failure only says that it came behind.
fn note(broken: &mut Option<Broken>, done: &Completion) {
    let known = matches!(
        broken,
        Some(Broken::Status { status, .. }) if *status != wc_status::WR_FLUSH_ERR
    );
    if !known {
        *broken = Some(Broken::Status {
            status: done.status,
            vendor_code: done.vendor_code,
        });
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pair.as_fd()
    }
}
