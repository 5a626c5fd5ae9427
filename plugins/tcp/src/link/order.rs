//! Puts land in any order over several connections; their signals go out in put order.

use std::collections::VecDeque;

use crate::wire::Signal;

/// Puts that may be under way at once. A connection that runs further ahead is not read until the
/// others have caught up: the sender feels it as back-pressure.
const AHEAD_MAX: u64 = 1024;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Its bytes may land.
    Taken,
    /// It is too far ahead: ask again when [`Order::next`] has moved.
    Held,
    /// It contradicts what came before.
    Refused(&'static str),
}

#[derive(Clone, Copy, Debug)]
struct Landing {
    total: u64,
    admitted: u64,
    landed: u64,
    signal: Option<Signal>,
}

/// The puts between the oldest that has not landed and the newest that has begun.
#[derive(Debug, Default)]
pub(crate) struct Order {
    next: u64,
    landing: VecDeque<Option<Landing>>,
}

impl Order {
    /// The oldest put that has not landed.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Whether bytes are awaited that some connection must still bring.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.landing.is_empty()
    }

    /// Whether a put is near enough to be taken.
    pub(crate) const fn has_room(&self, sequence: u64) -> bool {
        sequence.saturating_sub(self.next) < AHEAD_MAX
    }

    /// Whether a put is the next, and nothing is awaited of it or any behind it.
    pub(crate) fn is_next(&self, sequence: u64) -> bool {
        sequence == self.next && self.landing.is_empty()
    }

    /// The next put has landed, of which nothing was noted before.
    pub(crate) fn pass(&mut self) {
        debug_assert!(self.landing.is_empty());
        self.next += 1;
    }

    /// Takes note of a frame before its bytes land.
    pub(crate) fn admit(
        &mut self,
        sequence: u64,
        total: u64,
        length: u64,
        signal: Option<Signal>,
    ) -> Admission {
        let Some(ahead) = sequence.checked_sub(self.next) else {
            return Admission::Refused("a put that has landed already");
        };
        if !self.has_room(sequence) {
            return Admission::Held;
        }
        let ahead = ahead as usize;
        if ahead >= self.landing.len() {
            self.landing.resize(ahead + 1, None);
        }
        let landing = self.landing[ahead].get_or_insert(Landing {
            total,
            admitted: 0,
            landed: 0,
            signal,
        });
        if landing.total != total || landing.signal != signal {
            return Admission::Refused("stripes of one put that differ");
        }
        match landing.admitted.checked_add(length) {
            Some(sum) if sum <= total => landing.admitted = sum,
            _ => return Admission::Refused("stripes that are longer than their put"),
        }
        Admission::Taken
    }

    /// Takes back an admission: the frame was cut off and will come again, from its start.
    pub(crate) fn revoke(&mut self, sequence: u64, length: u64) {
        let ahead = sequence.wrapping_sub(self.next) as usize;
        if let Some(Some(landing)) = self.landing.get_mut(ahead) {
            landing.admitted -= length;
        }
    }

    /// Takes note that an admitted frame has landed whole.
    pub(crate) fn land(&mut self, sequence: u64, length: u64) {
        let ahead = sequence.wrapping_sub(self.next) as usize;
        if let Some(Some(landing)) = self.landing.get_mut(ahead) {
            landing.landed += length;
        }
    }

    /// The next put that is complete with all before it; its signal is due.
    pub(crate) fn pop(&mut self) -> Option<Option<Signal>> {
        let front = (*self.landing.front()?)?;
        if front.landed < front.total {
            return None;
        }
        self.landing.pop_front();
        self.next += 1;
        Some(front.signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signal(offset: u64) -> Option<Signal> {
        Some(Signal {
            window: 0,
            offset,
            words: None,
        })
    }

    #[test]
    fn what_contradicts_is_refused() {
        let mut order = Order::default();
        assert_eq!(order.admit(0, 10, 4, None), Admission::Taken);
        assert!(matches!(order.admit(0, 11, 4, None), Admission::Refused(_)));
        assert!(matches!(
            order.admit(0, 10, 4, signal(1)),
            Admission::Refused(_)
        ));
        assert!(matches!(order.admit(0, 10, 7, None), Admission::Refused(_)));
        assert_eq!(order.admit(0, 10, 6, None), Admission::Taken);
        // Cut off, and once more.
        order.revoke(0, 6);
        assert_eq!(order.admit(0, 10, 6, None), Admission::Taken);
        order.land(0, 4);
        assert_eq!(order.pop(), None);
        order.land(0, 6);
        assert_eq!(order.pop(), Some(None));
        assert!(matches!(order.admit(0, 10, 1, None), Admission::Refused(_)));
        assert_eq!(order.admit(AHEAD_MAX, 10, 1, None), Admission::Taken);
        assert_eq!(order.admit(AHEAD_MAX + 1, 10, 1, None), Admission::Held);
        assert_eq!(order.admit(u64::MAX, 10, 1, None), Admission::Held);
    }

    #[test]
    fn only_the_next_may_pass_and_nothing_that_is_awaited() {
        let mut order = Order::default();
        assert!(order.is_next(0) && !order.is_next(1));
        order.pass();
        assert!(order.is_next(1) && !order.is_next(0));
        assert_eq!(order.admit(2, 4, 4, signal(2)), Admission::Taken);
        assert!(!order.is_next(1), "the one behind it is to be settled too");
        assert_eq!(order.admit(1, 4, 4, None), Admission::Taken);
        order.land(2, 4);
        order.land(1, 4);
        assert_eq!((order.pop(), order.pop()), (Some(None), Some(signal(2))));
        assert!(order.is_next(3));
    }

    proptest! {
        /// Whatever the order in which stripes land, signals come out once each and in put order,
        /// none before its put and all before it have landed.
        #[test]
        fn signals_keep_the_order_of_puts(
            puts in prop::collection::vec(1usize..5, 1..40),
            keys in prop::collection::vec(any::<u32>(), 200),
        ) {
            let mut stripes: Vec<(u64, u64)> = puts
                .iter()
                .enumerate()
                .flat_map(|(put, count)| std::iter::repeat_n((put as u64, *count as u64), *count))
                .collect();
            let mut shuffled: Vec<_> = keys.iter().zip(stripes.drain(..)).collect();
            shuffled.sort_by_key(|(key, _)| **key);
            let mut order = Order::default();
            let mut landed = vec![0; puts.len()];
            let mut raised = 0;
            for (_, (put, total)) in shuffled {
                prop_assert_eq!(order.admit(put, total, 1, signal(put)), Admission::Taken);
                order.land(put, 1);
                landed[put as usize] += 1;
                while let Some(due) = order.pop() {
                    prop_assert_eq!(due.map(|s| s.offset), Some(raised));
                    prop_assert_eq!(landed[raised as usize], puts[raised as usize]);
                    raised += 1;
                }
            }
            prop_assert_eq!(raised, puts.len() as u64);
            prop_assert!(!order.is_waiting());
        }
    }
}
