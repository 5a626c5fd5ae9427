//! Running moves.
#![allow(
    unsafe_code,
    reason = "copies, combines and raises flags at the addresses of calls and arenas"
)]

use unisono_plan::Blocks;

use super::compute::{copy, fill};
use super::steps::is_there;
use super::{Direct, Move, Space};
use crate::error::Error;
use crate::execute::common::Common;
use crate::execute::op::Planned;
use crate::execute::peer::{Line, Way};

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

/// How far a run came in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) enum AtOnce {
    /// All moves are done.
    Done,
    /// Something could not be done so, or has not come.
    Waits,
    /// This rank has not come, which needs this core: no other was looked for.
    GivesWay(u32),
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

    /// The flag that tells of the put of that rank for which the run waits, if memory is all that brings it.
    #[inline]
    pub(in crate::execute) fn flag_from(
        &self,
        from: u32,
        direct: &Direct,
        common: &Common,
    ) -> Option<Line> {
        let shown = match *direct.moves.get(self.next)? {
            Move::Get { shown, .. } | Move::Wait { shown, .. } => shown,
            _ => return None,
        };
        let peer = &common.peers[from as usize];
        matches!(peer.way, Way::Mapped { .. }).then(|| match shown {
            true => peer.shown_next(&common.own),
            false => peer.awaited(&common.own),
        })
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
        others(behind, from).any(|(other, shown)| is_missing_here(other, shown, direct, common))
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
                    if let AtOnce::Done = self.moves_at_once(op, buffers, common, usize::MAX) {
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
    ) -> AtOnce {
        if self.due {
            return AtOnce::Waits;
        }
        let done = self.moves_at_once(op, buffers, common, op.direct.gives_way_at);
        if matches!(done, AtOnce::Done) {
            common.ring();
        }
        done
    }

    /// Goes on move by move; `None` before some that may be done in one go.
    fn moves(&mut self, op: &Bound<'_>, buffers: Buffers, common: &mut Common) -> Option<Ran> {
        let moves = &*op.direct.moves;
        let Buffers { input, output } = buffers;
        let mut bases = [input, output, common.scratch_base(), self.fill];
        // Where one such stands first it could not be done.
        let mut goes_on = true;
        let mut behind_get = false;
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
                        // Once it has come all is done in one go. Who only takes puts would then look for those behind it,
                        // too, which are just being written, as it had to wait.
                        self.next -= usize::from(behind_get && !op.direct.takes);
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
                Move::Get { .. } if goes_on => {
                    behind_get = true;
                    goes_on = false;
                    self.next += 1;
                    continue;
                }
                Move::Put { .. } | Move::PutToAll { .. } if goes_on => {}
                Move::Put { .. } | Move::PutToAll { .. } | Move::Get { .. } => return None,
            }
            (goes_on, behind_get) = (false, false);
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

/// Whether a rank that seems to need this core has not come yet.
#[inline]
fn is_missing_here(from: u32, shown: bool, direct: &Direct, common: &Common) -> bool {
    let peer = &common.peers[from as usize];
    peer.alongside.seems_here()
        && matches!(peer.way, Way::Mapped { .. })
        && !is_there(&common.own, peer, shown.then_some(direct))
}

impl Direct {
    /// Of a call that has taken nothing yet: a rank that it waits for, that seems to need this core, and has not come.
    #[inline]
    pub(super) fn missing_here(&self, common: &Common) -> Option<u32> {
        let is_missing = |&&(from, shown): &&_| is_missing_here(from, shown, self, common);
        self.takes_from
            .iter()
            .find(is_missing)
            .map(|(from, _)| *from)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
