//! The flag lines of a communicator, as `collectives/src/arena.rs` lays them out.

use std::collections::HashMap;
use std::ops::Range;

use crate::job::SLOTS;
use crate::log::Log;

/// A flag: its line in the block that `owner` has for `peer`, which for what it shows to all is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The rank in whose memory it lies, and who waits for it, unless it is of what this rank shows.
    pub owner: u32,
    /// The other rank of the pair.
    pub peer: u32,
    /// What it says.
    pub line: Line,
}

/// What a flag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The peer filled this slot.
    Data(u32),
    /// The owner has shown a group of puts to all others, each of which waits for it. Groups take these in turn.
    Shown(u32),
    /// The peer gave a slot back.
    Credit,
    /// The stream has something for its link.
    Doorbell,
    /// The link has read a source.
    Done,
    /// Nothing, to nobody: with it the peers' bells are rung.
    Bell,
}

/// All flags of a program.
#[derive(Debug)]
pub(crate) struct Flags {
    pub list: Vec<Flag>,
    known: HashMap<u64, u32>,
    /// Signal memory by rank.
    bases: Vec<u64>,
}

const LINE: u64 = 64;
/// Data flags of a pair. As many as slots fit in a whole number of times.
pub(crate) const FLAGS: u32 = 256;
const _: () = assert!(FLAGS >= SLOTS && FLAGS.is_multiple_of(SLOTS));
/// Where a line has room for a put.
const ROOM: Range<u64> = 32..LINE;

/// The bytes of one pair in the signal memory of a rank.
const BLOCK: u64 = {
    let counters = (3 * FLAGS as u64 + 6) * 16;
    (FLAGS as u64 + 3) * LINE + counters.next_multiple_of(LINE)
};

/// The pair's other rank, and the place among what there is of the pair, of an offset in a rank's signal memory.
pub(crate) fn of_pair(offset: u64) -> (u32, u64) {
    ((offset / BLOCK) as u32, offset % BLOCK)
}

/// The room for a put in a flag's line, around this place among what there is of a pair, if there is such.
pub(crate) fn in_line(within: u64) -> Option<Range<u64>> {
    let line = within / LINE;
    let is_data = line < u64::from(FLAGS) && ROOM.contains(&(within % LINE));
    is_data.then_some(line * LINE + ROOM.start..line * LINE + ROOM.end)
}

impl Flags {
    pub(crate) fn new(log: &Log, ranks: u32) -> Result<Self, String> {
        let bases = (0..ranks).map(|rank| {
            let mut own = log.signals.iter().filter(|region| region.rank == rank);
            match (own.next(), own.next()) {
                (Some(region), None) => Ok(region.at.start),
                _ => Err(format!("rank {rank} has one signal part")),
            }
        });
        Ok(Self {
            list: Vec::new(),
            known: HashMap::new(),
            bases: bases.collect::<Result<_, _>>()?,
        })
    }

    /// The flag at an address.
    pub(crate) fn at(&mut self, address: u64) -> Result<u32, String> {
        if let Some(number) = self.known.get(&address) {
            return Ok(*number);
        }
        let flag = self.find(address);
        let flag = flag.ok_or_else(|| format!("{address:#x} is no flag"))?;
        let number = self.list.len() as u32;
        self.list.push(flag);
        self.known.insert(address, number);
        Ok(number)
    }

    fn find(&self, address: u64) -> Option<Flag> {
        let flags = u64::from(FLAGS);
        let whole = BLOCK * self.bases.len() as u64;
        (0..).zip(&self.bases).find_map(|(owner, base)| {
            let offset = address.checked_sub(*base).filter(|o| *o < whole)?;
            let (peer, within) = of_pair(offset);
            let line = match within / LINE {
                line if line < flags && peer == owner => Line::Shown(line as u32),
                line if line == flags + 1 && peer == owner => Line::Bell,
                _ if peer == owner => return None,
                // Flags and slots are taken in turn, each round its own.
                line if line < flags => Line::Data((line % u64::from(SLOTS)) as u32),
                line if line == flags => Line::Credit,
                line if line == flags + 1 => Line::Doorbell,
                line if line == flags + 2 => Line::Done,
                _ => return None,
            };
            (within % LINE == 0).then_some(Flag { owner, peer, line })
        })
    }
}
