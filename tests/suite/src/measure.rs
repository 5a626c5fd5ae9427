//! What this process uses, as the system counts it.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads of this process.
#[must_use]
pub fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Processor time as a share of one core, since it was made.
#[derive(Clone, Copy, Debug)]
pub struct CpuShare {
    since: Instant,
    before: Duration,
}

impl CpuShare {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            since: Instant::now(),
            before: cpu_time(),
        }
    }

    /// Per cent of one core until now.
    #[must_use]
    pub fn percent(&self) -> f64 {
        let spent = cpu_time().saturating_sub(self.before);
        100.0 * spent.as_secs_f64() / self.since.elapsed().as_secs_f64()
    }
}

/// What a process holds: what grows when something leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Open descriptors.
    pub fds: usize,
    /// Mappings that are not anonymous memory: files, shared memory, devices.
    pub mappings: usize,
    /// Threads.
    pub threads: usize,
}

impl Held {
    /// What this process holds now.
    #[must_use]
    pub fn now() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        // Address, permissions, offset, device, inode, name: inode 0 is anonymous.
        let named = |line: &&str| line.split_ascii_whitespace().nth(4) != Some("0");
        Self {
            // One of them is the folder's own.
            fds: entries("/proc/self/fd").saturating_sub(1),
            mappings: maps.lines().filter(named).count(),
            threads: entries("/proc/self/task"),
        }
    }

    /// Whether this is at most `before` in everything.
    #[must_use]
    pub fn within(&self, before: &Self) -> bool {
        self.fds <= before.fds && self.mappings <= before.mappings && self.threads <= before.threads
    }
}

/// How often the system took the core from this thread so far.
#[must_use]
pub fn preemptions() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    count.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

/// What the open descriptors of this process are.
#[must_use]
pub fn descriptors() -> Vec<String> {
    let open = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut names: Vec<_> = targets.map(|path| path.display().to_string()).collect();
    names.sort();
    names
}

/// Memory of this process that is in RAM, in bytes.
#[must_use]
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn entries(folder: &str) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Median, 99th percentile and largest of some times; sorts them.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn quantiles(times: &mut [Duration]) -> [Duration; 3] {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    [at(0.5), at(0.99), at(1.0)]
}
