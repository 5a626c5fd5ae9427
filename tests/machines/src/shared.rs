//! The memory that this process shares with others.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

/// What is mapped here for others to see as well, each by its file system and number: processes that
/// name the same one share memory.
pub fn mappings() -> Result<BTreeSet<String>> {
    let maps = fs::read_to_string("/proc/self/maps").context("reading /proc/self/maps")?;
    Ok(maps.lines().filter_map(name).collect())
}

/// Of a line `from-to rw-s offset device inode path`: device and inode, if others see it.
fn name(line: &str) -> Option<String> {
    let mut fields = line.split_whitespace().skip(1);
    let (access, _, device, inode) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    (access.ends_with('s') && inode != "0").then(|| format!("{device}:{inode}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_named() {
        let line = "7f00-7f10 rw-s 00000000 00:01 4711 /memfd:unisono (deleted)";
        assert_eq!(name(line).as_deref(), Some("00:01:4711"));
        assert_eq!(name("7f00-7f10 rw-p 00000000 00:01 4711 /lib"), None);
        assert_eq!(name("7f00-7f10 rw-s 00000000 00:00 0"), None);
    }
}
