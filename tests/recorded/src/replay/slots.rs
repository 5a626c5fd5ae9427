//! Whose a slot is: the sender's, until he says that it is filled; then its receiver's, once he has
//! heard of it, until he gives it back.

use super::traces::{Moment, ordered};

/// What was said last of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The receiver has given it back, or nobody has used it.
    Free,
    /// The sender has filled it.
    Filled,
    /// The receiver has heard so.
    Held,
}

/// All slots.
pub(super) struct Slots(Vec<(Said, Moment)>);

impl Slots {
    pub(super) fn new(slots: usize) -> Self {
        Self(vec![(Said::Free, (0, 0)); slots])
    }

    /// What was said last of a slot.
    pub(super) fn said(&self, slot: u32) -> Said {
        self.0[slot as usize].0
    }

    /// A queue says the next thing of a slot; false if it is not what comes next, or if the queue
    /// may say it before what comes before.
    pub(super) fn say(&mut self, slot: u32, what: Said, queue: usize, clock: &[u32]) -> bool {
        let (said, moment) = &mut self.0[slot as usize];
        let is_next = matches!(
            (*said, what),
            (Said::Free, Said::Filled) | (Said::Filled, Said::Held) | (Said::Held, Said::Free)
        );
        let is_known = ordered(*moment, clock).is_ok();
        (*said, *moment) = (what, (queue as u16, clock[queue]));
        is_next && is_known
    }
}
