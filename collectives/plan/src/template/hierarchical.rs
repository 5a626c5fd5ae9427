//! Groups of ranks, groups of groups, and so on up to one.

mod grid;

use std::sync::Arc;

use crate::algorithms::Algorithm;

use super::TemplateError;
pub(crate) use grid::{Grid, Members, Seen};

/// How the units of one level are grouped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Level {
    /// For each unit the number of its group. The units of the lowest level are the ranks, those
    /// of any other the groups of the level below. Groups are numbered from 0, none is empty.
    pub group_of: Arc<[u32]>,
    /// What the members of a group run among themselves: [`Algorithm::MeshOneShot`],
    /// [`Algorithm::Ring`] or [`Algorithm::HalvingDoubling`].
    ///
    /// This is the place for a vendor's own library: what a group of the lowest level
    /// does, an exchange of shares within an island before and after the levels above, is what such a
    /// library does in one call. No algorithm stands for one today.
    pub algorithm: Algorithm,
    /// How much of what its group has is each unit's part, beside the other units of the group;
    /// none is 0. Empty: all have equal parts.
    pub weights: Arc<[u32]>,
}

/// Levels of groups, the lowest first; the highest has one group. Groups of one level may differ
/// in size, and ranks may be interleaved.
///
/// A message goes up level by level: the members of a group share it equally or by their weights, each
/// exchanges its share with the ranks that have the same share in the other groups, and then it
/// comes down again. Where groups differ in size or in weights, shares overlap with those of several ranks of
/// the other group, and are divided so that each part has one counterpart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hierarchical {
    ranks: u32,
    levels: Arc<[Level]>,
    grid: Grid,
}

impl Hierarchical {
    /// Levels, the lowest first. A level whose groups have one member each does nothing, and may
    /// be there.
    pub fn new(levels: impl Into<Arc<[Level]>>) -> Result<Self, TemplateError> {
        let levels = levels.into();
        let Some(first) = levels.first() else {
            return Err(TemplateError::Empty { what: "level" });
        };
        let ranks = first.group_of.len();
        if ranks == 0 {
            return Err(TemplateError::Empty { what: "rank" });
        }
        if ranks >= 1 << 31 {
            let (what, count) = ("ranks", ranks);
            return Err(TemplateError::TooMany { what, count });
        }
        let mut units = ranks;
        for (index, level) in levels.iter().enumerate() {
            units = level.check(index, units)?;
        }
        if units != 1 {
            let index = levels.len() - 1;
            let why = format!("is the last one, but has {units} groups");
            return Err(TemplateError::Levels { index, why });
        }
        Ok(Self {
            ranks: ranks as u32,
            grid: Grid::new(&levels)?,
            levels,
        })
    }

    /// Ranks of the communicator.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The levels, the lowest first.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Blocks into which it cuts a message.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.grid.blocks()
    }

    /// Whether it cuts a message little enough finer than `equal`, which has equal shares. Shares by rate cut where
    /// equal ones don't; sixteen times as many blocks cost more messages than they could save.
    #[must_use]
    pub fn is_about_as_coarse_as(&self, equal: &Self) -> bool {
        self.blocks() <= equal.blocks().saturating_mul(16)
    }

    /// The algorithms of the levels, the lowest first; one if all have the same.
    pub(super) fn algorithms(&self) -> String {
        let mut names: Vec<&str> = self.levels.iter().map(|l| l.algorithm.name()).collect();
        if names.iter().all(|name| *name == names[0]) {
            names.truncate(1);
        }
        names.join("+")
    }

    /// Whether some members of a group have more than others.
    pub(super) fn is_weighted(&self) -> bool {
        self.grid.is_weighted()
    }

    /// Who has which blocks on which level.
    pub(crate) fn grid(&self) -> &Grid {
        &self.grid
    }
}

impl Level {
    /// A level on which all units of a group have equal parts.
    pub fn new(group_of: impl Into<Arc<[u32]>>, algorithm: Algorithm) -> Self {
        Self {
            group_of: group_of.into(),
            algorithm,
            weights: Arc::default(),
        }
    }

    /// Whether the level groups so many units, and into how many groups.
    fn check(&self, index: usize, units: usize) -> Result<usize, TemplateError> {
        let wrong = |why: String| Err(TemplateError::Levels { index, why });
        let known = [
            Algorithm::MeshOneShot,
            Algorithm::Ring,
            Algorithm::HalvingDoubling,
        ];
        if !known.contains(&self.algorithm) {
            return wrong(format!("can't run {} within its groups", self.algorithm));
        }
        if self.group_of.len() != units {
            let there = self.group_of.len();
            return wrong(format!("groups {there} units, but there are {units} below"));
        }
        if !self.weights.is_empty() && self.weights.len() != units {
            let there = self.weights.len();
            return wrong(format!("has {there} weights for {units} units"));
        }
        if let Some(unit) = self.weights.iter().position(|&weight| weight == 0) {
            return wrong(format!("leaves nothing to unit {unit}"));
        }
        let last = self.group_of.iter().max().copied().unwrap_or(0);
        let groups = last as usize + 1;
        if groups > units {
            return wrong(format!("has {groups} groups of {units} units"));
        }
        let mut members = vec![0u32; groups];
        for &group in self.group_of.iter() {
            members[group as usize] += 1;
        }
        match members.iter().position(|&count| count == 0) {
            None => Ok(groups),
            Some(empty) => wrong(format!("has nobody in group {empty}")),
        }
    }
}
