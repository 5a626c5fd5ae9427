//! What lies at an address.

use std::fmt;
use std::ops::Range;

use crate::job::{PUT_BYTES, SLOT_BYTES, SLOTS};
use crate::log::Log;

use super::flags::{in_line, of_pair};

/// What some memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The input of a rank in a call.
    Input { rank: u32, call: u32 },
    /// The output of a rank in a call.
    Output { rank: u32, call: u32 },
    /// A slot of a rank, which another fills.
    Slot { rank: u32, from: u32, number: u32 },
    /// Where a rank makes what its link sends.
    SendSlot { rank: u32 },
    /// A slot of a rank, or the line of a flag, in which it shows all others what it puts.
    Shown { rank: u32 },
    /// Other memory of a rank's device.
    Scratch { rank: u32 },
    /// Nobody gave it.
    Nobody,
}

/// All memory of a log.
#[derive(Debug)]
pub(crate) struct Places {
    buffers: Vec<(Range<u64>, Owner)>,
    /// The slots part of each rank, by rank.
    slots: Vec<(u32, Range<u64>)>,
    scratch: Vec<(u32, Range<u64>)>,
    /// The flags of each rank.
    signals: Vec<(u32, Range<u64>)>,
    ranks: u32,
}

impl Places {
    pub(crate) fn new(log: &Log) -> Self {
        let mut buffers = Vec::new();
        for (call, ranks) in (0..).zip(&log.calls) {
            for (rank, ends) in (0..).zip(ranks) {
                buffers.push((ends.input.clone(), Owner::Input { rank, call }));
                buffers.push((ends.output.clone(), Owner::Output { rank, call }));
            }
        }
        let (mut slots, mut scratch): (Vec<(u32, Range<u64>)>, Vec<_>) = Default::default();
        for region in &log.data {
            // A communicator asks for its slots before anything else.
            let is_first = slots.iter().all(|(rank, _)| *rank != region.rank);
            let list = if is_first { &mut slots } else { &mut scratch };
            list.push((region.rank, region.at.clone()));
        }
        Self {
            buffers,
            ranks: slots.len() as u32,
            slots,
            scratch,
            signals: (log.signals.iter())
                .map(|region| (region.rank, region.at.clone()))
                .collect(),
        }
    }

    /// What `bytes` at an address are of, and where that begins.
    pub(crate) fn at(&self, address: u64, bytes: u64) -> Option<(Owner, u64)> {
        let holds = |range: &Range<u64>| range.start <= address && address + bytes <= range.end;
        if let Some((range, owner)) = self.buffers.iter().find(|(range, _)| holds(range)) {
            return Some((*owner, range.start));
        }
        if let Some((rank, range)) = self.slots.iter().find(|(_, range)| holds(range)) {
            let (index, within) = (
                (address - range.start) / SLOT_BYTES,
                (address - range.start) % SLOT_BYTES,
            );
            let (from, number) = (
                (index / u64::from(SLOTS)) as u32,
                (index % u64::from(SLOTS)) as u32,
            );
            let owner = match from.checked_sub(self.ranks) {
                // Nobody sends to itself.
                None if from == *rank => Owner::Shown { rank: *rank },
                None => Owner::Slot {
                    rank: *rank,
                    from,
                    number,
                },
                Some(_) => Owner::SendSlot { rank: *rank },
            };
            return (within + bytes <= SLOT_BYTES).then_some((owner, address - within));
        }
        if let Some((rank, range)) = self.signals.iter().find(|(_, range)| holds(range)) {
            let (peer, within) = of_pair(address - range.start);
            let room = in_line(within).filter(|_| peer == *rank)?;
            let is_whole = within + bytes <= room.end;
            return is_whole
                .then_some((Owner::Shown { rank: *rank }, address - within + room.start));
        }
        let (rank, range) = self.scratch.iter().find(|(_, range)| holds(range))?;
        Some((Owner::Scratch { rank: *rank }, range.start))
    }

    /// How many slots there are that ranks fill for each other.
    pub(crate) fn slots(&self) -> u32 {
        self.ranks * self.ranks * SLOTS
    }

    /// The number of the slot that `from` fills on `owner`.
    pub(crate) fn slot_number(&self, owner: u32, from: u32, number: u32) -> u32 {
        (owner * self.ranks + from) * SLOTS + number
    }

    /// What puts fill of a slot.
    pub(crate) fn nth_slot(&self, number: u32) -> Range<u64> {
        let (owner, within) = (number / self.ranks / SLOTS, number % (self.ranks * SLOTS));
        let part = self.slots.iter().find(|(rank, _)| *rank == owner);
        let start = part.map_or(0, |(_, at)| at.start) + u64::from(within) * SLOT_BYTES;
        start..start + PUT_BYTES
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { rank, call } => write!(f, "rank {rank}'s input of call {call}"),
            Self::Output { rank, call } => write!(f, "rank {rank}'s output of call {call}"),
            Self::Slot { rank, from, number } => {
                write!(f, "rank {rank}'s slot {number} from rank {from}")
            }
            Self::Shown { rank } => write!(f, "a place in which rank {rank} shows what it puts"),
            Self::SendSlot { rank } => write!(f, "a slot that rank {rank} sends from"),
            Self::Scratch { rank } => write!(f, "rank {rank}'s scratch"),
            Self::Nobody => f.write_str("memory that nobody gave"),
        }
    }
}
