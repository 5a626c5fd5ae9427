//! What this process uses, as the system counts it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads of this process.
#[must_use]
pub fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// How little this process does since it was made.
///
/// What burns shows as processor time, what looks again and again as wakes. Only wakes are counted exactly: what one costs
/// is the machine's, and much on a virtual machine that is idle between them.
#[derive(Clone, Debug)]
pub struct CpuShare {
    since: Instant,
    before: Duration,
    blocked: HashMap<OsString, u64>,
}

impl CpuShare {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            since: Instant::now(),
            before: cpu_time(),
            blocked: blocked(),
        }
    }

    /// Per cent of one core until now.
    #[must_use]
    pub fn percent(&self) -> f64 {
        let spent = cpu_time().saturating_sub(self.before);
        100.0 * spent.as_secs_f64() / self.since.elapsed().as_secs_f64()
    }

    /// How often a second any thread slept, and so woke, until now. Threads that have ended since do not count.
    #[must_use]
    pub fn wakes_a_second(&self) -> f64 {
        let before = |task: &OsString| self.blocked.get(task).copied().unwrap_or(0);
        let now = blocked();
        let wakes: u64 = now
            .iter()
            .map(|(task, count)| count.saturating_sub(before(task)))
            .sum();
        wakes as f64 / self.since.elapsed().as_secs_f64()
    }
}

/// How often each thread that this process has blocked so far.
fn blocked() -> HashMap<OsString, u64> {
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .map(|task| {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let count = switches(&status, "voluntary_ctxt_switches:");
            (task.file_name(), count)
        })
        .collect()
}

/// The count of a line of a thread's status.
fn switches(status: &str, name: &str) -> u64 {
    let count = status.lines().find_map(|line| line.strip_prefix(name));
    count.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
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
    switches(&status, "nonvoluntary_ctxt_switches:")
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
