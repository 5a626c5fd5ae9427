//! What the C library of ranks that share cores is told.
//!
//! Such a rank gives its core up at each wait. glibc registers a restartable sequence for every thread, in which Linux
//! writes, behind every switch to the thread, on which core it runs: 5 to 10 % of a small call of four or eight ranks on two
//! cores of an EPYC 7003 (`unisono bench barrier --ranks 8`, in many turns with `GLIBC_TUNABLES=glibc.pthread.rseq=1` before
//! it, as single runs differ by more). `sched_getcpu` alone reads it, and does without; a library with sequences of its own
//! registers them where glibc has none.

use std::ffi::{OsStr, OsString};

/// The variable with glibc's tunables, `name=value` with colons between.
pub const VARIABLE: &str = "GLIBC_TUNABLES";

const SEQUENCES: &str = "glibc.pthread.rseq";

/// What the variable is to be for so many ranks on so many cores, if it is not to stay as it was given.
pub fn wanted(ranks: u32, cores: usize, given: Option<&OsStr>) -> Option<OsString> {
    let given = given.unwrap_or_default();
    let is_said = given.to_string_lossy().contains(SEQUENCES);
    if ranks as usize <= cores || is_said {
        return None;
    }
    let mut wanted = given.to_owned();
    if !wanted.is_empty() {
        wanted.push(":");
    }
    wanted.push(format!("{SEQUENCES}=0"));
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_share_cores_have_no_sequences_unless_somebody_wants_them() {
        let of = |ranks, given: Option<&str>| wanted(ranks, 2, given.map(OsStr::new));
        let none = OsString::from("glibc.pthread.rseq=0");
        assert_eq!(of(2, None), None);
        assert_eq!(of(3, None), Some(none.clone()));
        assert_eq!(of(3, Some("")), Some(none));
        assert_eq!(of(3, Some("glibc.pthread.rseq=1")), None);
        let both = OsString::from("glibc.malloc.arena_max=1:glibc.pthread.rseq=0");
        assert_eq!(of(3, Some("glibc.malloc.arena_max=1")), Some(both));
    }
}
