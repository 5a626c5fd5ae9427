//! How busy the machine is with others' work.

use std::fs;
use std::thread;
use std::time::Duration;

/// Cores that were busy for a quarter of a second, while our ranks were all blocked.
pub fn busy_cores() -> f64 {
    let before = jiffies();
    thread::sleep(Duration::from_millis(250));
    let after = jiffies();
    let (busy, all) = (after.0 - before.0, after.1 - before.1);
    if all > 0.0 {
        busy / all * cores() as f64
    } else {
        0.0
    }
}

/// Cores that this program may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Busy ones and all, since the machine started.
fn jiffies() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|field| field.parse().ok())
        .collect();
    let all: f64 = fields.iter().sum();
    let idle = fields.get(3).unwrap_or(&0.0) + fields.get(4).unwrap_or(&0.0);
    (all - idle, all)
}
