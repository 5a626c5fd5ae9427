//! The channels of recorded calls.
//!
//! Each replay begins at slot 0 again, however many puts a call has, and nobody counts replays. So each slot
//! has a credit flag of its own, and every put waits until what was last in its slot was given back, be it by
//! this call, by the replay before or by another recorded call; the first put ever finds the slot free.

use unisono_hal::Batch;

use super::{Fetch, Near, Own, Peer, Way};
use crate::arena::{Counter, Recorded};

impl Peer {
    /// The same peer for recorded calls. `None` where a link or the host would have to take part.
    pub(in crate::execute) fn recorded(&self, own: &Own) -> Option<Self> {
        let Recorded {
            data,
            credits,
            slots,
        } = own.arena.recorded();
        let way = match self.way {
            Way::Own => Way::Own,
            // What is fetched lies where they would have their slots: nothing is, where calls are recorded.
            Way::Mapped {
                signal,
                slots: at,
                bell: 0,
                fetch,
                ..
            } if fetch == Fetch::default() => Way::Mapped {
                signal: signal + data,
                slots: at + slots,
                bell: 0,
                inline: false,
                fetch,
            },
            Way::Mapped { .. } | Way::Posted(_) => return None,
        };
        let near = Near {
            signal: self.near.signal + data,
            slots: self.near.slots + slots,
            signal_host: self.near.signal_host + data,
            ..self.near
        };
        Some(Self {
            slot_credits: Some(credits - data),
            ..Self::new(self.rank, way, near)
        })
    }

    /// The same, as it is when a call begins. `None` if it is not for recorded calls.
    pub(in crate::execute) fn afresh(&self) -> Option<Self> {
        let way = match self.way {
            Way::Own => Way::Own,
            Way::Mapped {
                signal,
                slots,
                bell,
                inline,
                fetch,
            } => Way::Mapped {
                signal,
                slots,
                bell,
                inline,
                fetch,
            },
            Way::Posted(_) => return None,
        };
        Some(Self {
            slot_credits: self.slot_credits,
            ..Self::new(self.rank, way, self.near)
        })
    }

    /// The flag by which the peer says that it has filled a slot, and the counter of the wait for it, as the
    /// CPU sees them.
    pub(in crate::execute) fn slot_data(&self, own: &Own, slot: u32) -> (u64, u64) {
        let counter = own.arena.counter(self.rank, Counter::DataWait(slot));
        let host = self.near.signal_host;
        (host + own.arena.data_flag(self.rank, slot), host + counter)
    }

    /// The flag by which the peer gives a slot back, and the counter of the wait for it, as the CPU sees them.
    pub(in crate::execute) fn slot_credit(&self, own: &Own, slot: u32) -> (u64, u64) {
        let further = self.slot_credits.unwrap_or(0);
        let (flag, counter) = self.slot_data(own, slot);
        (flag + further, counter + further)
    }

    /// Waits until the peer has given back what was last in the slot of the next put.
    pub(super) fn await_slot(&self, own: &Own, stream: &mut Batch, further: u64) {
        let slot = own.slot_of(self.sent);
        let flag = self.near.signal + own.arena.data_flag(self.rank, slot);
        let counter = self.counter(own, Counter::DataWait(slot));
        stream.wait(flag + further, counter + further, None);
    }

    /// Tells the peer that the slot of the current put is free.
    pub(super) fn release_slot(&self, own: &Own, stream: &mut Batch, further: u64) {
        let Way::Mapped { signal, bell, .. } = self.way else {
            return;
        };
        let slot = own.slot_of(self.received.wrapping_sub(1));
        let flag = signal + own.arena.data_flag(own.rank, slot);
        let counter = self.counter(own, Counter::DataSignal(slot));
        stream.signal(flag + further, counter + further, bell, None);
    }
}
