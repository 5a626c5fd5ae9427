//! What a process holds: descriptors, mappings, threads.

use crate::outcome::{Checked, ensure};

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Open descriptors.
    pub descriptors: usize,
    /// Mappings.
    pub mappings: usize,
    /// Threads.
    pub threads: usize,
}

impl Census {
    /// What this process holds now.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn take() -> Checked<Self> {
        Ok(Self {
            descriptors: std::fs::read_dir("/proc/self/fd")?.count(),
            mappings: std::fs::read_to_string("/proc/self/maps")?.lines().count(),
            threads: std::fs::read_dir("/proc/self/task")?.count(),
        })
    }
}

/// Runs `round` a few times to warm up, then `rounds` times, and compares what the process holds.
///
/// # Errors
/// What `round` gives, or what grew.
pub fn holds_nothing(rounds: usize, mut round: impl FnMut() -> Checked) -> Checked {
    for _ in 0..5 {
        round()?;
    }
    let before = Census::take()?;
    for _ in 0..rounds {
        round()?;
    }
    // Ended threads may need a moment to go.
    let mut after = Census::take()?;
    for _ in 0..200 {
        if after.threads <= before.threads && after.descriptors <= before.descriptors {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        after = Census::take()?;
    }
    ensure!(
        after.descriptors <= before.descriptors && after.threads <= before.threads,
        "{rounds} rounds leave something behind: {before:?}, then {after:?}"
    );
    // An allocator may map a piece more; a leak is one a round.
    ensure!(
        after.mappings < before.mappings + rounds / 2,
        "{rounds} rounds leave mappings behind: {before:?}, then {after:?}"
    );
    Ok(())
}
