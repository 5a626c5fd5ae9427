//! Messages that have arrived and that nobody has taken yet. No input or output.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Tag;
use super::message::Lane;

/// Bytes of one sender that may wait; beyond them it is not read until some are taken.
const LIMIT_BYTES: usize = 256 << 20;
/// Messages of one sender that may wait.
const LIMIT_MESSAGES: usize = 1 << 16;
/// How many communicators that are gone are remembered, so that what comes late for them is dropped.
const FORGOTTEN: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    queues: HashMap<(u32, Lane, Tag), VecDeque<Vec<u8>>>,
    waiting: HashMap<u32, (usize, usize)>,
    forgotten: HashSet<u64>,
    forgotten_order: VecDeque<u64>,
}

impl Inbox {
    /// Adds a message; whether its sender has sent enough for now.
    pub(super) fn put(&mut self, from: u32, lane: Lane, tag: Tag, bytes: Vec<u8>) -> bool {
        if !self.forgotten.contains(&tag.communicator) {
            let waiting = self.waiting.entry(from).or_default();
            waiting.0 += bytes.len();
            waiting.1 += 1;
            self.queues
                .entry((from, lane, tag))
                .or_default()
                .push_back(bytes);
        }
        self.is_full(from)
    }

    /// Takes the oldest message of that sender, lane and tag.
    pub(super) fn take(&mut self, from: u32, lane: Lane, tag: Tag) -> Option<Vec<u8>> {
        let queue = self.queues.get_mut(&(from, lane, tag))?;
        let bytes = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&(from, lane, tag));
        }
        self.count_out(from, &bytes);
        Some(bytes)
    }

    /// Whether this sender should not be read for now.
    pub(super) fn is_full(&self, from: u32) -> bool {
        self.waiting
            .get(&from)
            .is_some_and(|&(bytes, count)| bytes > LIMIT_BYTES || count > LIMIT_MESSAGES)
    }

    /// Drops what is here for a communicator, and what will come.
    pub(super) fn forget(&mut self, communicator: u64) {
        let keys: Vec<_> = self
            .queues
            .keys()
            .filter(|key| key.2.communicator == communicator)
            .copied()
            .collect();
        for key in keys {
            for bytes in self.queues.remove(&key).into_iter().flatten() {
                self.count_out(key.0, &bytes);
            }
        }
        if self.forgotten.insert(communicator) {
            self.forgotten_order.push_back(communicator);
        }
        if self.forgotten_order.len() > FORGOTTEN
            && let Some(oldest) = self.forgotten_order.pop_front()
        {
            self.forgotten.remove(&oldest);
        }
    }

    fn count_out(&mut self, from: u32, bytes: &[u8]) {
        if let Some(waiting) = self.waiting.get_mut(&from) {
            waiting.0 -= bytes.len();
            waiting.1 -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag {
        communicator: 1,
        sequence: 2,
    };

    #[test]
    fn order_is_kept_for_each_tag() {
        let mut inbox = Inbox::default();
        let other = Tag { sequence: 3, ..TAG };
        inbox.put(0, Lane::User, TAG, vec![1]);
        inbox.put(0, Lane::User, other, vec![2]);
        inbox.put(0, Lane::User, TAG, vec![3]);
        inbox.put(0, Lane::Shrink, TAG, vec![4]);
        assert_eq!(inbox.take(0, Lane::User, TAG), Some(vec![1]));
        assert_eq!(inbox.take(0, Lane::User, TAG), Some(vec![3]));
        assert_eq!(inbox.take(0, Lane::User, TAG), None);
        assert_eq!(inbox.take(1, Lane::User, other), None);
        assert_eq!(inbox.take(0, Lane::User, other), Some(vec![2]));
    }

    #[test]
    fn a_sender_is_held_back_and_let_go() {
        let mut inbox = Inbox::default();
        for _ in 0..LIMIT_MESSAGES {
            assert!(!inbox.put(0, Lane::User, TAG, Vec::new()));
        }
        assert!(inbox.put(0, Lane::User, TAG, Vec::new()));
        assert!(!inbox.is_full(1));
        inbox.take(0, Lane::User, TAG);
        assert!(!inbox.is_full(0));
    }

    #[test]
    fn what_is_forgotten_stays_so() {
        let mut inbox = Inbox::default();
        inbox.put(0, Lane::User, TAG, vec![1]);
        inbox.forget(1);
        inbox.put(0, Lane::User, TAG, vec![2]);
        assert_eq!(inbox.take(0, Lane::User, TAG), None);
        for communicator in 2..2 + FORGOTTEN as u64 {
            inbox.forget(communicator);
        }
        inbox.put(0, Lane::User, TAG, vec![3]);
        assert_eq!(
            inbox.take(0, Lane::User, TAG),
            Some(vec![3]),
            "the memory of them is bounded"
        );
    }
}
