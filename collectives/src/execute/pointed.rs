//! Long messages that lie in a window of their sender's.
//!
//! The first put of a long message between CPUs that map each other's memory says in its flag's line where the message
//! lies: the number of a window and an offset there, and then nothing more comes; or no window, and the message passes
//! slots as ever. So the sender decides, call by call, and the receiver need not know before, nor have its own buffer in
//! a window. It copies the message and gives the put back at once, for which the sender waits: then its memory is its own
//! again.
//!
//! Where a core fetches slowly what the other has just written, as the two are far apart, slots are faster. So who has
//! taken a message tells with the credit how long that took, and the sender chooses by it (`peer/pointed.rs`).
//!
//! Such a put is the last that its credit gives back: both count on from the next credit
//! ([`Peer::skip_sent`](super::peer::Peer::skip_sent)). So the sender waits for a credit as ever, and the receiver need not
//! have had other puts to give it.

use std::sync::Arc;
use std::time::Instant;

use super::peer::IN_SHUTTLE;
use super::windows::{Mapped, Windows};
use crate::error::{Error, Result};

/// From so many bytes on the first put of a message says where it lies.
pub(crate) const LONG_MESSAGE: u64 = 256 << 10;

/// The same where a core that reads what another has just written takes the lines over: slots that have changed hands, and
/// the shuttle, spare the sender to fetch its message's back for as long as a core's cache holds it. On a Xeon with AMX-FP16
/// (2 MiB) two ranks took 47 us for a message of 256 KiB that lay in a window and 12.5 for one that did not, 145 and 69 for
/// 1 MiB, as long for 2 MiB, less in windows for 3 MiB (`cargo xtask peers -- --dirty --ranks 2 --ops send_recv --sizes
/// 256K,1M,2M,3M`, with and without `--own-memory`).
pub(super) const LONG_HANDED_MESSAGE: u64 = 2 << 20;

/// What is said of a message that passes slots.
pub(super) static IN_SLOTS: [u64; 2] = [0; 2];

/// Where a message lies that is received.
#[derive(Clone, Default)]
pub(crate) enum Message {
    /// Its sender has not said so yet, or there is nothing to be said.
    #[default]
    Untold,
    InSlots,
    InWindow {
        address: u64,
        /// Stays mapped while it is copied from.
        window: Arc<Mapped>,
        /// When copying began.
        since: Instant,
    },
    /// It was copied from a window: what the sender is told of that.
    Taken([u64; 3]),
}

impl Message {
    /// Of what rank `from` has said of its message of so many bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such window here, or the message does not fit there.
    pub(super) fn of(
        windows: &Windows,
        from: u32,
        [number, offset]: [u64; 2],
        bytes: u64,
    ) -> Result<Self> {
        if number == 0 || [number, offset] == IN_SHUTTLE {
            return Ok(Self::InSlots);
        }
        let is_in = |window: &Mapped| {
            let end = offset.checked_add(bytes);
            window.number == number && end.is_some_and(|end| end <= window.memory.len())
        };
        let window = windows.all().iter().find(|window| is_in(window)).cloned();
        let base = window.and_then(|w| w.bases.get(from as usize).map(|base| (*base, w.clone())));
        let Some((base, window)) = base else {
            let why = format!(
                "rank {from} sends {bytes} bytes at {offset} of window {number}, which is not here: it must stay \
                 allocated on all ranks"
            );
            return Err(Error::invalid("recv", why));
        };
        Ok(Self::InWindow {
            address: base + offset,
            window,
            since: Instant::now(),
        })
    }
}
