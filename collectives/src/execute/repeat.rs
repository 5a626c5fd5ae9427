//! A short call like one not long before it, run at once on the calling thread.
//!
//! The fixed cost of a call is what small messages take: so a call that needs nothing but a direct run,
//! and finds the lane idle, makes no [`Op`] and passes no queue. Only one that has to wait for longer
//! than a moment becomes one.

use std::sync::Arc;

use unisono_plan::Op as PlanOp;

use super::direct::{Bound, Buffers, Ran, Running};
use super::held;
use super::op::{Op, Planned};
use super::state::State;
use crate::progress::Patience;
use crate::signature::{Call, CallKind};
use crate::{DataType, ReductionKind};

/// What makes two calls alike: one plan is for both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallShape {
    pub op: PlanOp,
    pub kind: CallKind,
    /// Elements of the larger buffer; all blocks are equal.
    pub count: u64,
    pub dtype: DataType,
    /// One of the built-in ones.
    pub reduction: Option<ReductionKind>,
    /// Whether the communicator has windows. Then its plan is one that they change nothing about.
    pub windows: bool,
}

/// A shape in two words, which are compared before anything else is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key([u64; 2]);

/// The last short calls: what the next may be like.
#[derive(Default)]
pub(super) struct Repeats([Option<Box<Repeat>>; KEPT]);

/// So many, as an application's step has a few shapes of calls in turn.
const KEPT: usize = 16;

struct Repeat {
    key: Key,
    op: PlanOp,
    planned: Arc<Planned>,
    /// Its words, but for the sequence.
    words: [u64; 3],
}

/// How a call went that ran at once.
pub(crate) enum Ended {
    /// It is like none before, or something is before it: nothing was done.
    Not,
    /// It is complete.
    Done,
    /// It goes on as the lane's op of this number.
    Queued(u64),
}

impl CallShape {
    /// Bytes of the larger buffer.
    pub(crate) fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.dtype.size() as u64)
    }

    /// Where the caller knows what it calls, little of this is left to be done when it calls.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        let (sends, other) = match self.op {
            PlanOp::Send { to } => (true, to),
            PlanOp::Recv { from } => (false, from),
            op => (false, op.root().unwrap_or(u32::MAX)),
        };
        let reduction = self.reduction.map_or(0, |kind| u64::from(kind.code()));
        let what = u64::from(other) << 32
            | u64::from(sends) << 25
            | u64::from(self.windows) << 24
            | (self.kind as u64) << 16
            | u64::from(self.dtype.code()) << 8
            | reduction;
        Key([self.count, what])
    }
}

impl Key {
    /// Where it is kept: shapes of one application's calls seldom share a place.
    fn place(self) -> usize {
        let [count, what] = self.0;
        let whole = count ^ what.rotate_left(16);
        // Fibonacci hashing: the top bits of a product with 2^64 over the golden ratio.
        (whole.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % KEPT
    }
}

impl State {
    /// The next call may be like this one of this plan.
    pub(crate) fn expect_repeat(&mut self, shape: CallShape, planned: Arc<Planned>, call: Call) {
        let key = shape.key();
        let kept = &mut self.repeats.0[key.place()];
        if let Some(kept) = kept
            && kept.key == key
            && Arc::ptr_eq(&kept.planned, &planned)
        {
            return;
        }
        let call = Call {
            sequence: 0,
            ..call
        };
        *kept = Some(Box::new(Repeat {
            key,
            op: shape.op,
            planned,
            words: call.words(),
        }));
    }

    /// Runs a call at once if it is like one of the last and nothing is before it: for as long as there
    /// is `patience`, then as what `as_op` makes of it: the lane's op `number`.
    #[inline]
    pub(super) fn run_at_once(
        &mut self,
        number: u64,
        key: Key,
        ends: [u64; 2],
        as_op: impl FnOnce(Arc<Planned>, Call) -> Op,
        patience: &mut Patience,
    ) -> Ended {
        if !self.is_free() {
            return Ended::Not;
        }
        // Lent, so that the rest of the state is free to be used.
        let place = key.place();
        let Some(repeat) = self.repeats.0[place].take_if(|last| last.key == key) else {
            return Ended::Not;
        };
        let ended = self.run_repeat(number, &repeat, ends, as_op, patience);
        self.repeats.0[place] = Some(repeat);
        ended
    }

    #[inline]
    fn run_repeat(
        &mut self,
        number: u64,
        repeat: &Repeat,
        [input, output]: [u64; 2],
        as_op: impl FnOnce(Arc<Planned>, Call) -> Op,
        patience: &mut Patience,
    ) -> Ended {
        let Repeat { op, planned, .. } = repeat;
        // Messages have numbers of their own, and plans without any answers.
        let planned = planned.of_call(self.next_number());
        let Some(due) = self.main.begin_directly(&mut self.common, planned) else {
            return Ended::Not;
        };
        let takes = planned.direct.as_ref().is_some_and(|direct| direct.takes);
        let mut running = Running::new(due);
        let sequence = u64::from(self.next_sequence(*op)) << 32;
        // Not changed in place: who then copies them reads more at once than was written at once, and
        // waits until the stores are through.
        let words = [repeat.words[0] | sequence, repeat.words[1], repeat.words[2]];
        self.remember(words);
        let bound = Bound {
            planned,
            words: &words,
        };
        let buffers = Buffers { input, output };
        let mut waited = false;
        loop {
            let ran = (self.main).run_bound(&mut self.common, bound, buffers, &mut running);
            if matches!(ran, Ran::Done) {
                match takes {
                    true if !waited => self.lag.found(),
                    true => {}
                    false => self.lag.reset(),
                }
                return Ended::Done;
            }
            held::let_go();
            if !waited && takes && patience.is_alone() {
                self.lag.missed();
            }
            waited = true;
            // What fails does so again as an op, which says why.
            let goes_on = matches!(ran, Ran::Waits(_))
                && running.waits_for(planned).is_some_and(|from| {
                    let peer = &mut self.common.peers[from as usize];
                    patience.goes_on(from, &mut peer.alongside)
                });
            if !goes_on {
                break;
            }
        }
        let call = Call::from_words(words).expect("these are the words of a call");
        self.main.go_on_as(as_op(planned.clone(), call), running);
        Ended::Queued(number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::ReduceOp;

    #[test]
    fn calls_of_one_plan_alone_have_one_key() {
        let (sum, max) = (
            ReductionKind::Op(ReduceOp::Sum),
            ReductionKind::Op(ReduceOp::Max),
        );
        let first = CallShape {
            op: PlanOp::AllReduce,
            kind: CallKind::AllReduce,
            count: 1,
            dtype: DataType::F32,
            reduction: Some(sum),
            windows: false,
        };
        let of = |op| CallShape {
            op,
            kind: CallKind::of(op),
            ..first
        };
        let rooted = [0, 1, u32::MAX - 1].map(|root| of(PlanOp::Reduce { root }));
        let sent = [0, 1].map(|to| of(PlanOp::Send { to }));
        let received = [0, 1].map(|from| of(PlanOp::Recv { from }));
        let others = [
            CallShape {
                count: 1 << 56,
                ..first
            },
            CallShape {
                dtype: DataType::F16,
                ..first
            },
            CallShape {
                reduction: Some(max),
                ..first
            },
            CallShape {
                windows: true,
                ..first
            },
        ];
        let all = [first]
            .into_iter()
            .chain(rooted)
            .chain(sent)
            .chain(received)
            .chain(others);
        let keys: Vec<_> = all.map(|shape| shape.key()).collect();
        let different: HashSet<_> = keys.iter().map(|key| key.0).collect();
        assert_eq!(different.len(), keys.len(), "{keys:?}");
        assert!(keys.iter().all(|key| key.place() < KEPT));
    }
}
