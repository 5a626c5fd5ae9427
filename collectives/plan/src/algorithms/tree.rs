//! Broadcast down a binomial tree: `ceil(lg p) (a + S b)`.
//!
//! Ranks are counted from the root. The parent of a rank is found by clearing its lowest set bit.
//! The deepest subtree is served first. Acknowledgements go up one level a round: a rank at depth
//! `d` of a tree of height `h = ceil(lg p)` answers `h - d` rounds after the data, so that every answer waits
//! exactly one round for its parent, and none holds up the data of later pieces.

use crate::builder::{Builder, input, out, slot, wrap};
use crate::ir::Value;

pub(super) fn broadcast(b: &mut Builder, root: u32) {
    let (me, ranks, all) = (b.rank(), b.ranks(), b.all());
    let relative = wrap(me, ranks - root, ranks);
    let absolute = |relative: u32| wrap(relative, root, ranks);
    let parent = absolute(relative & relative.wrapping_sub(1));

    let source = if relative == 0 {
        input(all)
    } else {
        b.wait(parent, all);
        slot(parent, all)
    };
    for child in children(relative, ranks) {
        b.put(absolute(child), Value::Copy(source));
    }
    b.copy(out(all), source);
    if relative > 0 {
        b.release(parent);
    }
    let height = u32::BITS - (ranks - 1).leading_zeros();
    b.skew((height - relative.count_ones()) as u16);
    for child in children(relative, ranks) {
        b.hear(absolute(child));
    }
    if relative > 0 {
        b.signal(parent);
    }
}

/// The children of a rank, deepest subtree first.
fn children(relative: u32, ranks: u32) -> impl Iterator<Item = u32> {
    let below = match relative {
        0 => u32::BITS - (ranks - 1).leading_zeros(),
        _ => relative.trailing_zeros(),
    };
    (0..below)
        .rev()
        .map(move |bit| relative | (1 << bit))
        .filter(move |&child| child < ranks)
}
