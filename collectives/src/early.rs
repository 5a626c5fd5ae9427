//! News for communicators that this rank is still forming: another rank may be done, and in
//! trouble, earlier.
//!
//! News for one that this rank has left already looks the same, and must not push the former out.

use std::collections::VecDeque;

use unisono_bootstrap::Event;

/// News kept.
const EVENTS: usize = 1024;
/// Communicators remembered to be gone; news for one comes soon after, if at all.
const GONE: usize = 4096;

/// The number of all communicators at once.
const ALL: u64 = 0;

#[derive(Debug, Default)]
pub(crate) struct Early {
    events: VecDeque<(u64, Event)>,
    gone: VecDeque<u64>,
}

impl Early {
    /// Keeps an event, unless it concerns one of `known` or one that is gone, or no communicator.
    pub(crate) fn keep(&mut self, event: &Event, known: impl Fn(u64) -> bool) {
        let target = match event {
            Event::Abort { communicator, .. } | Event::Mismatch { communicator, .. } => {
                *communicator
            }
            Event::Broadcast { tag, .. } => tag.communicator,
            _ => return,
        };
        if known(target) || self.gone.contains(&target) {
            return;
        }
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((target, event.clone()));
    }

    /// What came for a communicator before it was formed. What is for all stays, for those to come.
    pub(crate) fn take(&mut self, communicator: u64) -> Vec<Event> {
        let mut taken = Vec::new();
        self.events.retain(|(target, event)| {
            if *target == communicator || *target == ALL {
                taken.push(event.clone());
            }
            *target != communicator
        });
        taken
    }

    /// A communicator is gone, or was never formed: drops what came for it and what will.
    pub(crate) fn forget(&mut self, communicator: u64) {
        self.events.retain(|(target, _)| *target != communicator);
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(communicator);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abort(communicator: u64) -> Event {
        Event::Abort {
            origin: 1,
            communicator,
            code: -1,
            text: "enough".to_owned(),
        }
    }

    #[test]
    fn news_waits_for_its_communicator_and_is_taken_once() {
        let mut early = Early::default();
        for target in [7, ALL, 8] {
            early.keep(&abort(target), |known| known == 9);
        }
        early.keep(&abort(9), |known| known == 9);
        assert_eq!(early.take(7), [abort(7), abort(ALL)]);
        assert_eq!(early.take(7), [abort(ALL)]);
        assert_eq!(early.take(9), [abort(ALL)]);
        assert_eq!(early.take(8), [abort(ALL), abort(8)]);
        assert_eq!(early.events.len(), 1);
    }

    #[test]
    fn what_is_gone_pushes_nothing_out() {
        let mut early = Early::default();
        early.keep(&abort(1), |_| false);
        early.keep(&abort(2), |_| false);
        early.forget(2);
        for _ in 0..2 * EVENTS {
            early.keep(&abort(2), |_| false);
        }
        assert_eq!(early.take(2), []);
        assert_eq!(early.take(1), [abort(1)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut early = Early::default();
        for id in 1..3 * GONE as u64 {
            early.keep(&abort(id), |_| false);
            early.forget(id + (1 << 40));
        }
        assert_eq!((early.events.len(), early.gone.len()), (EVENTS, GONE));
    }
}
