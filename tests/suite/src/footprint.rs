//! Memory of this process, as the system divides it.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// What the project promises: a communicator of one rank takes fewer bytes than this...
pub const ALONE: u64 = 1 << 20;
/// ... and one of eight ranks fewer than this of each.
pub const OF_EIGHT: u64 = 32 << 20;

/// What a process has in memory and what it has mapped, in bytes.
///
/// A page that several processes have mapped counts as a share for each (`Pss`), so that the sum over all
/// ranks of a machine is what they use of it. A page that nobody has touched counts nowhere but in `mapped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Anonymous memory: heap, stacks, pages of files that were changed.
    pub private: u64,
    /// Its part of shared memory.
    pub shared: u64,
    /// Its part of files that are mapped and unchanged: code, which the system can drop and read again.
    pub code: u64,
    /// All addresses in use, touched or not.
    pub mapped: u64,
}

impl Footprint {
    /// What this process has now.
    ///
    /// # Errors
    /// If the system does not say; Linux does from 5.4 on.
    pub fn now() -> io::Result<Self> {
        let pss = fs::read_to_string("/proc/self/smaps_rollup")?;
        let status = fs::read_to_string("/proc/self/status")?;
        Ok(Self {
            private: kib(&pss, "Pss_Anon:")?,
            shared: kib(&pss, "Pss_Shmem:")?,
            code: kib(&pss, "Pss_File:")?,
            mapped: kib(&status, "VmSize:")?,
        })
    }

    /// What a machine must have for this process: private memory and its part of what is shared.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.private + self.shared
    }

    /// By how much this is more than `before`; what has become less counts as 0.
    #[must_use]
    pub fn beyond(&self, before: &Self) -> Self {
        Self {
            private: self.private.saturating_sub(before.private),
            shared: self.shared.saturating_sub(before.shared),
            code: self.code.saturating_sub(before.code),
            mapped: self.mapped.saturating_sub(before.mapped),
        }
    }
}

/// The most memory that this process ever had at once, in bytes.
///
/// # Errors
/// If the system does not say.
pub fn peak_bytes() -> io::Result<u64> {
    kib(&fs::read_to_string("/proc/self/status")?, "VmHWM:")
}

/// The value of a line such as `Pss_Anon:  112 kB`, in bytes.
fn kib(text: &str, name: &str) -> io::Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let missing = || io::Error::other(format!("the system does not tell {name} of this process"));
    value.map(|kib| kib << 10).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_missing_is_named() {
        assert_eq!(
            kib("Pss:  3 kB\nPss_Anon:   112 kB\n", "Pss_Anon:").unwrap(),
            112 << 10
        );
        let error = kib("Pss: 3 kB\n", "Pss_Anon:").unwrap_err();
        assert!(error.to_string().contains("Pss_Anon:"), "{error}");
    }
}
