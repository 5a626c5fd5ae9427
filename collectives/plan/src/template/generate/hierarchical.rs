//! Level by level: within the groups, then between them, and back.
//!
//! With a reduce_scatter on every level upwards and an all_gather on every level downwards:
//!
//! - reduce_scatter, all_gather: the one or the other; all_reduce: both.
//! - broadcast: the root's share is scattered upwards, from whoever has it in the root's unit to
//!   those who have it in the others, then gathered downwards as above. The root gets all back,
//!   and so hears of everybody.
//! - reduce: a reduce_scatter upwards, then the sums come down to the root.
//!
//! Every level works at the same time as the others, on another piece: while one piece is between
//! the groups the next one is within them. In each round a rank goes through the phases from the last
//! one to the first: it takes what was put for a phase in the round before, then puts for the next
//! phase. So two slots are enough for two phases between the same ranks.

mod exchange;

use std::sync::Arc;

use crate::algorithms::Layout;
use crate::builder::{Builder, input, out};
use crate::ir::{Blocks, Buffer, Op, Shares};

use super::super::Hierarchical;
use super::super::hierarchical::Grid;
use exchange::{Exchange, Kind};

pub(super) fn supports(levels: &Hierarchical, op: Op) -> Result<(), &'static str> {
    match op {
        Op::AllReduce
        | Op::AllGather
        | Op::ReduceScatter
        | Op::Broadcast { .. }
        | Op::Reduce { .. } => match levels.grid().whole() {
            Some(_) => Ok(()),
            None => Err("its groups are of too many sizes to share a message exactly"),
        },
        _ => Err("it doesn't have this operation"),
    }
}

pub(super) fn layout(levels: &Hierarchical) -> Layout {
    Layout {
        blocks: levels.grid().blocks(),
        put_blocks: levels.grid().widest(),
    }
}

pub(super) fn build(b: &mut Builder, levels: &Hierarchical) {
    let grid = levels.grid();
    let (shares, names) = cut(grid, b.op(), b.ranks());
    b.cut(grid.blocks(), shares, names);
    let phases = phases(grid, b.op(), b.rank());
    for phase in (0..=phases.len()).rev() {
        b.skew(phase as u16);
        if let Some(before) = phase.checked_sub(1) {
            phases[before].finish(b);
        }
        if phase == 0 {
            begin(b, grid);
        }
        if let Some(phase) = phases.get(phase) {
            phase.start(b);
        }
    }
}

/// What a rank has from the start.
fn begin(b: &mut Builder, grid: &Grid) {
    let me = b.rank();
    match b.op() {
        Op::AllGather => {
            for own in grid.owned(me) {
                let own = Blocks::new(own.start, own.end - own.start);
                b.copy(out(own), input(own));
            }
        }
        Op::Broadcast { root } if root == me => b.copy(out(b.all()), input(b.all())),
        _ => {}
    }
}

/// What a rank does, in order.
fn phases(grid: &Grid, op: Op, me: u32) -> Vec<Exchange> {
    let height = grid.height();
    let on = |level: usize, kind: Kind| Exchange::new(grid.seen(me, level), kind);
    let same_unit = |root: u32, level: usize| move |rank: u32| grid.same_unit(rank, root, level);
    let mut phases = Vec::new();
    let result = match op {
        Op::ReduceScatter => Some((Buffer::Scratch, Buffer::Out)),
        Op::Reduce { root } if root != me => Some((Buffer::Scratch, Buffer::Scratch)),
        Op::AllReduce | Op::Reduce { .. } => Some((Buffer::Out, Buffer::Out)),
        _ => None,
    };
    if let Some((sums, result)) = result {
        let mut held = Buffer::In;
        for level in 0..height {
            let last = level + 1 == height;
            let to = if last { result } else { sums };
            let kind = Kind::Scatter {
                held,
                sums,
                to,
                last,
            };
            let phase = on(level, kind);
            if phase.has_teams() {
                held = to;
            }
            phases.push(phase);
        }
    }
    if let Op::Broadcast { root } = op {
        for level in 0..height {
            let kind = Kind::Deal;
            phases.push(
                on(level, kind).with_holder(grid.together(me, root, level), same_unit(root, level)),
            );
        }
    }
    if let Op::AllReduce | Op::AllGather | Op::Broadcast { .. } = op {
        let keep = op != Op::Broadcast { root: me };
        phases.extend(
            (0..height)
                .rev()
                .map(|level| on(level, Kind::Gather { keep })),
        );
    }
    if let (Op::Reduce { root }, Some((_, kept))) = (op, result) {
        for level in (0..height).rev() {
            let kind = Kind::Collect { kept };
            phases.push(
                on(level, kind).with_holder(grid.together(me, root, level), same_unit(root, level)),
            );
        }
    }
    phases
}

/// Where blocks belong to ranks, those of a rank are numbered one after the other.
fn cut(grid: &Grid, op: Op, ranks: u32) -> (Shares, Option<Arc<[u32]>>) {
    // That all weights together can be counted has been checked.
    let weight = |block: u32| grid.weight(block).unwrap_or(1);
    if !op.has_block_per_rank() {
        let mut sum = 0;
        let ends = (0..grid.blocks()).map(|block| {
            sum += weight(block);
            sum
        });
        return (Shares::Cumulative(ends.collect()), None);
    }
    let mut owned: Vec<(u32, u32)> = (0..grid.blocks())
        .map(|block| (grid.owner(block), block))
        .collect();
    owned.sort_unstable();
    let mut names = vec![0; owned.len()];
    let mut ends = Vec::with_capacity(owned.len());
    let (mut starts, mut sum) = (Vec::with_capacity(ranks as usize + 1), 0);
    for (number, &(owner, block)) in (0u32..).zip(&owned) {
        if starts.len() <= owner as usize {
            starts.push(number);
            sum = 0;
        }
        sum += weight(block);
        ends.push(sum);
        names[block as usize] = number;
    }
    starts.push(owned.len() as u32);
    let shares = Shares::Within {
        starts: starts.into(),
        ends: ends.into(),
    };
    (shares, Some(names.into()))
}
