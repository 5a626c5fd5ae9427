//! How often a test does its thing: reduced in `cargo xtask test`, in full in `cargo xtask soak`.

use std::fmt;

/// A count with its full size.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    reduced: u64,
    full: u64,
}

impl Count {
    /// `reduced` in the test command, `full` in a soak.
    #[must_use]
    pub const fn new(reduced: u64, full: u64) -> Self {
        Self { reduced, full }
    }

    /// The count of this run.
    #[must_use]
    pub fn get(self) -> u64 {
        if soaking() { self.full } else { self.reduced }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (of {} in a soak)", self.get(), self.full)
    }
}

/// Whether this is a soak.
#[must_use]
pub fn soaking() -> bool {
    std::env::var_os("UNISONO_SOAK").is_some()
}
