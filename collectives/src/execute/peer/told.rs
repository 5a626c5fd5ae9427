//! What a peer tells with a signal: two words in the flag's line, of a put of nothing or one whose bytes lie elsewhere.
#![allow(unsafe_code, reason = "lines are addresses of arenas")]

use super::{Own, Peer};

impl Peer {
    /// What lies in the line of the put that was waited for last, if this rank's CPU sees that.
    pub(in crate::execute) fn told(&self, own: &Own) -> [u64; 2] {
        let line = self.current_line(own) as usize as *const [u64; 2];
        // SAFETY: it is of this rank's own arena, and aligned. The peer wrote it before it raised the flag, which this
        // rank's stream has seen, and writes it again when it has more puts under way than there are flags: not before this
        // rank goes on.
        unsafe { line.read() }
    }
}
