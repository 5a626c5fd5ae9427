//! What ranks have put to each other, in order: into slots, or shown to all, which is one put to each.

use crate::program::flags::FLAGS;

/// All puts whose signals were raised.
pub(super) struct Channels {
    ranks: u32,
    /// The number of the first place in which something is shown: those of slots come before.
    first: u32,
    /// By sender and receiver, the slot or place of each put.
    puts: Vec<Vec<u32>>,
    /// Likewise, how many there were at the last that waited for a free slot.
    waited: Vec<u64>,
}

impl Channels {
    /// None between so many ranks, with so many slots in all.
    pub(super) fn new(ranks: u32, slots: usize) -> Self {
        Self {
            ranks,
            first: slots as u32,
            puts: vec![Vec::new(); (ranks * ranks) as usize],
            waited: vec![0; (ranks * ranks) as usize],
        }
    }

    /// Places in which ranks show something: one for each receiver and flag.
    pub(super) fn shown(ranks: u32) -> usize {
        (ranks * ranks * FLAGS) as usize
    }

    /// What is shown with this flag, as it is one receiver's to give back.
    pub(super) fn place(&self, from: u32, to: u32, flag: u32) -> u32 {
        self.first + self.pair(from, to) as u32 * FLAGS + flag
    }

    /// The next put, and where it lies; whether it has to wait for a free slot.
    pub(super) fn put(&mut self, from: u32, to: u32, slot: u32, waits: bool) {
        let pair = self.pair(from, to);
        self.puts[pair].push(slot);
        if waits {
            self.waited[pair] = self.puts[pair].len() as u64;
        }
    }

    /// Where the put of this number, from 0, lies.
    pub(super) fn nth(&self, from: u32, to: u32, number: u64) -> Option<u32> {
        self.puts[self.pair(from, to)].get(number as usize).copied()
    }

    /// How many puts there were, and how many up to the last that waited for a free slot.
    pub(super) fn count(&self, from: u32, to: u32) -> [u64; 2] {
        let pair = self.pair(from, to);
        [self.puts[pair].len() as u64, self.waited[pair]]
    }

    fn pair(&self, from: u32, to: u32) -> usize {
        (from * self.ranks + to) as usize
    }
}
