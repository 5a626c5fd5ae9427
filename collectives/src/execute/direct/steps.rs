//! What each move does, but for those that show, copy or combine.
#![allow(
    unsafe_code,
    reason = "raises flags, and looks at them, at the addresses of arenas"
)]

use unisono_plan::Blocks;

use super::compute::copy;
use super::run::Bound;
use super::show::is_shown;
use super::{Direct, flag, owed};
use crate::error::Error;
use crate::execute::common::Common;
use crate::execute::op::Planned;
use crate::execute::peer::{Goes, Line, Own, Peer, Way, pace_of};
use crate::execute::pointed::Message;

impl Common {
    /// Where a put is to be filled, once there is room.
    #[inline]
    pub(super) fn begin_put(&mut self, to: u32, bytes: u32) -> Option<u64> {
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

    #[inline]
    pub(super) fn raise(
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
        self.bells.note(bell);
    }

    #[inline]
    pub(super) fn wait(
        &mut self,
        op: &Bound<'_>,
        from: u32,
        land: Option<(u64, u64)>,
        shown: bool,
    ) -> bool {
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
    pub(super) fn settle(&mut self, to: u32) -> bool {
        self.peers[to as usize].is_let_go(&self.own)
            || self.look_again(to, |own, peer| peer.is_let_go(own))
    }

    /// Leaves the wait for a bare signal of this call owed. False if too many are.
    #[inline]
    pub(super) fn owe(&mut self, words: &[u64; 3], from: u32) -> bool {
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
    pub(super) fn make_up_all(&mut self) -> bool {
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
    pub(super) fn release(&mut self, from: u32, rides: bool, held: Option<u32>) {
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
        self.bells.note(bell);
    }

    /// Takes a message from the window in which its first put says that it lies; false if it passes slots.
    pub(super) fn take_message(
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
            self.bells.note(bell);
        }
        Ok(true)
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
pub(super) fn is_there(own: &Own, peer: &Peer, shown: Option<&Direct>) -> bool {
    match shown {
        // What a stream shows has no twin: such a rank counts as missing until this one has given its core up once.
        Some(direct) => is_raised(match direct.tells_twice(own, peer) {
            true => peer.twin_line(own, peer.shown),
            false => peer.shown_next(own),
        }),
        None => is_raised(peer.awaited(own)),
    }
}

/// Whether a flag of a peer's, or of this rank's own, is raised that a direct run waits for.
#[inline]
pub(in crate::execute) fn is_raised(Line { flag, counter }: Line) -> bool {
    // SAFETY: as in `has_come`, and in `is_told`.
    unsafe { flag::is_raised(flag, counter) }
}

/// Whether the next put of a peer has come, with these words.
#[inline(always)]
fn has_come(own: &Own, peer: &Peer, words: Option<&[u64; 3]>) -> bool {
    let Line { flag, counter } = peer.awaited(own);
    // SAFETY: of this rank's own arena; the lane's lock is held and its stream is idle.
    unsafe { flag::pass(flag, counter, 1, words) }
}
