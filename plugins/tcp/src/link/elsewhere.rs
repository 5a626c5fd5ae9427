//! Puts that lie elsewhere than in their window, as the host asked before any of their bytes came.
//!
//! A part of a window is used again and again. Which of the puts to it the host means it says by flags: the put that comes
//! once one of them was raised, until another is. All are raised here, under the link's lock, in the order of puts.

use std::collections::VecDeque;

use unisono_plugin::Landing;

use crate::memory;

/// As many are remembered at once.
const MOST: usize = 256;

/// What was asked for, and what came that it can't be asked for any more.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    asked: VecDeque<Landing>,
    /// Frames whose put is not complete, and which lie in their window.
    plain: Vec<Plain>,
}

/// A frame that lies where the peer said.
#[derive(Debug)]
struct Plain {
    sequence: u64,
    window: u32,
    offset: u64,
    length: u64,
}

impl Elsewhere {
    /// Takes note of what is asked for; false if it is too late, or too much.
    pub(crate) fn ask(&mut self, landing: &Landing) -> bool {
        self.forget();
        if self.asked.len() >= MOST || is_over(landing) {
            return false;
        }
        // What lies in the window until then is of the put before.
        if has_begun(landing) && self.plain.iter().any(|plain| plain.is_of(landing)) {
            return false;
        }
        self.asked.push_back(*landing);
        true
    }

    /// Where a frame's bytes shall lie, if not in their window.
    pub(crate) fn place(
        &mut self,
        sequence: u64,
        window: u32,
        offset: u64,
        length: u64,
    ) -> Option<u64> {
        if length == 0 {
            return None;
        }
        self.forget();
        let plain = Plain {
            sequence,
            window,
            offset,
            length,
        };
        let asked = self.asked.iter().find(|asked| {
            plain.is_of(asked) && plain.is_within(asked) && has_begun(asked) && !is_over(asked)
        });
        match asked {
            Some(asked) => Some(asked.to.address + (offset - asked.offset)),
            None => {
                self.plain.push(plain);
                None
            }
        }
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

impl Plain {
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

    #[test]
    fn what_was_asked_for_in_time_lies_there_and_nothing_else() {
        let (mut before, mut behind) = (line(0), line(0));
        let mut elsewhere = Elsewhere::default();
        assert!(elsewhere.ask(&landing(&mut behind, Some(&mut before))));
        assert_eq!(elsewhere.place(0, 1, 4096, 512), None, "of the put before");
        before.counter = 1;
        elsewhere.raised(0);
        assert_eq!(elsewhere.place(1, 1, 4096, 512), Some(1 << 20));
        assert_eq!(elsewhere.place(1, 1, 4608, 512), Some((1 << 20) + 512));
        assert_eq!(elsewhere.place(1, 0, 4096, 512), None, "another window");
        assert_eq!(elsewhere.place(1, 1, 4608, 513), None, "beyond its end");
        assert_eq!(elsewhere.place(1, 1, 4095, 8), None, "before its start");
        assert_eq!(elsewhere.place(1, 1, u64::MAX, 8), None);
        assert_eq!(elsewhere.place(1, 1, 4096, 0), None);
        behind.counter = 1;
        assert_eq!(elsewhere.place(2, 1, 4096, 512), None, "it is over");
        assert!(elsewhere.asked.is_empty(), "and forgotten");
    }

    #[test]
    fn what_has_come_is_not_asked_for() {
        let (mut before, mut behind) = (line(1), line(0));
        let mut elsewhere = Elsewhere::default();
        assert_eq!(elsewhere.place(7, 1, 4608, 8), None);
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
        assert_eq!(elsewhere.place(0, 1, 4096, 512), None);
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
}
