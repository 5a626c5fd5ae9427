//! Every message on its own ways, through other ranks.
//!
//! What one rank has for another is cut where the shares of its routes end, and where those of the
//! routes back do, so that in place what comes and what goes is cut alike.
//!
//! - all_to_all: a rank numbers what goes, what comes, and then what it hands on for others. It copies
//!   what goes before anything comes, since in place that is one memory and routes take their time.
//! - gather and scatter: the routes to or from the root. In a scatter everybody signals back along
//!   the first of its routes; in a gather a rank that hands nothing on hears from the first rank on
//!   its way.

use std::collections::BTreeMap;

use crate::algorithms::Layout;
use crate::builder::{Builder, input, local, out};
use crate::ir::{Blocks, Buffer, Op, Shares};

use super::super::{Route, Routes};
use super::flow::{Flow, Kind};
use super::woven::Woven;

/// The routes of an operation, and how they cut what they carry.
struct Plan<'a> {
    ranks: u32,
    /// By sender and receiver.
    pairs: BTreeMap<(u32, u32), Pair<'a>>,
}

/// What one rank has for another.
#[derive(Debug, Default, Clone)]
struct Pair<'a> {
    routes: Vec<&'a Route>,
    /// Where each route's blocks start, and the last one's end.
    bounds: Vec<u32>,
    /// Where blocks end, over the last entry.
    ends: Vec<u64>,
}

pub(super) fn supports(routes: &Routes, op: Op) -> Result<(), &'static str> {
    let ranks = routes.ranks();
    match op {
        Op::AllToAll | Op::Gather { .. } | Op::Scatter { .. } => {}
        _ => return Err("it doesn't have this operation"),
    }
    if op.root().is_some_and(|root| root >= ranks) {
        // What is said of such a root is that it isn't there.
        return Ok(());
    }
    let Some(plan) = Plan::new(routes, op) else {
        return Err("the shares of its routes have no common denominator");
    };
    let wanted = match op {
        Op::AllToAll => u64::from(ranks) * (u64::from(ranks) - 1),
        _ => u64::from(ranks) - 1,
    };
    match plan.pairs.len() as u64 == wanted {
        true => Ok(()),
        false => Err("there is no route between some ranks"),
    }
}

pub(super) fn layout(routes: &Routes, op: Op) -> Layout {
    let plan = Plan::new(routes, op);
    let widths = plan.iter().flat_map(|plan| plan.pairs.values());
    let widths = widths.flat_map(|pair| pair.bounds.windows(2).map(|b| b[1] - b[0]));
    Layout {
        // The programs of an all_to_all have different numbers of blocks.
        blocks: op.parts(routes.ranks()),
        put_blocks: widths.max().unwrap_or(0),
    }
}

/// Sizes of the blocks of the builder's rank.
pub(super) fn cut(b: &mut Builder, routes: &Routes) {
    let Some(plan) = Plan::new(routes, b.op()) else {
        return;
    };
    let parts = plan.parts(b.op(), b.rank());
    let starts = starts(&parts);
    let blocks = starts.last().copied().unwrap_or(0);
    let ends = parts.iter().flat_map(|pair| pair.ends.iter().copied());
    let shares = Shares::Within {
        ends: ends.collect(),
        starts: starts.into(),
    };
    b.cut(blocks, shares, None);
}

/// What a rank keeps for itself.
pub(super) fn keep_own(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    let part = |b: &Builder, part: u32| {
        let blocks = b.part(part);
        Blocks::new(blocks.start, blocks.end - blocks.start)
    };
    match b.op() {
        Op::AllToAll => {
            let (goes, comes) = (part(b, me), part(b, ranks + me));
            let all = Blocks::new(0, b.part(ranks).start);
            b.copy(local(Buffer::Scratch, all), input(all));
            b.copy(out(comes), input(goes));
        }
        op if op.root() == Some(me) => {
            let own = part(b, me);
            b.copy(out(own), input(own));
        }
        _ => {}
    }
}

pub(super) fn woven(routes: &Routes, op: Op) -> Woven {
    let Some(plan) = Plan::new(routes, op) else {
        return Woven::new(Vec::new(), routes.ranks());
    };
    let ranks = plan.ranks;
    let numbers: Vec<Vec<u32>> = (0..ranks)
        .map(|rank| starts(&plan.parts(op, rank)))
        .collect();
    let transits: Vec<Vec<(u32, u32)>> = (0..ranks).map(|rank| plan.transit(rank)).collect();
    // The part of a rank's message that is a pair's.
    let part = |rank: u32, pair: (u32, u32)| match op {
        Op::AllToAll if pair.0 == rank => pair.1,
        Op::AllToAll if pair.1 == rank => ranks + pair.0,
        Op::AllToAll => {
            let transit = transits[rank as usize].binary_search(&pair);
            2 * ranks + transit.unwrap_or(0) as u32
        }
        Op::Gather { .. } => pair.0,
        _ => pair.1,
    };
    let mut flows = Vec::new();
    for (&ends, pair) in &plan.pairs {
        for (route, bounds) in pair.routes.iter().zip(pair.bounds.windows(2)) {
            let name = |&rank: &u32| {
                let first = numbers[rank as usize][part(rank, ends) as usize];
                Blocks::new(first + bounds[0], bounds[1] - bounds[0])
            };
            let names = route.path.iter().map(name).collect();
            let path = route.path.iter().copied();
            flows.push(Flow::path(Kind::Route, Blocks::NONE, path).with_names(names));
        }
    }
    signals(&plan, op, &mut flows);
    Woven::new(flows, ranks)
}

/// What lets everybody be heard.
fn signals(plan: &Plan<'_>, op: Op, flows: &mut Vec<Flow>) {
    for pair in plan.pairs.values() {
        let Some(route) = pair.routes.first() else {
            continue;
        };
        match op {
            Op::Scatter { .. } => {
                let path = route.path.iter().copied();
                flows.push(Flow::path(Kind::Acknowledge, Blocks::NONE, path));
            }
            Op::Gather { .. } => {
                let ends = [route.path[1], route.path[0]];
                flows.push(Flow::path(Kind::Go, Blocks::NONE, ends.into_iter()));
            }
            _ => {}
        }
    }
}

/// The first block of each part, and the number of all blocks.
fn starts(parts: &[Pair<'_>]) -> Vec<u32> {
    let mut sum = 0;
    let mut starts = vec![0];
    for pair in parts {
        sum += pair.ends.len() as u32;
        starts.push(sum);
    }
    starts
}

impl<'a> Plan<'a> {
    /// None if shares have no common denominator that can be counted.
    fn new(routes: &'a Routes, op: Op) -> Option<Self> {
        let mut pairs: BTreeMap<(u32, u32), Pair<'a>> = BTreeMap::new();
        for route in routes.routes() {
            let ends = (route.path[0], route.path[route.path.len() - 1]);
            let wanted = match op {
                Op::Gather { root } => ends.1 == root,
                Op::Scatter { root } => ends.0 == root,
                _ => true,
            };
            if wanted {
                pairs.entry(ends).or_default().routes.push(route);
            }
        }
        let both: Vec<((u32, u32), Vec<u64>, u64)> = (pairs.keys())
            .map(|&(from, to)| {
                let sums = |ends| pairs.get(&ends).map_or(vec![1], Pair::sums);
                let (there, back) = (sums((from, to)), sums((to, from)));
                let total = |sums: &[u64]| sums.last().copied().unwrap_or(1);
                let whole = lcm(total(&there), total(&back))?;
                let scaled = |sums: &[u64]| {
                    let by = whole / total(sums);
                    sums.iter().map(|sum| sum * by).collect::<Vec<u64>>()
                };
                let mut ends = [scaled(&there), scaled(&back)].concat();
                ends.sort_unstable();
                ends.dedup();
                Some(((from, to), ends, whole))
            })
            .collect::<Option<_>>()?;
        for (key, ends, whole) in both {
            let pair = pairs.get_mut(&key)?;
            let sums = pair.sums();
            let by = whole / sums.last().copied().unwrap_or(1);
            let bound = |sum: u64| ends.partition_point(|&end| end <= sum * by) as u32;
            pair.bounds = [0].into_iter().chain(sums.into_iter().map(bound)).collect();
            pair.ends = ends;
        }
        let ranks = routes.ranks();
        Some(Self { ranks, pairs })
    }

    /// The parts of a rank's message.
    fn parts(&self, op: Op, rank: u32) -> Vec<Pair<'a>> {
        let whole = || Pair {
            ends: vec![1],
            ..Pair::default()
        };
        let pair = |from, to| self.pairs.get(&(from, to)).cloned().unwrap_or_else(whole);
        let all = 0..self.ranks;
        match op {
            Op::AllToAll => {
                let goes = all.clone().map(|to| pair(rank, to));
                let comes = all.map(|from| pair(from, rank));
                let handed_on = self
                    .transit(rank)
                    .into_iter()
                    .map(|(from, to)| pair(from, to));
                // With one like the largest block of all, so that ranks agree on what that is.
                let largest = self.pairs.values().max_by_key(|pair| pair.largest());
                let last = largest.cloned().unwrap_or_else(whole);
                goes.chain(comes).chain(handed_on).chain([last]).collect()
            }
            Op::Gather { root } => all.map(|from| pair(from, root)).collect(),
            Op::Scatter { root } => all.map(|to| pair(root, to)).collect(),
            _ => Vec::new(),
        }
    }

    /// The pairs for which a rank hands something on, in order.
    fn transit(&self, rank: u32) -> Vec<(u32, u32)> {
        let inside = |route: &&Route| {
            let path = &route.path;
            path[1..path.len() - 1].contains(&rank)
        };
        let pairs = self.pairs.iter();
        let passes = pairs.filter(|(_, pair)| pair.routes.iter().any(inside));
        passes.map(|(&ends, _)| ends).collect()
    }
}

impl Pair<'_> {
    /// The sums of the weights so far.
    fn sums(&self) -> Vec<u64> {
        let mut sum = 0;
        let add = |route: &&Route| {
            sum += route.weight;
            sum
        };
        self.routes.iter().map(add).collect()
    }

    /// The largest block, as parts of 2^32 of what the pair has.
    fn largest(&self) -> u128 {
        let whole = u128::from(self.ends.last().copied().unwrap_or(1)).max(1);
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let sizes = self
            .ends
            .iter()
            .zip(starts)
            .map(|(&end, start)| end - start);
        (u128::from(sizes.max().unwrap_or(0)) << 32) / whole
    }
}

/// The least common multiple, if it is small enough to add up.
fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b).filter(|&all| all < 1 << 62)
}
