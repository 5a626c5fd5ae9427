//! What shares of a message meet that flow side by side over rings and trees.
//!
//! Each hop carries a part of the message, the sum of the shares that lead over it. The hop that takes
//! longest for its part sets the pace; of hops that a rank's own core serves, the rank that takes
//! longest for all of its own; of hops that share a port, all of them together.

use std::collections::BTreeMap;

use crate::template::{Rings, Tree, Trees};

use super::fabric::{Link, Port};
use super::pattern::{Pattern, Survey};
use super::rate::Rate;

/// A whole message, in the units in which parts are counted.
pub(super) const WHOLE: u64 = 1 << 32;

/// Shares on their ways, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    /// The messages of one rank of one round or piece; each is `sent` over the fan.
    pub(super) pattern: Pattern,
    /// What a rank sends at most in one round, of [`WHOLE`].
    pub(super) sent: u64,
    /// What a rank receives at most.
    pub(super) received: u64,
    /// Hops one after the other: of trees from a root to its farthest leaf.
    pub(super) depth: u64,
}

/// Rings as they are on a fabric: a round of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RingWays {
    pub(super) round: Flow,
    /// Whether two rings use one hop, which costs a pass over partial sums.
    pub(super) shared: bool,
}

/// Trees as they are on a fabric; absent where there are none for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeWays {
    /// Blocks from all roots to all, and to all roots from all.
    pub(super) gather: Option<Flow>,
    pub(super) scatter: Option<Flow>,
    /// Both, where all share one message.
    pub(super) both: Option<Flow>,
    /// The whole message from the root for which that takes longest, and the same to it.
    pub(super) from_root: Option<Flow>,
    pub(super) to_root: Option<Flow>,
}

impl RingWays {
    pub(super) fn new<L: Fn(u32, u32) -> Link>(rings: &Rings, survey: &Survey<'_, L>) -> Self {
        let total: u64 = rings.rings().iter().map(|ring| ring.weight).sum();
        let ranks = u64::from(rings.ranks());
        let mut hops = Hops::default();
        for ring in rings.rings() {
            // A block is one rank's share of the message.
            let part = part(ring.weight, total).div_ceil(ranks);
            for (from, to) in ring.hops() {
                hops.add(from, to, part);
            }
        }
        Self {
            round: hops.flow(survey, ranks.saturating_sub(1)),
            shared: rings.rings_on_a_hop() > 1,
        }
    }
}

impl TreeWays {
    pub(super) fn new<L: Fn(u32, u32) -> Link>(trees: &Trees, survey: &Survey<'_, L>) -> Self {
        let (outs, ins) = (trees.out_trees(), trees.in_trees());
        let ranks = u64::from(trees.ranks());
        let of_blocks = |trees: &[Tree], way: Way| {
            let mut hops = Hops::default();
            for tree in trees {
                let part = part(tree.weight(), of_root(trees, tree.root()));
                hops.tree(tree, way, part.div_ceil(ranks));
            }
            (!trees.is_empty()).then(|| hops.flow(survey, depth(trees.iter())))
        };
        let of_one = |trees: &[Tree], way: Way| {
            let of_root = |root: u32| {
                let total = of_root(trees, root);
                let own = || trees.iter().filter(|tree| tree.root() == root);
                let mut hops = Hops::default();
                for tree in own() {
                    hops.tree(tree, way, part(tree.weight(), total));
                }
                (total > 0).then(|| hops.flow(survey, depth(own())))
            };
            let flows = (0..trees_ranks(trees)).filter_map(of_root);
            flows.max_by_key(|flow| flow.slowness())
        };
        let both = || {
            let mut hops = Hops::default();
            for (trees, way) in [(ins, Way::In), (outs, Way::Out)] {
                let total = trees.iter().map(Tree::weight).sum();
                for tree in trees {
                    hops.tree(tree, way, part(tree.weight(), total));
                }
            }
            hops.flow(survey, depth(ins.iter()) + depth(outs.iter()))
        };
        Self {
            gather: of_blocks(outs, Way::Out),
            scatter: of_blocks(ins, Way::In),
            both: (!ins.is_empty() && !outs.is_empty()).then(both),
            from_root: of_one(outs, Way::Out),
            to_root: of_one(ins, Way::In),
        }
    }
}

impl Flow {
    /// For comparing flows of the same message: how long it takes.
    fn slowness(&self) -> (u128, u128) {
        let rate = self.pattern.rate.get().unwrap_or(u64::MAX);
        let time = (u128::from(self.sent) << 64) / u128::from(rate.max(1));
        (time, self.pattern.alpha_ps * u128::from(self.depth))
    }
}

/// A part of the whole, rounded up.
fn part(weight: u64, total: u64) -> u64 {
    let exact = u128::from(weight) * u128::from(WHOLE);
    exact.div_ceil(u128::from(total.max(1))) as u64
}

fn of_root(trees: &[Tree], root: u32) -> u64 {
    let own = trees.iter().filter(|tree| tree.root() == root);
    own.map(Tree::weight).sum()
}

fn trees_ranks(trees: &[Tree]) -> u32 {
    trees.first().map_or(0, |tree| tree.parents().len() as u32)
}

/// The hops to the farthest leaf of any tree.
fn depth<'t>(trees: impl Iterator<Item = &'t Tree>) -> u64 {
    trees.map(Tree::depth).max().unwrap_or(0)
}

/// Which way a tree's data goes.
#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

/// What goes over each hop, of [`WHOLE`], and in how many messages.
#[derive(Default)]
struct Hops(BTreeMap<(u32, u32), (u64, u64)>);

impl Hops {
    fn add(&mut self, from: u32, to: u32, part: u64) {
        let (load, messages) = self.0.entry((from, to)).or_default();
        *load += part;
        *messages += 1;
    }

    fn tree(&mut self, tree: &Tree, way: Way, part: u64) {
        for (rank, &parent) in (0u32..).zip(tree.parents().iter()) {
            match way {
                _ if rank == tree.root() => {}
                Way::Out => self.add(parent, rank, part),
                Way::In => self.add(rank, parent, part),
            }
        }
    }

    fn flow<L: Fn(u32, u32) -> Link>(&self, survey: &Survey<'_, L>, depth: u64) -> Flow {
        /// Fractions of a byte's time are kept in so many more bits.
        const FINE: u32 = 40;
        let count = survey.node_of.len();
        let mut alpha_ps = 0;
        let mut pace = Rate::UNKNOWN;
        // How much a rank sends, in how many messages, what it receives, and how long its core sends.
        let mut sent = vec![(0u64, 0u64); count];
        let mut received = vec![0u64; count];
        let mut core = vec![0u128; count];
        let mut leaving = vec![0u64; survey.nodes.len()];
        let mut ports: BTreeMap<u32, (u64, Rate)> = BTreeMap::new();
        for (&(from, to), &(load, messages)) in &self.0 {
            let link = survey.crowded(from, to);
            alpha_ps = alpha_ps.max(u128::from(link.alpha_ps));
            pace = pace.min(over(link.rate, load));
            let (from, to) = (from as usize, to as usize);
            sent[from].0 += load;
            sent[from].1 += messages;
            received[to] += load;
            if let (true, Some(rate)) = (link.by_core, link.rate.get()) {
                core[from] += (u128::from(load) << FINE) / u128::from(rate);
            }
            if let Some(Port { id, rate }) = link.port {
                ports.entry(id).or_insert((0, rate)).0 += load;
            }
            if survey.node_of[from] != survey.node_of[to] {
                leaving[survey.node_of[from] as usize] += load;
            }
        }
        for time in core.into_iter().filter(|time| *time > 0) {
            let rate = (u128::from(WHOLE) << FINE) / time;
            let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
            pace = pace.min(Rate::bytes_per_second(rate));
        }
        for (node, load) in survey
            .nodes
            .iter()
            .zip(leaving)
            .filter(|(_, load)| *load > 0)
        {
            pace = pace.min(over(node.exit, load));
        }
        for (load, rate) in ports.into_values() {
            pace = pace.min(over(rate, load));
        }
        let most = sent.iter().map(|(load, _)| *load).max().unwrap_or(0);
        let fan = sent.iter().map(|(_, fan)| *fan).max().unwrap_or(0).max(1);
        // The pace is that of the whole message; a round's time is that of one of a rank's messages.
        let rate = pace.get().map_or(0, |pace| {
            let rate = u128::from(pace) * u128::from(most) / u128::from(WHOLE) / u128::from(fan);
            u64::try_from(rate).unwrap_or(u64::MAX).max(1)
        });
        Flow {
            pattern: Pattern {
                alpha_ps,
                rate: Rate::bytes_per_second(rate),
                fan,
                ..Pattern::default()
            },
            sent: most,
            received: received.into_iter().max().unwrap_or(0),
            depth,
        }
    }
}

/// The rate of the whole message if a link carries so much of it.
fn over(rate: Rate, load: u64) -> Rate {
    Rate::bytes_per_second(rate.get().map_or(0, |rate| {
        let whole = u128::from(rate) * u128::from(WHOLE) / u128::from(load.max(1));
        u64::try_from(whole).unwrap_or(u64::MAX).max(1)
    }))
}
