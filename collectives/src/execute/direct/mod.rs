//! Short programs that the calling thread runs by itself.
//!
//! Where a rank's device is the CPU, and so are those whose memory it shares, that is plain memory, and what a stream
//! would do for a message of a few bytes is less work than telling it to. Posted links are served too. A plan for such
//! a message is resolved once, to [`Move`]s whose places are offsets; running them is a few instructions each.
//!
//! Only how a rank executes changes: flags, counters and slots are the stream's, so a rank that runs
//! directly and one whose stream runs the same call do not know of each other. A wait that lasts, and
//! one that finds other words than it should, is handed to the stream, which sleeps and reports.
//!
//! The root of a broadcast waits for nothing but bare signals, by which it hears that the others
//! have called the same. Such waits at the end of a rooted op are *owed*: they are made up for some
//! calls later, so that a rank may run ahead of the others. See [`Owed`].

mod answers;
mod at_once;
mod compute;
pub(super) mod flag;
mod in_place;
mod owed;
mod resolve;
mod run;
mod show;
mod steps;

pub(super) use answers::{Answers, LATER};
pub(super) use owed::Owed;
pub(super) use run::{AtOnce, Bound, Buffers, Handed, Pending, Ran, Running};
pub(super) use steps::is_raised;

use at_once::Uses;
use unisono_plan::Blocks;

use super::peer::{Own, Peer};

/// In which calls those to which something is put answer, in a plan with a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// In each.
    Always,
    /// In some: in those of this plan.
    Here,
    /// In others.
    Elsewhere,
}

/// A program resolved to what the CPU does.
#[derive(Debug)]
pub(crate) struct Direct {
    moves: Box<[Move]>,
    /// Before which move it [gives way](Self::that_gives_way), if before any.
    gives_way_at: usize,
    /// The ranks whose puts are waited for, and whether those are shown.
    takes_from: Box<[(u32, bool)]>,
    /// The step of the plan that each is of, for errors.
    steps: Box<[u32]>,
    /// Whether it leaves waits owed.
    owes: bool,
    /// Whether it takes bytes and puts none.
    pub(super) takes: bool,
    /// Whether all ranks take part alike. In a call with a root, and in a message, some wait for nobody and run ahead. So such
    /// a call gives the core up to nobody, and what it shows has no [twins](crate::arena::Arena::twin): whoever shares the core
    /// finds much at once, and what tells twice takes its time.
    is_alike: bool,
    /// Bytes of scratch that it needs.
    pub(super) scratch: u64,
    /// Whether something of it may be held back where calls of one plan repeat: see [`Answers`].
    holds: bool,
    /// Puts among that.
    ahead: u32,
}

impl Direct {
    /// The same where ranks share cores, or not. If they do, a call that all ranks take part in alike gives its core up
    /// before it takes anything, as long as a rank has not come that needs this core: each look at what comes from another
    /// core takes a line away that is about to be written there.
    pub(crate) fn that_gives_way(self, crowded: bool) -> Self {
        let takes = |step: &Move| matches!(step, Move::Get { .. });
        let first = self.moves.iter().position(takes);
        Self {
            gives_way_at: first
                .filter(|_| crowded && self.is_alike)
                .unwrap_or(usize::MAX),
            ..self
        }
    }

    /// Marks what is an answer in rank `own`'s moves, by the moves of the others.
    pub(crate) fn mark_answers(&mut self, own: u32, of: impl Fn(u32) -> Option<Self>) {
        owed::mark_answers(&mut self.moves, |rank| {
            let owes = |step: &Move| matches!(step, Move::Owe { from } if *from == own);
            of(rank).is_some_and(|other| other.owes && other.moves.iter().any(owes))
        });
        self.set_holds();
    }

    /// Whether a peer's twins are where to look for what it shows.
    #[inline]
    fn tells_twice(&self, own: &Own, peer: &Peer) -> bool {
        self.is_alike && peer.tells_twice(own)
    }

    fn set_holds(&mut self) {
        let is_ahead = |step: &Move| matches!(step, Move::Raise { ahead: true, .. });
        let is_told_later = |step: &Move| {
            matches!(
                step,
                Move::Raise { answer: true, .. } | Move::Release { held: Some(_), .. }
            )
        };
        self.ahead = self.moves.iter().filter(|step| is_ahead(step)).count() as u32;
        self.holds = self.ahead > 0 || self.moves.iter().any(is_told_later);
    }
}

/// One thing that the CPU does. With a number of its own, which need not be worked out before it is gone by.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Move {
    /// Begins a put of so many bytes: waits until there is room for it.
    Begin { to: u32, bytes: u32 },
    /// Ends it: tells the peer. The `last` is a bare signal to a rank of which this one waits for nothing more, an
    /// *answer* one for which the peer leaves its wait owed, and *ahead* is a small put to a rank that answers later or not
    /// at all.
    Raise {
        to: u32,
        last: bool,
        answer: bool,
        ahead: bool,
    },
    /// Gives the put that has begun its bytes: copies them, or lets the link to that rank read them where they are.
    /// To a rank that is not `awaited` later in the call only where messages go both ways.
    Fill {
        to: u32,
        src: Spot,
        bytes: u32,
        awaited: bool,
    },
    /// Waits until the link to a rank has let go of what it was let read.
    Settle { to: u32 },
    /// Waits until there is room for a put of so many bytes to a rank, of a group of puts that are shown.
    Room { to: u32, bytes: u32 },
    /// Begins such a group: what all others read in this rank's memory is filled next.
    Show { bytes: u32 },
    /// Ends it: tells all.
    Tell,
    /// Waits for a put, which has these blocks. It may land elsewhere than in its slot, or be `shown` by that rank.
    Wait {
        from: u32,
        bytes: u32,
        blocks: Blocks,
        land: Option<Spot>,
        shown: bool,
    },
    /// Of a message's first put, which has come: where the message lies. What lies in a window is taken from there.
    Look { from: u32 },
    /// Copies a put of a rank to where it may have landed already.
    Land {
        from: u32,
        dst: Spot,
        src: Spot,
        bytes: u32,
    },
    /// Gives it back. What tells of it `rides` along with a put, if such a plan has one to that rank, and may be `held` as
    /// answers are: said by the bytes of the longest put of that rank.
    Release {
        from: u32,
        rides: bool,
        held: Option<u32>,
    },
    /// Waits for a bare signal and gives it back, in this call or a later one.
    Owe { from: u32 },
    /// Copies.
    Copy { dst: Spot, src: Spot, bytes: u32 },
    /// Combines, and divides if it was the `last` of an average.
    Reduce {
        dst: Spot,
        a: Spot,
        b: Spot,
        elements: u32,
        last: bool,
    },
    /// All that begins, fills and raises a small put, if that can be done at once: the moves behind this one are that.
    Put { to: u32, src: Spot, bytes: u32 },
    /// The same of a group that is shown.
    PutToAll { src: Spot, bytes: u32 },
    /// Waits for a small put, `looks` where it lies, `uses` it and gives it back, likewise. Of a plan that only `takes` puts more
    /// may be there already.
    Get {
        from: u32,
        bytes: u32,
        uses: Uses,
        looks: bool,
        takes: bool,
        shown: bool,
    },
}

/// An offset in one of the memories of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot(u64);

/// Which memory. Those that are no peer's come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    In,
    Out,
    Scratch,
    /// The put that is being filled.
    Fill,
    /// The current put from a rank.
    Slot(u32),
}

/// Where a space is in the number of a spot; below are a rank, for slots, and the offset.
const SPACE: u32 = 60;
const RANK: u32 = 32;

impl Space {
    const fn index(self) -> usize {
        match self {
            Self::In => 0,
            Self::Out => 1,
            Self::Scratch => 2,
            Self::Fill => 3,
            Self::Slot(_) => 4,
        }
    }

    /// Its first spot, as a number.
    fn base(self) -> u64 {
        let space = (self.index() as u64) << SPACE;
        match self {
            Self::Slot(rank) => space | u64::from(rank) << RANK,
            _ => space,
        }
    }
}

impl Spot {
    /// [`Space::index`] of its space.
    fn space_index(self) -> usize {
        (self.0 >> SPACE) as usize
    }

    /// Whose the current put is in which it lies, if it lies in one.
    fn rank(self) -> u32 {
        (self.0 >> RANK) as u32 & ((1 << (SPACE - RANK)) - 1)
    }

    fn offset(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use unisono_plan::geometry::{Geometry, Sizes};
    use unisono_plan::{Algorithm, Op, Shape};

    use super::*;
    use crate::execute::op::Planned;

    /// How rank 1 of four runs eight bytes of an operation by itself.
    fn of_four(op: Op) -> Direct {
        let shape = Shape {
            op,
            ranks: 4,
            rank: 1,
            windowed: false,
            turns: false,
        };
        let program = unisono_plan::generate(Algorithm::MeshOneShot, &shape).expect("a program");
        let count = if op == Op::Barrier { 0 } else { 8 };
        let planned = Planned {
            geometry: Geometry::of(&program, Sizes::Equal(count)).expect("its geometry"),
            program,
            ..Planned::of_no_steps().expect("a plan")
        };
        Direct::of(&planned, false, Answered::Always).expect("a short program")
    }

    /// Nobody gives its core up before others have what they wait for, nor in a call in which ranks run ahead.
    #[test]
    fn who_shares_a_core_gives_way_once_all_is_put_and_before_anything_is_taken() {
        let alike = [Op::Barrier, Op::AllGather, Op::AllToAll, Op::ReduceScatter];
        for op in alike.into_iter().chain([Op::AllReduce]) {
            let direct = of_four(op).that_gives_way(true);
            let (before, behind) = direct.moves.split_at(direct.gives_way_at);
            assert!(matches!(behind[0], Move::Get { .. }), "{op:?}");
            let raised = |step: &&Move| matches!(step, Move::Raise { .. });
            assert_eq!(before.iter().filter(raised).count(), 3, "{op:?}");
            let takes = |step: &Move| matches!(step, Move::Get { .. } | Move::Wait { .. });
            assert!(!before.iter().any(takes), "{op:?}");
            let from: Vec<_> = direct.takes_from.iter().map(|(from, _)| *from).collect();
            assert_eq!(from, [0, 2, 3], "{op:?}");
            assert_eq!(of_four(op).that_gives_way(false).gives_way_at, usize::MAX);
        }
        for op in [Op::Broadcast { root: 0 }, Op::Reduce { root: 1 }] {
            assert_eq!(of_four(op).that_gives_way(true).gives_way_at, usize::MAX);
        }
    }

    #[test]
    fn a_spot_knows_its_space_and_offset() {
        let slots = [0, 1, 1023, (1 << 28) - 1].map(Space::Slot);
        for space in [Space::In, Space::Out, Space::Scratch, Space::Fill]
            .into_iter()
            .chain(slots)
        {
            for offset in [0, 1, u64::from(u32::MAX)] {
                let spot = Spot(space.base() + offset);
                assert_eq!((spot.space_index(), spot.offset()), (space.index(), offset));
                if let Space::Slot(rank) = space {
                    assert_eq!(spot.rank(), rank);
                }
            }
        }
    }
}
