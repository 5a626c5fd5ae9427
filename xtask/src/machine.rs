//! Which machine and which commit a figure belongs to.

use std::fs;
use std::process::Command;

use crate::root;

/// One line that names the machine: processor, cores, memory, kernel.
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: u64 = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{model}, {cores} cores, {} GiB, Linux {}",
        kib >> 20,
        kernel.trim()
    )
}

/// The commit that is checked out, marked if there are changes on top.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(root())
            .args(arguments)
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "no commit".to_owned();
    };
    let dirty = git(&["status", "--porcelain", "--", ".", ":!vendor-docs/results"])
        .is_some_and(|text| !text.is_empty());
    format!("{commit}{}", if dirty { " with changes" } else { "" })
}

/// Today, as YYYY-MM-DD in UTC.
pub fn today() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map_or_else(
        |_| "unknown day".to_owned(),
        |o| String::from_utf8_lossy(&o.stdout).trim().to_owned(),
    )
}
