//! Barrier in ceil(lg p) rounds of signals at distances 1, 2, 4, ...: `ceil(lg p) * alpha`.
//!
//! After round `k` a rank has heard, through others, of the `2^(k+1)` ranks below it.

use crate::builder::{Builder, wrap};

pub(super) fn build(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    let mut distance = 1;
    while distance < ranks {
        b.signal(wrap(me, distance, ranks));
        b.hear(wrap(me, ranks - distance, ranks));
        match distance.checked_mul(2) {
            Some(next) => distance = next,
            None => break,
        }
    }
}
