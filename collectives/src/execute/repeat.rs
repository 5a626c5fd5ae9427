//! A short call like one not long before it, run at once on the calling thread.
//!
//! The fixed cost of a call is what small messages take: so a call that needs nothing but a direct run,
//! and finds the lane idle, makes no [`Op`] and passes no queue. Only one that has to wait for longer
//! than a moment becomes one.

use std::sync::Arc;

use unisono_plan::Op as PlanOp;

use super::common::Common;
use super::direct::{AtOnce, Bound, Buffers, Ran, Running, is_raised};
use super::held;
use super::op::{Op, Planned};
use super::state::State;
use super::track::Track;
use crate::progress::{Lag, Patience, Policy};
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

    /// Runs a call at once if it is like one of the last and nothing is before it: as long as one may wait by this
    /// `policy`, then as what `as_op` makes of it: the lane's op `number`. Without a policy nobody waits.
    #[inline]
    pub(super) fn run_at_once(
        &mut self,
        number: u64,
        key: Key,
        [input, output]: [u64; 2],
        as_op: impl FnOnce(Arc<Planned>, Call) -> Op,
        policy: Option<&Policy>,
    ) -> Ended {
        if !self.is_free() {
            return Ended::Not;
        }
        let Self {
            repeats,
            calls,
            main,
            common,
            lag,
            ..
        } = self;
        let Some(repeat) = repeats.0[key.place()]
            .as_ref()
            .filter(|last| last.key == key)
        else {
            return Ended::Not;
        };
        // Messages have numbers of their own, and plans without any answers.
        let planned = repeat.planned.of_call(calls.collectives());
        let Some(direct) = &planned.direct else {
            return Ended::Not;
        };
        let Some((op, due)) = main.begin_directly(common, planned, direct) else {
            return Ended::Not;
        };
        let sequence = u64::from(calls.next(repeat.op, &mut common.peers)) << 32;
        // Not changed in place: who then copies them reads more at once than was written at once, and
        // waits until the stores are through.
        let words = [repeat.words[0] | sequence, repeat.words[1], repeat.words[2]];
        calls.remember(common.own.rank, words);
        let mut run = Run {
            op: Bound {
                planned,
                direct,
                words: &words,
                number: op,
            },
            buffers: Buffers { input, output },
            running: Running::new(due),
        };
        let at_once = run.running.runs_at_once(&run.op, run.buffers, common);
        if let AtOnce::Done = at_once {
            match direct.takes {
                true if !std::mem::take(&mut common.trails) => lag.found(),
                _ => lag.reset(),
            }
            return Ended::Done;
        }
        if run.goes_on(at_once, common, lag, policy) {
            return Ended::Done;
        }
        run.queue(main, planned.clone(), as_op);
        Ended::Queued(number)
    }
}

/// A call that runs at once.
struct Run<'a> {
    op: Bound<'a>,
    buffers: Buffers,
    running: Running,
}

impl Run<'_> {
    /// Runs move by move, unless another rank needs the core first, and goes on where something had not come, as long as one
    /// may wait; whether it is complete.
    #[inline(never)]
    fn goes_on(
        &mut self,
        at_once: AtOnce,
        common: &mut Common,
        lag: &mut Lag,
        policy: Option<&Policy>,
    ) -> bool {
        let takes = self.op.direct.takes;
        let mut patience = policy.map_or_else(Patience::none, Patience::new);
        // Tried as one at which the run stands: it may have moved to another core since.
        let mut missing = match at_once {
            AtOnce::GivesWay(from) if patience.is_crowded() => Some(from),
            _ => None,
        };
        let mut in_the_way = missing.is_some()
            || patience.is_crowded() && self.running.stands_in_the_way(self.op.direct, common);
        let mut ran = if in_the_way {
            common.ring();
            Ran::Waits
        } else {
            self.running.run(&self.op, self.buffers, common)
        };
        if matches!(ran, Ran::Done) {
            match takes {
                true => lag.found(),
                false => lag.reset(),
            }
            return true;
        }
        held::let_go();
        match takes {
            true if patience.is_alone() => lag.missed(),
            true => {}
            false => lag.reset(),
        }
        loop {
            // What fails does so again as an op, which says why.
            let goes_on = matches!(ran, Ran::Waits | Ran::Moved)
                && self.running.waits_for(self.op.direct).is_some_and(|from| {
                    let from = missing.take().unwrap_or(from);
                    let may_spin =
                        patience.may_spin(from, &mut common.peers[from as usize].alongside);
                    let running = &self.running;
                    let gives_way = std::mem::take(&mut in_the_way);
                    if may_spin
                        && !gives_way
                        && !running.waits_for_one_here(from, self.op.direct, common)
                    {
                        patience.spin(&mut common.peers[from as usize].alongside);
                    }
                    // Who runs ahead is looked for as a whole, and none that the stream has to bring.
                    let flag = match patience.is_spinning() && !takes {
                        true => running.flag_from(from, self.op.direct, common),
                        false => None,
                    };
                    let has_come = flag.map(|line| move || is_raised(line));
                    patience.goes_on(&mut common.peers[from as usize].alongside, has_come)
                });
            if !goes_on {
                return false;
            }
            ran = self.running.run(&self.op, self.buffers, common);
            if matches!(ran, Ran::Done) {
                return true;
            }
        }
    }

    /// Goes on as an op of the lane.
    #[cold]
    #[inline(never)]
    fn queue(
        self,
        main: &mut Track,
        planned: Arc<Planned>,
        as_op: impl FnOnce(Arc<Planned>, Call) -> Op,
    ) {
        let call = Call::from_words(*self.op.words).expect("these are the words of a call");
        main.go_on_as(as_op(planned, call), self.running);
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
