//! One write or message on a lane, from when a put gives rise to it until the peer has acknowledged it.
//!
//! It says what to write in terms that outlive a queue pair (windows and registered memory, not
//! keys), so that it can be sent again over another rail.

use std::sync::Arc;

use super::window::Imported;
use crate::memory::{Block, Memory};
use crate::verbs::{Opcode, Work};

/// Longer writes complete by themselves, so that their sources are soon free again.
const LONG: u32 = 64 << 10;

#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) action: Action,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) home: Home,
    /// Its number among the lane's messages, if it takes one of the peer's receives.
    pub(crate) message: Option<u64>,
    /// The command whose part on this lane ends with it.
    pub(crate) ends: Option<u64>,
    /// What it gives back of the staging ring.
    pub(crate) frees: Option<u64>,
}

/// What it does at the peer.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Write {
        to: Arc<Imported>,
        offset: u64,
    },
    /// Without a window it writes nothing, and only brings its number.
    WriteImmediate {
        to: Option<(Arc<Imported>, u64)>,
        immediate: u32,
    },
    Send,
}

/// Whose memory its bytes are in.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    Block,
    Registered(Arc<Memory>),
}

/// The queue pair that a unit goes over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    pub(crate) rail: usize,
    pub(crate) peer_rail: usize,
    pub(crate) inline_max: u32,
}

impl Unit {
    /// What to post for it.
    pub(crate) fn work(&self, id: u64, over: Over, block: &Block, signalled: bool) -> Work {
        let write = |to: &Imported, offset| to.place(offset, over.peer_rail);
        let opcode = match &self.action {
            Action::Write { to, offset } => {
                let (remote, key) = write(to, *offset);
                Opcode::Write { remote, key }
            }
            Action::WriteImmediate { to, immediate } => {
                let place = to.as_ref().map(|(to, offset)| write(to, *offset));
                let (remote, key) = place.unwrap_or_default();
                Opcode::WriteImmediate {
                    remote,
                    key,
                    immediate: *immediate,
                }
            }
            Action::Send => Opcode::Send,
        };
        let (inline, local_key) = match &self.home {
            // The device need not read what fits into the request.
            Home::Block => (self.bytes <= over.inline_max, block.local_key(over.rail)),
            Home::Registered(memory) => (false, memory.local_key(over.rail)),
        };
        Work {
            id,
            opcode,
            address: self.address,
            bytes: self.bytes,
            local_key,
            inline,
            signalled: signalled || self.bytes >= LONG,
        }
    }
}
