//! Folds any number of ranks onto a power of two.
//!
//! With `q` the largest power of two up to `p`, the first `2 (p - q)` ranks form pairs. The even
//! one of a pair hands its input to the odd one, sits out, and gets its result back. The `q` ranks
//! that stay, the *core*, are numbered again from 0.

/// The core of a communicator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Groups {
    core: u32,
    extra: u32,
}

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Sits out; this rank speaks for it.
    Folded {
        /// The rank that speaks for it.
        proxy: u32,
    },
    /// Is in the core.
    Core {
        /// Its number there.
        number: u32,
        /// The rank for which it speaks.
        folded: Option<u32>,
    },
}

impl Groups {
    /// The core of `ranks` ranks, of which there must be one at least.
    pub(super) fn new(ranks: u32) -> Self {
        let core = 1 << ranks.ilog2();
        Self {
            core,
            extra: ranks - core,
        }
    }

    /// Rounds of doubling.
    pub(super) fn levels(&self) -> u32 {
        self.core.ilog2()
    }

    pub(super) fn role(&self, rank: u32) -> Role {
        if rank >= 2 * self.extra {
            Role::Core {
                number: rank - self.extra,
                folded: None,
            }
        } else if rank % 2 == 1 {
            Role::Core {
                number: rank / 2,
                folded: Some(rank - 1),
            }
        } else {
            Role::Folded { proxy: rank + 1 }
        }
    }

    /// The rank that has this number in the core.
    pub(super) fn rank(&self, number: u32) -> u32 {
        if number < self.extra {
            2 * number + 1
        } else {
            number + self.extra
        }
    }
}
