//! The shuttle of two ranks: a place in memory of the lower one's that goes to and fro with messages.
//!
//! Who answers a message would, like who exchanges data, best fill the lines that it has just read ([`super::hands`]). But
//! messages go when a rank pleases, so that the two cannot count together where each lies. So one of the ranks *holds* the
//! shuttle, at first the lower. A short message that it sends goes there and not into slots, and with it goes the
//! shuttle: the other holds it once it has taken the message. The first put says where its message lies, in its flag's
//! line. Who does not hold it sends through slots as ever, and waits for nobody.
//!
//! Messages of a group run beside each other, on streams that do not wait for one another: none of them takes the
//! shuttle along, as another may still be read from it.

use unisono_plan::{Action, Geometry, Program, ir};

use super::{Own, Peer, Way};
use crate::arena::{INLINE, LINE};
use crate::execute::pointed::IN_SLOTS;

/// What is said of a message that lies in the shuttle: there is no window of this number.
pub(in crate::execute) static IN_SHUTTLE: [u64; 2] = [u64::MAX, 0];

/// How a message lies in a shuttle that it may go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// From one of its puts to the next.
    pub stride: u64,
    pub puts: u64,
}

/// Bytes of a message that goes by it at most: what the caches of both cores hold beside the message.
const MOST: u64 = 256 << 10;

impl Load {
    /// Of a message, or none if it does not fit into so many bytes, or has puts that lie in their flags' lines.
    ///
    /// Both ranks must come to the same, each from its own program.
    pub(crate) fn of(
        program: &Program,
        geometry: &Geometry,
        element: u64,
        bytes: u64,
    ) -> Option<Self> {
        let mut counter = ir::ProgramCounter::START;
        let blocks = loop {
            let (step, _) = program.seek(&mut counter, 1)?;
            match step.action {
                Action::Put { value, .. } => break value.blocks(),
                Action::Wait { blocks, .. } => break blocks,
                _ => program.pass(&mut counter),
            }
        };
        let puts = geometry.pieces();
        let put = |piece| geometry.packed(blocks, piece) * element;
        let (longest, shortest) = (put(0).max(put(puts - 1)), put(0).min(put(puts - 1)));
        let stride = longest.next_multiple_of(LINE);
        let fits = geometry.count() * element <= MOST && puts * stride <= bytes;
        (shortest > INLINE && fits).then_some(Self { stride, puts })
    }
}

/// What a rank knows of the shuttle that it has in common with a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shuttle {
    /// This rank holds it.
    holds: bool,
    /// The message that was sent last, and the one received last, of those that may go by it: the number of the first put.
    sent: Option<(u64, Load)>,
    received: Option<(u64, Load)>,
    /// The latter lies there.
    is_in: bool,
}

impl Shuttle {
    /// That of `rank` with `peer`.
    pub(super) fn of(rank: u32, peer: u32) -> Self {
        Self {
            holds: rank < peer,
            ..Self::default()
        }
    }
}

/// Where a put of a message lies, behind its first.
fn offset((first, load): (u64, Load), number: u64) -> Option<u64> {
    let index = number.checked_sub(first)?;
    (index < load.puts).then_some(index * load.stride)
}

impl Peer {
    /// Where the shuttle lies: in the lower rank's memory, where no put in a slot does.
    pub(super) fn shuttle_at(&self, own: &Own) -> u64 {
        let first = own.long_slots;
        match self.way {
            Way::Mapped { slots, .. } if own.rank > self.rank => {
                slots + own.arena.slot(own.rank, first)
            }
            _ => self.near.slots + own.arena.slot(self.rank, first),
        }
    }

    /// A message begins that is sent to the peer, and goes by the shuttle if this rank holds it and it is not one of several
    /// `beside` each other.
    #[inline]
    pub(in crate::execute) fn send_message(&mut self, load: Load, beside: bool) {
        self.shuttle.sent = None;
        if self.shuttle.holds && !beside && self.may_point() {
            self.shuttle.holds = false;
            self.shuttle.sent = Some((self.sent, load));
        }
    }

    /// A message of the peer begins, which may lie there.
    #[inline]
    pub(in crate::execute) fn receive_message(&mut self, load: Load) {
        // Signals that are owed come before.
        let first = self.received + self.owed.len() as u64;
        (self.shuttle.received, self.shuttle.is_in) = (Some((first, load)), false);
    }

    /// What the first put of a message says of it, of one that lies in no window.
    #[inline]
    pub(in crate::execute) fn says(&self) -> &'static [u64; 2] {
        match self.loaded().is_some() {
            true => &IN_SHUTTLE,
            false => &IN_SLOTS,
        }
    }

    /// What the peer has said of the message that it sends.
    pub(in crate::execute) fn hear(&mut self, said: [u64; 2]) {
        if said == IN_SHUTTLE && self.shuttle.received.is_some() {
            // It is this rank's to fill when it sends a message, which it does behind this one.
            (self.shuttle.is_in, self.shuttle.holds) = (true, true);
        }
    }

    /// Says where the message lies whose first put is told of next, of one that lies in no window.
    #[inline(never)]
    pub(in crate::execute) fn say_where(&self, own: &Own) {
        self.point(own, *self.says());
    }

    /// Hears it of the put that was waited for last.
    #[inline(never)]
    pub(in crate::execute) fn hear_where(&mut self, own: &Own) {
        self.hear(self.told(own));
    }

    /// Where the next put lies in the shuttle, if it goes by it.
    #[inline]
    pub(in crate::execute) fn loaded(&self) -> Option<u64> {
        let offset = offset(self.shuttle.sent?, self.sent)?;
        Some(self.lines.shuttle() + offset)
    }

    /// The same of the put that was waited for last.
    #[inline]
    pub(super) fn brought(&self) -> Option<u64> {
        if !self.shuttle.is_in {
            return None;
        }
        let offset = offset(self.shuttle.received?, self.received.wrapping_sub(1))?;
        Some(self.lines.shuttle() + offset)
    }
}
