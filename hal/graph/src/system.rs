//! What the system knows of its machine: NUMA nodes, sockets, cores, memory, network interfaces.
//!
//! Everything is read from `/sys` and `/proc`. What cannot be read is left out or unknown, never an
//! error: containers hide much of it, and no decision must hang on it.

mod cpu;
mod net;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::NicClass;

/// What the system knows of its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemReport {
    /// Main memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
    /// NUMA nodes, by number; a machine that shows none is one.
    pub numa: Vec<NumaReport>,
    /// Network interfaces, by name.
    pub nics: Vec<NicReport>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaReport {
    /// Its number.
    pub index: u32,
    /// The processor socket that its cores are on, if known.
    pub socket: Option<u32>,
    /// Physical cores.
    pub cores: u32,
    /// Hardware threads.
    pub threads: u32,
    /// Its memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicReport {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: NicClass,
    /// Its speed in bytes a second, if known.
    pub bytes_per_second: Option<u64>,
    /// Its NUMA node, if known.
    pub numa: Option<u32>,
    /// Whether it is up.
    pub up: bool,
}

/// Looks at this machine.
pub fn discover() -> SystemReport {
    discover_at(Path::new("/"))
}

/// Looks at a machine whose `sys` and `proc` are under another root.
pub fn discover_at(root: &Path) -> SystemReport {
    let memory_bytes = memory_of(&root.join("proc/meminfo"));
    SystemReport {
        memory_bytes,
        numa: cpu::numa(root, memory_bytes),
        nics: net::nics(root),
    }
}

/// The trimmed text of a small file.
fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// A number in a file; none if it is negative, as the system's "unknown" is.
fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// `MemTotal` of a `meminfo` file, of the machine or of a NUMA node, in bytes.
fn memory_of(meminfo: &Path) -> u64 {
    let kib = text(meminfo).and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.split_once("MemTotal:"))?
            .1;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.and_then(|kib| kib.checked_mul(1024)).unwrap_or(0)
}
