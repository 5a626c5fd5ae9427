//! A posted link that the calling thread serves by itself, for short calls.
//!
//! Puts are filled in the slots from which links send, as a stream would on a device: a call may then return before
//! its link has let go of them. Nothing rings a doorbell: what is posted is there. Where the other rank is waited for in
//! any case, long puts are not copied (`direct/in_place.rs`).
#![allow(unsafe_code, reason = "flags are words at addresses of arenas")]

use unisono_hal::{Landing, Queue, State};

use super::{Lies, Own, Peer, Posted, Room, Run, SLOTS_WINDOW, Way, credit};
use crate::arena::{Arena, Counter};
use crate::execute::direct::flag;
use crate::execute::track::BUDGET;

/// Puts of a rank that is far ahead that go out together, and their bytes, at most: then a call of the operating system is
/// a small part of what each costs (`unisono bench broadcast,reduce --ranks 2 -b 4 -e 1K --without-links shm`: 1.13 to 1.18
/// times as long with 16).
const TOGETHER: u32 = 32;
const TOGETHER_BYTES: u64 = 64 << 10;
/// Of puts of more than [`SHORT`] bytes, for which there is less room, fewer go together.
const TOGETHER_LONG: u32 = 16;
const SHORT: u64 = 1 << 10;

/// Puts that are copied before a link is lent one again that did not let go at once.
const DISTRUST: u32 = 64;

/// When a credit goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) enum Goes {
    Now,
    /// With the next put, or before this rank waits.
    Along,
    /// As answers do.
    Later,
}

/// Credits that may be held where there is room for so many puts: half of them are told of at once. None of puts in
/// slots, of which each credit gives half.
pub(in crate::execute) fn most_held(arena: &Arena, rooms: u32) -> u64 {
    (u64::from(rooms / 2) / arena.credit()).saturating_sub(1)
}

impl Peer {
    /// Puts of so many bytes for which there is room. One of nothing needs a flag alone: what is owed to a peer are such.
    #[inline]
    pub(in crate::execute) fn rooms_of(&self, own: &Own, bytes: u64) -> u32 {
        match bytes {
            0 => self.flags(own),
            _ => self.rooms_now(own, self.room(own, bytes)),
        }
    }

    /// Whether a link might let puts land elsewhere than in their slots.
    pub(in crate::execute) fn can_land(&self) -> bool {
        matches!(self.way, Way::Posted(_)) && self.near.plain && self.slot_credits.is_none()
    }

    /// Lets the put that is waited for next land elsewhere than in its slot. False if its link can't, or it is too late.
    pub(in crate::execute) fn land(&mut self, own: &Own, to: u64, bytes: u64) -> bool {
        let number = self.received;
        let flags = u64::from(self.flags(own));
        let raised = |number: u64| {
            let flag = own.arena.data_flag(self.rank, self.flag_of(own, number));
            (self.near.signal_host + flag, number / flags + 1)
        };
        let room = self.room(own, bytes);
        let before = number.checked_sub(self.rooms(own, room).into());
        let landing = Landing {
            window: SLOTS_WINDOW,
            offset: match room {
                Room::Medium => own.arena.medium(self.rank, own.medium_of(number)),
                _ => own.arena.slot(self.rank, own.slot_of(number)),
            },
            to,
            bytes,
            until: raised(number),
            after: before.map(raised),
        };
        let Way::Posted(posted) = &mut self.way else {
            return false;
        };
        // SAFETY: the flags live as long as the link. The caller has seen that the place is one of the op's, which keeps
        // it alive and is not over before the put is, and that nothing else uses it. The peer puts to a slot again only
        // behind a credit, which comes after the wait for what was put there before. A link that fails here has done nothing:
        // the put lies in its slot.
        unsafe { posted.link.land(&landing) }.unwrap_or(false)
    }

    /// Of a direct run at a wait: as [`land`](Self::land), asked once for each put. It must not be small.
    #[cold]
    pub(in crate::execute) fn land_once(&mut self, own: &Own, to: u64, bytes: u64) {
        let is_new = self.asked <= self.received;
        self.asked = self.received + 1;
        let can = is_new && self.can_land() && self.holds_nothing();
        if can && self.land(own, to, bytes) {
            self.lies = Lies::Copied;
        }
    }

    /// Whether the put that was waited for last landed elsewhere; asked once.
    #[inline]
    pub(in crate::execute) fn has_landed(&mut self) -> bool {
        std::mem::take(&mut self.lies) == Lies::Copied
    }

    /// At a message to the peer: whether one was received from it since the last that was sent, and the link has nothing of
    /// this rank's left to read. Then it lets go at once.
    #[inline]
    pub(in crate::execute) fn answers_messages(&mut self, own: &Own) -> bool {
        let before = std::mem::replace(&mut self.received_before, self.messages_received);
        if before == self.messages_received {
            return false;
        }
        self.reap(own);
        matches!(&self.way, Way::Posted(posted) if posted.outstanding.is_empty())
    }

    /// Whether the next put may be read by the link where it is: not if the link took its time of late.
    #[inline]
    pub(in crate::execute) fn lends(&mut self) -> bool {
        let plain = self.near.plain;
        let Way::Posted(posted) = &mut self.way else {
            return false;
        };
        posted.distrust = posted.distrust.saturating_sub(1);
        plain && posted.distrust == 0
    }

    /// Whether the link has let go of all that it reads elsewhere than in slots to send from.
    #[inline]
    pub(in crate::execute) fn is_let_go(&mut self, own: &Own) -> bool {
        self.reap(own);
        let slots = self.near.sends + own.arena.slot(self.rank, 0);
        let slots = slots..slots + u64::from(own.arena.depth) * own.arena.slot_bytes;
        let Way::Posted(posted) = &mut self.way else {
            return true;
        };
        // Bare signals have no source.
        let is_lent = |source: &super::Source| source.to > 0 && !slots.contains(&source.from);
        let any = posted.outstanding.iter().any(is_lent);
        if any {
            posted.distrust = DISTRUST;
        }
        !any
    }

    /// Forgets the sources that the link has let go of.
    #[inline]
    fn reap(&mut self, own: &Own) {
        let done = self.near.signal_host + own.arena.done_flag(self.rank);
        let counter = self.near.signal_host + own.arena.counter(self.rank, Counter::DoneWait);
        let Way::Posted(posted) = &mut self.way else {
            return;
        };
        while !posted.outstanding.is_empty() {
            // SAFETY: of this rank's own arena; the lane's lock is held and its stream is idle.
            if !unsafe { flag::pass(done, counter, 1, None) } {
                break;
            }
            posted.outstanding.pop_front();
        }
    }

    /// Where the next put may be filled: where the last was if the link reads nothing, as the cache has those lines; else its
    /// room to send from, or a slot, whichever is free of what the link may still read.
    #[inline]
    pub(in crate::execute) fn free_fill(&mut self, own: &Own, bytes: u64) -> Option<u64> {
        let room = self.room(own, bytes);
        let first = self.next_slot(own, room);
        if bytes == 0 || !matches!(self.way, Way::Posted(_)) {
            return Some(first);
        }
        self.reap(own);
        let slot = self.near.sends + own.arena.slot(self.rank, own.slot_of(self.sent));
        let Way::Posted(posted) = &self.way else {
            return Some(first);
        };
        if posted.outstanding.is_empty() {
            return Some(self.near.sends + own.arena.slot(self.rank, 0));
        }
        let is_free = |start: &u64| {
            let end = start + bytes;
            let overlaps = |source: &super::Source| source.from < end && *start < source.to;
            !posted.outstanding.iter().any(overlaps)
        };
        [first, slot].into_iter().find(is_free)
    }

    /// Posts a put that was filled at `fill`.
    #[inline]
    pub(in crate::execute) fn post_filled(
        &mut self,
        own: &Own,
        fill: u64,
        bytes: u64,
        words: Option<[u64; 3]>,
    ) {
        let run = [Run {
            address: fill,
            bytes,
        }];
        let runs = if bytes == 0 {
            // Bare signals look for no slot.
            self.reap(own);
            &[]
        } else {
            &run[..]
        };
        self.puts(own, runs, words, |posted, put| posted.batch.put(&put));
    }

    /// Posts that slots were given back; it goes out with what is pushed next. That may be the next put if one `rides`,
    /// or messages went both ways of late. Where puts of up to `longest` bytes are given back it may be told of later, as
    /// long as there is room for as many as were not told of: the peer never stands still for want of what is held.
    #[inline]
    pub(in crate::execute) fn post_credit(
        &mut self,
        own: &Own,
        rides: bool,
        longest: Option<u32>,
    ) -> Goes {
        // Of what the peer puts here, whatever this rank has put there.
        let room = |bytes: u32| self.room(own, u64::from(bytes).max(1));
        let rooms = longest.map_or(0, |bytes| self.rooms(own, room(bytes)));

        let Way::Posted(posted) = &mut self.way else {
            return Goes::Along;
        };
        let is_first = posted.batch.is_empty();
        posted.batch.put(&credit(own));
        if posted.credits_held < most_held(&own.arena, rooms) {
            posted.holds_answers |= is_first;
            posted.credits_held += 1;
            return Goes::Later;
        }
        (posted.credit_held, posted.holds_answers) = (true, false);
        match std::mem::take(&mut posted.is_answered) || rides {
            true => Goes::Along,
            false => Goes::Now,
        }
    }
}

impl Posted {
    /// Gives the link what waits for it and lets it go on. False if it is to be driven on: it has something left to
    /// send, or has failed, which whoever drives it next is told.
    #[inline]
    pub(in crate::execute) fn push(&mut self) -> bool {
        if self.ended.is_some() {
            return self.batch.is_empty();
        }
        self.lets_go();
        if !self.batch.is_empty() {
            if self.link.submit(&mut self.batch).is_err() || !self.batch.is_empty() {
                return false;
            }
            self.batch.clear();
        }
        self.poll()
    }

    /// What lies in the batch goes out.
    #[inline]
    pub(in crate::execute) fn lets_go(&mut self) {
        (self.credit_held, self.holds_answers) = (false, false);
        (self.credits_held, self.puts_held, self.bytes_held) = (0, 0, 0);
    }

    /// Whether one more put of so many bytes may stay where it is, behind others.
    #[inline]
    pub(in crate::execute) fn may_hold(&mut self, bytes: u64) -> bool {
        self.puts_held += 1;
        self.bytes_held += bytes;
        let most = match bytes <= SHORT {
            true => TOGETHER,
            false => TOGETHER_LONG,
        };
        self.puts_held < most && self.bytes_held < TOGETHER_BYTES
    }

    /// As [`push`](Self::push), but that answers stay where they are.
    #[inline]
    pub(in crate::execute) fn go_on(&mut self) -> bool {
        match self.holds_answers {
            true => self.ended.is_none() && self.poll(),
            false => self.push(),
        }
    }

    fn poll(&mut self) -> bool {
        let polled = self.link.poll(BUDGET);
        polled.is_ok_and(|state| matches!(state.state, State::Idle))
    }
}
