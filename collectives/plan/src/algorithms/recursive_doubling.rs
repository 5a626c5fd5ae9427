//! all_reduce of whole messages between partners at distances 1, 2, 4, ...:
//! `ceil(lg p) (a + S b + S g)`, for small messages. Other numbers of ranks are folded.
//!
//! A barrier is the same with signals. Of a power of two of ranks it has as many as dissemination, but each rank hears from
//! whom it signals: over sockets they share a connection, and four and eight ranks on two cores took 0.8 to 0.96 of the time
//! (EPYC 7003, `cargo xtask peers -- --ops barrier --ranks 4,8 --transport tcp`, with either in `UNISONO_ALGORITHMS`). The
//! cost model knows nothing of that: the order of [`Algorithm::ALL`](crate::Algorithm::ALL) decides. Of other numbers it has
//! `floor(lg p) + 2` rounds, more than dissemination, but `q lg q + 2 (p - q)` signals for the largest power of two `q`, and
//! not `p ceil(lg p)`. Where signals are calls of the operating system and ranks share cores, that counts.
//!
//! Both partners add the lower rank's value first, so both get the same expression.

use crate::builder::{Builder, input, out, slot};
use crate::ir::{Op, Value};

use super::halving_groups::{Groups, Role};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::Barrier => meet(b),
        _ => sum(b),
    }
}

fn meet(b: &mut Builder) {
    let groups = Groups::new(b.ranks());
    match groups.role(b.rank()) {
        Role::Folded { proxy } => {
            b.signal(proxy);
            b.hear(proxy);
        }
        Role::Core { number, folded } => {
            if let Some(rank) = folded {
                b.hear(rank);
            }
            for level in 0..groups.levels() {
                let partner = groups.rank(number ^ (1 << level));
                b.signal(partner);
                b.hear(partner);
            }
            if let Some(rank) = folded {
                b.signal(rank);
            }
        }
    }
}

fn sum(b: &mut Builder) {
    let groups = Groups::new(b.ranks());
    let all = b.all();
    match groups.role(b.rank()) {
        Role::Folded { proxy } => {
            b.put(proxy, Value::Copy(input(all)));
            b.skew(1).receive(proxy, all);
        }
        Role::Core { number, folded } => {
            let mut sum = input(all);
            if let Some(rank) = folded {
                b.wait(rank, all);
                b.reduce(out(all), slot(rank, all), sum, false);
                b.release(rank);
                sum = out(all);
            }
            for level in 0..groups.levels() {
                let partner = groups.rank(number ^ (1 << level));
                b.put(partner, Value::Copy(sum));
                b.wait(partner, all);
                let theirs = slot(partner, all);
                let (x, y) = if partner < b.rank() {
                    (theirs, sum)
                } else {
                    (sum, theirs)
                };
                b.reduce(out(all), x, y, level + 1 == groups.levels());
                b.release(partner);
                sum = out(all);
            }
            if let Some(rank) = folded {
                b.put(rank, Value::Copy(sum));
            }
        }
    }
}
