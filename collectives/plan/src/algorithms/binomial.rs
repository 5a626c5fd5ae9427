//! A binomial tree: `ceil(lg p)` rounds, in each of which twice as many ranks take part.
//!
//! - broadcast: `ceil(lg p) (a + S b)`; reduce: that and `ceil(lg p) S g`.
//! - all_reduce: a reduce, then a broadcast: `ceil(lg p) (2a + 2 S b + S g)`.
//! - gather and scatter: `ceil(lg p) a + ((p-1)/p) S b`, since each put carries whole subtrees.
//!
//! Ranks are counted from the root. The parent of a rank is found by clearing its lowest set bit, so
//! a subtree is some neighbouring ranks, and its blocks lie side by side. The deepest subtree is
//! served first, and collected last.
//!
//! In a broadcast or scatter each rank acknowledges to its parent as soon as it has the data: nobody waits for a whole
//! subtree. In a reduce or gather it is the parents that signal, as they enter.

use crate::builder::{Builder, input, local, out, slot, wrap};
use crate::ir::{Blocks, Buffer, Op, Place, Value};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::Broadcast { root } => {
            let tree = Binomial::new(b, root);
            tree.broadcast(b, input(b.all()));
            tree.acknowledge(b);
        }
        Op::Reduce { root } => {
            let tree = Binomial::new(b, root);
            tree.let_children_go(b);
            tree.reduce(b);
            tree.hear_parent(b);
        }
        Op::AllReduce => {
            let tree = Binomial::new(b, 0);
            tree.reduce(b);
            // While this piece goes down, the next one comes up.
            b.skew(1);
            tree.broadcast(b, out(b.all()));
        }
        Op::Gather { root } => {
            let tree = Binomial::new(b, root);
            tree.let_children_go(b);
            tree.gather(b, Buffer::In, |relative| wrap(relative, root, tree.ranks));
            tree.hear_parent(b);
        }
        Op::Scatter { root } => {
            let tree = Binomial::new(b, root);
            tree.scatter(b, |relative| wrap(relative, root, tree.ranks));
            tree.acknowledge(b);
        }
        _ => {}
    }
}

/// The tree as one rank sees it.
#[derive(Clone, Copy)]
pub(super) struct Binomial {
    root: u32,
    ranks: u32,
    /// This rank, counted from the root.
    pub(super) relative: u32,
}

impl Binomial {
    pub(super) fn new(b: &Builder, root: u32) -> Self {
        let ranks = b.ranks();
        Self {
            root,
            ranks,
            relative: wrap(b.rank(), ranks - root, ranks),
        }
    }

    fn absolute(&self, relative: u32) -> u32 {
        wrap(relative, self.root, self.ranks)
    }

    fn is_root(&self) -> bool {
        self.relative == 0
    }

    fn parent(&self) -> u32 {
        self.absolute(self.relative & self.relative.wrapping_sub(1))
    }

    /// The children, counted from the root, the smallest subtree first.
    fn children(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        let (relative, ranks) = (self.relative, self.ranks);
        let below = match relative {
            0 => height(ranks),
            _ => relative.trailing_zeros(),
        };
        (0..below)
            .map(move |bit| relative | 1 << bit)
            .filter(move |&child| child < ranks)
    }

    /// Ranks in the subtree of a rank.
    fn subtree(&self, relative: u32) -> u32 {
        match relative {
            0 => self.ranks,
            _ => (1 << relative.trailing_zeros()).min(self.ranks - relative),
        }
    }

    /// Everything to everybody, from what the root has at `source`.
    fn broadcast(&self, b: &mut Builder, source: Place) {
        let all = b.all();
        let source = if self.is_root() {
            source
        } else {
            b.wait(self.parent(), all);
            slot(self.parent(), all)
        };
        for child in self.children().rev() {
            b.put(self.absolute(child), Value::Copy(source));
        }
        if source != out(all) {
            b.copy(out(all), source);
        }
        if !self.is_root() {
            b.release(self.parent());
        }
    }

    /// The sum of everything to the root.
    fn reduce(&self, b: &mut Builder) {
        let all = b.all();
        let mut sum = input(all);
        let kept = match self.is_root() {
            true => out(all),
            false => local(Buffer::Scratch, all),
        };
        let mut children = self.children().peekable();
        while let Some(child) = children.next() {
            let child = self.absolute(child);
            b.wait(child, all);
            let last = children.peek().is_none();
            if last && !self.is_root() {
                let value = Value::Reduce {
                    a: sum,
                    b: slot(child, all),
                    last: false,
                };
                b.put(self.parent(), value);
            } else {
                b.reduce(kept, sum, slot(child, all), last);
            }
            sum = kept;
            b.release(child);
        }
        if sum == input(all) {
            b.put(self.parent(), Value::Copy(sum));
        }
    }

    /// Block `name(r)` of each rank `r`, counted from the root, to the root: from the ranks'
    /// input, or from their scratch.
    pub(super) fn gather(&self, b: &mut Builder, from: Buffer, name: impl Fn(u32) -> u32) {
        let own = Blocks::one(name(self.relative));
        let kept = if self.is_root() {
            Buffer::Out
        } else {
            Buffer::Scratch
        };
        let subtree = |of: u32| Blocks::new(name(of), self.subtree(of));
        if self.subtree(self.relative) == 1 {
            b.put(self.parent(), Value::Copy(local(from, own)));
            return;
        }
        if from != kept {
            b.copy(local(kept, own), local(from, own));
        }
        for child in self.children() {
            let (blocks, child) = (subtree(child), self.absolute(child));
            b.wait(child, blocks);
            b.copy(local(kept, blocks), slot(child, blocks));
            b.release(child);
        }
        if !self.is_root() {
            let value = Value::Copy(local(kept, subtree(self.relative)));
            b.put(self.parent(), value);
        }
    }

    /// Block `name(r)` of the root's input to each rank `r`, counted from the root.
    pub(super) fn scatter(&self, b: &mut Builder, name: impl Fn(u32) -> u32) {
        let own = Blocks::one(name(self.relative));
        let subtree = |of: u32| Blocks::new(name(of), self.subtree(of));
        let source = |blocks: Blocks| match self.is_root() {
            true => input(blocks),
            false => slot(self.parent(), blocks),
        };
        if !self.is_root() {
            b.wait(self.parent(), subtree(self.relative));
        }
        for child in self.children().rev() {
            let value = Value::Copy(source(subtree(child)));
            b.put(self.absolute(child), value);
        }
        b.copy(out(own), source(own));
        if !self.is_root() {
            b.release(self.parent());
        }
    }

    /// Tells the parent that the data of a piece has come, and hears one piece later that the children have theirs.
    pub(super) fn acknowledge(&self, b: &mut Builder) {
        if !self.is_root() {
            b.signal(self.parent());
        }
        b.skew(1);
        for child in self.children().rev() {
            b.hear(self.absolute(child));
        }
    }

    fn let_children_go(&self, b: &mut Builder) {
        for child in self.children() {
            b.signal(self.absolute(child));
        }
    }

    fn hear_parent(&self, b: &mut Builder) {
        if !self.is_root() {
            b.skew(1).hear(self.parent());
        }
    }
}

/// Levels below the root of a tree of so many ranks.
pub(super) fn height(ranks: u32) -> u32 {
    u32::BITS - (ranks - 1).leading_zeros()
}

/// Blocks in the widest put of a gather or scatter: the largest subtree below the root.
pub(super) fn widest_subtree(ranks: u32) -> u32 {
    let half = 1 << (height(ranks) - 1);
    (ranks - half).max(half / 2)
}
