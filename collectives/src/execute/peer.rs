//! One rank's half of its two channels with one peer: where slots and flags lie, and how far they
//! have been used.

mod hands;
mod lines;
mod pointed;
mod posted;
mod recorded;
mod room;
mod shown;
mod shuttle;
mod told;

use std::collections::VecDeque;
use std::time::Instant;

use unisono_copy::Ways;
use unisono_hal::{Batch, Link, Put};
use unisono_plan::{Blocks, ir::MIN_SLOTS};

use super::left::Unread;
use super::place::Run;
use crate::arena::{self, Arena, Counter, RINGS, Ring};
use crate::progress::Alongside;
pub(in crate::execute) use lines::{Line, Plain};
pub(in crate::execute) use pointed::pace_of;
pub(in crate::execute) use posted::Goes;
#[cfg(test)]
pub(in crate::execute) use posted::most_held;
pub(in crate::execute) use room::Room;
use room::modulo;
pub(in crate::execute) use shuttle::IN_SHUTTLE;
pub(crate) use shuttle::Load;

/// The window numbers of posted links.
pub(crate) const SIGNAL_WINDOW: u32 = 0;
pub(crate) const SLOTS_WINDOW: u32 = 1;

/// How the peer's memory is reached.
pub(crate) enum Way {
    /// This rank itself: no channel.
    Own,
    /// The peer's arena is imported.
    Mapped {
        signal: u64,
        slots: u64,
        bell: u64,
        /// Whether small puts need no slots: both devices are the CPU's.
        inline: bool,
        fetch: Fetch,
    },
    /// A link writes it.
    Posted(Box<Posted>),
}

/// Which way puts are *fetched*: the sender leaves them in slots of its own, from which the receiver reads them, where
/// links carry more so. Else the sender writes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// What this rank puts is fetched by the peer.
    pub sent: bool,
    /// This rank fetches what the peer puts.
    pub received: bool,
}

/// The posted link to a peer, and what waits in it.
pub(crate) struct Posted {
    pub link: Link,
    pub batch: Batch,
    /// Whether small puts need no slots: both devices are the CPU's.
    plain: bool,
    /// Sources of puts that the link may still read, oldest first.
    pub outstanding: VecDeque<Source>,
    /// Puts with data or signals so far, and the last of them that had data; releases do not count.
    puts: u64,
    last_data: u64,
    /// Of a direct run: a credit lies in the batch.
    pub credit_held: bool,
    /// Of a direct run: what lies in the batch are answers and so many credits, which may wait; see
    /// [`Answers`](super::direct::Answers).
    pub holds_answers: bool,
    credits_held: u64,
    /// Puts in the batch that may wait, and their bytes.
    pub puts_held: u32,
    bytes_held: u64,
    /// So many puts more are copied before the link reads one where it is.
    distrust: u32,
    /// Something was put since the last credit: what goes there may be answered.
    is_answered: bool,
    /// The peer has ended its link in good order, and nothing that it needs was lost.
    pub ended: Option<Ended>,
}

/// A link that its peer has ended.
#[derive(Clone)]
pub(crate) struct Ended {
    pub error: unisono_hal::Error,
    pub at: Instant,
}

/// Memory that a put reads until it is done: the span of its sources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub from: u64,
    pub to: u64,
}

pub(crate) struct Peer {
    pub rank: u32,
    pub way: Way,
    pub near: Near,
    /// What stands for its process in READs; 0 where its memory is not read.
    pub process: u64,
    /// Puts sent and received so far.
    pub sent: u64,
    pub received: u64,
    /// Credits that were waited for so far.
    credits: u64,
    /// Puts between plain memories for which that many make room, all that were sent counted; of this rank itself no end of
    /// them, and of others none.
    room_until: u64,
    /// Puts given back so far.
    released: u64,
    /// Bare signals whose waits are owed, oldest first: the words that they must carry.
    pub owed: VecDeque<[u64; 3]>,
    /// Whether it runs beside this rank.
    pub alongside: Alongside,
    /// Of a recorded call: each slot has a credit flag of its own, so much further than its data flag.
    slot_credits: Option<u64>,
    /// The op (by number) whose signature was last sent and last compared.
    pub signed: u64,
    pub compared: u64,
    /// The blocks of the put that was waited for last.
    pub current_blocks: Blocks,
    /// How this rank's core writes what the peer reads; of the rank itself, what all read.
    pub ways: Ways,
    /// Where it lies, if it is here.
    current: u64,
    lines: lines::Lines,
    /// Who fills which slots since when.
    hands: hands::Hands,
    shuttle: shuttle::Shuttle,
    /// Where the current put lies, and whether this rank has waited for it before its turn.
    pub lies: Lies,
    pub early: bool,
    /// Puts received when the last was asked to land elsewhere, that one included.
    asked: u64,
    /// How fast the peer takes messages from windows.
    paces: pointed::Paces,
    /// Groups that the peer, or this rank itself, has shown so far.
    pub shown: u64,
    /// Of this rank itself: puts of the group that has begun.
    of_group: u32,
    /// Messages of send/recv so far, each way.
    pub messages_sent: u32,
    pub messages_received: u32,
    /// How many had been received at the last that was sent.
    received_before: u32,
}

/// Where a put lies that was waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lies {
    /// In a slot of this rank's.
    #[default]
    Here,
    /// In the peer's memory, from which it is read once.
    There,
    /// Where it was to be copied to, before that step's turn.
    Copied,
}

/// Which rank this is, and how all arenas are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub rank: u32,
    pub arena: Arena,
    /// Whether all ranks may show each other what they put.
    pub shows: bool,
    /// Whether slots change hands.
    pub swaps: bool,
    /// Whether what is shown is told of twice, for who shares this rank's core.
    pub twins: bool,
    /// What the arena says, worked out once.
    flags: u32,
    few_flags: u32,
    medium_places: u32,
    small_bytes: u64,
    medium_bytes: u64,
    rings: [Ring; RINGS],
    long_slots: u32,
    /// Whether no rank needs slots for small puts.
    plain: bool,
    credit: u64,
    shared_credit: u64,
}

/// The arena of this rank's that a peer writes: of the device's memory, or of the host's for a peer
/// that does not reach that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Near {
    /// For commands of this rank's device. Its links send from `sends` on, and peers fetch from there.
    pub signal: u64,
    pub slots: u64,
    pub sends: u64,
    /// For the CPU and for links.
    pub signal_host: u64,
    /// For links: what `sends` is for the device.
    pub sends_link: u64,
    /// The device is the CPU: links read whatever it reads, callers' buffers too.
    pub plain: bool,
}

impl Near {
    /// A run among the slots to send from, where a link finds it. Where the CPU is the device, all memory
    /// is alike and the two addresses are one.
    fn at_link(&self, run: Run) -> Run {
        if run.bytes == 0 {
            return run;
        }
        let address = run.address.wrapping_sub(self.sends);
        Run {
            address: address.wrapping_add(self.sends_link),
            ..run
        }
    }
}

impl Own {
    pub(crate) fn new(rank: u32, arena: Arena) -> Self {
        Self {
            rank,
            arena,
            shows: false,
            swaps: false,
            twins: false,
            flags: arena.data_flags(),
            few_flags: arena.few_flags(),
            medium_places: arena.medium_places(),
            small_bytes: arena.small_bytes(),
            medium_bytes: arena.medium_bytes(),
            rings: arena.rings(),
            long_slots: arena.long_slots(0),
            plain: true,
            credit: arena.credit(),
            shared_credit: arena.shared_credit(arena.long_slots(0)),
        }
    }

    /// Bytes of the shuttle of each two ranks: where slots change hands, those into which nothing is put; 0 if there is none.
    pub(crate) fn shuttle_bytes(&self) -> u64 {
        let unused = self.arena.depth.saturating_sub(self.long_slots);
        match self.swaps && self.rings[0].bytes > 0 {
            true => u64::from(unused) * self.arena.slot_bytes,
            false => 0,
        }
    }

    /// The same where all ranks' cores are known to have a cache of so many bytes each.
    pub(crate) fn with_core_cache(self, bytes: u64) -> Self {
        let long_slots = self.arena.long_slots(bytes);
        Self {
            long_slots,
            shared_credit: self.arena.shared_credit(long_slots),
            ..self
        }
    }

    /// The same where slots change hands, or not.
    pub(crate) fn that_swaps(self, swaps: bool) -> Self {
        Self { swaps, ..self }
    }

    /// The same where slots change hands and ranks share cores, if they do. While one works the others of its core wait, and
    /// as many as find room have come by then; what they lie in stays in the core's cache the longer the less it is. On a
    /// Xeon with AMX-FP16 two slots in place of four made reduces of 1 to 64 MiB of eight ranks on two cores 1.1 to 1.16
    /// times as fast, reduce_scatters of 4 and 64 MiB 1.08 and 1.14 times, all_reduces 1.03 to 1.09 times (`cargo xtask peers
    /// -- --dirty --ranks 8 --ops reduce,reduce_scatter,all_reduce --sizes 1M,4M,16M,64M` with `UNISONO_MEMORY='{slots: 2}'`).
    /// And as a core takes over what it reads, what is shown has twins.
    pub(crate) fn that_takes_turns(self, turns: bool) -> Self {
        if !(turns && self.swaps) {
            return self;
        }
        let long_slots = self.long_slots.min(MIN_SLOTS);
        Self {
            long_slots,
            shared_credit: self.arena.shared_credit(long_slots),
            // Of two there is none on another core.
            twins: self.arena.ranks > 2,
            ..self
        }
    }

    /// The most bytes of a small put.
    pub(in crate::execute) fn small_bytes(&self) -> u64 {
        self.small_bytes
    }

    /// The same where ranks may show each other what they put, or not. `plain` if no rank needs slots for small puts.
    pub(crate) fn that_shows(self, shows: bool, plain: bool) -> Self {
        Self {
            shows,
            plain,
            ..self
        }
    }
}

impl Peer {
    pub(crate) fn new(rank: u32, way: Way, near: Near) -> Self {
        Self {
            rank,
            way,
            near,
            process: 0,
            sent: 0,
            received: 0,
            credits: 0,
            room_until: 0,
            released: 0,
            owed: VecDeque::new(),
            alongside: Alongside::default(),
            slot_credits: None,
            signed: 0,
            compared: 0,
            current_blocks: Blocks::NONE,
            ways: Ways::default(),
            current: 0,
            lines: lines::Lines::default(),
            hands: hands::Hands::default(),
            shuttle: shuttle::Shuttle::default(),
            lies: Lies::Here,
            early: false,
            asked: 0,
            paces: pointed::Paces::default(),
            shown: 0,
            of_group: 0,
            messages_sent: 0,
            messages_received: 0,
            received_before: 0,
        }
    }

    /// Data flags that are used, either way.
    #[inline]
    pub(super) fn flags(&self, own: &Own) -> u32 {
        match &self.way {
            Way::Mapped { inline: true, .. } => own.flags,
            Way::Posted(posted) if posted.plain => own.flags,
            _ => own.few_flags,
        }
    }

    /// The number of the data flag of a put.
    fn flag_of(&self, own: &Own, number: u64) -> u32 {
        match self.slot_credits {
            Some(_) => own.slot_of(number),
            None => modulo(number, self.flags(own).into()) as u32,
        }
    }

    fn counter(&self, own: &Own, counter: Counter) -> u64 {
        self.near.signal + own.arena.counter(self.rank, counter)
    }

    /// Whether the peer's link reads callers' buffers by itself: `None` where there is no link. Else puts
    /// are first copied to a slot that it reads.
    pub(super) fn gathers(&self) -> Option<bool> {
        match self.way {
            Way::Posted(_) => Some(self.near.plain),
            Way::Own | Way::Mapped { .. } => None,
        }
    }

    pub(super) fn fetch(&self) -> Fetch {
        match self.way {
            Way::Mapped { fetch, .. } => fetch,
            Way::Own | Way::Posted(_) => Fetch::default(),
        }
    }

    /// Whether this rank fetches what the peer puts.
    pub(super) fn is_fetched(&self) -> bool {
        self.fetch().received
    }

    /// Whether a put of this rank's goes over a mapped link when it is written.
    pub(super) fn is_written(&self) -> bool {
        matches!(self.way, Way::Mapped { .. }) && !self.fetch().sent
    }

    /// Where the current put lies in the peer's memory, which this rank fetches it from.
    pub(super) fn far_slot(&self, own: &Own) -> u64 {
        let Way::Mapped { slots, .. } = self.way else {
            unreachable!("what is fetched is mapped");
        };
        let slot = own.slot_of(self.received.wrapping_sub(1));
        slots + own.arena.sends() + own.arena.slot(own.rank, slot)
    }

    /// Whether this rank has given back all that the peer put.
    pub(super) fn holds_nothing(&self) -> bool {
        self.released == self.received
    }

    /// Where the put lies that was waited for last.
    #[inline]
    pub(super) fn current_slot(&self, own: &Own) -> u64 {
        if self.lies == Lies::There {
            return self.far_slot(own);
        }
        self.current_plainly()
    }

    /// The same between plain memories, where it lies here.
    #[inline]
    pub(super) fn current_plainly(&self) -> u64 {
        self.brought().unwrap_or(self.current)
    }

    /// Where the flag's line of the put that was waited for last has room.
    pub(super) fn current_line(&self, own: &Own) -> u64 {
        self.in_line(self.flag_of(own, self.received.wrapping_sub(1)), false)
    }

    /// The number of the flag that the next put to the peer raises.
    pub(super) fn next_flag(&self, own: &Own) -> u32 {
        self.flag_of(own, self.sent)
    }

    /// Credits that this rank has waited for.
    pub(super) fn credits(&self) -> u64 {
        self.credits
    }

    /// So many credits were waited for in all.
    pub(super) fn have_credits(&mut self, credits: u64) {
        self.credits = credits;
        self.set_room();
    }

    /// Wait until the peer has given so many credits in all. `beside` the main track
    /// the stream waits, so that the link holds up nobody else.
    pub(super) fn await_credits(
        &mut self,
        own: &Own,
        stream: &mut Batch,
        credits: u64,
        beside: bool,
    ) {
        if let Some(further) = self.slot_credits {
            self.await_slot(own, stream, further);
            self.have_credits(credits);
            return;
        }
        let flag = own.arena.credit_flag(self.rank);
        let counter = own.arena.counter(self.rank, Counter::CreditWait);
        let Near {
            signal,
            signal_host,
            ..
        } = self.near;
        for _ in self.credits..credits {
            match &mut self.way {
                Way::Posted(posted) if !beside => {
                    let wait = (signal_host + flag, signal_host + counter);
                    posted.batch.wait(wait.0, wait.1, None);
                }
                _ => stream.wait(signal + flag, signal + counter, None),
            }
        }
        self.have_credits(credits);
    }

    /// After a put's slot was written (mapped): tell the peer.
    pub(super) fn signal_data(&mut self, own: &Own, stream: &mut Batch, words: Option<[u64; 3]>) {
        let flag = self.flag_of(own, self.sent);
        self.sent += 1;
        let Way::Mapped { signal, bell, .. } = self.way else {
            unreachable!("posted puts are signalled by their link");
        };
        stream.signal(
            signal + own.arena.data_flag(own.rank, flag),
            self.counter(own, Counter::DataSignal(flag)),
            bell,
            words,
        );
    }

    /// Hand a put to the posted link: `runs` are its sources, in order.
    pub(super) fn post(
        &mut self,
        own: &Own,
        stream: &mut Batch,
        runs: &[Run],
        words: Option<[u64; 3]>,
    ) {
        let (rank, near) = (self.rank, self.near);
        if let Way::Posted(posted) = &mut self.way {
            ring(own, rank, near, stream, &mut posted.batch);
        }
        self.puts(own, runs, words, |posted, put| posted.batch.put(&put));
    }

    /// What the posted link is to do for a put: `runs` are its sources, in order.
    pub(super) fn puts(
        &mut self,
        own: &Own,
        runs: &[Run],
        words: Option<[u64; 3]>,
        mut put: impl FnMut(&mut Posted, Put),
    ) {
        let (slot, flag) = (own.slot_of(self.sent), self.flag_of(own, self.sent));
        let bytes = runs.iter().map(|run| run.bytes).sum();
        let room = self.room(own, bytes);
        let (rank, near) = (self.rank, self.near);
        let mut offset = match room {
            Room::Ring(_) | Room::Long | Room::Slot => own.arena.slot(own.rank, slot),
            Room::Medium => own.arena.medium(own.rank, own.medium_of(self.sent)),
            Room::Line | Room::Small => own.arena.small(own.rank, flag),
        };
        self.sent += 1;
        let Way::Posted(posted) = &mut self.way else {
            unreachable!("only posted links take puts");
        };
        let mut span = Source {
            from: u64::MAX,
            to: 0,
        };
        let (last, before) = match runs.split_last() {
            Some((last, before)) => (*last, before),
            None => (Run::NONE, runs),
        };
        for run in before {
            let part = Put {
                dst_offset: offset,
                ..gathered(near.at_link(*run))
            };
            put(posted, part);
            offset += run.bytes;
        }
        for run in runs {
            span.from = span.from.min(run.address);
            span.to = span.to.max(run.address + run.bytes);
        }
        let part = Put {
            dst_offset: offset,
            signal: Some((SIGNAL_WINDOW, own.arena.data_flag(own.rank, flag))),
            words,
            done: Some((
                near.signal_host + own.arena.done_flag(rank),
                near.signal_host + own.arena.counter(rank, Counter::DoneSignal),
            )),
            ..gathered(near.at_link(last))
        };
        put(posted, part);
        posted.outstanding.push_back(span);
        posted.puts += 1;
        if bytes > 0 {
            posted.last_data = posted.puts;
        }
        posted.is_answered = true;
    }

    /// What the peer has not fetched yet of what it is to fetch from this rank's memory.
    pub(super) fn unread(&self, own: &Own) -> Option<Unread> {
        let unread = Unread {
            given_back: self.near.signal_host + own.arena.credit_flag(self.rank),
            sent: self.sent,
        };
        (self.fetch().sent && !unread.is_over()).then_some(unread)
    }

    /// After the peer has ended its link: true if it has all data that this rank ever put. What is left are slots given
    /// back and bare signals: who has left in good order waits for none.
    pub(super) fn has_all(&self, own: &Own) -> bool {
        let Way::Posted(posted) = &self.way else {
            return true;
        };
        let done = arena::read(self.near.signal_host + own.arena.done_flag(self.rank));
        done >= posted.last_data
    }

    /// The end of its link, where data was put since for the peer that has left.
    pub(super) fn lost_data(&self, own: &Own) -> Option<&Ended> {
        let Way::Posted(posted) = &self.way else {
            return None;
        };
        posted.ended.as_ref().filter(|_| !self.has_all(own))
    }

    /// The number of the flag that the next put from the peer raises.
    pub(super) fn next_data(&self, own: &Own) -> u32 {
        self.flag_of(own, self.received)
    }

    /// The next put from the peer is the current one. It has these blocks, and `bytes` in all.
    #[inline]
    pub(super) fn take(&mut self, own: &Own, blocks: Blocks, bytes: u64) {
        self.current_blocks = blocks;
        let number = self.received;
        self.current = match self.room(own, bytes) {
            Room::Line => self.in_line(self.flag_of(own, number), false),
            Room::Small => self.small(self.flag_of(own, self.taken()), self.has_swapped()),
            Room::Medium => self.near.slots + own.arena.medium(self.rank, own.medium_of(number)),
            room @ (Room::Ring(_) | Room::Long) => self.shared_taken(own, room),
            Room::Slot => self.near.slots + own.arena.slot(self.rank, own.slot_of(number)),
        };
        self.received += 1;
    }

    /// The same of a small put that lies here, whose blocks are not asked for.
    #[inline]
    pub(super) fn take_at(&mut self, place: u64) {
        self.current = place;
        self.received += 1;
    }

    /// Wait for the next put from the peer, which has these blocks, and so many bytes in all, and may be `shown`.
    pub(super) fn await_data(
        &mut self,
        own: &Own,
        stream: &mut Batch,
        words: Option<[u64; 3]>,
        blocks: Blocks,
        (bytes, shown): (u64, bool),
    ) {
        if shown {
            let Line { flag, counter } = self.shown_next(own);
            self.take_shown(own, blocks, bytes);
            stream.wait(flag, counter, words);
            return;
        }
        let flag = self.next_data(own);
        self.take(own, blocks, bytes);
        stream.wait(
            self.near.signal + own.arena.data_flag(self.rank, flag),
            self.counter(own, Counter::DataWait(flag)),
            words,
        );
    }

    /// Waits for the oldest signal that is owed, and gives it back. False if none is.
    pub(super) fn make_up(&mut self, own: &Own, stream: &mut Batch) -> bool {
        let Some(words) = self.owed.pop_front() else {
            return false;
        };
        self.await_data(own, stream, Some(words), Blocks::NONE, (0, false));
        if self.give_back(own) {
            self.release(own, stream);
        }
        true
    }

    /// Gives the current put back; true if the peer is to be told, for it and some before it.
    #[inline]
    pub(super) fn give_back(&mut self, own: &Own) -> bool {
        self.released += 1;
        if self.slot_credits.is_some() {
            return true;
        }
        modulo(self.released, self.puts_a_credit(own, self.is_fetched())) == 0
    }

    /// Tells the peer that puts were given back.
    pub(super) fn release(&mut self, own: &Own, stream: &mut Batch) {
        self.release_with(own, stream, None);
    }

    /// The same with words, over a mapped link.
    pub(super) fn release_with(&mut self, own: &Own, stream: &mut Batch, words: Option<[u64; 3]>) {
        let (rank, near) = (self.rank, self.near);
        if let Some(further) = self.slot_credits {
            self.release_slot(own, stream, further);
            return;
        }
        let flag = own.arena.credit_flag(own.rank);
        let counter = self.counter(own, Counter::CreditSignal);
        match &mut self.way {
            Way::Own => {}
            Way::Mapped { signal, bell, .. } => {
                stream.signal(*signal + flag, counter, *bell, words);
            }
            Way::Posted(posted) => {
                ring(own, rank, near, stream, &mut posted.batch);
                posted.batch.put(&credit(own));
            }
        }
    }

    /// Wait until the link has let go of every source that overlaps `[from, to)`.
    pub(super) fn settle(&mut self, own: &Own, stream: &mut Batch, from: u64, to: u64) {
        let (rank, near) = (self.rank, self.near);
        let Way::Posted(posted) = &mut self.way else {
            return;
        };
        let overlapping = posted
            .outstanding
            .iter()
            .rposition(|source| source.from < to && from < source.to);
        if let Some(last) = overlapping {
            await_done(own, rank, near, stream, posted, last + 1);
        }
    }

    /// Wait until the link has let go of every source.
    pub(super) fn settle_all(&mut self, own: &Own, stream: &mut Batch) {
        let (rank, near) = (self.rank, self.near);
        if let Way::Posted(posted) = &mut self.way {
            let all = posted.outstanding.len();
            await_done(own, rank, near, stream, posted, all);
        }
    }
}

impl Posted {
    /// `plain` says that both devices are the CPU's.
    pub(crate) fn new(link: Link, plain: bool) -> Self {
        Self {
            link,
            batch: super::new_batch(),
            plain,
            outstanding: VecDeque::new(),
            puts: 0,
            last_data: 0,
            credit_held: false,
            holds_answers: false,
            credits_held: 0,
            puts_held: 0,
            bytes_held: 0,
            distrust: 0,
            is_answered: false,
            ended: None,
        }
    }
}

/// A put of one run to the slots, without signals.
fn gathered(run: Run) -> Put {
    Put {
        src: run.address,
        bytes: run.bytes,
        repeat: 1,
        src_stride: 0,
        dst_window: SLOTS_WINDOW,
        dst_offset: 0,
        signal: None,
        done: None,
        words: None,
    }
}

/// What a posted link is to do to give a slot back.
pub(super) fn credit(own: &Own) -> Put {
    Put {
        signal: Some((SIGNAL_WINDOW, own.arena.credit_flag(own.rank))),
        ..gathered(Run::NONE)
    }
}

/// The stream rings the link: what it did before is done.
fn ring(own: &Own, rank: u32, near: Near, stream: &mut Batch, link: &mut Batch) {
    let flag = own.arena.doorbell_flag(rank);
    let [rings, waits] = [Counter::DoorbellSignal, Counter::DoorbellWait]
        .map(|counter| own.arena.counter(rank, counter));
    stream.signal(near.signal + flag, near.signal + rings, 0, None);
    link.wait(near.signal_host + flag, near.signal_host + waits, None);
}

fn await_done(
    own: &Own,
    rank: u32,
    near: Near,
    stream: &mut Batch,
    posted: &mut Posted,
    puts: usize,
) {
    let flag = near.signal + own.arena.done_flag(rank);
    let counter = near.signal + own.arena.counter(rank, Counter::DoneWait);
    for _ in posted.outstanding.drain(..puts) {
        stream.wait(flag, counter, None);
    }
}
