//! How long a call may wait, and how another thread ends it early.
//!
//! No wait in this crate is unbounded: each takes a [`Wait`], which is a point in time and a flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A flag that ends the waits that watch it. Clones share the flag; any thread may raise it.
#[derive(Clone, Debug, Default)]
pub struct AbortFlag(Arc<AtomicBool>);

impl AbortFlag {
    /// A flag that is not raised.
    pub fn new() -> AbortFlag {
        AbortFlag::default()
    }

    /// Ends every wait that watches this flag, within some 20 ms. It stays raised.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the flag was raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A deadline and an abort flag.
#[derive(Clone, Debug)]
pub struct Wait {
    /// When the wait fails.
    pub until: Instant,
    /// What ends it before that.
    pub abort: AbortFlag,
}

/// The longest sleep between two looks at an abort flag.
const SLICE: Duration = Duration::from_millis(20);

impl Wait {
    /// A wait that fails after `limit` and that nothing ends before.
    pub fn at_most(limit: Duration) -> Wait {
        Wait {
            until: far(limit),
            abort: AbortFlag::new(),
        }
    }

    /// A wait that fails after `limit`, or once `abort` is raised.
    pub fn with_abort(limit: Duration, abort: &AbortFlag) -> Wait {
        Wait {
            until: far(limit),
            abort: abort.clone(),
        }
    }

    /// What is left, zero once the deadline has passed.
    pub fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// How long to sleep now: a slice, or what is left if that is less.
    pub(crate) fn slice(&self) -> Duration {
        self.remaining().min(SLICE)
    }
}

/// Now plus `limit`; a limit beyond what the clock can say becomes a year.
fn far(limit: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + limit.min(YEAR)
}
