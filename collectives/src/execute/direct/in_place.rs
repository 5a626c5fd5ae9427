//! Puts of posted links that are copied less often: the link reads them where they are, and they land where they are to be
//! copied to.
//!
//! Each move is done before the next. So a place is free for a put to land once its wait has begun, if the copy follows
//! the wait. What a link was let read it may still read when the move is over: before anything is written there, or given
//! back, or the call ends, it has to have let go ([`Move::Settle`]). Most let go at once, as they copy; to one that does
//! not no more is lent for a while ([`Peer::lends`](crate::execute::peer::Peer::lends)).

use std::collections::HashSet;

use super::{Move, Space, Spot};

/// Shorter puts are copied as fast.
pub(super) const WORTH: u64 = 8 << 10;
/// Longer messages are copied: a link may keep hold of them until the other rank has looked.
const MESSAGE: u32 = 32 << 10;

/// Lets links read only what goes to ranks that are waited for later: others may not look for long, and a call that waits
/// for nothing of them does not wait until they do. Messages (`of_send`) may be read where they go both ways.
pub(super) fn lending(mut moves: Vec<Move>, of_send: bool) -> Vec<Move> {
    let mut awaited = HashSet::new();
    for step in moves.iter_mut().rev() {
        match *step {
            Move::Wait { from, .. } => {
                awaited.insert(from);
            }
            Move::Fill { to, src, bytes, .. } if !awaited.contains(&to) => {
                let dst = Spot(Space::Fill.base());
                *step = match of_send && bytes <= MESSAGE {
                    true => Move::Fill {
                        to,
                        src,
                        bytes,
                        awaited: false,
                    },
                    false => Move::Copy { dst, src, bytes },
                };
            }
            _ => {}
        }
    }
    moves
}

/// Finds the copies that follow their waits, of whole puts.
pub(super) fn landing(mut moves: Vec<Move>) -> Vec<Move> {
    for at in 1..moves.len() {
        if !is_last_use(&moves, at) {
            continue;
        }
        let (before, rest) = moves.split_at_mut(at);
        if let (
            Some(Move::Wait {
                from,
                bytes: all,
                land,
                ..
            }),
            Some(copy),
        ) = (before.last_mut(), rest.first_mut())
            && let Move::Copy { dst, src, bytes } = *copy
            && src == Spot(Space::Slot(*from).base())
            && bytes == *all
            && u64::from(bytes) >= WORTH
        {
            *land = Some(dst);
            *copy = Move::Land {
                from: *from,
                dst,
                src,
                bytes,
            };
        }
    }
    moves
}

/// Whether nothing uses the put behind a copy of it, until it is given back.
fn is_last_use(moves: &[Move], at: usize) -> bool {
    let Move::Copy { src: copied, .. } = moves[at] else {
        return false;
    };
    let uses =
        |spot: Spot| spot.space_index() == copied.space_index() && spot.rank() == copied.rank();
    for step in &moves[at + 1..] {
        let is_used = match *step {
            Move::Release { from, .. } if from == copied.rank() => return true,
            Move::Copy { src, .. } | Move::Fill { src, .. } | Move::Land { src, .. } => uses(src),
            Move::Reduce { dst, a, b, .. } => [dst, a, b].into_iter().any(uses),
            _ => false,
        };
        if is_used {
            return false;
        }
    }
    true
}

/// Lets links let go of what they were let read before it is written or given back, and at the end. `steps` are those of
/// the plan that the moves are of.
pub(super) fn settled(moves: Vec<Move>, steps: Vec<u32>) -> (Vec<Move>, Vec<u32>) {
    let mut lent: Vec<(u32, Spot, u32)> = Vec::new();
    let (mut done, mut of) = (Vec::with_capacity(moves.len()), Vec::new());
    let mut step = 0;
    for (at, next) in moves.into_iter().enumerate() {
        step = steps.get(at).copied().unwrap_or(step);
        lent.retain(|&(to, src, bytes)| {
            let is_touched = touches(&next, src, bytes);
            if is_touched {
                done.push(Move::Settle { to });
                of.push(step);
            }
            !is_touched
        });
        if let Move::Fill { to, src, bytes, .. } = next {
            lent.push((to, src, bytes));
        }
        done.push(next);
        of.push(step);
    }
    for (to, ..) in lent {
        done.push(Move::Settle { to });
        of.push(step);
    }
    (done, of)
}

/// Whether a move writes to a place, or gives it back.
fn touches(step: &Move, place: Spot, length: u32) -> bool {
    let (spot, bytes) = match *step {
        Move::Release { from, .. } => {
            return place.space_index() == Space::Slot(0).index() && place.rank() == from;
        }
        Move::Copy { dst, bytes, .. } | Move::Land { dst, bytes, .. } => (dst, bytes),
        Move::Wait {
            land: Some(dst),
            bytes,
            ..
        } => (dst, bytes),
        // As many bytes as it has elements, at least, and no more than lie behind it.
        Move::Reduce { dst, .. } => (dst, u32::MAX),
        _ => return false,
    };
    let callers = [Space::In.index(), Space::Out.index()];
    // The input may be the output, at whatever place.
    if spot.space_index() != place.space_index() {
        return callers.contains(&spot.space_index()) && callers.contains(&place.space_index());
    }
    let (start, other) = (spot.offset(), place.offset());
    start < other + u64::from(length) && other < start.saturating_add(bytes.into())
}

#[cfg(test)]
mod tests {
    use unisono_plan::Blocks;

    use super::*;

    const LONG: u32 = WORTH as u32;

    fn spot(space: Space, offset: u64) -> Spot {
        Spot(space.base() + offset)
    }

    fn fill(src: Spot) -> Move {
        Move::Fill {
            to: 1,
            src,
            bytes: LONG,
            awaited: true,
        }
    }

    fn copy(dst: Spot, src: Spot) -> Move {
        Move::Copy {
            dst,
            src,
            bytes: LONG,
        }
    }

    /// Where in the moves links are waited for.
    fn waits(moves: Vec<Move>) -> Vec<usize> {
        let steps = (0..moves.len() as u32).collect();
        let (moves, steps) = settled(moves, steps);
        assert_eq!(moves.len(), steps.len());
        let settles =
            |(at, step): (usize, &Move)| matches!(step, Move::Settle { to: 1 }).then_some(at);
        moves.iter().enumerate().filter_map(settles).collect()
    }

    #[test]
    fn a_link_lets_go_before_its_source_is_written_or_given_back() {
        let own = spot(Space::Out, 0);
        let beside = spot(Space::Out, LONG.into());
        let slot = spot(Space::Slot(2), 0);
        let scratch = spot(Space::Scratch, 0);
        let release = |from| Move::Release {
            from,
            rides: false,
            held: None,
        };
        assert_eq!(waits(vec![fill(own), copy(own, scratch)]), [1]);
        assert_eq!(
            waits(vec![fill(own), copy(beside, scratch)]),
            [2],
            "at the end"
        );
        let input = spot(Space::In, u64::from(7 * LONG));
        assert_eq!(
            waits(vec![fill(input), copy(own, scratch)]),
            [1],
            "may be in place"
        );
        assert_eq!(waits(vec![fill(slot), release(3), release(2)]), [2]);
        let sum = Move::Reduce {
            dst: own,
            a: own,
            b: scratch,
            elements: LONG / 4,
            last: false,
        };
        assert_eq!(waits(vec![fill(beside), sum]), [1]);
        assert_eq!(waits(vec![copy(own, scratch), release(2)]), [0; 0]);
    }

    #[test]
    fn only_what_goes_to_ranks_that_are_waited_for_is_lent() {
        let wait = Move::Wait {
            from: 1,
            bytes: 0,
            blocks: Blocks::NONE,
            land: None,
            shown: false,
        };
        let lent = |moves: Vec<Move>| {
            let moves = lending(moves, false);
            moves
                .iter()
                .filter(|step| matches!(step, Move::Fill { .. }))
                .count()
        };
        let put = fill(spot(Space::In, 0));
        assert_eq!(lent(vec![put, wait]), 1);
        assert_eq!(lent(vec![wait, put]), 0);
        assert_eq!(lent(vec![put, Move::Owe { from: 1 }]), 0);
        // A message may be, where there are answers.
        let message = |bytes| {
            let put = Move::Fill {
                to: 1,
                src: spot(Space::In, 0),
                bytes,
                awaited: true,
            };
            lending(vec![put], true)
        };
        assert!(matches!(
            message(MESSAGE)[..],
            [Move::Fill { awaited: false, .. }]
        ));
        assert!(matches!(message(MESSAGE + 1)[..], [Move::Copy { .. }]));
    }

    #[test]
    fn puts_land_where_a_copy_of_the_whole_follows() {
        let wait = |bytes| Move::Wait {
            from: 2,
            bytes,
            blocks: Blocks::one(0),
            land: None,
            shown: false,
        };
        let (own, slot) = (spot(Space::Out, 64), spot(Space::Slot(2), 0));
        let lands = |moves: Vec<Move>| {
            let moves = landing(moves);
            let land = |step: &Move| matches!(step, Move::Land { .. });
            let place = moves.iter().find_map(|step| match step {
                Move::Wait { land, .. } => *land,
                _ => None,
            });
            assert_eq!(place.is_some(), moves.iter().any(land));
            place
        };
        assert_eq!(lands(vec![wait(LONG), copy(own, slot)]), Some(own));
        assert_eq!(lands(vec![wait(2 * LONG), copy(own, slot)]), None, "a part");
        let other = spot(Space::Slot(3), 0);
        assert_eq!(lands(vec![wait(LONG), copy(own, other)]), None);
        assert_eq!(
            lands(vec![wait(LONG), fill(slot), copy(own, slot)]),
            None,
            "not next"
        );
        let again = vec![wait(LONG), copy(own, slot), fill(slot)];
        assert_eq!(lands(again), None, "it is needed in its slot");
        let moves = landing(vec![fill(own), wait(LONG), copy(own, slot)]);
        assert_eq!(waits(moves), [1], "it may land as soon as the wait begins");
    }
}
