//! Waits that are made up for in a later call.
//!
//! A rank that ends a rooted op with a wait for a bare signal needs nothing of it but to hear that the
//! other rank called the same. It may as well hear that later, and then runs ahead: the root of small
//! broadcasts by as many as there are flags.
//!
//! Nobody is kept waiting for it. What is owed are the only puts of their channel in an op (see
//! [`defer`]), each lies in its flag's line, and so few are left ([`most`]) that the sender always finds
//! a free one. They stay owed over calls of one and the same plan alone, with answers or without. Any other call makes them
//! up first, so that it finds the channels as the plan's verifier has it: with nothing in them but its
//! own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Direct, Move};
use crate::arena::Arena;
use crate::execute::op::Planned;
use crate::execute::peer::Peer;

/// What a rank owes.
#[derive(Default)]
pub(in crate::execute) struct Owed {
    /// Waits, of all peers.
    pub count: u32,
    /// The plan of the calls that left them.
    by: Option<Arc<Planned>>,
}

impl Owed {
    /// Whether a call of this plan has to make up for them before it begins. Not one of the same plan without answers, which
    /// waits for nothing from those of whom something is owed.
    #[inline]
    pub(in crate::execute) fn is_due(&self, planned: &Arc<Planned>) -> bool {
        self.count > 0 && !(self.by.as_ref()).is_some_and(|by| by.is_like(planned))
    }

    /// A call of this plan begins.
    #[inline]
    pub(in crate::execute) fn begin(&mut self, planned: &Arc<Planned>, direct: &Direct) {
        if direct.owes && !self.by.as_ref().is_some_and(|by| Arc::ptr_eq(by, planned)) {
            self.by = Some(planned.clone());
        }
    }

    /// The first peer of whom something is owed.
    pub(in crate::execute) fn first(&self, peers: &[Peer]) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let first = peers.iter().position(|peer| !peer.owed.is_empty());
        first.map(|peer| peer as u32)
    }
}

/// Waits of one peer that may stay owed. The peer has sent no more than these and what it was not told
/// yet is given back, since credits are given several at a time; all of that has `flags`.
pub(super) fn most(arena: &Arena, flags: u32) -> usize {
    (u64::from(flags) - (arena.credit() - 1)) as usize
}

/// Marks the bare signals to ranks of which nothing is waited for behind them.
///
/// A rank that has put something for a later call has ended this one: it has the signal, or left it owed and waits for
/// it no sooner than for that of the later call. So where that put is there already, the signal may wait for that call
/// (`Common::raise`), and then one message carries both. Posted links gain by it. Not for plans that also
/// run without answers: there the later call may have nothing to send.
pub(super) fn mark_last(moves: &mut [Move]) {
    let mut awaited = HashSet::new();
    let mut bare = HashMap::new();
    for step in moves.iter_mut().rev() {
        match step {
            Move::Wait { from, .. } | Move::Owe { from } => {
                awaited.insert(*from);
            }
            Move::Raise { to, last, .. } if !awaited.contains(to) => {
                bare.insert(*to, last);
            }
            Move::Begin { to, bytes } => {
                if let Some(last) = bare.remove(to) {
                    *last = *bytes == 0;
                }
            }
            _ => {}
        }
    }
}

/// Longer puts are worth a call of the operating system each.
const AHEAD: u64 = 16 << 10;

/// Marks the short puts of a plan in which those to which something is put answer later or not at all: this rank may be far
/// ahead of them.
pub(super) fn mark_ahead(moves: &mut [Move]) {
    let mut put = 0;
    for step in moves {
        match step {
            Move::Begin { bytes, .. } => put = u64::from(*bytes),
            Move::Raise { ahead, .. } => *ahead = (1..=AHEAD).contains(&put),
            _ => {}
        }
    }
}

/// Marks what is given back to ranks to which the plan puts something too: the next put tells of it, in this call or in
/// the next of its kind. A rank that only receives tells at once, so that its sender need not stop
/// (but see [`Peer::post_credit`]).
pub(super) fn mark_rides(moves: &mut [Move]) {
    let raised = |step: &Move| match step {
        Move::Raise { to, .. } => Some(*to),
        _ => None,
    };
    let put_to: HashSet<u32> = moves.iter().filter_map(raised).collect();
    for step in moves {
        if let Move::Release { from, rides, .. } = step {
            *rides = put_to.contains(from);
        }
    }
}

/// Marks the bare signals to ranks that leave their waits for them owed, and from which comes a put, whose credits answers
/// go along with, and those credits; see [`Answers`](super::Answers).
pub(super) fn mark_answers(moves: &mut [Move], owes: impl Fn(u32) -> bool) {
    let from = |step: &Move| match step {
        Move::Wait { from, bytes, .. } => (*bytes > 0).then_some(*from),
        _ => None,
    };
    let putting: HashSet<u32> = moves.iter().filter_map(from).collect();
    let mut answered = HashSet::new();
    let mut is_bare = false;
    for step in &mut *moves {
        match step {
            Move::Begin { bytes, .. } => is_bare = *bytes == 0,
            Move::Raise { to, answer, .. } => {
                *answer = is_bare && putting.contains(to) && owes(*to);
                if *answer {
                    answered.insert(*to);
                }
            }
            _ => {}
        }
    }
    if !answered.is_empty() {
        mark_held(moves, |from| answered.contains(&from));
    }
}

/// Marks what is given back to ranks that may hear of it later.
pub(super) fn mark_held(moves: &mut [Move], later: impl Fn(u32) -> bool) {
    let mut longest: HashMap<u32, u32> = HashMap::new();
    for step in &*moves {
        if let Move::Wait { from, bytes, .. } = step {
            let longest = longest.entry(*from).or_default();
            *longest = (*bytes).max(*longest);
        }
    }
    for step in moves {
        if let Move::Release { from, held, .. } = step
            && later(*from)
        {
            *held = longest.get(from).copied();
        }
    }
}

/// Makes the bare signals for which a program waits at its very end owed, where they are all that
/// comes from their rank.
pub(super) fn defer(moves: &mut Vec<Move>) -> bool {
    let mut from = Vec::new();
    let mut rest = moves.as_slice();
    while let [
        before @ ..,
        Move::Wait {
            from: peer, blocks, ..
        },
        Move::Release { from: given, .. },
    ] = rest
        && peer == given
        && blocks.is_empty()
        && is_only_wait(before, *peer)
    {
        from.push(*peer);
        rest = before;
    }
    moves.truncate(rest.len());
    moves.extend(from.iter().rev().map(|from| Move::Owe { from: *from }));
    !from.is_empty()
}

fn is_only_wait(before: &[Move], peer: u32) -> bool {
    let waits = |step: &Move| matches!(step, Move::Wait { from, .. } if *from == peer);
    !before.iter().any(waits)
}

#[cfg(test)]
mod tests {
    use unisono_plan::Blocks;

    use super::*;
    use crate::execute::peer::{Fetch, Near, Own, Way, most_held};

    fn hear(from: u32) -> [Move; 2] {
        let wait = Move::Wait {
            from,
            bytes: 0,
            blocks: Blocks::NONE,
            land: None,
            shown: false,
        };
        let (rides, held) = (false, None);
        [wait, Move::Release { from, rides, held }]
    }

    fn raise(to: u32) -> Move {
        Move::Raise {
            to,
            last: false,
            answer: false,
            ahead: false,
        }
    }

    fn put(to: u32, bytes: u32) -> [Move; 2] {
        [Move::Begin { to, bytes }, raise(to)]
    }

    /// Which are marked as the last.
    fn last(moves: &[Move]) -> Vec<u32> {
        let last = |step: &Move| match step {
            Move::Raise { to, last: true, .. } => Some(*to),
            _ => None,
        };
        moves.iter().filter_map(last).collect()
    }

    #[test]
    fn only_bare_signals_behind_the_last_wait_for_their_rank_may_wait() {
        let mut answer = [hear(0), put(0, 0)].concat();
        mark_last(&mut answer);
        assert_eq!(last(&answer), [0]);
        let mut asked = [put(0, 0), hear(0)].concat();
        mark_last(&mut asked);
        assert!(last(&asked).is_empty(), "its rank may wait for it");
        let mut data = [hear(1), put(0, 0), put(1, 4), put(2, 0)].concat();
        mark_last(&mut data);
        assert_eq!(last(&data), [0, 2], "data is not held back");
        let mut two = [put(1, 0), put(1, 0)].concat();
        mark_last(&mut two);
        assert_eq!(last(&two), [1, 1]);
    }

    /// Which are marked as answers.
    fn answers(moves: &[Move]) -> Vec<u32> {
        let answer = |step: &Move| match step {
            Move::Raise {
                to, answer: true, ..
            } => Some(*to),
            _ => None,
        };
        moves.iter().filter_map(answer).collect()
    }

    #[test]
    fn bare_signals_that_are_owed_by_who_puts_something_are_answers() {
        let wait = |from| Move::Wait {
            from,
            bytes: 4,
            blocks: Blocks::NONE,
            land: None,
            shown: false,
        };
        let mut moves = [put(1, 0), put(2, 0), put(3, 0), put(4, 4)].concat();
        moves.extend([wait(1), wait(2), wait(4)]);
        moves.extend(hear(3));
        let mut none = moves.clone();
        mark_answers(&mut moves, |rank| rank != 2);
        // 2 waits for it in the call, of 3 come no credits, and 4 gets data.
        assert_eq!(answers(&moves), [1]);
        mark_answers(&mut none, |_| false);
        assert!(answers(&none).is_empty());
    }

    #[test]
    fn credits_of_puts_that_are_answered_are_held() {
        let put_by = |from, bytes| {
            let [_, release] = hear(from);
            let blocks = Blocks::NONE;
            [
                Move::Wait {
                    from,
                    bytes,
                    blocks,
                    land: None,
                    shown: false,
                },
                release,
            ]
        };
        let puts = [(1, 4), (2, 4), (2, 5000), (3, 4)];
        let mut moves = puts.map(|(from, bytes)| put_by(from, bytes)).concat();
        moves.extend([1, 2].map(|to| put(to, 0)).concat());
        mark_answers(&mut moves, |_| true);
        assert_eq!(answers(&moves), [1, 2]);
        let held = |step: &Move| match step {
            Move::Release { from, held, .. } => Some((*from, *held)),
            _ => None,
        };
        let held: Vec<_> = moves.iter().filter_map(held).collect();
        // By the longest, and 3 is not answered.
        let wanted = [(1, Some(4)), (2, Some(5000)), (2, Some(5000)), (3, None)];
        assert_eq!(held, wanted);
    }

    #[test]
    fn who_only_receives_tells_at_once() {
        let mut moves = [hear(0), hear(1), put(1, 4)].concat();
        mark_rides(&mut moves);
        let rides = |step: &Move| match step {
            Move::Release { from, rides, .. } => Some((*from, *rides)),
            _ => None,
        };
        let rides: Vec<_> = moves.iter().filter_map(rides).collect();
        assert_eq!(rides, [(0, false), (1, true)]);
    }

    fn owed(moves: &[Move]) -> Vec<u32> {
        let owe = |step: &Move| match step {
            Move::Owe { from } => Some(*from),
            _ => None,
        };
        moves.iter().filter_map(owe).collect()
    }

    #[test]
    fn bare_signals_at_the_end_are_owed() {
        let mut moves = [raise(1)].into_iter().collect::<Vec<_>>();
        moves.extend([hear(1), hear(2)].concat());
        assert!(defer(&mut moves));
        assert_eq!((moves.len(), owed(&moves)), (3, vec![1, 2]));
    }

    #[test]
    fn what_something_follows_is_not() {
        let mut moves = hear(1).to_vec();
        moves.push(raise(0));
        assert!(!defer(&mut moves));
        assert!(owed(&moves).is_empty());
    }

    #[test]
    fn nor_is_the_second_put_of_a_channel() {
        let mut moves = [hear(1), hear(1), hear(2)].concat();
        assert!(defer(&mut moves));
        assert_eq!((moves.len(), owed(&moves)), (5, vec![2]));
    }

    /// What is held back of answers is less than what may be owed: who runs ahead needs none of it.
    #[test]
    fn a_credit_comes_before_too_much_is_owed() {
        for depth in 2..100 {
            let arena = Arena {
                ranks: 2,
                depth,
                slot_bytes: 4096,
            };
            let most = most(&arena, arena.few_flags());
            assert!(arena.credit() < most as u64 + 1, "{depth} slots");
            // Where credits are held, of puts without slots, there are more flags.
            let most = super::most(&arena, arena.data_flags()) as u64;
            for rooms in [arena.data_flags(), arena.medium_places(), depth] {
                let told_late = (most_held(&arena, rooms) + 1) * arena.credit();
                let half = u64::from(rooms) / 2;
                assert!(told_late <= half.max(arena.credit()), "{depth} slots");
                assert!(told_late < most, "{depth} slots");
            }
        }
    }

    /// However many calls a receiver leaves owed, its sender has been given the credits for the next
    /// bare signal.
    #[test]
    fn a_sender_always_finds_a_flag() {
        for depth in 2..100 {
            let arena = Arena {
                ranks: 2,
                depth,
                slot_bytes: 4096,
            };
            let own = Own::new(0, arena);
            for inline in [true, false] {
                let mapped = || Way::Mapped {
                    signal: 0,
                    slots: 0,
                    bell: 0,
                    inline,
                    fetch: Fetch::default(),
                };
                let mut sender = Peer::new(1, mapped(), Near::default());
                let mut receiver = Peer::new(0, mapped(), Near::default());
                let most = most(&arena, sender.flags(&own));
                assert!(most >= 2, "{depth} slots");
                let (mut owed, mut told) = (0, 0);
                for call in 0..10 * arena.data_flags() {
                    // As `Common::owe` does, but that it makes up for no more than it has to. What is owed
                    // answers what this rank has sent in the same call, so it comes first.
                    if owed == most {
                        owed -= 1;
                        told += u64::from(receiver.give_back(&own));
                    }
                    owed += 1;
                    let rooms = sender.rooms_of(&own, 0);
                    if let Some(credits) = sender.lacks_credits(&own, rooms) {
                        assert!(
                            credits <= told,
                            "{depth} slots, call {call}: {credits} of {told}"
                        );
                        sender.have_credits(credits);
                    }
                    sender.sent += 1;
                }
            }
        }
    }
}
