//! One call, bound to its buffers: what the executor runs.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use unisono_hal::Combiner;
use unisono_plan::geometry::Sizes;
use unisono_plan::{Algorithm, Blocks, Geometry, Op as PlanOp, Program, Shape};

use super::aside::Aside;
use super::mark::Mark;
use super::peer::Load;
use super::pointed::Message;
use super::told::Target;

use super::direct::Direct;
use super::past::Past;
use crate::error::{Error, Result};
use crate::reduction::{How, Reduction};
use crate::signature::Call;

/// A program with the geometry that one message size gives it. Shared by all calls of one shape.
#[derive(Debug)]
pub(crate) struct Planned {
    pub program: Program,
    pub geometry: Geometry,
    /// Bytes of an element.
    pub element: u64,
    /// The contract's number of the element's type, 0 for a barrier.
    pub dtype: u16,
    /// The contract's number of the reduction, 0 where there is none.
    pub reduction: u16,
    /// What combines where nothing is divided, for the calling thread, if its CPU has a function for it.
    pub combiner: Option<Combiner>,
    /// What the last reduction of each element divides by; 0 for nothing.
    pub divisor: u32,
    /// Whether this rank's input is multiplied by a factor before it is used.
    pub scaled: bool,
    /// Whether the program reaches into the peers' windows.
    pub windowed: bool,
    /// Whether ranks read each other's buffers, wherever these are; not all of them need to.
    pub reads: bool,
    /// Whether puts are shown to all: which of them, says [`shows`](Self::shows).
    pub shown: bool,
    /// The ranks with which this one exchanges data, whose slots change hands: see [`exchanges`](super::exchanges).
    pub exchanges: Box<[u32]>,
    /// Whether the root tells the others where its output is.
    pub tells: bool,
    /// Whether the first put of a message says where it lies, between ranks that may.
    pub points: bool,
    /// How a message lies in the ranks' shuttle, if it is one that may go by it.
    pub load: Option<Load>,
    /// A hash of all that ranks must agree on about how it runs.
    pub hash: u32,
    /// What of the output is written past the caches.
    pub past: Option<Past>,
    /// How the calling thread may run it by itself.
    pub direct: Option<Direct>,
    /// The same without answers: see [`Planned::of_call`].
    pub unanswered: Option<Arc<Planned>>,
}

/// Of so many collectives in a row one is answered.
const ANSWERED: u32 = 8;

impl Planned {
    /// What runs as the collective of this number.
    ///
    /// The root of a short broadcast only sends, and hears by bare signals that the others called the same. Between cores a
    /// signal takes as long as the few bytes do, so that only now and then a call is answered; all ranks know which. Who
    /// was sent something finds a mismatch in each call, and tells.
    #[inline]
    pub(crate) fn of_call(self: &Arc<Self>, number: u32) -> &Arc<Self> {
        match &self.unanswered {
            Some(unanswered) if !number.is_multiple_of(ANSWERED) => unanswered,
            _ => self,
        }
    }

    /// Whether both are one plan, with or without answers.
    #[inline]
    pub(super) fn is_like(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let is_of = |of: &Arc<Self>, plan: &Arc<Self>| {
            (of.unanswered.as_ref()).is_some_and(|unanswered| Arc::ptr_eq(unanswered, plan))
        };
        Arc::ptr_eq(self, other) || is_of(self, other) || is_of(other, self)
    }

    /// Whether the first put of a message says where it lies, between ranks that may.
    #[inline]
    pub(super) fn says_where(&self) -> bool {
        self.points || self.load.is_some()
    }

    /// Bytes of the larger buffer.
    pub(super) fn bytes_of_buffer(&self) -> u64 {
        self.geometry.count() * self.element
    }

    /// Bytes of scratch that one piece in flight needs.
    pub(super) fn scratch_instance_bytes(&self) -> u64 {
        let blocks = self.program.scratch.count;
        (self.geometry.room(blocks) * self.element).next_multiple_of(64)
    }

    /// Bytes from one block of the scaled input to the next.
    pub(super) fn scaled_block_bytes(&self) -> u64 {
        self.geometry.room(1) * self.element
    }

    /// Bytes of scaled input that one piece in flight needs; 0 where nothing is scaled.
    pub(super) fn scaled_instance_bytes(&self) -> u64 {
        if self.scaled {
            (self.scaled_block_bytes() * u64::from(self.program.blocks)).next_multiple_of(64)
        } else {
            0
        }
    }

    /// Bytes of the plan's scratch for all pieces in flight, which comes first.
    pub(super) fn plan_scratch_bytes(&self) -> u64 {
        if self.program.scratch.is_empty() {
            return 0;
        }
        u64::from(self.program.scratch_instances()) * self.scratch_instance_bytes()
    }

    /// Bytes of scratch: for all pieces in flight the plan's, then the scaled input; then what peers tell, and what is read
    /// of them to be reduced.
    pub(super) fn scratch_bytes(&self) -> u64 {
        let operands = if self.program.op.reduces() { 2 } else { 0 };
        match self.reads {
            true => self.operand_offset(operands),
            false => self.told_offset(),
        }
    }

    /// Where in scratch the addresses of the peers' buffers lie.
    pub(super) fn told_offset(&self) -> u64 {
        let scaled = u64::from(self.program.scratch_instances()) * self.scaled_instance_bytes();
        self.plan_scratch_bytes() + scaled
    }

    /// Where in scratch an operand lies that was read: the left or the right one of a reduction.
    pub(super) fn operand_offset(&self, operand: u32) -> u64 {
        let told = PEER_ENDS * u64::from(self.program.ranks);
        let before = (self.told_offset() + told).next_multiple_of(64);
        let blocks = self.program.max_put_blocks;
        let each = (self.geometry.room(blocks) * self.element).next_multiple_of(64);
        before + u64::from(operand) * each
    }
}

/// Bytes of the addresses of a peer's two buffers.
pub(super) const PEER_ENDS: u64 = 16;

/// Addresses of a peer's buffers, for windowed plans.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerBuffers {
    pub input: u64,
    pub output: u64,
}

/// One call in flight.
pub(crate) struct Op {
    pub planned: Arc<Planned>,
    pub call: Call,
    /// The words of `call`.
    pub words: [u64; 3],
    /// Of an all_to_all_v: what goes to each rank, then what comes from each. Else empty.
    pub pairs: Box<[u64]>,
    pub input: u64,
    pub output: u64,
    /// By rank; empty unless the plan is windowed.
    pub peers: Arc<[PeerBuffers]>,
    /// What peers are told: of a plan whose ranks read each other's buffers `input` and `output`, of one whose root tells
    /// where its output is that, of a message in a window where it lies there.
    pub ends: Option<Box<[u64; 2]>>,
    /// What the root has told.
    pub target: Option<Box<Target>>,
    /// Where a message lies that is received.
    pub message: Message,
    /// What is first copied to where `input` is then.
    pub aside: Option<Aside>,
    /// How contributions are combined; a user's function lives as long as this.
    pub reduction: Option<Reduction>,
    /// Buffers that must live until the op is complete.
    pub keep: Option<Box<dyn Any + Send>>,
    pub deadline: Duration,
    /// When its first step started.
    pub started: Option<Instant>,
    /// What is done before the first step, and after the last.
    pub before: Box<[Mark]>,
    pub after: Box<[Mark]>,
}

impl Planned {
    /// A plan of no steps.
    pub(super) fn nothing() -> Result<Arc<Self>> {
        static NOTHING: OnceLock<Arc<Planned>> = OnceLock::new();
        if let Some(made) = NOTHING.get() {
            return Ok(made.clone());
        }
        let made = Arc::new(Self::of_no_steps()?);
        Ok(NOTHING.get_or_init(|| made).clone())
    }

    pub(super) fn of_no_steps() -> Result<Self> {
        let unsupported = |why: String| Error::Unsupported {
            call: "stream",
            why,
        };
        let shape = Shape {
            op: PlanOp::Barrier,
            ranks: 1,
            rank: 0,
            windowed: false,
            turns: false,
        };
        let program = unisono_plan::generate(Algorithm::MeshOneShot, &shape)
            .map_err(|error| unsupported(error.to_string()))?;
        let geometry = Geometry::of(&program, Sizes::Equal(0))
            .map_err(|error| unsupported(error.to_string()))?;
        Ok(Self {
            program,
            geometry,
            element: 1,
            dtype: 0,
            combiner: None,
            reduction: 0,
            divisor: 0,
            scaled: false,
            windowed: false,
            reads: false,
            shown: false,
            exchanges: Box::default(),
            tells: false,
            points: false,
            load: None,
            hash: 0,
            past: None,
            direct: None,
            unanswered: None,
        })
    }
}

impl Planned {
    /// Whether a put of these blocks, from this rank, is shown.
    #[inline]
    pub(super) fn shows(&self, from: u32, blocks: Blocks) -> bool {
        self.shown && self.program.shows(from, blocks)
    }
}

impl Op {
    /// A call by its buffers, input and output, that reduces nothing and reaches into no windows.
    pub fn new(
        planned: Arc<Planned>,
        call: Call,
        [input, output]: [u64; 2],
        deadline: Duration,
    ) -> Self {
        Self {
            planned,
            words: call.words(),
            call,
            pairs: Box::default(),
            input,
            output,
            peers: Arc::default(),
            ends: None,
            target: None,
            message: Message::Untold,
            aside: None,
            reduction: None,
            keep: None,
            deadline,
            started: None,
            before: Box::default(),
            after: Box::default(),
        }
    }

    /// An op that is nothing but marks. `call` is what an error names for it.
    pub fn marks(marks: Vec<Mark>, call: Call) -> Result<Self> {
        Ok(Self {
            before: marks.into(),
            ..Self::new(Planned::nothing()?, call, [0, 0], Duration::MAX)
        })
    }

    /// An op of nothing by itself: before it ends, what is owed is made up for, within the deadline
    /// of the op that comes `next`. Of waits for streams, which have none, and of messages, which run
    /// beside each other, it must not become a part.
    pub fn make_up(next: &Op) -> Result<Self> {
        Ok(Self {
            deadline: next.deadline,
            ..Self::marks(Vec::new(), next.call)?
        })
    }

    /// The words that go to a peer.
    pub(super) fn words_to(&self, peer: u32) -> [u64; 3] {
        self.words_with(peer as usize)
    }

    /// The words that a peer must send.
    pub(super) fn words_from(&self, peer: u32) -> [u64; 3] {
        self.words_with(self.pairs.len() / 2 + peer as usize)
    }

    /// The call as it must agree with what a peer sends.
    pub(super) fn call_from(&self, peer: u32) -> Call {
        let pair = self.pairs.get(self.pairs.len() / 2 + peer as usize);
        Call {
            count: pair.copied().unwrap_or(self.call.count),
            ..self.call
        }
    }

    fn words_with(&self, pair: usize) -> [u64; 3] {
        let [what, count, how] = self.words;
        [what, self.pairs.get(pair).copied().unwrap_or(count), how]
    }

    /// Whether what was done is any good: a user's function may have panicked.
    pub(super) fn check(&self, rank: u32) -> Result<()> {
        match &self.reduction {
            Some(Reduction(How::User(user))) if user.panicked() => Err(Error::Aborted {
                by: rank,
                why: "the reduction function of its user panicked".to_owned(),
                call: Some(self.call),
            }),
            _ => Ok(()),
        }
    }

    /// What this rank's input is multiplied by, if it is.
    pub(super) fn factor(&self) -> Option<[u8; 8]> {
        match &self.reduction {
            Some(Reduction(How::Scaled(factor))) => Some(factor.bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_in_eight_is_answered() {
        let plain = Planned::nothing().expect("a plan");
        assert!(Arc::ptr_eq(plain.of_call(3), &plain));
        let unanswered = Arc::new(Planned::of_no_steps().expect("a plan"));
        let plan = Arc::new(Planned {
            unanswered: Some(unanswered.clone()),
            ..Planned::of_no_steps().expect("a plan")
        });
        for number in 0..3 * ANSWERED {
            let of = plan.of_call(number);
            let is_answered = number.is_multiple_of(ANSWERED);
            assert!(Arc::ptr_eq(
                of,
                if is_answered { &plan } else { &unanswered }
            ));
            assert!(of.is_like(&plan) && plan.is_like(of));
        }
        assert!(!plain.is_like(&plan) && !plan.is_like(&plain));
    }
}
