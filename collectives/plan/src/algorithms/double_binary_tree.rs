//! Two binary trees at once, each for half of the message, in pieces.
//!
//! A binary tree alone leaves half of the links idle, since leaves send nothing on. So a second tree
//! has the ranks shifted by one: whoever is inside one is a leaf of the other, and every rank sends
//! and receives the whole message about once.
//!
//! - all_reduce: up to the roots and down again, `2 lg p a + 2 S b` and what filling the pipeline
//!   takes.
//! - broadcast: the root sends half to the top of each tree over the other ranks:
//!   `lg p a + S b`. The acknowledgements go up the first tree.
//! - reduce: the same upwards, and `S g`; the signals by which senders are heard go down the first
//!   tree.
//!
//! All depths and both trees work at the same time, each depth on another piece: what a rank puts in
//! one round its neighbour waits for in the next. At most two of the four streams (up and down, of
//! two trees) use one channel, so two slots are enough.

use crate::builder::{Builder, input, local, out, slot, wrap};
use crate::ir::{Blocks, Buffer, Op, Place, Value};

use super::binary_tree::{BinaryTree, Node};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::AllReduce => all_reduce(b),
        Op::Broadcast { root } => broadcast(b, root),
        Op::Reduce { root } => reduce(b, root),
        _ => {}
    }
}

/// The two halves of the message.
const HALVES: [u32; 2] = [0, 1];

/// A tree over some ranks in a circle, from `first` on.
struct Seen {
    tree: BinaryTree,
    first: u32,
    ranks: u32,
}

impl Seen {
    /// The tree of a half, over `count` ranks from `first` on; that of the second half is shifted.
    fn new(half: u32, first: u32, count: u32, ranks: u32) -> Self {
        Self {
            tree: BinaryTree::new(count, half),
            first,
            ranks,
        }
    }

    fn node(&self, rank: u32) -> Node {
        self.tree
            .node(wrap(rank, self.ranks - self.first, self.ranks))
    }

    fn rank(&self, position: u32) -> u32 {
        wrap(position, self.first, self.ranks)
    }

    fn root(&self) -> u32 {
        self.rank(self.tree.root())
    }
}

fn all_reduce(b: &mut Builder) {
    let ranks = b.ranks();
    let trees = HALVES.map(|half| Seen::new(half, 0, ranks, ranks));
    for (seen, half) in trees.iter().zip(HALVES) {
        let node = seen.node(b.rank());
        let (height, block) = (seen.tree.height(), Blocks::one(half));
        b.skew((height - node.depth) as u16);
        up(b, seen, &node, block, None);
    }
    for (seen, half) in trees.iter().zip(HALVES) {
        let node = seen.node(b.rank());
        let (height, block) = (seen.tree.height(), Blocks::one(half));
        b.skew((height + node.depth) as u16);
        match node.parent {
            Some(parent) => {
                let parent = seen.rank(parent);
                down(b, seen, &node, block, parent);
            }
            None => {
                for child in node.children() {
                    b.put(seen.rank(child), Value::Copy(out(block)));
                }
            }
        }
    }
}

fn broadcast(b: &mut Builder, root: u32) {
    let (me, ranks) = (b.rank(), b.ranks());
    let first = wrap(root, 1, ranks);
    let trees = HALVES.map(|half| Seen::new(half, first, ranks - 1, ranks));
    let acknowledged = 2 * trees[0].tree.height() + 2;
    if me == root {
        for (seen, half) in trees.iter().zip(HALVES) {
            b.put(seen.root(), Value::Copy(input(Blocks::one(half))));
        }
        b.copy(out(b.all()), input(b.all()));
        b.skew(acknowledged as u16).hear(trees[0].root());
        return;
    }
    for (seen, half) in trees.iter().zip(HALVES) {
        let node = seen.node(me);
        let parent = node.parent.map_or(root, |parent| seen.rank(parent));
        b.skew(node.depth as u16 + 1);
        down(b, seen, &node, Blocks::one(half), parent);
    }
    let [first, _] = trees;
    let node = first.node(me);
    b.skew((acknowledged - 1 - node.depth) as u16);
    for child in node.children() {
        b.hear(first.rank(child));
    }
    b.signal(node.parent.map_or(root, |parent| first.rank(parent)));
}

fn reduce(b: &mut Builder, root: u32) {
    let (me, ranks) = (b.rank(), b.ranks());
    let first = wrap(root, 1, ranks);
    let trees = HALVES.map(|half| Seen::new(half, first, ranks - 1, ranks));
    if me == root {
        b.signal(trees[0].root());
        for (seen, half) in trees.iter().zip(HALVES) {
            let (from, block) = (seen.root(), Blocks::one(half));
            b.skew(seen.tree.height() as u16 + 1);
            b.wait(from, block);
            b.reduce(out(block), input(block), slot(from, block), true);
            b.release(from);
        }
        return;
    }
    let node = trees[0].node(me);
    for child in node.children() {
        b.signal(trees[0].rank(child));
    }
    b.skew(1);
    b.hear(node.parent.map_or(root, |parent| trees[0].rank(parent)));
    for (seen, half) in trees.iter().zip(HALVES) {
        let node = seen.node(me);
        b.skew((seen.tree.height() - node.depth) as u16);
        up(b, seen, &node, Blocks::one(half), Some(root));
    }
}

/// Adds what comes from below to the own input and hands it up: from the top to `beyond`, or to the
/// output if there is nobody.
fn up(b: &mut Builder, seen: &Seen, node: &Node, block: Blocks, beyond: Option<u32>) {
    let to = node.parent.map(|parent| seen.rank(parent)).or(beyond);
    let [left, right] = [node.left, node.right].map(|child| child.map(|at| seen.rank(at)));
    let kept = match to {
        Some(_) => local(Buffer::Scratch, block),
        None => out(block),
    };
    for child in left.into_iter().chain(right) {
        b.wait(child, block);
    }
    let mut sum = Value::Copy(input(block));
    let add = |b: &mut Builder, sum: Value, child: Option<u32>, first: bool, last: bool| {
        let Some(child) = child else { return sum };
        let so_far: Place = match sum {
            Value::Copy(place) => place,
            _ => {
                b.store(kept, sum);
                kept
            }
        };
        let theirs = slot(child, block);
        let (a, b) = if first {
            (theirs, so_far)
        } else {
            (so_far, theirs)
        };
        Value::Reduce { a, b, last }
    };
    let complete = to.is_none();
    sum = add(b, sum, left, true, complete && right.is_none());
    sum = add(b, sum, right, false, complete);
    match to {
        Some(to) => b.put(to, sum),
        None => b.store(kept, sum),
    }
    for child in left.into_iter().chain(right) {
        b.release(child);
    }
}

/// Takes a block from above, hands it down and keeps it.
fn down(b: &mut Builder, seen: &Seen, node: &Node, block: Blocks, parent: u32) {
    b.wait(parent, block);
    for child in node.children() {
        b.put(seen.rank(child), Value::Copy(slot(parent, block)));
    }
    b.copy(out(block), slot(parent, block));
    b.release(parent);
}
