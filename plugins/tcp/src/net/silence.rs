//! How long a path has been silent: bytes are under way, and nothing at all comes back; or nothing is, and
//! the system's probes go unanswered.
//!
//! A peer that does not read is no silent path: its kernel answers. The probes' end is left to us: where
//! `TCP_USER_TIMEOUT` is set, Linux goes by that and not by the number of probes, so an idle connection would
//! outlive its path for as long as a busy peer may stall.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::info::tcp_info;

/// Probes of a full peer that went unanswered in a row: a path that lives loses one or two.
pub(super) const PROBES: u8 = 3;

/// What is known of one connection's path.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Since when there have been bytes under way at every look.
    under_way: Option<Instant>,
}

/// What a look at a path has found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// How long nothing has come back although something should have.
    pub(crate) silent: Duration,
    /// How long ago something came last.
    pub(crate) last: Duration,
    /// Whether probes go unanswered.
    pub(crate) unanswered: bool,
}

impl Silence {
    /// Looks at a path.
    pub(crate) fn look(&mut self, socket: BorrowedFd<'_>, now: Instant) -> Heard {
        let Some(info) = tcp_info(socket) else {
            self.under_way = None;
            return Heard::default();
        };
        // Data is an answer too: where it acknowledges nothing new, Linux does not count it as one.
        let last = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
        let last = Duration::from_millis(last.into());
        let mut silent = Duration::ZERO;
        let unanswered = info.tcpi_probes >= PROBES;
        if info.tcpi_unacked == 0 && !unanswered {
            self.under_way = None;
        } else {
            let since = *self.under_way.get_or_insert(now);
            silent = now.saturating_duration_since(since).min(last);
        }
        Heard {
            silent,
            last,
            unanswered,
        }
    }
}
