//! Processor time of this process, but for what its emulated devices take: on silicon they take none.

use std::fs;
use std::time::{Duration, Instant};

/// A share of one core, since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    since: Instant,
    before: Duration,
}

impl Share {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            since: Instant::now(),
            before: taken(),
        }
    }

    /// Per cent of one core until now.
    #[must_use]
    pub fn percent(&self) -> f64 {
        let spent = taken().saturating_sub(self.before);
        100.0 * spent.as_secs_f64() / self.since.elapsed().as_secs_f64()
    }
}

/// The time of all threads that are none of a device's hardware queues.
///
/// # Panics
/// If the system does not say.
fn taken() -> Duration {
    let threads = fs::read_dir("/proc/self/task").expect("this process's threads");
    let times = threads.flatten().filter_map(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        // The first number of it is nanoseconds on a processor.
        let times = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanos = times.split(' ').next()?.parse().ok()?;
        (!name.starts_with("device")).then(|| Duration::from_nanos(nanos))
    });
    let sum = times.sum::<Duration>();
    assert!(sum > Duration::ZERO, "the system counts no time of threads");
    sum
}
