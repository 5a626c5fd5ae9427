//! Several runs of addresses side by side.
//!
//! A core asks for few lines at a time, and what prefetches for it stops at the end of a page. So where lines come from memory or
//! from another core, one run of addresses does not keep it busy; several do, a page apart.

use std::sync::OnceLock;

use crate::PAGE;

/// Whether several runs side by side are faster than one on this processor, as they were seen to be on a Xeon with AMX-FP16,
/// and are taken to be on all of Intel's. Of others' nothing is known. Any thread.
#[inline]
#[must_use]
pub fn are_runs_faster() -> bool {
    // Asked once: within a virtual machine the question goes to the host.
    static ARE_FASTER: OnceLock<bool> = OnceLock::new();
    *ARE_FASTER.get_or_init(crate::hands_lines_on)
}

/// Walks `bytes` bytes by `RUNS` runs of addresses, in turns a `piece` of each, at most a page from one to the next. Calls
/// `each` with where a piece begins, and returns where they end: there may be as much left behind as not every run has a piece
/// of. Where what follows needs each piece aligned, a `piece` divides the page.
#[inline(always)]
pub fn side_by_side<const RUNS: usize>(
    bytes: usize,
    piece: usize,
    mut each: impl FnMut(usize),
) -> usize {
    let mut done = 0;
    loop {
        let apart = PAGE.min((bytes - done) / RUNS) / piece * piece;
        if apart == 0 {
            return done;
        }
        for at in (0..apart).step_by(piece) {
            for run in 0..RUNS {
                each(done + run * apart + at);
            }
        }
        done += RUNS * apart;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_byte_is_walked_once(bytes in 0_usize..9 * PAGE, shift in 6_u32..12) {
            let piece = 1 << shift;
            let mut walked = vec![0_u8; bytes];
            let done = side_by_side::<4>(bytes, piece, |at| {
                walked[at..at + piece].iter_mut().for_each(|times| *times += 1);
            });
            prop_assert!(bytes - done < 4 * piece);
            prop_assert!(walked[..done].iter().all(|times| *times == 1));
            prop_assert!(walked[done..].iter().all(|times| *times == 0));
        }
    }

    #[test]
    fn runs_are_a_page_apart() {
        let mut begin = Vec::new();
        side_by_side::<2>(2 * PAGE, PAGE / 2, |at| begin.push(at));
        assert_eq!(begin, [0, PAGE, PAGE / 2, PAGE + PAGE / 2]);
    }
}
