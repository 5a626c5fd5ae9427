//! A ring that adds up, and memory in which all see the sums.
//!
//! all_reduce: `(p-1) a + ((p-1)/p) S b + ((p-1)/p) S g` for the sums, from neighbour to neighbour; then each shows its
//! block of them ([`crate::ir`]): `a + (S/p) g` to show, `((p-1)/p) S g` to read the others'.
//!
//! The ring reads no input twice and of others' only the sum, so that long messages cross memory less often than where
//! each folds what all show ([`super::mesh_shared`]). What comes back is written once for all.

use crate::builder::{Builder, out};
use crate::ir::{Blocks, Value};

use super::mesh_one_shot::receive_its_block;
use super::ring::{scatter_step, steps};

/// With each step of the ring a rank takes one other's sum of the piece before: first that of its neighbour, which has shown
/// it before it put anything of this piece.
pub(super) fn build(b: &mut Builder) {
    steps(b, |b, step| {
        if step > 0 {
            let (from, down) = (b.below(step), b.ranks() - 1);
            receive_its_block(b.skew(1).drift(down, 0), from);
        }
        scatter_step(b.skew(0), step);
    });
    let own = Blocks::one(b.rank());
    b.peers_above(|b, peer| b.put(peer, Value::Copy(out(own))));
}
