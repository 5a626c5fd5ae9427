//! The graphs that a stream keeps, and which batches are worth one.
//!
//! A batch is found by a hash and then compared in full: its commands, without the words of flags (they
//! hold the call's number), and the memory that their addresses lie in, by allocation ids that no other
//! memory ever has. So a graph never runs on memory that came in place of what it was made for, and
//! keeps none alive: it is a list of addresses.

use std::collections::VecDeque;
use std::mem::offset_of;

use unisono_plugin::abi::{CMD_WORDS, CommandSignal, CommandWait};
use unisono_plugin::{Batch, Command};

use super::table::{CHECK, ENTRIES, TABLES};
use crate::Runtime;
use crate::event::AcceleratorEvent;
use crate::lines::Piece;
use crate::regions::{Regions, is_own};

/// A graph that was used within so many batches stays: a program that repeats more than there are tables
/// for would else make graphs all the time and use none.
const FRESH: u64 = 4 * TABLES;
/// Batches without a graph that are remembered.
const KNOWN: usize = 256;
/// How often a batch has come before it gets a graph.
const SEEN: i32 = 2;
/// How often more, if it could not be made one.
const AGAIN: i32 = 1000;
/// Shorter batches get none: there is little to gain.
const SHORTEST: u32 = 4;

/// A graph of the runtime's, with the numbers that it reads.
pub(crate) struct Made<R: Runtime> {
    pub(crate) graph: R::Graph,
    pub(super) table: Piece,
}

struct Entry<R: Runtime> {
    hash: u64,
    words: Box<[u64]>,
    memory: Box<[(u64, u64)]>,
    made: Made<R>,
    /// The last command of its last launch.
    last: u64,
    /// When it was used last, counted in batches.
    used: u64,
}

/// The graphs of one stream.
pub(super) struct Graphs<R: Runtime> {
    entries: Vec<Entry<R>>,
    /// Batches that came without a graph, by their hashes, and how often; the newest last.
    known: VecDeque<(u64, i32)>,
    /// Batches looked up so far.
    clock: u64,
    /// Removals of memory that were looked at.
    removals: u64,
    /// The batch that was named last.
    words: Vec<u64>,
    memory: Vec<(u64, u64)>,
    hash: u64,
    /// To be destroyed once nothing is under way.
    gone: Vec<Made<R>>,
}

/// What is known of a batch.
pub(super) enum Found {
    /// It has a graph, which is not under way.
    Graph(usize),
    /// It has none, and should have.
    Worth,
    Nothing,
}

fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

impl<R: Runtime> Graphs<R> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            known: VecDeque::new(),
            clock: 0,
            removals: 0,
            words: Vec::new(),
            memory: Vec::new(),
            hash: 0,
            gone: Vec::new(),
        }
    }

    /// Names a batch, which lies in so much memory, for what is asked next; false if it can have no graph.
    pub(super) fn name(
        &mut self,
        batch: &Batch<'_, AcceleratorEvent<R>>,
        memory: &[(u64, u64)],
    ) -> bool {
        // 0: somebody else's memory, that the runtime has no id for.
        if batch.len() < SHORTEST || memory.iter().any(|(_, generation)| *generation == 0) {
            return false;
        }
        let packed = batch.as_words();
        self.words.clear();
        self.words.extend_from_slice(packed);
        let mut entries = 1;
        for command in batch {
            let (at, words, flags, own) = match command {
                Command::Copy(_) | Command::Reduce(_) | Command::Scale(_) => continue,
                Command::Signal(signal) => (
                    std::ptr::from_ref(signal).addr(),
                    offset_of!(CommandSignal, words),
                    signal.head.flags,
                    [1, CHECK],
                ),
                Command::Wait(wait) => (
                    std::ptr::from_ref(wait).addr(),
                    offset_of!(CommandWait, words),
                    wait.head.flags,
                    [2, CHECK],
                ),
                // An event is recorded anew each time.
                _ => return false,
            };
            let first = (at - packed.as_ptr().addr() + words) / 8;
            self.words[first..first + 3].fill(0);
            entries += own[0] + if flags & CMD_WORDS != 0 { own[1] } else { 0 };
        }
        self.memory.clear();
        self.memory.extend_from_slice(memory);
        let ids = memory.iter().map(|(_, generation)| *generation);
        self.hash = hash(self.words.iter().copied().chain(ids));
        entries <= ENTRIES
    }

    /// What is known of the batch that was named, on a stream that has done so many commands.
    pub(super) fn find(&mut self, completed: u64) -> Found {
        self.clock += 1;
        let found = self.entries.iter().position(|entry| {
            entry.hash == self.hash && *entry.words == *self.words && *entry.memory == *self.memory
        });
        if let Some(at) = found {
            let entry = &mut self.entries[at];
            entry.used = self.clock;
            // Under way: its table is being read.
            return if entry.last <= completed {
                Found::Graph(at)
            } else {
                Found::Nothing
            };
        }
        let known = self.known.iter().position(|(hash, _)| *hash == self.hash);
        let (hash, seen) = known
            .and_then(|at| self.known.remove(at))
            .unwrap_or((self.hash, 0));
        self.known.push_back((hash, (seen + 1).min(SEEN)));
        if self.known.len() > KNOWN {
            self.known.pop_front();
        }
        if seen == SEEN {
            Found::Worth
        } else {
            Found::Nothing
        }
    }

    /// The graph that was not used for longest, if that is long enough.
    fn oldest(&self) -> Option<usize> {
        let entries = self.entries.iter().enumerate();
        let (at, entry) = entries.min_by_key(|(_, entry)| entry.used)?;
        (self.clock - entry.used > FRESH).then_some(at)
    }

    /// Whether there is a graph that can make room for another.
    pub(super) fn has_old(&self) -> bool {
        self.oldest().is_some()
    }

    /// Takes the graph out that was not used for longest; nothing is under way.
    pub(super) fn take_old(&mut self) -> Option<Made<R>> {
        self.oldest().map(|at| self.entries.swap_remove(at).made)
    }

    /// The graph of the batch that was named.
    pub(super) fn keep(&mut self, made: Made<R>) -> usize {
        self.known.retain(|(hash, _)| *hash != self.hash);
        self.entries.push(Entry {
            hash: self.hash,
            words: self.words.as_slice().into(),
            memory: self.memory.as_slice().into(),
            made,
            last: 0,
            used: self.clock,
        });
        self.entries.len() - 1
    }

    /// The batch that was named could not be made one.
    pub(super) fn refuse(&mut self) {
        if let Some((hash, seen)) = self.known.back_mut()
            && *hash == self.hash
        {
            *seen = SEEN - AGAIN;
        }
    }

    /// A graph, for a launch that ends with this command.
    pub(super) fn launch(&mut self, at: usize, last: u64) -> &Made<R> {
        let entry = &mut self.entries[at];
        entry.last = last;
        &entry.made
    }

    /// Lets all graphs go: they are not used any more.
    pub(super) fn forget_all(&mut self) {
        let all = self.entries.drain(..);
        self.gone.extend(all.map(|entry| entry.made));
    }

    /// Lets graphs go that name memory which is not there any more.
    pub(super) fn forget_removed(&mut self, regions: &Regions) {
        let removals = regions.removals();
        if std::mem::replace(&mut self.removals, removals) == removals {
            return;
        }
        let all = std::mem::take(&mut self.entries);
        for entry in all {
            let mut own = entry.memory.iter().filter(|(_, id)| is_own(*id));
            if own.all(|(base, generation)| regions.has(*base, *generation)) {
                self.entries.push(entry);
            } else {
                self.gone.push(entry.made);
            }
        }
    }

    /// Graphs to be destroyed once nothing is under way.
    pub(super) fn gone(&mut self) -> Vec<Made<R>> {
        std::mem::take(&mut self.gone)
    }

    /// All of them.
    pub(super) fn into_all(self) -> impl Iterator<Item = Made<R>> {
        let kept = self.entries.into_iter().map(|entry| entry.made);
        kept.chain(self.gone)
    }
}
