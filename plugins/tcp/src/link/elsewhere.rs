//! Puts that lie elsewhere than in their window, as the host asked before any of their bytes came.
//!
//! A part of a window is used again and again. Which of the puts to it the host means it says by flags: the put that comes
//! once one of them was raised, until another is. All are raised here, under the link's lock, in the order of puts.

use std::collections::VecDeque;

use unisono_plugin::Landing;

use super::patience::Patience;
use crate::memory;

/// As many are remembered at once.
const MOST: usize = 256;

/// What was asked for, and what came that it can't be asked for any more.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    asked: VecDeque<Landing>,
    /// Frames whose put is not complete, and which lie in their window.
    plain: Vec<Arriving>,
    patience: Patience,
}

/// A frame of a put, and where the peer said that it shall lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arriving {
    pub(crate) sequence: u64,
    pub(crate) window: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Where a frame's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// In its window.
    There,
    /// From this address on.
    Elsewhere(u64),
    /// Nobody has said yet, and it waits for that.
    Unsaid,
}

impl Elsewhere {
    /// Takes note of what is asked for; false if it is too late, or too much.
    pub(crate) fn ask(&mut self, landing: &Landing) -> bool {
        self.forget();
        if self.asked.len() >= MOST {
            return false;
        }
        // What lies in the window until the put before is complete is of that.
        let lies_there = || self.plain.iter().any(|plain| plain.is_of(landing));
        if is_over(landing) || (has_begun(landing) && lies_there()) {
            self.patience.came_late();
            return false;
        }
        self.asked.push_back(*landing);
        true
    }

    /// Whether nothing was asked for, and no put is known to lie in its window: then the next one does, if it is short.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.forget();
        self.asked.is_empty() && self.plain.is_empty()
    }

    /// Where a frame's bytes shall lie that has waited for so many turns.
    pub(crate) fn place(&mut self, frame: Arriving, waited: u32) -> Lies {
        if frame.length == 0 {
            return Lies::There;
        }
        self.forget();
        let asked = self.asked.iter().find(|asked| {
            frame.is_of(asked) && frame.is_within(asked) && has_begun(asked) && !is_over(asked)
        });
        if let Some(asked) = asked {
            if waited > 0 {
                self.patience.paid();
            }
            return Lies::Elsewhere(asked.to.address + (frame.offset - asked.offset));
        }
        // Nobody asks for what is left of a put of which a part lies in the window.
        let is_rest = || (self.plain.iter()).any(|plain| plain.sequence == frame.sequence);
        if self.patience.waits(frame.length, waited) && !is_rest() {
            return Lies::Unsaid;
        }
        if waited > 0 && !is_rest() {
            self.patience.in_vain();
        }
        self.plain.push(frame);
        Lies::There
    }

    /// Puts that were asked for and are complete: none of what comes later is searched for among them.
    fn forget(&mut self) {
        while self.asked.front().is_some_and(is_over) {
            self.asked.pop_front();
        }
    }

    /// A flag was raised behind this put, and behind all before it.
    pub(crate) fn raised(&mut self, sequence: u64) {
        if !self.plain.is_empty() {
            self.plain.retain(|plain| plain.sequence > sequence);
        }
    }
}

impl Arriving {
    fn is_of(&self, landing: &Landing) -> bool {
        self.window == landing.window
            && self.offset < landing.offset.saturating_add(landing.to.bytes)
            && landing.offset < self.offset.saturating_add(self.length)
    }

    fn is_within(&self, landing: &Landing) -> bool {
        let end = landing.offset.saturating_add(landing.to.bytes);
        self.offset >= landing.offset && self.offset.saturating_add(self.length) <= end
    }
}

/// Whether what was put there before is complete.
fn has_begun(landing: &Landing) -> bool {
    landing.after.is_none_or(memory::was_raised)
}

/// Whether the put is complete, or all waits were ended.
fn is_over(landing: &Landing) -> bool {
    memory::was_raised(landing.until)
}

#[cfg(test)]
mod tests {
    use unisono_plugin::HostRange;
    use unisono_plugin::abi::FlagLine;

    use super::*;

    fn line(counter: u64) -> Box<FlagLine> {
        Box::new(FlagLine {
            counter,
            words: [0; 3],
            reserved: [0; 4],
        })
    }

    fn landing(until: &mut FlagLine, after: Option<&mut FlagLine>) -> Landing {
        Landing {
            window: 1,
            offset: 4096,
            to: HostRange {
                address: 1 << 20,
                bytes: 1024,
            },
            until: (&raw mut *until as u64, 1),
            after: after.map(|line| (&raw mut *line as u64, 1)),
        }
    }

    fn place(
        elsewhere: &mut Elsewhere,
        sequence: u64,
        window: u32,
        offset: u64,
        length: u64,
    ) -> Lies {
        let frame = Arriving {
            sequence,
            window,
            offset,
            length,
        };
        elsewhere.place(frame, 0)
    }

    #[test]
    fn what_was_asked_for_in_time_lies_there_and_nothing_else() {
        let (mut before, mut behind) = (line(0), line(0));
        let mut elsewhere = Elsewhere::default();
        assert!(elsewhere.ask(&landing(&mut behind, Some(&mut before))));
        assert_eq!(
            place(&mut elsewhere, 0, 1, 4096, 512),
            Lies::There,
            "of the put before"
        );
        before.counter = 1;
        elsewhere.raised(0);
        assert_eq!(
            place(&mut elsewhere, 1, 1, 4096, 512),
            Lies::Elsewhere(1 << 20)
        );
        assert_eq!(
            place(&mut elsewhere, 1, 1, 4608, 512),
            Lies::Elsewhere((1 << 20) + 512)
        );
        assert_eq!(
            place(&mut elsewhere, 1, 0, 4096, 512),
            Lies::There,
            "another window"
        );
        assert_eq!(
            place(&mut elsewhere, 1, 1, 4608, 513),
            Lies::There,
            "beyond its end"
        );
        assert_eq!(
            place(&mut elsewhere, 1, 1, 4095, 8),
            Lies::There,
            "before its start"
        );
        assert_eq!(place(&mut elsewhere, 1, 1, u64::MAX, 8), Lies::There);
        assert_eq!(place(&mut elsewhere, 1, 1, 4096, 0), Lies::There);
        behind.counter = 1;
        assert_eq!(
            place(&mut elsewhere, 2, 1, 4096, 512),
            Lies::There,
            "it is over"
        );
        assert!(elsewhere.asked.is_empty(), "and forgotten");
    }

    #[test]
    fn what_has_come_is_not_asked_for() {
        let (mut before, mut behind) = (line(1), line(0));
        let mut elsewhere = Elsewhere::default();
        assert_eq!(place(&mut elsewhere, 7, 1, 4608, 8), Lies::There);
        assert!(!elsewhere.ask(&landing(&mut behind, Some(&mut before))));
        assert!(!elsewhere.ask(&landing(&mut behind, None)));
        before.counter = 0;
        assert!(elsewhere.ask(&landing(&mut behind, Some(&mut before))));
        elsewhere.raised(7);
        assert!(elsewhere.ask(&landing(&mut behind, None)));
        behind.counter = 1;
        assert!(!elsewhere.ask(&landing(&mut behind, None)));
    }

    #[test]
    fn after_an_abort_nothing_lies_elsewhere() {
        let mut behind = line(0);
        let mut elsewhere = Elsewhere::default();
        assert!(elsewhere.ask(&landing(&mut behind, None)));
        behind.counter += 1 << 62;
        assert_eq!(place(&mut elsewhere, 0, 1, 4096, 512), Lies::There);
        assert!(!elsewhere.ask(&landing(&mut behind, None)));
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let mut behind = line(0);
        let mut elsewhere = Elsewhere::default();
        let asked = (0..2 * MOST).filter(|_| elsewhere.ask(&landing(&mut behind, None)));
        assert_eq!(asked.count(), MOST);
        behind.counter = 1;
        let mut next = line(0);
        assert!(elsewhere.ask(&landing(&mut next, None)));
        assert_eq!(elsewhere.asked.len(), 1);
    }

    #[test]
    fn a_long_frame_waits_once_the_host_was_late() {
        const LONG: u64 = 32 << 10;
        let (mut first, mut second, mut third) = (line(0), line(0), line(0));
        let long = |until: &mut FlagLine, after: Option<&mut FlagLine>| Landing {
            to: HostRange {
                address: 1 << 20,
                bytes: LONG,
            },
            ..landing(until, after)
        };
        let frame = |sequence| Arriving {
            sequence,
            window: 1,
            offset: 4096,
            length: LONG,
        };
        let mut elsewhere = Elsewhere::default();
        assert_eq!(elsewhere.place(frame(0), 0), Lies::There);
        assert!(!elsewhere.ask(&long(&mut first, None)), "it lies there");
        first.counter = 1;
        elsewhere.raised(0);
        assert_eq!(elsewhere.place(frame(1), 0), Lies::Unsaid);
        assert!(
            elsewhere.ask(&long(&mut second, Some(&mut first))),
            "it waits"
        );
        assert_eq!(elsewhere.place(frame(1), 1), Lies::Elsewhere(1 << 20));
        second.counter = 1;
        elsewhere.raised(1);
        assert_eq!(elsewhere.place(frame(2), 0), Lies::Unsaid);
        let waited = (1..).find(|&waited| elsewhere.place(frame(2), waited) == Lies::There);
        assert!(waited.is_some_and(|polls| polls < 100), "not for ever");
        third.counter = 1;
        elsewhere.raised(2);
        assert_eq!(elsewhere.place(frame(3), 0), Lies::There, "it was in vain");
        assert!(
            !elsewhere.ask(&long(&mut third, Some(&mut second))),
            "it is complete"
        );
    }

    #[test]
    fn the_rest_of_a_put_that_lies_in_the_window_does_not_wait() {
        const LONG: u64 = 32 << 10;
        let (mut first, mut second) = (line(0), line(0));
        let frame = |sequence, offset| Arriving {
            sequence,
            window: 1,
            offset,
            length: LONG,
        };
        let mut asked = landing(&mut first, None);
        asked.to.bytes = 2 * LONG;
        let mut elsewhere = Elsewhere::default();
        assert_eq!(elsewhere.place(frame(0, 4096), 0), Lies::There);
        assert!(!elsewhere.ask(&asked), "a part lies there");
        assert_eq!(elsewhere.place(frame(0, 4096 + LONG), 0), Lies::There);
        first.counter = 1;
        elsewhere.raised(0);
        assert_eq!(elsewhere.place(frame(1, 4096), 0), Lies::Unsaid);
        let mut next = landing(&mut second, Some(&mut first));
        next.to.bytes = 2 * LONG;
        assert!(elsewhere.ask(&next), "all of it waits");
    }
}
