//! Which floods were seen, and which newcomers must still be told. No input or output.

use std::collections::{HashMap, VecDeque};

use super::message::Flood;

/// How far the numbers of one origin may be out of order before a late one is taken for a repetition.
const WINDOW: u64 = 128;
/// How many of the last floods a fresh connection is told again.
const REMEMBERED: usize = 64;
/// And of how many bytes.
const REMEMBERED_BYTES: usize = 1 << 20;

/// Suppresses repetitions by (origin, number).
#[derive(Debug, Default)]
pub(super) struct Floods {
    own: u64,
    seen: HashMap<u32, Seen>,
    recent: VecDeque<(Flood, usize)>,
    recent_bytes: usize,
}

#[derive(Debug, Default)]
struct Seen {
    highest: u64,
    /// Bit `i`: number `highest - i` was seen.
    bits: u128,
}

impl Floods {
    /// A number for a flood of this rank's own.
    pub(super) fn next_number(&mut self) -> u64 {
        self.own += 1;
        self.own
    }

    /// Notes a flood of `size` bytes; whether it is new.
    pub(super) fn note(&mut self, flood: &Flood, size: usize) -> bool {
        if !self
            .seen
            .entry(flood.origin)
            .or_default()
            .note(flood.number)
        {
            return false;
        }
        self.recent_bytes += size;
        self.recent.push_back((flood.clone(), size));
        while self.recent.len() > REMEMBERED || self.recent_bytes > REMEMBERED_BYTES {
            match self.recent.pop_front() {
                Some((_, size)) => self.recent_bytes -= size,
                None => break,
            }
        }
        true
    }

    /// What a fresh connection is told: it may have come too late for it.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Flood> {
        self.recent.iter().map(|(flood, _)| flood)
    }
}

impl Seen {
    fn note(&mut self, number: u64) -> bool {
        if number > self.highest {
            let ahead = number - self.highest;
            self.bits = if ahead < WINDOW {
                self.bits << ahead
            } else {
                0
            };
            self.bits |= 1;
            self.highest = number;
            return true;
        }
        let behind = self.highest - number;
        if behind >= WINDOW || self.bits & 1 << behind != 0 {
            return false;
        }
        self.bits |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::News;
    use super::*;
    use proptest::prelude::*;

    fn flood(origin: u32, number: u64) -> Flood {
        Flood {
            origin,
            number,
            news: News::Left,
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut floods = Floods::default();
        for number in 1..=100 {
            assert!(floods.note(&flood(0, number), 100));
        }
        assert_eq!(floods.recent().count(), REMEMBERED);
        assert!(floods.note(&flood(1, 1), REMEMBERED_BYTES));
        assert_eq!(floods.recent().count(), 1);
    }

    proptest! {
        #[test]
        fn each_is_new_once(numbers in proptest::collection::vec((0..3u32, 1..100u64), 0..300)) {
            let (mut floods, mut model) = (Floods::default(), std::collections::HashSet::new());
            for (origin, number) in numbers {
                prop_assert_eq!(floods.note(&flood(origin, number), 1), model.insert((origin, number)));
            }
        }

        #[test]
        fn any_numbers_are_survived(numbers in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut floods = Floods::default();
            for number in numbers {
                floods.note(&flood(0, number), 1);
                prop_assert!(!floods.note(&flood(0, number), 1));
            }
        }
    }
}
