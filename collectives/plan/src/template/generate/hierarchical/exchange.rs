//! What the teams of one level do.
//!
//! A mesh puts in one round and takes in the next, so that a whole round fills the time on the way.
//! That needs a slot for each message between two ranks in that time; where two ranks are in several
//! teams of a level, a team takes right after it has put. Rings and halving do everything at once.

use crate::algorithms::{Algorithm, halving_doubling, team::Team};
use crate::builder::{Builder, local, out, slot};
use crate::ir::{Blocks, Buffer, Value};

use super::super::super::hierarchical::{Members, Seen};

/// One phase of a rank on one level.
pub(super) struct Exchange {
    seen: Seen,
    kind: Kind,
    /// In each team the member that gives or gets everything.
    holders: Vec<u32>,
}

/// What is exchanged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Adds up each member's share of what all have in `held`, by way of `sums`, into `to`.
    Scatter {
        held: Buffer,
        sums: Buffer,
        to: Buffer,
        /// Whether that completes it.
        last: bool,
    },
    /// Everybody gets all shares, from the members' outputs to theirs.
    Gather {
        /// Without, what comes is waited for but not stored, as this rank has it.
        keep: bool,
    },
    /// The member that has everything in its output gives each its share.
    Deal,
    /// The member that is to have everything gets each one's share.
    Collect { kept: Buffer },
}

fn team(members: &Members) -> Team<'_> {
    Team::of(members.me, &members.ranks, &members.bounds)
}

impl Exchange {
    pub(super) fn new(seen: Seen, kind: Kind) -> Self {
        Self {
            seen,
            kind,
            holders: Vec::new(),
        }
    }

    /// Only if this rank takes part, and with the member that gives or gets everything.
    pub(super) fn with_holder(mut self, takes_part: bool, holds: impl Fn(u32) -> bool) -> Self {
        if !takes_part {
            self.seen.teams.clear();
        }
        let holder = |members: &Members| {
            let found = members.ranks.iter().position(|&rank| holds(rank));
            found.map_or(members.me, |at| at as u32)
        };
        self.holders = self.seen.teams.iter().map(holder).collect();
        self
    }

    pub(super) fn has_teams(&self) -> bool {
        !self.seen.teams.is_empty()
    }

    /// Puts; and takes, if that may not wait.
    pub(super) fn start(&self, b: &mut Builder) {
        for (index, members) in self.seen.teams.iter().enumerate() {
            let sums = matches!(self.kind, Kind::Scatter { .. } | Kind::Gather { .. });
            if sums && self.seen.algorithm != Algorithm::MeshOneShot {
                self.all_at_once(b, &team(members));
                continue;
            }
            self.puts(b, index);
            if self.is_at_once() {
                self.takes(b, index);
            }
        }
    }

    /// Takes what was put in the round before.
    pub(super) fn finish(&self, b: &mut Builder) {
        if !self.is_at_once() {
            (0..self.seen.teams.len()).for_each(|index| self.takes(b, index));
        }
    }

    /// Whether all phases of the level put and take in the same round. What two ranks put for
    /// several phases must be taken in the same order.
    fn is_at_once(&self) -> bool {
        self.seen.crowded || self.seen.algorithm != Algorithm::MeshOneShot
    }

    fn all_at_once(&self, b: &mut Builder, team: &Team<'_>) {
        let ring = self.seen.algorithm == Algorithm::Ring;
        match self.kind {
            Kind::Scatter { held, to, last, .. } if ring => ring_scatter(b, team, held, to, last),
            Kind::Scatter {
                held,
                sums,
                to,
                last,
            } => halving_doubling::scatter(b, team, [held, sums, to], last),
            Kind::Gather { keep } if ring => ring_gather(b, team, keep),
            _ => halving_doubling::gather(b, team),
        }
    }

    fn puts(&self, b: &mut Builder, index: usize) {
        let team = team(&self.seen.teams[index]);
        let holder = self.holders.get(index).copied();
        let own = team.share(team.me);
        match self.kind {
            Kind::Scatter { held, .. } => put_each(b, team, |to| local(held, team.share(to))),
            Kind::Gather { .. } => put_each(b, team, |_| out(own)),
            Kind::Deal if holder == Some(team.me) => put_each(b, team, |to| out(team.share(to))),
            Kind::Collect { kept } if holder != Some(team.me) => {
                let to = team.rank(holder.unwrap_or(team.me));
                b.put(to, Value::Copy(local(kept, own)));
            }
            Kind::Deal | Kind::Collect { .. } => {}
        }
    }

    fn takes(&self, b: &mut Builder, index: usize) {
        let team = team(&self.seen.teams[index]);
        let holder = self.holders.get(index).copied();
        let take_all = |b: &mut Builder, to: Option<Buffer>| {
            for from in team.others_below() {
                take(b, team.rank(from), team.share(from), to);
            }
        };
        match self.kind {
            Kind::Scatter { held, to, last, .. } => mesh_sum(b, &team, held, to, last),
            Kind::Gather { keep } => take_all(b, keep.then_some(Buffer::Out)),
            Kind::Deal if holder != Some(team.me) => {
                let from = team.rank(holder.unwrap_or(team.me));
                take(b, from, team.share(team.me), Some(Buffer::Out));
            }
            Kind::Collect { kept } if holder == Some(team.me) => take_all(b, Some(kept)),
            Kind::Deal | Kind::Collect { .. } => {}
        }
    }
}

fn put_each(b: &mut Builder, team: Team<'_>, what: impl Fn(u32) -> crate::ir::Place) {
    for to in team.others_above() {
        b.put(team.rank(to), Value::Copy(what(to)));
    }
}

/// Waits for some blocks, and stores them if there is somewhere to.
fn take(b: &mut Builder, from: u32, blocks: Blocks, to: Option<Buffer>) {
    b.wait(from, blocks);
    if let Some(buffer) = to {
        b.copy(local(buffer, blocks), slot(from, blocks));
    }
    b.release(from);
}

fn mesh_sum(b: &mut Builder, team: &Team<'_>, held: Buffer, to: Buffer, last: bool) {
    let own = team.share(team.me);
    let mut sum = local(held, own);
    let mut left = team.count() - 1;
    for from in team.others_below() {
        let from = team.rank(from);
        left -= 1;
        b.wait(from, own);
        b.reduce(local(to, own), sum, slot(from, own), last && left == 0);
        b.release(from);
        sum = local(to, own);
    }
}

/// A share starts on the member above its owner, and ends with its owner.
fn ring_scatter(b: &mut Builder, team: &Team<'_>, held: Buffer, result: Buffer, last: bool) {
    let count = team.count();
    let (to, from) = (team.rank(team.step(1)), team.rank(team.step(count - 1)));
    let first = team.share(team.step(count - 1));
    b.put(to, Value::Copy(local(held, first)));
    for round in 1..count {
        let blocks = team.share(team.step(count - 1 - round));
        let (theirs, own) = (slot(from, blocks), local(held, blocks));
        b.wait(from, blocks);
        if round + 1 < count {
            let (a, last) = (theirs, false);
            b.put(to, Value::Reduce { a, b: own, last });
        } else {
            b.reduce(local(result, blocks), theirs, own, last);
        }
        b.release(from);
    }
}

fn ring_gather(b: &mut Builder, team: &Team<'_>, keep: bool) {
    let count = team.count();
    let (to, from) = (team.rank(team.step(1)), team.rank(team.step(count - 1)));
    b.put(to, Value::Copy(out(team.share(team.me))));
    for round in 1..count {
        let blocks = team.share(team.step(count - round));
        b.wait(from, blocks);
        if round + 1 < count {
            b.put(to, Value::Copy(slot(from, blocks)));
        }
        if keep {
            b.copy(out(blocks), slot(from, blocks));
        }
        b.release(from);
    }
}
