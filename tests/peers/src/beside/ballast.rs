//! Memory that is held while libraries are compared, so that all get theirs from the same kind.
//!
//! What programs before gave back lies in pieces all over the machine's memory, and is given out first. Buffers of 64 MiB
//! made of that are slower: of three groups of the very same build, which took turns in going first, the one that had been
//! started first took 1.2 to 1.5 times as long for a broadcast of 64 MiB as the others, and as long as they did with 1 GiB
//! held before it was started (a Xeon with AMX-FP16, a virtual machine of 24 GiB; by a driver of three such groups, which is
//! not kept).

use std::fs;

/// As much as was seen to be enough.
const BYTES: u64 = 1 << 30;
/// No more than this part of what is available.
const PART: u64 = 8;

/// So much memory, of which each page is there.
pub struct Ballast(#[expect(dead_code, reason = "it is held, not used")] Vec<u8>);

impl Ballast {
    /// Takes it; none where the system does not say what is available.
    pub fn take() -> Self {
        let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let bytes = BYTES.min(available(&text).unwrap_or(0) / PART);
        // Not zeros, of which the system makes pages only when they are written.
        Self(vec![1; usize::try_from(bytes).unwrap_or(0)])
    }
}

/// Bytes that programs may still take, of what `/proc/meminfo` says.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read_in_bytes() {
        let text = "MemTotal:       24609404 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(available("MemAvailable: much kB\n"), None);
    }
}
