//! Everybody's bytes to everybody, by Bruck's algorithm: in round k each member holds the blocks of 2^k members and
//! sends them to the member 2^k places before it.

use std::time::Duration;

use crate::error::{BootstrapError, Result};
use crate::wait::Wait;
use crate::wire::codec::{Reader, Writer};

use super::message::Lane;
use super::state::{Gone, gone_error};
use super::{Control, Tag};

const WHAT: &str = "an exchange among the ranks";

impl Control {
    /// Gives each of `members` the bytes of all of them, in the order of `members`, in ceil(log2 n) rounds. All of
    /// them must call it with the same `members` and the same fresh `tag`; different tags may be under way at once.
    ///
    /// # Errors
    /// As [`Control::recv`]; [`BootstrapError::Died`] for any member; [`BootstrapError::BadOption`] if this rank is
    /// not a member or one stands there twice.
    pub fn all_gather(
        &self,
        members: &[u32],
        tag: Tag,
        bytes: &[u8],
        wait: &Wait,
    ) -> Result<Vec<Vec<u8>>> {
        let me = self.position(members)?;
        let count = members.len();
        let mut blocks = vec![bytes.to_vec()];
        for round in rounds(count) {
            let distance = 1 << round;
            let share = &blocks[..distance.min(count - distance)];
            let (to, from) = (
                members[(me + count - distance) % count],
                members[(me + distance) % count],
            );
            let lane = Lane::Gather(round);
            let message = Writer::new()
                .list(share, |writer, block| writer.bytes(block))
                .finish();
            let expected = share.len();
            self.shared
                .change(|state| state.send(to, lane, tag, &message))?;
            let received = self.shared.block(wait, WHAT, &[from], |state| {
                if let Some(received) = state.take(from, lane, tag, WHAT)? {
                    return Ok(Some(received));
                }
                let dead = members
                    .iter()
                    .find_map(|rank| Some((rank, state.gone.get(rank)?)));
                match dead {
                    Some((&rank, gone @ Gone::Dead { .. })) => {
                        return Err(gone_error(rank, gone, WHAT));
                    }
                    _ => state.check_communicator(tag.communicator)?,
                }
                Ok(None)
            })?;
            let further = parse(&received)
                .filter(|blocks| blocks.len() == expected)
                .ok_or_else(|| BootstrapError::Protocol {
                    rank: from,
                    what: "blocks that do not fit the exchange".to_owned(),
                })?;
            blocks.extend(further);
        }
        self.flush(wait);
        // Block i is that of the member i places after this one.
        blocks.rotate_right(me);
        Ok(blocks)
    }

    /// Hands queued bytes to the system, for nobody may turn the channel again soon. A tenth of a second at most:
    /// what is left is the driver's.
    pub(super) fn flush(&self, wait: &Wait) {
        let limit = wait.remaining().min(Duration::from_millis(100));
        let wait = Wait::with_abort(limit, &wait.abort);
        let _ = self.shared.block(&wait, WHAT, &[], |state| {
            Ok((!state.is_dialling() && state.hub.is_flushed()).then_some(()))
        });
    }

    fn position(&self, members: &[u32]) -> Result<usize> {
        let bad = |why: String| BootstrapError::BadOption {
            option: "members",
            why,
        };
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(bad(format!("rank {} stands there twice", twice[0])));
        }
        let size = self.size();
        if let Some(&rank) = sorted.last().filter(|rank| **rank >= size) {
            return Err(BootstrapError::NoSuchRank { rank, size });
        }
        let me = self.rank();
        members
            .iter()
            .position(|rank| *rank == me)
            .ok_or_else(|| bad(format!("rank {me}, this one, is not among them")))
    }
}

/// The numbers of the rounds that an exchange among `count` members takes.
pub(super) fn rounds(count: usize) -> std::ops::Range<u32> {
    0..count.next_power_of_two().trailing_zeros()
}

fn parse(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader::new(bytes);
    let blocks = reader.list(|reader| reader.bytes().map(<[u8]>::to_vec))?;
    reader.end(blocks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn rounds_are_the_logarithm_rounded_up() {
        for (count, expected) in [
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 3),
            (8, 3),
            (9, 4),
            (16, 4),
            (17, 5),
            (16384, 14),
        ] {
            assert_eq!(super::rounds(count).len(), expected, "{count}");
        }
    }

    proptest! {
        #[test]
        fn parsing_is_total(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            super::parse(&bytes);
        }
    }
}
