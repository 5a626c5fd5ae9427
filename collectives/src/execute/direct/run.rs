//! Running moves.
#![allow(
    unsafe_code,
    reason = "copies, combines and raises flags at the addresses of calls and arenas"
)]

use std::ops::Range;

use unisono_copy::{LINE, WORTH, Ways, are_runs_faster, fetch_to_write};
use unisono_hal::Reduce;
use unisono_plan::Blocks;

use super::{Direct, Move, Space, Spot, flag, owed};
use crate::error::Error;
use crate::execute::common::Common;
use crate::execute::op::Planned;
use crate::execute::peer::{Goes, Line, Own, Peer, Way, pace_of};
use crate::execute::pointed::Message;

/// So many bytes of a result are asked for before it is put together where a peer reads it. Those of less were asked for when
/// a put some before was told of (`fetch_ahead`); of more a kernel of the host's asks for the lines as it goes on. Among four ranks on two cores of a Xeon
/// with AMX-FP16 reduces of 4 to 16 KiB took 0.8 of the time so, among eight 0.86 to 0.96 (`cargo xtask peers -- --dirty
/// --ranks 4,8 --ops reduce --sizes 4K,8K,16K`, in turns with a build without it).
const ASKED_FOR: Range<u64> = (1 << 10) + 1..32 << 10;

/// A call that runs directly.
#[derive(Debug, Default)]
pub(in crate::execute) struct Running {
    /// The next move.
    pub(super) next: usize,
    /// Where the put lies that is being filled, and its bytes.
    pub(super) fill: u64,
    filled: u32,
    /// Whether the link reads it there, in the caller's memory.
    lent: bool,
    /// What calls of other plans owe is to be made up first.
    due: bool,
}

/// A plan with what one call tells its peers.
#[derive(Clone, Copy)]
pub(in crate::execute) struct Bound<'a> {
    pub planned: &'a Planned,
    /// How the plan runs so.
    pub direct: &'a Direct,
    pub words: &'a [u64; 3],
    /// The number of the op, to tell the first signal between two ranks.
    pub number: u64,
}

/// The buffers of a call. By itself and not in [`Bound`], so that it comes in registers: both words are read at once soon
/// after each was written, which through memory waits until the writes are through.
#[derive(Clone, Copy)]
pub(in crate::execute) struct Buffers {
    pub input: u64,
    pub output: u64,
}

/// What running came to.
#[derive(Debug)]
pub(in crate::execute) enum Ran {
    /// All moves are done.
    Done,
    /// A peer has not come so far.
    Waits,
    /// The same, but there was some progress.
    Moved,
    /// The plugin does not combine elements that it said it supports. In a box, so that the others are words.
    Failed(Box<unisono_hal::Error>),
    /// A peer has told of what is not here.
    Wrong(Box<Error>),
}

/// What a wait in the stream does in place of the move that waits.
pub(in crate::execute) enum Handed {
    /// The move is done once the stream has waited.
    Done,
    /// It is to be run again then.
    Again,
}

impl Running {
    /// The run of a call; `due` if what others owe is to be made up first.
    pub(in crate::execute) fn new(due: bool) -> Self {
        Self {
            due,
            ..Self::default()
        }
    }

    /// Who is waited for.
    #[inline]
    pub(in crate::execute) fn waits_for(&self, direct: &Direct) -> Option<u32> {
        match direct.moves.get(self.next)? {
            _ if self.due => None,
            Move::Begin { to, .. } | Move::Room { to, .. } | Move::Settle { to } => Some(*to),
            Move::Wait { from, .. } | Move::Owe { from } | Move::Get { from, .. } => Some(*from),
            _ => None,
        }
    }

    /// Whether the run stands at a put that [was not there](Self::runs_at_once), and that put or another that it waits for
    /// seems to come from a rank that needs this core: to look again is in vain before that has had it.
    #[inline]
    pub(in crate::execute) fn stands_in_the_way(&self, direct: &Direct, common: &Common) -> bool {
        let Some(&Move::Get { from, bytes, .. }) = direct.moves.get(self.next) else {
            return false;
        };
        let peer = &common.peers[from as usize];
        // One that is not small was not looked for.
        let has_looked = !self.due && peer.plain(bytes).is_some();
        has_looked && (peer.alongside.seems_here() || self.waits_for_one_here(from, direct, common))
    }

    /// Whether a rank other than `from`, at which the run stands, has not come that the call waits for too and that seems to
    /// need this core. What posted links bring is not known before they are driven.
    pub(in crate::execute) fn waits_for_one_here(
        &self,
        from: u32,
        direct: &Direct,
        common: &Common,
    ) -> bool {
        let behind = direct.moves.get(self.next + 1..).unwrap_or_default();
        others(behind, from).any(|(other, shown)| {
            let peer = &common.peers[other as usize];
            peer.alongside.seems_here()
                && matches!(peer.way, Way::Mapped { .. })
                && !is_there(&common.own, peer, shown.then_some(direct))
        })
    }

    /// Goes on until all is done or a peer is to be waited for.
    pub(in crate::execute) fn run(
        &mut self,
        op: &Bound<'_>,
        buffers: Buffers,
        common: &mut Common,
    ) -> Ran {
        let before = self.next;
        let ran = match self.due && !common.make_up_all() {
            true => Ran::Waits,
            false => {
                self.due = false;
                loop {
                    if self.moves_at_once(op, buffers, common) {
                        break Ran::Done;
                    }
                    if let Some(ran) = self.moves(op, buffers, common) {
                        break ran;
                    }
                }
            }
        };
        common.ring();
        match ran {
            Ran::Waits if self.next != before => Ran::Moved,
            other => other,
        }
    }

    /// Does all if it can be done in one go. If not, and it may have done some, the rest is to be [`run`](Self::run).
    #[inline(always)]
    pub(in crate::execute) fn runs_at_once(
        &mut self,
        op: &Bound<'_>,
        buffers: Buffers,
        common: &mut Common,
    ) -> bool {
        if self.due || !self.moves_at_once(op, buffers, common) {
            return false;
        }
        common.ring();
        true
    }

    /// Goes on move by move; `None` before some that may be done in one go.
    fn moves(&mut self, op: &Bound<'_>, buffers: Buffers, common: &mut Common) -> Option<Ran> {
        let moves = &*op.direct.moves;
        let Buffers { input, output } = buffers;
        let mut bases = [input, output, common.scratch_base(), self.fill];
        // Where one such stands first it could not be done.
        let mut goes_on = true;
        while let Some(next) = moves.get(self.next) {
            match *next {
                Move::Begin { to, bytes } => match common.begin_put(to, bytes) {
                    Some(fill) => {
                        (self.fill, self.filled) = (fill, bytes);
                        bases[Space::Fill.index()] = fill;
                    }
                    None => return Some(Ran::Waits),
                },
                Move::Room { to, bytes } => {
                    if !common.has_room_to_show(to, bytes) {
                        return Some(Ran::Waits);
                    }
                }
                Move::Show { bytes } => {
                    (self.fill, self.filled) = (common.show(bytes), bytes);
                    bases[Space::Fill.index()] = self.fill;
                }
                Move::Tell => common.tell(op, common.shows_by(), self.fill, self.filled),
                Move::Raise {
                    to,
                    last,
                    answer,
                    ahead,
                } => {
                    let filled = [self.fill, self.filled.into()];
                    // What is lent is let go of when it is sent.
                    let lent = std::mem::take(&mut self.lent);
                    let ahead = ahead && !lent;
                    common.raise(op, to, filled, [last, answer, ahead]);
                }
                Move::Fill {
                    to,
                    src,
                    bytes,
                    awaited,
                } => {
                    let src = common.at(&bases, src);
                    let peer = &mut common.peers[to as usize];
                    let answers = awaited || peer.answers_messages(&common.own);
                    if answers && peer.lends() {
                        self.fill = src;
                        self.lent = true;
                    } else if peer.loaded().is_some()
                        || common.own.swaps && op.planned.exchanges.contains(&to)
                    {
                        // What changes hands lies in the caches of who writes it.
                        // SAFETY: as for a copy below.
                        unsafe { copy(self.fill, src, bytes) };
                    } else {
                        // SAFETY: as for a copy below.
                        unsafe { fill(&mut peer.ways, self.fill, src, bytes) };
                    }
                }
                Move::Settle { to } => {
                    if !common.settle(to) {
                        return Some(Ran::Waits);
                    }
                }
                Move::Wait {
                    from,
                    bytes,
                    blocks,
                    land,
                    shown,
                } => {
                    let land = land.map(|to| (common.at(&bases, to), u64::from(bytes)));
                    if !common.wait(op, from, land, shown) {
                        return Some(Ran::Waits);
                    }
                    let peer = &mut common.peers[from as usize];
                    match shown {
                        true => peer.take_shown(&common.own, blocks, u64::from(bytes)),
                        false => peer.take(&common.own, blocks, u64::from(bytes)),
                    }
                }
                Move::Look { from } => match common.take_message(op.planned, from, output) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.next = moves.len();
                        break;
                    }
                    Err(error) => return Some(Ran::Wrong(error)),
                },
                Move::Land {
                    from,
                    dst,
                    src,
                    bytes,
                } => {
                    if !common.peers[from as usize].has_landed() {
                        let (dst, src) = (common.at(&bases, dst), common.at(&bases, src));
                        // SAFETY: as for a copy below.
                        unsafe { copy(dst, src, bytes) };
                    }
                }
                Move::Release { from, rides, held } => common.release(from, rides, held),
                Move::Owe { from } => {
                    if !common.owe(op.words, from) {
                        return Some(Ran::Waits);
                    }
                }
                Move::Copy { .. } | Move::Reduce { .. } => {
                    if let Err(error) = common.compute(next, op.planned, &bases) {
                        return Some(Ran::Failed(error));
                    }
                }
                Move::Put { .. } | Move::PutToAll { .. } | Move::Get { .. } if goes_on => {}
                Move::Put { .. } | Move::PutToAll { .. } | Move::Get { .. } => return None,
            }
            goes_on = false;
            self.next += 1;
        }
        Some(Ran::Done)
    }

    /// The wait at which the run stands, as what the stream is to do: `write` puts it into a batch, and notes
    /// the step that waits, if it is one of this call. `due` is the first peer of whom something is owed.
    pub(in crate::execute) fn hand_over(
        &mut self,
        direct: &Direct,
        due: Option<u32>,
        write: impl FnOnce(Pending, Option<u32>) -> Handed,
    ) {
        // What the moves behind it do one by one.
        if let Some(Move::Get { .. }) = direct.moves.get(self.next) {
            self.next += 1;
        }
        let pending = match direct.moves.get(self.next) {
            _ if self.due => match due {
                Some(from) => Pending::Owed { from },
                None => return,
            },
            Some(Move::Owe { from }) => Pending::Owed { from: *from },
            Some(at @ (Move::Begin { to, bytes } | Move::Room { to, bytes })) => Pending::Credits {
                to: *to,
                bytes: u64::from(*bytes),
                shown: matches!(at, Move::Room { .. }),
            },
            Some(Move::Settle { to }) => Pending::Sources { to: *to },
            Some(Move::Wait {
                from,
                bytes,
                blocks,
                shown,
                ..
            }) => Pending::Data {
                from: *from,
                blocks: *blocks,
                bytes: u64::from(*bytes),
                shown: *shown,
            },
            _ => return,
        };
        let step = match pending {
            Pending::Owed { .. } => None,
            _ => direct.steps.get(self.next).copied(),
        };
        if let Handed::Done = write(pending, step) {
            self.next += 1;
        }
    }
}

/// What a run waits for.
pub(in crate::execute) enum Pending {
    /// Room for a put of so many bytes, which may be shown.
    Credits { to: u32, bytes: u64, shown: bool },
    /// The link to let go of what it reads.
    Sources { to: u32 },
    /// The oldest signal that is owed.
    Owed { from: u32 },
    /// A put of so many bytes, which may be shown.
    Data {
        from: u32,
        blocks: Blocks,
        bytes: u64,
        shown: bool,
    },
}

impl Common {
    /// Copies or combines.
    #[inline]
    pub(super) fn compute(
        &mut self,
        step: &Move,
        planned: &Planned,
        bases: &[u64; 4],
    ) -> Result<(), Box<unisono_hal::Error>> {
        match *step {
            Move::Copy { dst, src, bytes } => {
                let is_fill = dst.space_index() == Space::Fill.index();
                let is_fetched = src.space_index() >= Space::Slot(0).index();
                let (dst, src) = (self.at(bases, dst), self.at(bases, src));
                if u64::from(bytes) >= WORTH && is_fill {
                    let ways = &mut self.peers[self.own.rank as usize].ways;
                    // SAFETY: as below; what is filled is no place of the call's.
                    unsafe { fill(ways, dst, src, bytes) };
                } else if u64::from(bytes) >= WORTH && is_fetched {
                    // SAFETY: as below.
                    unsafe { fetch(dst, src, bytes) };
                } else if dst != src {
                    // SAFETY: the call's buffers, scratch and slots, which are plain memory here;
                    // the plan's verifier has shown that nothing else uses the destination now.
                    // Two places of one plan are equal or apart.
                    unsafe { copy(dst, src, bytes) };
                }
                Ok(())
            }
            Move::Reduce {
                dst,
                a,
                b,
                elements,
                last,
            } => {
                let bytes = u64::from(elements) * planned.element;
                if dst.space_index() == Space::Fill.index()
                    && ASKED_FOR.contains(&bytes)
                    && are_runs_faster()
                {
                    ask_for(self.at(bases, dst), bytes);
                }
                let divisor = if last { planned.divisor } else { 0 };
                let (dst, a, b) = (self.at(bases, dst), self.at(bases, a), self.at(bases, b));
                if let Some(combiner) = planned.combiner.as_ref().filter(|_| divisor == 0) {
                    // SAFETY: as above.
                    unsafe { combiner.combine(dst, a, b, elements.into()) };
                    return Ok(());
                }
                let reduce = Reduce {
                    dst,
                    a,
                    b,
                    elements: u64::from(elements),
                    repeat: 1,
                    dst_stride: 0,
                    a_stride: 0,
                    b_stride: 0,
                    dtype: planned.dtype,
                    reduction: planned.reduction,
                    divisor,
                    streaming: false,
                };
                // SAFETY: as above.
                unsafe { self.running_cpu().reduce(&reduce) }.map_err(Box::new)
            }
            _ => Ok(()),
        }
    }

    /// An address, by where the spaces begin that are no peer's.
    #[inline]
    pub(super) fn at(&self, bases: &[u64; 4], spot: Spot) -> u64 {
        let space = bases.get(spot.space_index());
        let base = space.copied().unwrap_or_else(|| {
            let peer = &self.peers[spot.rank() as usize];
            peer.current_slot(&self.own)
        });
        base + spot.offset()
    }

    /// Where a put is to be filled, once there is room.
    #[inline]
    fn begin_put(&mut self, to: u32, bytes: u32) -> Option<u64> {
        let bytes = u64::from(bytes);
        let peer = &mut self.peers[to as usize];
        let mut fill = place_for(&self.own, peer, bytes);
        if fill.is_none() {
            self.look_again(to, |own, peer| {
                fill = place_for(own, peer, bytes);
                fill.is_some()
            });
        }
        fill
    }

    /// Whether there is room to show a peer so many bytes.
    #[inline]
    fn has_room_to_show(&mut self, to: u32, bytes: u32) -> bool {
        let own = &self.own;
        let peer = &mut self.peers[to as usize];
        let rooms = peer.rooms_to_show(own, bytes.into());
        has_room(own, peer, rooms)
    }

    /// Where so many bytes that are shown next are to be written: all others have room for them.
    #[inline]
    pub(super) fn show(&self, bytes: u32) -> u64 {
        let itself = &self.peers[self.own.rank as usize];
        itself.shows_next(&self.own, bytes.into()).0
    }

    /// The flag that tells of it.
    fn shows_by(&self) -> Line {
        let itself = &self.peers[self.own.rank as usize];
        itself.shown_next(&self.own)
    }

    /// Tells all, by the next flag, of what was written to be shown, and lies at `src` too, if that is not the same place.
    #[inline]
    pub(super) fn tell(
        &mut self,
        op: &Bound<'_>,
        Line { flag, counter }: Line,
        src: u64,
        bytes: u32,
    ) {
        let own = &self.own;
        let itself = &mut self.peers[own.rank as usize];
        itself.fetch_to_show(own, bytes.into());
        // SAFETY: both are of this rank's own arena; the lane's lock is held and its stream is idle.
        unsafe { flag::raise(flag, counter, Some(op.words)) };
        if own.twins && op.direct.twins && u64::from(bytes) <= own.small_bytes() {
            tell_twin(own, itself, op.words, src, bytes);
        }
        itself.has_shown_all();
        let bells = &mut self.bells;
        for peer in &mut self.peers {
            if let Way::Mapped { bell, .. } = peer.way {
                peer.sent += 1;
                peer.signed = op.number;
                note(bells, bell);
            }
        }
    }

    /// Where something had not come from a peer: looks once more when its link has gone on.
    #[cold]
    fn look_again(&mut self, at: u32, mut has_come: impl FnMut(&Own, &mut Peer) -> bool) -> bool {
        let peer = &mut self.peers[at as usize];
        if let Way::Posted(posted) = &mut peer.way {
            self.unsent |= !posted.go_on();
            if has_come(&self.own, peer) {
                return true;
            }
        }
        self.send_back();
        false
    }

    /// Before this rank waits: nobody waits for what it has held back.
    #[inline]
    fn send_back(&mut self) {
        if !std::mem::take(&mut self.held_back) {
            return;
        }
        for peer in &mut self.peers {
            if let Way::Posted(posted) = &mut peer.way
                && !posted.batch.is_empty()
                && !posted.holds_answers
            {
                self.unsent |= !posted.push();
            }
        }
        self.answers.puts = false;
    }

    #[inline]
    fn raise(
        &mut self,
        op: &Bound<'_>,
        to: u32,
        [fill, bytes]: [u64; 2],
        [last, answer, ahead]: [bool; 3],
    ) {
        let own = &self.own;
        let peer = &mut self.peers[to as usize];
        let words = (peer.signed != op.number).then_some(op.words);
        peer.signed = op.number;
        let Way::Mapped { bell, .. } = peer.way else {
            let was_empty = matches!(&peer.way, Way::Posted(posted) if posted.batch.is_empty());
            peer.post_filled(own, fill, bytes, words.copied());
            // See `owed::mark_last`.
            let may_wait = last && is_ahead(own, peer);
            if let Way::Posted(posted) = &mut peer.way {
                let gives = posted.credit_held;
                if ahead && self.answers.is_quick() && posted.may_hold(bytes) {
                    self.held_back = true;
                    posted.holds_answers = false;
                    (self.answers.held, self.answers.puts) = (true, true);
                } else if answer && !gives && self.answers.may_wait() {
                    posted.holds_answers |= was_empty;
                    self.answers.held = true;
                } else if may_wait && !gives {
                    self.held_back = true;
                    posted.holds_answers = false;
                } else {
                    // With a credit it goes at once, too: the rank that is ahead needs that.
                    self.unsent |= !posted.push();
                    if ahead {
                        self.answers.pushed();
                    }
                }
            }
            return;
        };
        if let Some(plain) = peer.plain(0) {
            peer.fetch_ahead(plain, bytes);
        }
        if op.planned.says_where() && words.is_some() && peer.may_point() {
            peer.say_where(own);
        }
        let Line { flag, counter } = peer.raised(own);
        peer.sent += 1;
        // SAFETY: the flag is in the peer's arena, which the lane keeps imported; else as above.
        unsafe { flag::raise(flag, counter, words) };
        self.note(bell);
    }

    #[inline]
    fn wait(&mut self, op: &Bound<'_>, from: u32, land: Option<(u64, u64)>, shown: bool) -> bool {
        let own = &self.own;
        let words_of = |peer: &Peer| (peer.compared != op.number).then_some(op.words);
        let peer = &mut self.peers[from as usize];
        let mut has_come = match shown {
            true => is_shown(own, peer, words_of(peer)),
            false => has_come(own, peer, words_of(peer)),
        };
        if !has_come && !shown {
            if let Some((to, bytes)) = land {
                peer.land_once(own, to, bytes);
            }
            has_come = self.look_again(from, |own, peer| self::has_come(own, peer, words_of(peer)));
        }
        if has_come {
            self.peers[from as usize].compared = op.number;
        }
        has_come
    }

    /// Whether the link to a rank has let go of what it was let read.
    #[inline]
    fn settle(&mut self, to: u32) -> bool {
        self.peers[to as usize].is_let_go(&self.own)
            || self.look_again(to, |own, peer| peer.is_let_go(own))
    }

    /// Leaves the wait for a bare signal of this call owed. False if too many are.
    #[inline]
    fn owe(&mut self, words: &[u64; 3], from: u32) -> bool {
        let flags = self.peers[from as usize].flags(&self.own);
        let most = owed::most(&self.own.arena, flags);
        if self.peers[from as usize].owed.len() >= most {
            if !self.make_up(from) {
                return false;
            }
            // All that have come at once: their lines come to this core side by side.
            while !self.peers[from as usize].owed.is_empty() && self.make_up(from) {}
        }
        self.peers[from as usize].owed.push_back(*words);
        self.owed.count += 1;
        true
    }

    /// Waits for all that is owed. False if something has not come.
    #[cold]
    fn make_up_all(&mut self) -> bool {
        while let Some(from) = self.owed.first(&self.peers) {
            if !self.make_up(from) {
                return false;
            }
        }
        true
    }

    /// Takes what has come of all that posted links are to bring. False if something has not come.
    #[cold]
    pub(in crate::execute) fn make_up_posted(&mut self) -> bool {
        let mut is_all = true;
        for from in 0..self.peers.len() {
            let brings = |peer: &Peer| match &peer.way {
                Way::Posted(posted) => posted.ended.is_none() && !peer.owed.is_empty(),
                Way::Own | Way::Mapped { .. } => false,
            };
            while brings(&self.peers[from]) {
                if !self.make_up(from as u32) {
                    is_all = false;
                    break;
                }
            }
        }
        is_all
    }

    /// Waits for the oldest signal that is owed of a peer. False if it has not come.
    fn make_up(&mut self, from: u32) -> bool {
        if self.make_up_at_once(from) {
            return true;
        }
        let peer = &mut self.peers[from as usize];
        if !has_come(&self.own, peer, peer.owed.front())
            && !self.look_again(from, |own, peer| has_come(own, peer, peer.owed.front()))
        {
            return false;
        }
        let peer = &mut self.peers[from as usize];
        peer.owed.pop_front();
        peer.take(&self.own, Blocks::NONE, 0);
        self.owed.count -= 1;
        // What is owed answers a put.
        self.release(from, true, None);
        true
    }

    #[inline]
    fn release(&mut self, from: u32, rides: bool, held: Option<u32>) {
        let own = &self.own;
        let peer = &mut self.peers[from as usize];
        if !peer.give_back(own) {
            return;
        }
        let Way::Mapped { bell, .. } = peer.way else {
            let held = held.filter(|_| self.answers.may_wait());
            match peer.post_credit(own, rides, held) {
                Goes::Later => self.answers.held = true,
                Goes::Along => self.held_back = true,
                Goes::Now => {
                    if let Way::Posted(posted) = &mut peer.way {
                        self.unsent |= !posted.push();
                    }
                }
            }
            return;
        };
        let Line { flag, counter } = peer.given();
        // SAFETY: as in `raise`.
        unsafe { flag::raise(flag, counter, None) };
        self.note(bell);
    }

    /// Takes a message from the window in which its first put says that it lies; false if it passes slots.
    fn take_message(
        &mut self,
        planned: &Planned,
        from: u32,
        output: u64,
    ) -> Result<bool, Box<Error>> {
        let own = &self.own;
        let peer = &mut self.peers[from as usize];
        if !peer.may_point() {
            return Ok(false);
        }
        let said = peer.told(own);
        peer.hear(said);
        let bytes = planned.bytes_of_buffer();
        let message = Message::of(&self.windows, from, said, bytes);
        let Message::InWindow {
            address,
            window,
            since,
        } = message.map_err(Box::new)?
        else {
            return Ok(false);
        };
        // SAFETY: the sender leaves the message alone until it is given back, the caller its buffer, and the window
        // stays mapped meanwhile. Of calls that run so a put has no more bytes than 32 bits say, nor has the message.
        unsafe { copy(output, address, bytes as u32) };
        drop(window);
        let took = pace_of(bytes, since.elapsed());
        peer.skip_received(own);
        let Line { flag, counter } = peer.given();
        // SAFETY: as in `raise`.
        unsafe { flag::raise(flag, counter, Some(&took)) };
        if let Way::Mapped { bell, .. } = peer.way {
            self.note(bell);
        }
        Ok(true)
    }

    #[inline]
    pub(super) fn note(&mut self, bell: u64) {
        note(&mut self.bells, bell);
    }
}

/// Shows once more what lies at `src`, is short and was told of just now, for those who share this rank's core.
#[inline]
fn tell_twin(own: &Own, itself: &Peer, words: &[u64; 3], src: u64, bytes: u32) {
    itself.fetch_twin(own);
    let (Line { flag, counter }, place) = itself.shown_small(own, bytes.into(), true);
    if bytes > 0 {
        // SAFETY: as for a copy by itself; the twin's place is given back with the flag's.
        unsafe { copy(place, src, bytes) };
    }
    // SAFETY: as for the flag.
    unsafe { flag::raise_twin(flag, counter, words) };
}

/// The ranks other than `from` for whose puts these moves wait, and whether those are shown.
fn others(moves: &[Move], from: u32) -> impl Iterator<Item = (u32, bool)> {
    moves.iter().filter_map(move |step| match *step {
        Move::Wait {
            from: other, shown, ..
        } if other != from => Some((other, shown)),
        _ => None,
    })
}

/// A bell is to be rung.
#[inline]
fn note(bells: &mut Vec<u64>, bell: u64) {
    if bell != 0 && bells.last() != Some(&bell) {
        bells.push(bell);
    }
}

/// Copies bytes, of which there often are as many as one element has.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(super) unsafe fn copy(dst: u64, src: u64, bytes: u32) {
    let (dst, src) = (dst as usize as *mut u8, src as usize as *const u8);
    // SAFETY: the caller's promise. Numbers that are known make single moves.
    unsafe {
        match bytes {
            4 => std::ptr::copy_nonoverlapping(src, dst, 4),
            8 => std::ptr::copy_nonoverlapping(src, dst, 8),
            _ => unisono_copy::copy(dst, src, bytes as usize),
        }
    }
}

/// Asks for all lines of a place that a peer has read, before a result is written there: of one after the other each is
/// waited for. One that changes hands lies in this core's caches, where it is asked for in no time.
#[inline]
fn ask_for(address: u64, bytes: u64) {
    for line in (0..bytes).step_by(LINE) {
        fetch_to_write((address + line) as usize as *const u8);
    }
}

/// Copies bytes that another rank has put.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn fetch(dst: u64, src: u64, bytes: u32) {
    let (dst, src) = (dst as usize as *mut u8, src as usize as *const u8);
    // SAFETY: the caller's promise.
    unsafe { unisono_copy::copy_shared(dst, src, bytes as usize) };
}

/// Copies bytes to where another rank reads them next.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn fill(ways: &mut Ways, dst: u64, src: u64, bytes: u32) {
    ways.write(bytes.into(), |past| {
        let (to, from) = (dst as usize as *mut u8, src as usize as *const u8);
        // SAFETY: the caller's promise.
        unsafe {
            match past {
                true => unisono_copy::copy_past(to, from, bytes as usize),
                false => unisono_copy::copy_shared(to, from, bytes as usize),
            }
        }
    });
}

/// Where the next put is to be filled, if its peer has room for it.
#[inline(always)]
fn place_for(own: &Own, peer: &mut Peer, bytes: u64) -> Option<u64> {
    let rooms = peer.rooms_of(own, bytes);
    has_room(own, peer, rooms)
        .then(|| peer.free_fill(own, bytes))
        .flatten()
}

/// Whether the peer has room for the next put, of those for which it has so many rooms. Takes the credits that say so.
#[inline(always)]
pub(super) fn has_room(own: &Own, peer: &mut Peer, rooms: u32) -> bool {
    let Some(credits) = peer.lacks_credits(own, rooms) else {
        return true;
    };
    let Line { flag, counter } = peer.credit();
    // SAFETY: of this rank's own arena; the lane's lock is held and its stream is idle.
    let given = unsafe { flag::pass(flag, counter, credits - peer.credits(), None) };
    if given {
        peer.have_credits(credits);
    }
    given
}

/// Whether the next put of a peer has come already.
#[inline]
fn is_ahead(own: &Own, peer: &Peer) -> bool {
    is_there(own, peer, None)
}

/// Whether the next put of a peer has come, or is shown by it in such a plan, whatever its words.
#[inline]
fn is_there(own: &Own, peer: &Peer, shown: Option<&Direct>) -> bool {
    // SAFETY: as in `has_come`, and in `is_told`.
    let is_raised = |Line { flag, counter }| unsafe { flag::is_raised(flag, counter) };
    match shown {
        // What a stream shows has no twin.
        Some(direct) => {
            let by_twin = || is_raised(peer.twin_line(own, peer.shown));
            direct.tells_twice(own, peer) && by_twin() || is_raised(peer.shown_next(own))
        }
        None => is_raised(peer.awaited(own)),
    }
}

/// Whether a peer has shown its next group, with these words.
#[inline(always)]
fn is_shown(own: &Own, peer: &Peer, words: Option<&[u64; 3]>) -> bool {
    is_told(peer.shown_next(own), words)
}

/// Whether what a peer shows is told of by this line, with these words.
#[inline(always)]
pub(super) fn is_told(Line { flag, counter }: Line, words: Option<&[u64; 3]>) -> bool {
    // SAFETY: the flag is in the peer's arena, which the lane keeps imported; else as in `has_come`.
    unsafe { flag::pass(flag, counter, 1, words) }
}

/// Whether the next put of a peer has come, with these words.
#[inline(always)]
fn has_come(own: &Own, peer: &Peer, words: Option<&[u64; 3]>) -> bool {
    let Line { flag, counter } = peer.awaited(own);
    // SAFETY: of this rank's own arena; the lane's lock is held and its stream is idle.
    unsafe { flag::pass(flag, counter, 1, words) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::execute::peer::{Fetch, Near};

    /// Groups of all short lengths, two rounds of them and more. Of each third the flag alone tells, as if a stream had shown
    /// it: its twin then says nothing, though it has told of one of the round before.
    #[test]
    fn what_is_told_of_twice_is_taken_by_the_twin_and_else_by_the_flag() {
        let arena = Arena {
            ranks: 3,
            depth: 8,
            slot_bytes: 128 << 10,
        };
        let zeros = |bytes: u64| vec![0_u64; bytes as usize / 8];
        let memory = || (zeros(arena.signal_bytes()), zeros(arena.slots_bytes()));
        let [(mut signal, mut slots), (mut others, _)] = [memory(), memory()];
        let address = |words: &mut Vec<u64>| words.as_mut_ptr() as u64;
        let (signal, slots, others) = (
            address(&mut signal),
            address(&mut slots),
            address(&mut others),
        );
        let near = |signal, slots| Near {
            signal,
            slots,
            signal_host: signal,
            plain: true,
            ..Near::default()
        };
        let own = |rank| {
            Own::new(rank, arena)
                .that_swaps(true)
                .that_takes_turns(true)
        };
        let (sender, reader) = (own(1), own(0));
        assert!(sender.twins && sender.small_bytes() >= 1000);
        let mut itself = Peer::new(1, Way::Own, near(signal, slots));
        itself.set_lines(&sender);
        let way = Way::Mapped {
            signal,
            slots,
            bell: 0,
            inline: true,
            fetch: Fetch::default(),
        };
        let mut peer = Peer::new(1, way, near(others, 0));
        peer.set_lines(&reader);
        for group in 0..u64::from(arena.data_flags()) * 5 / 2 {
            let bytes = [4, 32, 33, 1000][group as usize % 4];
            let words = [group, 2, 3];
            let data = vec![group as u8; bytes as usize];
            let (place, Line { flag, counter }) = itself.shows_next(&sender, bytes);
            // SAFETY: all of it is of these vectors, which stay.
            unsafe {
                copy(place, data.as_ptr() as u64, bytes as u32);
                flag::raise(flag, counter, Some(&words));
            }
            let is_twice = group % 3 != 0;
            if is_twice {
                tell_twin(&sender, &itself, &words, data.as_ptr() as u64, bytes as u32);
            }
            itself.has_shown_all();
            let (twin, lies) = peer.shown_small(&reader, bytes, true);
            assert_eq!(is_told(twin, Some(&words)), is_twice, "group {group}");
            if is_twice {
                peer.take_shown_at(lies);
                assert_ne!(peer.current_slot(&reader), place);
            } else {
                assert!(is_shown(&reader, &peer, Some(&words)));
                peer.take_shown(&reader, Blocks::NONE, bytes);
            }
            let taken = peer.current_slot(&reader) as *const u8;
            // SAFETY: as above.
            let taken = unsafe { std::slice::from_raw_parts(taken, bytes as usize) };
            assert_eq!(taken, data, "group {group}");
        }
    }

    /// Else a rank that waits twice for the same one would give its core up for it for ever, and never find that it has moved.
    #[test]
    fn who_is_waited_for_again_is_no_other() {
        let wait = |from, shown| Move::Wait {
            from,
            bytes: 4,
            blocks: Blocks::NONE,
            land: None,
            shown,
        };
        let release = Move::Release {
            from: 3,
            rides: false,
            held: None,
        };
        let moves = [wait(1, false), release, wait(2, true), wait(1, false)];
        assert_eq!(others(&moves, 1).collect::<Vec<_>>(), [(2, true)]);
        let of_two = [(1, false), (1, false)];
        assert_eq!(others(&moves, 2).collect::<Vec<_>>(), of_two);
    }
}
