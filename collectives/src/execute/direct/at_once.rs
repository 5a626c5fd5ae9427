//! What comes in a row in short programs, done in one go.
//!
//! A put to a peer whose memory is mapped takes three moves, and so does one that comes from it. Each of them looks up
//! that peer and how it is reached, which is most of what there is to do for a few bytes. [`Move::Put`],
//! [`Move::PutToAll`] and [`Move::Get`] stand before such moves and do what these do. Where one cannot, as something has
//! not come yet or the peer is reached in another way, nothing was done, and the moves behind it are run one by one.
#![allow(
    unsafe_code,
    reason = "copies and raises flags at the addresses of calls and arenas"
)]

use super::compute::copy;
use super::flag;
use super::run::{AtOnce, Bound, Buffers, Running};
use super::show::is_told;
use super::steps::has_room;
use super::{Move, Space, Spot};
use crate::execute::common::Common;
use crate::execute::peer::{Line, Peer, Plain};

/// What becomes of a put that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uses {
    /// Nothing: it is empty.
    Nothing,
    /// All of it is copied.
    Copy { dst: Spot },
    /// What the move between the wait and the release says.
    Step,
}

/// Puts [`Move::Put`] and [`Move::Get`] before what they do. Each has the step of the move behind it.
pub(super) fn shorten(moves: &[Move], steps: &[u32], takes: bool) -> (Vec<Move>, Vec<u32>) {
    let mut shortened = (Vec::new(), Vec::new());
    for (at, (step, number)) in moves.iter().zip(steps).enumerate() {
        let goes_on = at > 0 && matches!(moves[at - 1], Move::Room { .. });
        let to_all = || (!goes_on).then(|| put_to_all(&moves[at..])).flatten();
        let all = put(&moves[at..]).or_else(|| get(&moves[at..], takes));
        if let Some(all) = all.or_else(to_all) {
            shortened.0.push(all);
            shortened.1.push(*number);
        }
        shortened.0.push(*step);
        shortened.1.push(*number);
    }
    shortened
}

/// The put with which these begin, if it is empty or filled by one copy.
fn put(moves: &[Move]) -> Option<Move> {
    let (to, bytes, src) = match *moves {
        [Move::Begin { to, bytes: 0 }, Move::Raise { .. }, ..] => (to, 0, Spot(0)),
        [
            Move::Begin { to, bytes },
            Move::Copy {
                dst,
                src,
                bytes: filled,
            },
            Move::Raise { .. },
            ..,
        ] if filled == bytes && dst == Spot(Space::Fill.base()) => (to, bytes, src),
        _ => return None,
    };
    Some(Move::Put { to, src, bytes })
}

/// The group that is shown with which these begin, if it is empty or filled by one copy.
fn put_to_all(moves: &[Move]) -> Option<Move> {
    let is_room = |step: &&Move| matches!(step, Move::Room { .. });
    let rooms = moves.iter().take_while(is_room).count();
    match moves[rooms..] {
        [Move::Show { bytes: 0 }, Move::Tell, ..] => Some(Move::PutToAll {
            src: Spot(0),
            bytes: 0,
        }),
        [
            Move::Show { bytes },
            Move::Copy {
                dst,
                src,
                bytes: filled,
            },
            Move::Tell,
            ..,
        ] if filled == bytes && dst == Spot(Space::Fill.base()) => {
            Some(Move::PutToAll { src, bytes })
        }
        _ => None,
    }
}

/// What is taken from the put with which these begin, if it is nothing or one copy or sum.
fn get(moves: &[Move], takes: bool) -> Option<Move> {
    let looks = matches!(moves, [_, Move::Look { .. }, ..]);
    let (wait, behind) = moves.split_first()?;
    match (wait, &behind[usize::from(looks)..]) {
        (
            &Move::Wait {
                from,
                bytes,
                land: None,
                shown,
                ..
            },
            [Move::Release { from: given, .. }, ..],
        ) if *given == from => Some(Move::Get {
            from,
            bytes,
            uses: Uses::Nothing,
            looks,
            takes,
            shown,
        }),
        (
            &Move::Wait {
                from,
                bytes,
                land: None,
                shown,
                ..
            },
            [
                used @ (Move::Copy { .. } | Move::Reduce { .. }),
                Move::Release { from: given, .. },
                ..,
            ],
        ) if *given == from => Some(Move::Get {
            from,
            bytes,
            uses: uses(*used, from, bytes),
            looks,
            takes,
            shown,
        }),
        _ => None,
    }
}

/// What a move between the wait for a put and its release does with it.
fn uses(used: Move, from: u32, taken: u32) -> Uses {
    match used {
        Move::Copy { dst, src, bytes }
            if bytes == taken
                && src == Spot(Space::Slot(from).base())
                && [Space::In, Space::Out, Space::Scratch]
                    .iter()
                    .any(|space| dst.space_index() == space.index()) =>
        {
            Uses::Copy { dst }
        }
        _ => Uses::Step,
    }
}

impl Running {
    /// Goes on as far as can be done in one go, and to one move no further while a rank has not come that needs this core.
    #[inline(always)]
    pub(super) fn moves_at_once(
        &mut self,
        op: &Bound<'_>,
        Buffers { input, output }: Buffers,
        common: &mut Common,
        gives_way_at: usize,
    ) -> AtOnce {
        let bases = [input, output, common.scratch_base(), self.fill];
        let mut next = self.next;
        while let Some(step) = op.direct.moves.get(next) {
            if next == gives_way_at
                && let Some(missing) = op.direct.missing_here(common)
            {
                self.next = next;
                return AtOnce::GivesWay(missing);
            }
            let past = match *step {
                Move::Put { to, src, bytes } => {
                    let src = common.at(&bases, src);
                    let put = common.put_at_once(op, to, src, bytes);
                    // Past itself and what begins, fills (if there are bytes) and raises it.
                    put.then_some(if bytes > 0 { 4 } else { 3 })
                }
                Move::PutToAll { src, bytes } => {
                    let src = common.at(&bases, src);
                    let put = common.put_to_all_at_once(op, src, bytes);
                    // Past itself, the rooms of all others, what begins, fills (if there are bytes) and tells of it.
                    put.then_some(common.peers.len() + if bytes > 0 { 3 } else { 2 })
                }
                Move::Get {
                    from,
                    bytes,
                    uses,
                    looks,
                    takes,
                    shown,
                } if common.take_at_once(op, from, bytes, [looks, takes, shown]) => {
                    let used = match uses {
                        Uses::Nothing => 0,
                        Uses::Copy { dst } => {
                            let dst = common.at(&bases, dst);
                            let src = common.peers[from as usize].current_plainly();
                            // SAFETY: as for a copy by itself.
                            unsafe { copy(dst, src, bytes) };
                            1
                        }
                        Uses::Step => {
                            let at = next + 2 + usize::from(looks);
                            let step = &op.direct.moves[at];
                            let is_combined = matches!(step, Move::Reduce { .. })
                                && common.combine_few(step, op.planned, &bases);
                            if !is_combined && common.compute(step, op.planned, &bases).is_err() {
                                next = at;
                                break;
                            }
                            1
                        }
                    };
                    common.give_back_at_once(from);
                    // Past itself, the wait, the look, what uses it and the release.
                    Some(3 + usize::from(looks) + used)
                }
                // What fails does so again by itself, which says why.
                Move::Copy { .. } | Move::Reduce { .. } => {
                    let computed = common.compute(step, op.planned, &bases);
                    computed.is_ok().then_some(1)
                }
                _ => None,
            };
            let Some(past) = past else {
                break;
            };
            next += past;
        }
        self.next = next;
        match next == op.direct.moves.len() {
            true => AtOnce::Done,
            false => AtOnce::Waits,
        }
    }
}

// By themselves, as the compiler had them when they grew, the first two cost 4-byte calls 20 to 35 instructions: a broadcast
// took 1.3 times as long.
impl Common {
    /// Puts bytes that lie at `src`. False, and nothing was done, if the peer has no room for them yet.
    #[inline(always)]
    pub(super) fn put_at_once(&mut self, op: &Bound<'_>, to: u32, src: u64, bytes: u32) -> bool {
        let own = &self.own;
        let peer = &mut self.peers[to as usize];
        let Some(plain) = peer.plain(bytes) else {
            return false;
        };
        if !peer.has_plain_room() && !has_room(own, peer, plain.rooms()) {
            return false;
        }
        let flag = plain.flag_of(peer.sent);
        if bytes > 0 {
            // SAFETY: as for a copy by itself; the peer has given the place back.
            unsafe { copy(peer.fills_plainly(plain, bytes), src, bytes) };
        }
        let words = (peer.signed != op.number).then_some(op.words);
        peer.signed = op.number;
        if op.planned.load.is_some() {
            peer.say_where(own);
        }
        peer.fetch_ahead(plain, bytes.into());
        let Line { flag, counter } = peer.raises(flag);
        peer.sent += 1;
        // SAFETY: the flag is in the peer's arena, which the lane keeps imported, and the counter in this rank's own; the
        // lane's lock is held and its stream is idle.
        unsafe { flag::raise(flag, counter, words) };
        self.bells.note(plain.bell);
        true
    }

    /// Shows bytes that lie at `src` to all. False, and nothing was done, if somebody has no room for them yet.
    #[inline]
    pub(super) fn put_to_all_at_once(&mut self, op: &Bound<'_>, src: u64, bytes: u32) -> bool {
        let own = &self.own;
        if u64::from(bytes) > own.small_bytes() {
            return false;
        }
        for peer in &mut self.peers {
            let has_room = peer.has_plain_room()
                || matches!(peer.plain(bytes), Some(plain) if has_room(own, peer, plain.rooms()));
            if !has_room {
                return false;
            }
        }
        let (line, place) = self.peers[own.rank as usize].shown_small(own, bytes.into(), false);
        if bytes > 0 {
            // SAFETY: as for a copy by itself; all peers have given the place back.
            unsafe { copy(place, src, bytes) };
        }
        self.tell(op, line, src, bytes);
        true
    }

    /// Takes the next put of a peer, which may be shown and is the current one then. False, and nothing was done, if it has
    /// not come.
    #[inline(always)]
    pub(super) fn take_at_once(
        &mut self,
        op: &Bound<'_>,
        from: u32,
        bytes: u32,
        [looks, takes, shown]: [bool; 3],
    ) -> bool {
        if shown {
            return self.take_shown_at_once(op, from, bytes, takes);
        }
        let own = &self.own;
        let peer = &mut self.peers[from as usize];
        let Some(plain) = peer.plain(bytes) else {
            return false;
        };
        let words = (peer.compared != op.number).then_some(op.words);
        if !take(peer, plain, words, bytes) {
            return false;
        }
        peer.compared = op.number;
        if looks {
            peer.hear_where(own);
        }
        if takes {
            self.trails = !peer.fetch_later(own, plain, bytes);
        }
        true
    }

    /// The same of a put that is shown. Not inlined: that cost those that are not shown some 20 instructions.
    #[inline(never)]
    fn take_shown_at_once(&mut self, op: &Bound<'_>, from: u32, bytes: u32, takes: bool) -> bool {
        let own = &self.own;
        let peer = &mut self.peers[from as usize];
        if peer.plain(bytes).is_none() {
            return false;
        }
        let words = (peer.compared != op.number).then_some(op.words);
        let twice = op.direct.tells_twice(own, peer);
        let (line, place) = peer.shown_small(own, bytes.into(), twice);
        if !is_told(line, words) {
            return false;
        }
        peer.compared = op.number;
        peer.take_shown_at(place);
        if takes && !twice {
            peer.fetch_shown_later(own, bytes.into());
        }
        true
    }

    /// Gives a put that was taken at once back.
    #[inline]
    pub(super) fn give_back_at_once(&mut self, from: u32) {
        let peer = &mut self.peers[from as usize];
        if let Some(plain) = peer.plain(0)
            && peer.give_back_plainly(plain)
        {
            let Line { flag, counter } = peer.given();
            // SAFETY: as in `put_at_once`.
            unsafe { flag::raise(flag, counter, None) };
            self.bells.note(plain.bell);
        }
    }

    /// Takes the oldest signal that a peer of plain memory owes, and gives it back. False if it has not come.
    #[inline]
    pub(super) fn make_up_at_once(&mut self, from: u32) -> bool {
        let peer = &mut self.peers[from as usize];
        let Some(plain) = peer.plain(0) else {
            return false;
        };
        let Some(words) = peer.owed.front().copied() else {
            return false;
        };
        if !take(peer, plain, Some(&words), 0) {
            return false;
        }
        peer.owed.pop_front();
        self.owed.count -= 1;
        self.give_back_at_once(from);
        true
    }
}

/// The next put of a peer, if it has come with these words, is the current one.
#[inline(always)]
fn take(peer: &mut Peer, plain: Plain, words: Option<&[u64; 3]>, bytes: u32) -> bool {
    let number = plain.flag_of(peer.received);
    let Line { flag, counter } = peer.awaits(number);
    // SAFETY: of this rank's own arena; the lane's lock is held and its stream is idle.
    let has_come = unsafe { flag::pass_next(flag, counter, words) };
    if has_come {
        peer.take_at(peer.lies_plainly(plain, bytes));
    }
    has_come
}

#[cfg(test)]
mod tests {
    use unisono_plan::Blocks;

    use super::*;

    fn fill() -> Spot {
        Spot(Space::Fill.base())
    }

    fn slot() -> Spot {
        Spot(Space::Slot(1).base())
    }

    fn begin(bytes: u32) -> Move {
        Move::Begin { to: 1, bytes }
    }

    fn raise() -> Move {
        Move::Raise {
            to: 1,
            last: false,
            answer: false,
            ahead: false,
        }
    }

    fn copy(dst: Spot, src: Spot, bytes: u32) -> Move {
        Move::Copy { dst, src, bytes }
    }

    fn wait(bytes: u32) -> Move {
        Move::Wait {
            from: 1,
            bytes,
            blocks: Blocks::NONE,
            land: None,
            shown: false,
        }
    }

    fn release(from: u32) -> Move {
        Move::Release {
            from,
            rides: false,
            held: None,
        }
    }

    /// Where moves are put before others, with their steps: of those the moves are numbered.
    fn shortened(moves: &[Move]) -> Vec<(usize, Move)> {
        let steps: Vec<u32> = (0..moves.len() as u32).collect();
        let (all, of) = shorten(moves, &steps, true);
        assert_eq!(all.len(), of.len());
        let is_new = |step: &Move| {
            matches!(
                step,
                Move::Put { .. } | Move::PutToAll { .. } | Move::Get { .. }
            )
        };
        let old: Vec<u32> = (all.iter().zip(&of))
            .filter(|(step, _)| !is_new(step))
            .map(|(_, number)| *number)
            .collect();
        assert_eq!(old, steps, "the others stay as they are");
        (all.iter().zip(&of))
            .filter(|(step, _)| is_new(step))
            .map(|(step, number)| (*number as usize, *step))
            .collect()
    }

    #[test]
    fn a_put_of_one_copy_or_none_is_done_at_once() {
        let moves = [
            begin(4),
            copy(fill(), Spot(8), 4),
            raise(),
            begin(0),
            raise(),
        ];
        let all = shortened(&moves);
        assert!(matches!(
            all[..],
            [
                (
                    0,
                    Move::Put {
                        to: 1,
                        src: Spot(8),
                        bytes: 4
                    }
                ),
                (3, Move::Put { bytes: 0, .. }),
            ]
        ));
    }

    #[test]
    fn what_is_shown_is_put_to_all_at_once() {
        let rooms = [1, 2].map(|to| Move::Room { to, bytes: 4 });
        let shown = [
            Move::Show { bytes: 4 },
            copy(fill(), Spot(8), 4),
            Move::Tell,
        ];
        let moves = [&rooms[..], &shown].concat();
        let all = shortened(&moves);
        assert!(matches!(
            all[..],
            [(
                0,
                Move::PutToAll {
                    src: Spot(8),
                    bytes: 4
                }
            )]
        ));
        let halves = [copy(fill(), Spot(0), 2), copy(fill(), Spot(64), 2)];
        let moves = [&rooms[..], &shown[..1], &halves, &shown[2..]].concat();
        assert!(shortened(&moves).is_empty(), "filled by more than one copy");
    }

    #[test]
    fn a_put_of_several_parts_is_not() {
        let rest = Spot(Space::Fill.base() + 4);
        let parts = [
            begin(8),
            copy(fill(), Spot(0), 4),
            copy(rest, Spot(64), 4),
            raise(),
        ];
        assert!(shortened(&parts).is_empty());
    }

    #[test]
    fn what_is_used_once_is_taken_at_once() {
        let moves = [
            wait(4),
            copy(Spot(0), slot(), 4),
            release(1),
            wait(0),
            release(1),
        ];
        let all = shortened(&moves);
        assert!(matches!(
            all[..],
            [
                (
                    0,
                    Move::Get {
                        from: 1,
                        bytes: 4,
                        uses: Uses::Copy { dst: Spot(0) },
                        looks: false,
                        takes: true,
                        shown: false,
                    }
                ),
                (
                    3,
                    Move::Get {
                        from: 1,
                        bytes: 0,
                        uses: Uses::Nothing,
                        looks: false,
                        takes: true,
                        shown: false,
                    }
                ),
            ]
        ));
    }

    #[test]
    fn what_is_used_twice_or_given_back_later_is_not() {
        let used = copy(Spot(0), slot(), 4);
        assert!(shortened(&[wait(4), used, used, release(1)]).is_empty());
        assert!(shortened(&[wait(4), used, release(2), release(1)]).is_empty());
    }
}
