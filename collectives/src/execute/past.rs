//! Which results are written past the caches: those of long messages that nobody reads again in the call.
//!
//! A store that leaves a line in a cache first fetches it, from memory where no cache holds it, and has it written back
//! later. Where what all ranks of a machine receive is more than its caches hold, that is a third of what memory moves.

use unisono_plan::cost::exceeds_caches;
use unisono_plan::{Action, Blocks, Buffer, Op, Place, Program, Value};

/// Shorter messages stay in the caches of the ranks that are to use them.
const LONG: u64 = 1 << 20;

/// What the messages of a machine's ranks come to together when they leave the caches of a processor whose cores share none
/// with all others: no more than elsewhere, but already as much, since what is sent lies there too. On an EPYC 7003 four
/// ranks took 1.0 to 1.4 times as long for an all_gather of 4 MiB that stayed in the caches, 1.25 times for a broadcast, and
/// eight 1.4 to 1.5 times for an all_gather of 2 MiB (`unisono bench all_gather,broadcast --ranks 4 -b 4M -e 4M --dirty`, in
/// turns with the build before it). For half as much it depended on how far the cores were apart: 0.7 to 1.7 times. Of an
/// all_to_all both buffers are counted, and there it is more than this: two ranks near each other took 1.6 times as long for
/// 4 MiB past the caches, four ranks 0.85 times for 3 MiB.
const APART: u64 = 16 << 20;

/// The blocks of an output that may be written past the caches.
#[derive(Debug)]
pub(crate) struct Past {
    /// Of each block, whether a step reads it out of the output; empty where none is read.
    read: Box<[bool]>,
    section: u32,
}

impl Past {
    /// Of a program over a message of so many bytes, on one of `neighbours` ranks of one machine, which long messages alone
    /// ask for. `None` where all stays in the caches. `section` is how many blocks are numbered together.
    pub(crate) fn of(
        program: &Program,
        section: u32,
        bytes: u64,
        neighbours: impl FnOnce() -> u32,
    ) -> Option<Self> {
        if bytes < LONG || !leave_caches(program.op, bytes, neighbours()) {
            return None;
        }
        let mut read = vec![false; program.blocks as usize];
        for step in program.walk() {
            for place in operands(step.action).into_iter().flatten() {
                match place {
                    // The peers, too, may read of this rank what it reads of them.
                    Place::Peer {
                        buffer: Buffer::Out,
                        ..
                    } => return None,
                    Place::Local {
                        buffer: Buffer::Out,
                        blocks,
                    } => {
                        for block in blocks.iter(section) {
                            *read.get_mut(block as usize)? = true;
                        }
                    }
                    _ => {}
                }
            }
        }
        let read = match read.contains(&true) {
            true => read.into(),
            false => Box::default(),
        };
        Some(Self { read, section })
    }

    /// Whether what is written to a place may go past the caches.
    #[inline]
    pub(super) fn takes(&self, place: &Place) -> bool {
        match place {
            Place::Local {
                buffer: Buffer::Out,
                blocks,
            } => self.read.is_empty() || !self.is_read(*blocks),
            _ => false,
        }
    }

    fn is_read(&self, blocks: Blocks) -> bool {
        let mut blocks = blocks.iter(self.section);
        blocks.any(|block| self.read.get(block as usize).is_none_or(|read| *read))
    }
}

/// Whether messages of so many bytes of each of a machine's `ranks` ranks are more than its caches hold together.
fn leave_caches(op: Op, bytes: u64, ranks: u32) -> bool {
    let least = match op {
        Op::AllToAll => APART + 1,
        _ => APART,
    };
    match unisono_copy::has_caches_apart() {
        true => bytes.saturating_mul(ranks.into()) >= least,
        false => exceeds_caches(bytes, ranks),
    }
}

/// What a step reads.
fn operands(action: Action) -> [Option<Place>; 2] {
    match action {
        Action::Copy { src, .. }
        | Action::Put {
            value: Value::Copy(src),
            ..
        } => [Some(src), None],
        Action::Reduce { a, b, .. }
        | Action::Put {
            value: Value::Reduce { a, b, .. },
            ..
        } => [Some(a), Some(b)],
        Action::Put {
            value: Value::Empty,
            ..
        }
        | Action::Wait { .. }
        | Action::Release { .. } => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use unisono_plan::{Algorithm, Op, Shape, Template};

    use super::*;

    const RANKS: u32 = 4;

    fn of(algorithm: Algorithm, op: Op, bytes: u64) -> Option<Past> {
        let shape = Shape {
            op,
            ranks: RANKS,
            rank: 1,
            windowed: false,
            turns: false,
        };
        let program = Template::from(algorithm).generate(&shape).expect("a plan");
        Past::of(&program, RANKS, bytes, || RANKS)
    }

    fn out(block: u32) -> Place {
        Place::Local {
            buffer: Buffer::Out,
            blocks: Blocks::one(block),
        }
    }

    /// Which blocks of the output go past the caches.
    fn past(past: &Past) -> Vec<u32> {
        (0..RANKS)
            .filter(|block| past.takes(&out(*block)))
            .collect()
    }

    #[test]
    fn what_is_taken_from_slots_and_not_read_again_goes_past_the_caches() {
        let one_shot = of(Algorithm::MeshOneShot, Op::AllGather, 64 << 20).expect("it is long");
        assert_eq!(past(&one_shot), [0, 1, 2, 3]);
        let to_slot = Place::Slot {
            from: 0,
            blocks: Blocks::one(0),
        };
        assert!(!one_shot.takes(&to_slot));
    }

    #[test]
    fn what_is_read_again_stays() {
        let two_shot = of(Algorithm::MeshTwoShot, Op::AllReduce, 64 << 20).expect("it is long");
        // Its own block is put to the others.
        assert_eq!(past(&two_shot), [0, 2, 3]);
        assert!(
            of(Algorithm::MeshRead, Op::AllReduce, 64 << 20).is_none(),
            "all read all"
        );
        let scattered = of(Algorithm::MeshRead, Op::ReduceScatter, 64 << 20);
        assert!(scattered.is_some_and(|scattered| past(&scattered).contains(&1)));
    }

    #[test]
    fn what_caches_hold_stays() {
        for bytes in [4, 1 << 20, 3 << 20] {
            assert!(
                of(Algorithm::MeshOneShot, Op::AllGather, bytes).is_none(),
                "{bytes}"
            );
        }
        assert!(of(Algorithm::MeshOneShot, Op::AllGather, 5 << 20).is_some());
        assert!(of(Algorithm::MeshOneShot, Op::AllToAll, 4 << 20).is_none());
        assert!(of(Algorithm::MeshOneShot, Op::AllToAll, 5 << 20).is_some());
    }
}
