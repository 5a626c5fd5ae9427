//! A packing of trees: every tree carries its share of the message, and all work at once.
//!
//! - all_gather: each rank's trees share its block; reduce_scatter the same with in-trees.
//! - broadcast and reduce: the root's trees share the message. The acknowledgements go up the first
//!   out-tree; of a reduce, a rank that is a leaf of every tree hears from its parent in the first.
//! - all_reduce: what an in-tree adds up at its root an out-tree of the same root distributes. Where
//!   shares of in-trees and out-trees end in different places, both are divided.

use crate::algorithms::Layout;
use crate::builder::Builder;
use crate::ir::{Blocks, Op, Shares};

use super::super::{Tree, Trees};
use super::flow::{Flow, Kind};
use super::woven::Woven;

pub(super) fn supports(trees: &Trees, op: Op) -> Result<(), &'static str> {
    let ranks = trees.ranks();
    let roots = |of: &[Tree]| {
        let mut is_root = vec![false; ranks as usize];
        of.iter()
            .for_each(|tree| is_root[tree.root() as usize] = true);
        is_root
    };
    let everybody = |of: &[Tree]| match roots(of).iter().all(|&is_root| is_root) {
        true => Ok(()),
        false => Err("some rank is the root of no tree"),
    };
    let the = |root: u32, of: &[Tree]| match of.iter().any(|tree| tree.root() == root) {
        true => Ok(()),
        false => Err("the root is the root of no tree"),
    };
    match op {
        Op::AllGather => everybody(trees.out_trees()),
        Op::ReduceScatter => everybody(trees.in_trees()),
        Op::Broadcast { root } => the(root, trees.out_trees()),
        Op::Reduce { root } => the(root, trees.in_trees()),
        Op::AllReduce => {
            let mut carried = vec![[0u64; 2]; ranks as usize];
            for (side, of) in [trees.in_trees(), trees.out_trees()]
                .into_iter()
                .enumerate()
            {
                for tree in of {
                    carried[tree.root() as usize][side] += tree.weight();
                }
            }
            match carried.iter().all(|[comes, goes]| comes == goes) {
                true => Ok(()),
                false => Err("at some root, in-trees and out-trees don't carry the same"),
            }
        }
        _ => Err("it doesn't have this operation"),
    }
}

/// A block: its weight, the in-tree and the out-tree that carry it.
type Carried<'a> = (u64, Option<&'a Tree>, Option<&'a Tree>);

/// The blocks of the message, those of each root one after the other.
fn carried(trees: &Trees, op: Op) -> Vec<Carried<'_>> {
    let of = |root: Option<u32>, trees: &'_ [Tree]| -> Vec<usize> {
        let mut chosen: Vec<usize> = (0..trees.len())
            .filter(|&index| root.is_none_or(|root| trees[index].root() == root))
            .collect();
        chosen.sort_by_key(|&index| trees[index].root());
        chosen
    };
    let (ins, outs) = (trees.in_trees(), trees.out_trees());
    let incoming = |index: usize| (ins[index].weight(), Some(&ins[index]), None);
    let outgoing = |index: usize| (outs[index].weight(), None, Some(&outs[index]));
    match op {
        Op::ReduceScatter | Op::Reduce { .. } => {
            of(op.root(), ins).into_iter().map(incoming).collect()
        }
        Op::AllReduce => {
            let comes = of(None, ins).into_iter().map(|index| &ins[index]);
            let goes = of(None, outs).into_iter().map(|index| &outs[index]);
            pair(comes.collect(), goes.collect())
        }
        _ => of(op.root(), outs).into_iter().map(outgoing).collect(),
    }
}

/// Goes through two lists of trees that carry the same, and cuts wherever either has an end.
fn pair<'a>(comes: Vec<&'a Tree>, goes: Vec<&'a Tree>) -> Vec<Carried<'a>> {
    let mut pairs = Vec::new();
    let (mut comes, mut goes) = (comes.into_iter(), goes.into_iter());
    let mut left: [Option<(&Tree, u64)>; 2] = [None, None];
    loop {
        let mut next = |side: usize| match left[side].take() {
            Some(rest) => Some(rest),
            None if side == 0 => comes.next().map(|tree| (tree, tree.weight())),
            None => goes.next().map(|tree| (tree, tree.weight())),
        };
        let (Some((come, first)), Some((go, second))) = (next(0), next(1)) else {
            return pairs;
        };
        let weight = first.min(second);
        pairs.push((weight, Some(come), Some(go)));
        let rest = |tree, carries: u64| (carries > weight).then(|| (tree, carries - weight));
        left = [rest(come, first), rest(go, second)];
    }
}

pub(super) fn layout(trees: &Trees, op: Op) -> Layout {
    Layout {
        blocks: carried(trees, op).len() as u32,
        put_blocks: u32::from(trees.ranks() > 1),
    }
}

/// Sizes of the blocks.
pub(super) fn cut(b: &mut Builder, trees: &Trees) {
    let op = b.op();
    let blocks = carried(trees, op);
    let root = |&(_, comes, goes): &Carried<'_>| comes.or(goes).map_or(0, Tree::root);
    let mut ends: Vec<u64> = Vec::with_capacity(blocks.len());
    let mut starts = vec![0];
    let mut sum = 0;
    for (number, block) in (0u32..).zip(&blocks) {
        while op.has_block_per_rank() && starts.len() <= root(block) as usize {
            starts.push(number);
            sum = 0;
        }
        sum += block.0;
        ends.push(sum);
    }
    let shares = if op.has_block_per_rank() {
        starts.push(blocks.len() as u32);
        Shares::Within {
            starts: starts.into(),
            ends: ends.into(),
        }
    } else {
        Shares::Cumulative(ends.into())
    };
    b.cut(blocks.len() as u32, shares, None);
}

/// All trees of an operation, at work together.
pub(super) fn woven(trees: &Trees, op: Op) -> Woven {
    let mut flows = Vec::new();
    for (number, (_, comes, goes)) in (0u32..).zip(carried(trees, op)) {
        let block = Blocks::one(number);
        let flow = |kind, tree: &Tree| Flow::tree(kind, block, tree.root(), tree.parents());
        let before = comes.map(|tree| {
            flows.push(flow(Kind::In, tree));
            flows.len() - 1
        });
        if let Some(tree) = goes {
            let mut out = flow(Kind::Out, tree);
            out.after = before;
            flows.push(out);
        }
    }
    let first = |of: &'_ [Tree]| of.iter().position(|tree| Some(tree.root()) == op.root());
    match op {
        Op::Broadcast { .. } => {
            if let Some(tree) = first(trees.out_trees()).map(|at| &trees.out_trees()[at]) {
                let (root, parents) = (tree.root(), tree.parents());
                flows.push(Flow::tree(Kind::Acknowledge, Blocks::NONE, root, parents));
            }
        }
        Op::Reduce { root } => {
            if let Some(tree) = first(trees.in_trees()).map(|at| &trees.in_trees()[at]) {
                let go = |rank: u32| {
                    let ends = [tree.parents()[rank as usize], rank];
                    Flow::path(Kind::Go, Blocks::NONE, ends.into_iter())
                };
                flows.extend(unheard(trees, root).into_iter().map(go));
            }
        }
        _ => {}
    }
    Woven::new(flows, trees.ranks())
}

/// The ranks that are leaves of all trees to a root.
fn unheard(trees: &Trees, root: u32) -> Vec<u32> {
    let mut has_child = vec![false; trees.ranks() as usize];
    for tree in trees.in_trees().iter().filter(|tree| tree.root() == root) {
        for (rank, &parent) in (0u32..).zip(tree.parents().iter()) {
            has_child[parent as usize] |= rank != root;
        }
    }
    let leaf = |&rank: &u32| rank != root && !has_child[rank as usize];
    (0..trees.ranks()).filter(leaf).collect()
}
