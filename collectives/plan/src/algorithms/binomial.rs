//! A binomial tree: `ceil(lg p)` rounds, in each of which twice as many ranks take part.
//!
//! - broadcast: `ceil(lg p) (a + S b)`; reduce: that and `ceil(lg p) S g`.
//! - all_reduce: a reduce, then a broadcast: `ceil(lg p) (2a + 2 S b + S g)`.
//! - all_gather: a gather, then a broadcast; reduce_scatter: a reduce, then a scatter. Both for few bytes:
//!   `ceil(lg p) (2a + S b) + ((p-1)/p) S b`, and what is reduced.
//! - barrier: the same with signals, `2 (p - 1)` of them, which are the fewest there can be.
//! - gather and scatter: `ceil(lg p) a + ((p-1)/p) S b`, since each put carries whole subtrees.
//!
//! Ranks are counted from the root. A subtree is some neighbouring ranks, and its blocks lie side by side. Its head is the
//! first of them; it gives the upper half away, then the upper half of what is left, and so on. The deepest subtree is
//! served first, and collected last.
//!
//! Ranks that share cores ([`Shape::turns`](super::Shape)) have the heads of subtrees at alternate ends: what is given away
//! goes to the rank at the far end. Else only even ranks would hand on what they get, and where ranks are dealt to cores in
//! turns one core would do all of it.
//!
//! ```text
//! 0 -> 4 -> 6 -> 7      0 -> 7 -> 4 -> 5
//!      4 -> 5                7 -> 6
//! 0 -> 2 -> 3           0 -> 3 -> 2
//! 0 -> 1                0 -> 1
//! ```
//!
//! Of ranks in an order in which those of a core follow each other ([`Order::in_runs`](crate::template::Order::in_runs)) a
//! reduce takes each core's as one: they put to the first of them, one after the other as their turns come, and the firsts are
//! a tree. So a root takes few puts, of which few come from other cores, and nobody waits for a rank that waits itself. The
//! root is the first of its core, whose ranks come first.
//!
//! ```text
//! 4 ranks on each of 2 cores    0 -> 4 -> 5, 6, 7
//!                               0 -> 1, 2, 3
//! ```
//!
//! In a broadcast or scatter each rank acknowledges to its parent as soon as it has the data: nobody waits for a whole
//! subtree. In a reduce or gather it is the parents that signal, as they enter.

use crate::builder::{Builder, input, local, out, slot, wrap};
use crate::ir::{Blocks, Buffer, Op, Place, Value};

use super::Runs;

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::Broadcast { root } => {
            let tree = Binomial::new(b, root);
            tree.broadcast(b, input(b.all()));
            tree.acknowledge(b);
        }
        Op::Reduce { root } => {
            let tree = Binomial::in_runs(b, root);
            tree.let_children_go(b);
            tree.reduce(b, out(b.all()));
            tree.hear_parent(b);
        }
        Op::AllReduce => {
            let tree = Binomial::new(b, 0);
            tree.reduce(b, out(b.all()));
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
            tree.scatter(b, Buffer::In, |relative| wrap(relative, root, tree.ranks));
            tree.acknowledge(b);
        }
        Op::AllGather => {
            let tree = Binomial::new(b, 0);
            tree.gather(b, Buffer::In, |rank| rank);
            b.skew(1);
            tree.broadcast(b, out(b.all()));
        }
        Op::ReduceScatter => {
            let tree = Binomial::new(b, 0);
            tree.reduce(b, local(Buffer::Scratch, b.all()));
            b.skew(1);
            tree.scatter(b, Buffer::Scratch, |rank| rank);
        }
        Op::Barrier => Binomial::new(b, 0).meet(b),
        _ => {}
    }
}

/// What a head gives away of its subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    /// The upper half. The first rank of each is its head.
    Upwards,
    /// A half. Heads are at alternate ends.
    InTurns,
    /// The upper half of the runs; of a single one rank after the other.
    ByRuns(Runs),
}

impl Split {
    /// How many ranks of a subtree its head keeps.
    fn kept(self, Subtree { first, count, .. }: Subtree) -> u32 {
        let Split::ByRuns(runs) = self else {
            return 1 << (height(count) - 1);
        };
        let own = if first == 0 { runs.first } else { runs.others };
        match count.checked_sub(own) {
            None | Some(0) => count - 1,
            Some(behind) => {
                let all = 1 + behind.div_ceil(runs.others);
                own + ((1 << (height(all) - 1)) - 1) * runs.others
            }
        }
    }
}

/// Some neighbouring ranks, counted from the root, and which of them is their head: the first, or the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subtree {
    first: u32,
    count: u32,
    head: u32,
}

impl Subtree {
    /// What the head gives away, and what is left.
    fn split(self, split: Split) -> Option<(Subtree, Subtree)> {
        if self.count <= 1 {
            return None;
        }
        let kept = split.kept(self);
        let given = self.count - kept;
        let part = |first: u32, count: u32, head: u32| Subtree { first, count, head };
        let Subtree { first, head, .. } = self;
        Some(match (head == first, split == Split::InTurns) {
            (true, true) => (
                part(first + kept, given, first + self.count - 1),
                part(first, kept, head),
            ),
            (true, false) => (
                part(first + kept, given, first + kept),
                part(first, kept, head),
            ),
            (false, _) => (part(first, given, first), part(first + given, kept, head)),
        })
    }

    fn holds(self, rank: u32) -> bool {
        (self.first..self.first + self.count).contains(&rank)
    }
}

/// The tree as one rank sees it.
#[derive(Clone, Copy)]
pub(super) struct Binomial {
    root: u32,
    ranks: u32,
    /// This rank, counted from the root.
    pub(super) relative: u32,
    /// The ranks below it, with itself.
    own: Subtree,
    /// The rank above it, counted from the root; itself if it is the root.
    above: u32,
    split: Split,
}

impl Binomial {
    pub(super) fn new(b: &Builder, root: u32) -> Self {
        let split = match b.turns() {
            true => Split::InTurns,
            false => Split::Upwards,
        };
        Self::of(b, root, split)
    }

    /// The tree of runs, if there are any.
    fn in_runs(b: &Builder, root: u32) -> Self {
        match b.runs() {
            Runs::NONE => Self::new(b, root),
            runs => Self::of(b, root, Split::ByRuns(runs)),
        }
    }

    /// The tree in which the first rank of each subtree is its head: messages to it all go to higher ranks.
    pub(super) fn upwards(b: &Builder, root: u32) -> Self {
        Self::of(b, root, Split::Upwards)
    }

    fn of(b: &Builder, root: u32, split: Split) -> Self {
        let ranks = b.ranks();
        let relative = wrap(b.rank(), ranks - root, ranks);
        let mut own = Subtree {
            first: 0,
            count: ranks,
            head: 0,
        };
        let mut above = 0;
        while own.head != relative
            && let Some((given, kept)) = own.split(split)
        {
            (own, above) = match given.holds(relative) {
                true => (given, own.head),
                false => (kept, above),
            };
        }
        Self {
            root,
            ranks,
            relative,
            own,
            above,
            split,
        }
    }

    fn absolute(&self, relative: u32) -> u32 {
        wrap(relative, self.root, self.ranks)
    }

    fn is_root(&self) -> bool {
        self.relative == 0
    }

    fn parent(&self) -> u32 {
        self.absolute(self.above)
    }

    /// The subtrees of the children, the largest first.
    fn given(&self) -> impl Iterator<Item = Subtree> + use<> {
        let (mut left, split) = (self.own, self.split);
        std::iter::from_fn(move || {
            let (given, kept) = left.split(split)?;
            left = kept;
            Some(given)
        })
    }

    /// The same, the smallest first.
    fn collected(&self) -> Vec<Subtree> {
        let mut all: Vec<Subtree> = self.given().collect();
        all.reverse();
        all
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
        for child in self.given() {
            b.put(self.absolute(child.head), Value::Copy(source));
        }
        if source != out(all) {
            b.copy(out(all), source);
        }
        if !self.is_root() {
            b.release(self.parent());
        }
    }

    /// The sum of everything to a place of the root's.
    fn reduce(&self, b: &mut Builder, to: Place) {
        let all = b.all();
        let mut sum = input(all);
        let kept = match self.is_root() {
            true => to,
            false => local(Buffer::Scratch, all),
        };
        let children = self.collected();
        for (number, subtree) in (1..).zip(&children) {
            let child = self.absolute(subtree.head);
            b.wait(child, all);
            // The ranks' contributions stay in their order.
            let (left, right) = match subtree.first > self.relative {
                true => (sum, slot(child, all)),
                false => (slot(child, all), sum),
            };
            let last = number == children.len();
            if last && !self.is_root() {
                let value = Value::Reduce {
                    a: left,
                    b: right,
                    last: false,
                };
                b.put(self.parent(), value);
            } else {
                b.reduce(kept, left, right, last);
            }
            sum = kept;
            b.release(child);
        }
        if sum == input(all) {
            b.put(self.parent(), Value::Copy(sum));
        }
    }

    /// The root hears that all have come, and all hear that it has.
    fn meet(&self, b: &mut Builder) {
        for child in self.collected() {
            b.hear(self.absolute(child.head));
        }
        if !self.is_root() {
            b.signal(self.parent());
            b.hear(self.parent());
        }
        for child in self.given() {
            b.signal(self.absolute(child.head));
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
        let blocks = |of: Subtree| Blocks::new(name(of.first), of.count);
        if self.own.count == 1 {
            b.put(self.parent(), Value::Copy(local(from, own)));
            return;
        }
        if from != kept {
            b.copy(local(kept, own), local(from, own));
        }
        for subtree in self.collected() {
            let (blocks, child) = (blocks(subtree), self.absolute(subtree.head));
            b.wait(child, blocks);
            b.copy(local(kept, blocks), slot(child, blocks));
            b.release(child);
        }
        if !self.is_root() {
            let value = Value::Copy(local(kept, blocks(self.own)));
            b.put(self.parent(), value);
        }
    }

    /// Block `name(r)` of the root's input, or of its scratch, to each rank `r`, counted from the root.
    pub(super) fn scatter(&self, b: &mut Builder, from: Buffer, name: impl Fn(u32) -> u32) {
        let own = Blocks::one(name(self.relative));
        let blocks = |of: Subtree| Blocks::new(name(of.first), of.count);
        let source = |blocks: Blocks| match self.is_root() {
            true => local(from, blocks),
            false => slot(self.parent(), blocks),
        };
        if !self.is_root() {
            b.wait(self.parent(), blocks(self.own));
        }
        for child in self.given() {
            let value = Value::Copy(source(blocks(child)));
            b.put(self.absolute(child.head), value);
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
        for child in self.given() {
            b.hear(self.absolute(child.head));
        }
    }

    fn let_children_go(&self, b: &mut Builder) {
        for child in self.collected() {
            b.signal(self.absolute(child.head));
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
