//! Groups of ranks, groups of groups, and so on up to one.

use std::sync::Arc;

use crate::algorithms::Algorithm;

use super::TemplateError;

/// How the units of one level are grouped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Level {
    /// For each unit the number of its group. The units of the lowest level are the ranks, those
    /// of any other the groups of the level below. Groups are numbered from 0, none is empty.
    pub group_of: Arc<[u32]>,
    /// What the members of a group run among themselves.
    pub algorithm: Algorithm,
}

/// Levels of groups, the lowest first; the highest has one group. Groups of one level may differ
/// in size, and ranks may be interleaved.
///
/// A message goes up level by level: the members of a group share it in proportion, each
/// exchanges its share with the ranks that have the same share in the other groups, and then it
/// comes down again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hierarchical {
    levels: Arc<[Level]>,
}

impl Hierarchical {
    /// Levels, the lowest first.
    pub fn new(levels: impl Into<Arc<[Level]>>) -> Result<Self, TemplateError> {
        let levels = levels.into();
        let Some(first) = levels.first() else {
            return Err(TemplateError::Empty { what: "level" });
        };
        let mut units = first.group_of.len();
        if units == 0 {
            return Err(TemplateError::Empty { what: "rank" });
        }
        if units >= 1 << 31 {
            let (what, count) = ("ranks", units);
            return Err(TemplateError::TooMany { what, count });
        }
        for (index, level) in levels.iter().enumerate() {
            let wrong = |why: String| Err(TemplateError::Levels { index, why });
            if level.group_of.len() != units {
                let there = level.group_of.len();
                return wrong(format!("groups {there} units, but there are {units} below"));
            }
            let groups = level
                .group_of
                .iter()
                .max()
                .map_or(0, |&last| last as usize + 1);
            if groups > units {
                return wrong(format!("has {groups} groups of {units} units"));
            }
            let mut members = vec![0u32; groups];
            for &group in level.group_of.iter() {
                members[group as usize] += 1;
            }
            if let Some(empty) = members.iter().position(|&count| count == 0) {
                return wrong(format!("has nobody in group {empty}"));
            }
            units = groups;
        }
        if units != 1 {
            let index = levels.len() - 1;
            let why = format!("is the last one, but has {units} groups");
            return Err(TemplateError::Levels { index, why });
        }
        Ok(Self { levels })
    }

    /// Ranks of the communicator.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.levels
            .first()
            .map_or(0, |level| level.group_of.len() as u32)
    }

    /// The levels, the lowest first.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }
}
