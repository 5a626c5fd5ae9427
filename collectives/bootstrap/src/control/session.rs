//! What makes messages to one peer arrive once and in order although connections come and go. No input or output.
//!
//! Each message is numbered and kept until the peer has acknowledged it. Whoever changes to another connection sends
//! again everything that is not acknowledged, so on each connection the numbers rise without a gap, and the receiver
//! only drops what it has seen.

use std::collections::VecDeque;
use std::sync::Arc;

/// What to do with a numbered message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the next one.
    New,
    /// It came before.
    Seen,
    /// Some before it are missing: the connection is not to be trusted.
    Gap,
}

/// Both directions between this rank and one peer.
#[derive(Debug, Default)]
pub(super) struct Session {
    sent: u64,
    unacknowledged: VecDeque<(u64, Arc<[u8]>)>,
    bytes: usize,
    received: u64,
    acknowledged: u64,
}

impl Session {
    /// The number of the next message.
    pub(super) fn next_number(&self) -> u64 {
        self.sent + 1
    }

    /// Keeps the frame of the message that has [`Session::next_number`].
    pub(super) fn keep(&mut self, frame: Arc<[u8]>) {
        self.sent += 1;
        self.bytes += frame.len();
        self.unacknowledged.push_back((self.sent, frame));
    }

    /// What must be sent again over a fresh connection.
    pub(super) fn pending(&self) -> impl Iterator<Item = Arc<[u8]>> + '_ {
        self.unacknowledged
            .iter()
            .map(|(_, frame)| Arc::clone(frame))
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_settled(&self) -> bool {
        self.unacknowledged.is_empty()
    }

    /// The peer has everything up to `number`.
    pub(super) fn acknowledge(&mut self, number: u64) {
        while self
            .unacknowledged
            .front()
            .is_some_and(|(kept, _)| *kept <= number)
        {
            if let Some((_, frame)) = self.unacknowledged.pop_front() {
                self.bytes -= frame.len();
            }
        }
    }

    /// Notes a message that came in.
    pub(super) fn receive(&mut self, number: u64) -> Verdict {
        if number <= self.received {
            // Its acknowledgement may have been lost with a connection.
            self.acknowledged = self.acknowledged.min(number.saturating_sub(1));
            return Verdict::Seen;
        }
        if number != self.received + 1 {
            return Verdict::Gap;
        }
        self.received = number;
        Verdict::New
    }

    /// The number up to which an acknowledgement is due.
    pub(super) fn take_acknowledgement(&mut self) -> Option<u64> {
        (self.acknowledged < self.received).then(|| {
            self.acknowledged = self.received;
            self.received
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_rise_and_acknowledgements_free() {
        let mut session = Session::default();
        for size in 1..=3 {
            assert_eq!(session.next_number(), size);
            session.keep(vec![0; size as usize].into());
        }
        assert_eq!((session.bytes(), session.pending().count()), (6, 3));
        session.acknowledge(2);
        assert_eq!(
            (
                session.bytes(),
                session.pending().count(),
                session.is_settled()
            ),
            (3, 1, false)
        );
        session.acknowledge(u64::MAX);
        assert!(session.is_settled());
    }

    #[test]
    fn receiving_takes_each_once() {
        let mut session = Session::default();
        assert_eq!(session.receive(0), Verdict::Seen);
        assert_eq!(session.receive(1), Verdict::New);
        assert_eq!(session.receive(3), Verdict::Gap);
        assert_eq!(session.take_acknowledgement(), Some(1));
        assert_eq!(session.take_acknowledgement(), None);
        assert_eq!(session.receive(1), Verdict::Seen);
        assert_eq!(
            session.take_acknowledgement(),
            Some(1),
            "a repeated message is acknowledged again"
        );
    }

    proptest! {
        /// Connections that each carry a prefix of what is pending, and acknowledgements that are lost at will.
        #[test]
        fn everything_arrives_once_and_in_order(steps in proptest::collection::vec((0..4usize, 0..9usize, any::<bool>()), 1..60)) {
            let (mut a, mut b) = (Session::default(), Session::default());
            let mut arrived = Vec::new();
            for (sends, carried, heard) in steps {
                for _ in 0..sends {
                    let number = a.next_number();
                    a.keep(number.to_le_bytes().to_vec().into());
                }
                for frame in a.pending().take(carried) {
                    let number = u64::from_le_bytes(frame[..8].try_into().unwrap());
                    match b.receive(number) {
                        Verdict::New => arrived.push(number),
                        Verdict::Seen => {}
                        Verdict::Gap => prop_assert!(false, "a gap at {number}"),
                    }
                }
                if heard && let Some(number) = b.take_acknowledgement() {
                    a.acknowledge(number);
                }
            }
            let expected: Vec<u64> = (1..=arrived.len() as u64).collect();
            prop_assert_eq!(arrived, expected);
        }
    }
}
