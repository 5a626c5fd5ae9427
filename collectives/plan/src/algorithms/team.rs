//! Some ranks that do something among themselves, each with a share of some blocks.

use crate::builder::Builder;
use crate::ir::Blocks;

/// A team as one of its members sees it. Members have positions in it, from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Team<'a> {
    /// The member whose program is built.
    pub(crate) me: u32,
    /// The ranks of the members and where their blocks start, and the last ones end; absent where
    /// everybody is in the team and has one block.
    listed: Option<(&'a [u32], &'a [u32])>,
    count: u32,
}

impl<'a> Team<'a> {
    /// All ranks, in their order, with a block each.
    pub(crate) fn all(b: &Builder) -> Self {
        Self {
            me: b.rank(),
            listed: None,
            count: b.ranks(),
        }
    }

    /// The ranks listed; the blocks of member `i` are those from `bounds[i]` to `bounds[i + 1]`.
    pub(crate) fn of(me: u32, ranks: &'a [u32], bounds: &'a [u32]) -> Self {
        Self {
            me,
            listed: Some((ranks, bounds)),
            count: ranks.len() as u32,
        }
    }

    /// How many members there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The rank of a member.
    pub(crate) fn rank(&self, member: u32) -> u32 {
        match self.listed {
            None => member,
            Some((ranks, _)) => ranks[member as usize],
        }
    }

    /// The blocks of some neighbouring members.
    pub(crate) fn blocks(&self, members: Blocks) -> Blocks {
        match self.listed {
            None => members,
            Some((_, bounds)) => {
                let (first, end) = (members.first as usize, members.end() as usize);
                Blocks::new(bounds[first], bounds[end] - bounds[first])
            }
        }
    }

    /// The blocks of a member.
    pub(crate) fn share(&self, member: u32) -> Blocks {
        self.blocks(Blocks::one(member))
    }

    /// The other members, nearest above first.
    pub(crate) fn others_above(self) -> impl Iterator<Item = u32> {
        (1..self.count).map(move |distance| self.step(distance))
    }

    /// The other members, nearest below first.
    pub(crate) fn others_below(self) -> impl Iterator<Item = u32> {
        (1..self.count).map(move |distance| self.step(self.count - distance))
    }

    /// The member so far above this one, round the team.
    pub(crate) fn step(&self, distance: u32) -> u32 {
        crate::builder::wrap(self.me, distance, self.count)
    }
}
