//! Who has which blocks on which level.
//!
//! On one level, the `i`-th of `n` members of a group has the part from `i/n` to `(i+1)/n` of
//! whatever the group has; where members have weights, from the sum of those before it to its own
//! one's end, of the sum of all. Groups of other sizes or weights cut elsewhere; all cuts of a level together make its
//! *cells*, so that a cell is in one member's part in every group. A block is a cell of the lowest
//! level, of that a cell of the next one, and so on: its number counts the cells of the lowest level
//! first, so that all blocks of a part are neighbours.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::algorithms::Algorithm;

use super::super::TemplateError;
use super::Level;

/// The cells of all levels, and the members of all groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Grid {
    /// The levels on which something happens, the lowest first.
    levels: Vec<Cells>,
    blocks: u32,
}

/// One level.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Cells {
    algorithm: Algorithm,
    group_of: Vec<u32>,
    /// The units of each group, in order.
    members: Vec<Vec<u32>>,
    /// The position of each unit in its group.
    position: Vec<u32>,
    /// The shape of each group: what its members have, a place in `shapes`.
    shape_of: Vec<u32>,
    /// The first cell of each member, and the one after the last; of groups that are cut alike once.
    shapes: Vec<Vec<u32>>,
    /// Whether the members of some group have unequal parts.
    weighted: bool,
    /// Where cells start, and the last one ends: over the last entry.
    starts: Vec<u64>,
    /// Blocks in a cell.
    stride: u32,
    /// Whether two ranks may be in several teams of the level.
    crowded: bool,
}

/// Ranks that exchange the blocks of one part: one of each unit of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Members {
    /// The position of the rank itself.
    pub(crate) me: u32,
    pub(crate) ranks: Vec<u32>,
    /// Where the blocks of each member start, and the last ones end.
    pub(crate) bounds: Vec<u32>,
}

/// One level, as one rank sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) algorithm: Algorithm,
    pub(crate) teams: Vec<Members>,
    /// Whether two ranks may be in several teams.
    pub(crate) crowded: bool,
}

impl Grid {
    pub(super) fn new(levels: &[Level]) -> Result<Self, TemplateError> {
        let mut kept: Vec<(usize, Cells)> = Vec::new();
        // Where a level with one unit in each group is left out, its groups stand for its units.
        let units = levels
            .first()
            .map_or(0, |level| level.group_of.len() as u32);
        let mut stands_for: Vec<u32> = (0..units).collect();
        for (index, level) in levels.iter().enumerate() {
            let group = |&unit: &u32| level.group_of[unit as usize];
            let group_of: Vec<u32> = stands_for.iter().map(group).collect();
            let weight = |&unit: &u32| level.weights.get(unit as usize).copied().unwrap_or(1);
            let weights: Vec<u32> = stands_for.iter().map(weight).collect();
            let groups = group_of.iter().max().map_or(0, |&last| last + 1);
            if (groups as usize) < group_of.len() {
                kept.push((
                    index,
                    Cells::new(level.algorithm, group_of, &weights, index)?,
                ));
                stands_for = (0..groups).collect();
            } else {
                stands_for = group_of;
            }
        }
        let mut blocks = 1u64;
        for (index, cells) in kept.iter_mut().rev() {
            cells.stride = blocks as u32;
            blocks *= cells.count() as u64;
            if blocks >= 1 << 31 {
                let (index, why) = (*index, "cuts the message into too many blocks".into());
                return Err(TemplateError::Levels { index, why });
            }
        }
        let mut grid = Self {
            levels: kept.into_iter().map(|(_, cells)| cells).collect(),
            blocks: blocks as u32,
        };
        for level in 1..grid.levels.len() {
            grid.levels[level].crowded = grid.is_crowded(level);
        }
        Ok(grid)
    }

    /// Blocks of the message.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// How many levels there are on which something happens.
    pub(crate) fn height(&self) -> usize {
        self.levels.len()
    }

    /// Whether the members of some group have unequal parts.
    pub(super) fn is_weighted(&self) -> bool {
        self.levels.iter().any(|cells| cells.weighted)
    }

    /// The share of a block, relative to the others'; none if it is too large to be counted.
    pub(crate) fn weight(&self, block: u32) -> Option<u64> {
        let weights = self.levels.iter().map(|cells| {
            let cell = cells.cell_of(block);
            cells.starts[cell + 1] - cells.starts[cell]
        });
        weights.into_iter().try_fold(1u64, u64::checked_mul)
    }

    /// The sum of all weights; none if it is too large to be counted.
    pub(crate) fn whole(&self) -> Option<u64> {
        let ends = self.levels.iter().map(Cells::whole);
        let product = ends.into_iter().try_fold(1u64, u64::checked_mul)?;
        (product < 1 << 62).then_some(product)
    }

    /// The rank that has a block when all levels have shared it.
    pub(crate) fn owner(&self, block: u32) -> u32 {
        self.owner_in(self.levels.len(), 0, block)
    }

    /// The blocks of a rank when all levels have shared them: runs of neighbours.
    pub(crate) fn owned(&self, rank: u32) -> Vec<Range<u32>> {
        match self.levels.split_last() {
            None => std::iter::once(0..self.blocks).collect(),
            Some((top, _)) => {
                let path = self.path(rank);
                let parts = self.parts(&path, self.levels.len() - 1);
                let own = top.part(path[self.levels.len() - 1]);
                let within =
                    |first: u32| first + own.start * top.stride..first + own.end * top.stride;
                parts.into_iter().map(within).collect()
            }
        }
    }

    /// The widest part of any member, or the widest half of a team's, on any level that may need it.
    pub(crate) fn widest(&self) -> u32 {
        let sizes = |cells: &Cells| -> u32 {
            let widest = |shape: &Vec<u32>| {
                let count = shape.len() as u32 - 1;
                let run = |first: u32, end: u32| shape[end as usize] - shape[first as usize];
                match cells.algorithm {
                    _ if count < 2 => 0,
                    Algorithm::HalvingDoubling => {
                        let middle = count.div_ceil(2);
                        run(0, middle).max(run(middle, count))
                    }
                    _ => (0..count).map(|at| run(at, at + 1)).max().unwrap_or(0),
                }
            };
            cells.shapes.iter().map(widest).max().unwrap_or(0) * cells.stride
        };
        self.levels.iter().map(sizes).max().unwrap_or(0)
    }

    /// The teams of a rank on a level.
    pub(crate) fn seen(&self, rank: u32, level: usize) -> Seen {
        let path = self.path(rank);
        let cells = &self.levels[level];
        let unit = self.unit(rank, level);
        let members = &cells.members[cells.group_of[unit as usize] as usize];
        let shape = &cells.shapes[path[level].1 as usize];
        let team = |first: u32| Members {
            me: path[level].0,
            ranks: members
                .iter()
                .map(|&unit| self.owner_in(level, unit, first))
                .collect(),
            bounds: (shape.iter())
                .map(|cell| first + cell * cells.stride)
                .collect(),
        };
        let parts = match members.len() {
            1 => Vec::new(),
            _ => self.parts(&path, level),
        };
        Seen {
            algorithm: cells.algorithm,
            teams: parts.into_iter().map(team).collect(),
            crowded: cells.crowded,
        }
    }

    /// Whether two ranks are in one group of a level, so also of all above.
    pub(crate) fn together(&self, a: u32, b: u32, level: usize) -> bool {
        self.unit(a, level + 1) == self.unit(b, level + 1)
    }

    /// Whether a rank and another are in one unit of a level.
    pub(crate) fn same_unit(&self, a: u32, b: u32, level: usize) -> bool {
        self.unit(a, level) == self.unit(b, level)
    }

    /// The unit of a level in which a rank is.
    fn unit(&self, rank: u32, level: usize) -> u32 {
        let up = |unit: u32, cells: &Cells| cells.group_of[unit as usize];
        self.levels[..level].iter().fold(rank, up)
    }

    /// The position of a rank's unit in its group, and the group's shape, on every level.
    fn path(&self, rank: u32) -> Vec<(u32, u32)> {
        let mut unit = rank;
        let mut path = Vec::new();
        for cells in &self.levels {
            let group = cells.group_of[unit as usize];
            let shape = cells.shape_of[group as usize];
            path.push((cells.position[unit as usize], shape));
            unit = group;
        }
        path
    }

    /// The first block of each part that a rank has when the levels below this one have shared.
    fn parts(&self, path: &[(u32, u32)], level: usize) -> Vec<u32> {
        let mut firsts = vec![0];
        for (cells, &place) in self.levels[..level].iter().zip(path) {
            let own = cells.part(place);
            let within = |first: u32| own.clone().map(move |cell| first + cell * cells.stride);
            firsts = firsts.into_iter().flat_map(within).collect();
        }
        firsts
    }

    /// The rank of a unit of a level that has a block when the levels below have shared.
    fn owner_in(&self, level: usize, unit: u32, block: u32) -> u32 {
        let down = |group: u32, cells: &Cells| {
            let shape = &cells.shapes[cells.shape_of[group as usize] as usize];
            let cell = cells.cell_of(block) as u32;
            let member = shape.partition_point(|&first| first <= cell) - 1;
            cells.members[group as usize][member]
        };
        self.levels[..level].iter().rev().fold(unit, down)
    }

    /// Whether two ranks may be in several teams of a level: never if all parts below are one cell.
    fn is_crowded(&self, level: usize) -> bool {
        let one_shape = |cells: &Cells| cells.shapes.len() == 1;
        if self.levels[..level].iter().all(one_shape) {
            return false;
        }
        let firsts: Vec<u32> = {
            let stride = self.levels[level - 1].stride;
            (0..self.blocks / stride).map(|at| at * stride).collect()
        };
        let cells = &self.levels[level];
        cells.members.iter().any(|units| {
            let mut pairs: Vec<(u32, u32)> = Vec::new();
            for &first in &firsts {
                let owners = units.iter().map(|&unit| self.owner_in(level, unit, first));
                let owners: Vec<u32> = owners.collect();
                for (at, &a) in owners.iter().enumerate() {
                    pairs.extend(owners[at + 1..].iter().map(|&b| (a, b)));
                }
            }
            pairs.sort_unstable();
            pairs.windows(2).any(|pair| pair[0] == pair[1])
        })
    }
}

impl Cells {
    fn new(
        algorithm: Algorithm,
        group_of: Vec<u32>,
        weights: &[u32],
        index: usize,
    ) -> Result<Self, TemplateError> {
        let groups = group_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut members = vec![Vec::new(); groups];
        let mut position = Vec::new();
        for (unit, &group) in (0u32..).zip(&group_of) {
            position.push(members[group as usize].len() as u32);
            members[group as usize].push(unit);
        }
        // What the members of each shape have, and the number of the shape.
        let mut all: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
        let mut shape_of = Vec::with_capacity(groups);
        for units in &members {
            let weights = units.iter().map(|&unit| u64::from(weights[unit as usize]));
            let next = all.len() as u32;
            shape_of.push(*all.entry(lowest_terms(weights.collect())).or_insert(next));
        }
        let weighted = all.keys().any(|shape| shape.iter().any(|&w| w != 1));
        let mut totals: Vec<u64> = all.keys().map(|shape| shape.iter().sum()).collect();
        totals.sort_unstable();
        totals.dedup();
        let whole = totals.iter().try_fold(1u64, |all, &total| lcm(all, total));
        let Some(whole) = whole.filter(|&whole| whole < 1 << 32) else {
            let why = "has groups of too many sizes to share anything exactly".into();
            return Err(TemplateError::Levels { index, why });
        };
        // Where the members of each shape start, and the last one ends, of the whole.
        let mut cuts: Vec<(u32, Vec<u64>)> = Vec::with_capacity(all.len());
        for (shape, number) in all {
            let unit = whole / shape.iter().sum::<u64>();
            let mut at = vec![0];
            at.extend(shape.iter().scan(0, |sum, weight| {
                *sum += weight * unit;
                Some(*sum)
            }));
            cuts.push((number, at));
        }
        cuts.sort_unstable();
        let mut starts: Vec<u64> = cuts.iter().flat_map(|(_, at)| at).copied().collect();
        starts.sort_unstable();
        starts.dedup();
        let cell = |start: &u64| starts.partition_point(|other| other < start) as u32;
        let shapes = cuts.iter().map(|(_, at)| at.iter().map(cell).collect());
        Ok(Self {
            algorithm,
            group_of,
            members,
            position,
            shape_of,
            shapes: shapes.collect(),
            weighted,
            starts,
            stride: 1,
            crowded: false,
        })
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where the last cell ends.
    fn whole(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// The cell of this level in which a block is.
    fn cell_of(&self, block: u32) -> usize {
        (block / self.stride) as usize % self.count()
    }

    /// The cells of a member of a group of a shape.
    fn part(&self, (at, shape): (u32, u32)) -> Range<u32> {
        let shape = &self.shapes[shape as usize];
        shape[at as usize]..shape[at as usize + 1]
    }
}

/// The smallest weights in the same proportion.
fn lowest_terms(mut weights: Vec<u64>) -> Vec<u64> {
    let common = weights
        .iter()
        .fold(0, |common, &weight| gcd(common, weight));
    weights
        .iter_mut()
        .for_each(|weight| *weight /= common.max(1));
    weights
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple, if it can be counted.
fn lcm(a: u64, b: u64) -> Option<u64> {
    (a / gcd(a, b).max(1)).checked_mul(b)
}
