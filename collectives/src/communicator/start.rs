//! From a request to an op on the lane.

use std::any::Any;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use unisono_plan::Op as PlanOp;
use unisono_plan::geometry::Sizes;

use super::asked::{Asked, Ends};
use super::force::Forced;
use super::shared::{Shared, mix};
use super::window::{InPlace, Starts, Windowed};
use crate::error::{Error, Result};
use crate::execute::{
    Aside, CallShape, Ended, Flag, Gate, Key, LONG_MESSAGE, Mark, Op, Planned, State, Target, held,
};
use crate::progress::{Policy, progress};
use crate::reduction::How;
use crate::signature::{Call, CallKind};
use crate::stream::Stream;
use crate::{DataType, ReduceOp, Reduction, ReductionKind, fork};

/// Bytes of a call that may be moved by the thread that starts it and does not wait: no longer than it takes to wake
/// another, which is 36 us on a Xeon (`unisono bench send_recv --ranks 2 -b 32K -e 256K --without-links shm`).
const SHORT: u64 = 128 << 10;

/// How a call ended that ran at once. With its error in a box, so that most calls return words and move no memory.
pub(super) type Boxed = std::result::Result<(), Box<Error>>;

/// What a caller asks for.
pub(super) struct Request<'a> {
    pub asked: Asked<'a>,
    pub dtype: DataType,
    pub reduction: Option<Reduction>,
    /// The plan, if the caller names it.
    pub forced: Option<Forced>,
    pub deadline: Duration,
}

impl Request<'_> {
    pub(super) fn kind(&self) -> Option<ReductionKind> {
        self.reduction.as_ref().map(Reduction::kind)
    }

    /// Bytes of the larger buffer.
    fn bytes(&self) -> u64 {
        let elements = match self.asked.sizes {
            Sizes::Equal(count) => count,
            Sizes::Parts(parts) => parts.iter().sum(),
        };
        elements.saturating_mul(self.dtype.size() as u64)
    }

    /// What makes the next request like this one, where there are `windows` or none; `None` for one that each time is
    /// planned for.
    #[inline]
    fn shape(&self, windows: bool) -> Option<CallShape> {
        let Asked {
            op,
            kind,
            sizes: Sizes::Equal(count),
            ..
        } = self.asked
        else {
            return None;
        };
        let reduction = match &self.reduction {
            None => None,
            Some(Reduction(How::Op(op))) => Some(ReductionKind::Op(*op)),
            Some(_) => return None,
        };
        self.forced.is_none().then_some(CallShape {
            op,
            kind,
            count,
            dtype: self.dtype,
            reduction,
            windows,
        })
    }
}

/// A request that can be made, with its plan.
pub(super) struct Checked<'a> {
    request: Request<'a>,
    planned: Arc<Planned>,
    reached: Reached,
}

/// By what peers reach the buffers of a call.
#[derive(Default)]
struct Reached {
    windowed: Option<Windowed>,
    /// Of the root of a reduce over windows the window with its output, and where in it; of who sends a message that
    /// with the message.
    told: [u64; 2],
    /// Room for input that they would find overwritten.
    aside: Option<Aside>,
}

impl Checked<'_> {
    /// What is called.
    pub(super) fn name(&self) -> &'static str {
        self.request.asked.kind.name()
    }

    /// The plan.
    pub(super) fn planned(&self) -> &Planned {
        &self.planned
    }
}

impl Shared {
    /// Checks a request that is started later.
    pub(super) fn prepare<'a>(&self, request: Request<'a>) -> Result<Checked<'a>> {
        let (planned, reached) = self.check(&request)?;
        Ok(Checked {
            request,
            planned,
            reached,
        })
    }

    /// Starts requests: the collectives in their order, then the messages all beside each other;
    /// all of them when the streams have come to them. Returns the number of the last.
    pub(super) fn start_together(
        self: &Arc<Self>,
        calls: Vec<Checked<'_>>,
        streams: &[Stream],
    ) -> Result<u64> {
        // All at once: calls come in one order on the streams and on the lane.
        let mut on: Vec<_> = streams
            .iter()
            .map(|stream| (stream, stream.lock()))
            .collect();
        let mut state = self.lane.lock();
        if !streams.is_empty()
            && let Some(error) = self.lane.failure()
        {
            return Err(error.clone());
        }
        let gates = (streams.iter())
            .map(|stream| stream.gate(self, &mut state))
            .collect::<Result<Vec<_>>>()?;
        let mark = |mark: fn(Arc<Gate>) -> Mark| gates.iter().cloned().map(mark).collect();
        let mut number = self.lane.completed();
        let mut messages = Vec::new();
        let mut last = None;
        for call in calls {
            let is_message = !call.request.asked.op.is_collective();
            let op = self.bind_checked(&mut state, call, None);
            if last.is_none() && !gates.is_empty() {
                if state.may_owe() {
                    let make_up = Op::make_up(&op)?;
                    self.lane.enqueue(&mut state, make_up);
                }
                let wait = Op::marks(mark(|gate| Mark::Await(gate, Flag::Ready)), op.call)?;
                self.lane.enqueue(&mut state, wait);
            }
            last = Some(op.call);
            if is_message {
                messages.push(op);
            } else {
                number = self.lane.enqueue(&mut state, op);
            }
        }
        if let Some(first) = messages.first() {
            if state.may_owe() {
                let make_up = Op::make_up(first)?;
                self.lane.enqueue(&mut state, make_up);
            }
            number = self.lane.enqueue_messages(&mut state, messages);
        }
        let mut handed_over = Ok(());
        if let Some(call) = last
            && !gates.is_empty()
        {
            let done = Op::marks(mark(|gate| Mark::Raise(gate, Flag::Done)), call)?;
            number = self.lane.enqueue(&mut state, done);
            for ((stream, on), gate) in on.iter_mut().zip(&gates) {
                let passed = stream.pass(on, self, gate, number);
                handed_over = handed_over.and(passed);
            }
        }
        drop(state);
        drop(on);
        for stream in streams {
            handed_over = handed_over.and(stream.hand_over());
        }
        self.handed_over(handed_over)?;
        progress().activate(&self.lane);
        Ok(number)
    }

    pub(super) fn bind_checked(
        &self,
        state: &mut State,
        call: Checked<'_>,
        keep: Option<Box<dyn Any + Send>>,
    ) -> Op {
        let Checked {
            request,
            planned,
            reached,
        } = call;
        self.bind(state, planned, reached, request, keep)
    }

    /// Runs a call that is like one of the last, if nothing is before it, whose buffers the device reaches. Inlined to
    /// where it is known what is called: then only the call's numbers are left to be looked at.
    #[inline]
    pub(super) fn run_again(
        &self,
        asked: &Asked<'_>,
        dtype: DataType,
        reduction: Option<ReduceOp>,
    ) -> Option<Boxed> {
        let Sizes::Equal(count) = asked.sizes else {
            return None;
        };
        let shape = CallShape {
            op: asked.op,
            kind: asked.kind,
            count,
            dtype,
            reduction: reduction.map(ReductionKind::Op),
            windows: self.windows.has_any(),
        };
        self.run_like(shape.key(), asked.ends, reduction)
    }

    fn run_like(&self, key: Key, ends: Ends, reduction: Option<ReduceOp>) -> Option<Boxed> {
        if self.world.transfer.is_some() {
            return None;
        }
        self.run_at_once(key, ends, |planned, call| Op {
            reduction: reduction.map(Into::into),
            ..Op::new(planned, call, ends.both(), self.world.options.timeouts.op)
        })
    }

    /// Runs a request on this thread; returns when it is complete.
    pub(super) fn run(&self, request: Request<'_>) -> Result<()> {
        let shape = request.shape(self.windows.has_any());
        let as_op = |planned, call| op_of(planned, call, &request);
        if let Some(shape) = &shape
            && let Some(ended) = self.run_at_once(shape.key(), request.asked.ends, as_op)
        {
            return ended.map_err(|error| *error);
        }
        let (planned, reached) = self.check(&request)?;
        let shape = shape.filter(|shape| self.can_repeat(shape, &request, &planned));
        let again = shape.map(|shape| (shape, planned.clone()));
        let mut state = self.lane.lock();
        let op = self.bind(&mut state, planned, reached, request, None);
        if let Some((shape, planned)) = again {
            state.expect_repeat(shape, planned, op.call);
        }
        let number = self.lane.enqueue(&mut state, op);
        progress().wait(&self.lane, state, number, self.policy, self)
    }

    /// Runs a call that is like one of the last, if nothing is before it.
    #[inline]
    fn run_at_once(
        &self,
        key: Key,
        ends: Ends,
        as_op: impl FnOnce(Arc<Planned>, Call) -> Op,
    ) -> Option<Boxed> {
        if !fork::is(self.generation) {
            return None;
        }
        let mut state = self.lane.lock();
        match self.at_once(&mut state, key, ends, as_op, Some(&self.policy)) {
            Ended::Not => None,
            Ended::Done => Some(Ok(())),
            Ended::Queued(number) => Some(self.wait_for(state, number)),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_for(&self, state: MutexGuard<'_, State>, number: u64) -> Boxed {
        let ended = progress().wait(&self.lane, state, number, self.policy, self);
        ended.map_err(Box::new)
    }

    #[inline]
    fn at_once(
        &self,
        state: &mut State,
        key: Key,
        ends: Ends,
        as_op: impl FnOnce(Arc<Planned>, Call) -> Op,
        policy: Option<&Policy>,
    ) -> Ended {
        let ended = (self.lane).run_at_once(state, key, ends.both(), as_op, policy);
        if self.lane.posted && matches!(ended, Ended::Done) {
            if state.must_go_on() {
                progress().activate(&self.lane);
            }
            progress().watch_answers(&self.lane, state);
            if state.is_to_let_go() {
                held::note(&self.lane);
            }
        }
        ended
    }

    /// Appends a request and returns at once. Of a short one that is like one of the last, and has nothing before it,
    /// all is done here that waits for no peer: who starts a send, and waits, wakes no other thread.
    pub(super) fn start(
        &self,
        request: Request<'_>,
        mut keep: Option<Box<dyn Any + Send>>,
    ) -> Result<u64> {
        let shape = request.shape(self.windows.has_any());
        let shape = shape.filter(|shape| shape.bytes() <= SHORT);
        if let Some(shape) = &shape
            && let Some(number) = self.start_at_once(&request, shape, &mut keep)
        {
            return Ok(number);
        }
        let (planned, reached) = self.check(&request)?;
        let shape = shape.filter(|shape| self.can_repeat(shape, &request, &planned));
        let again = shape.map(|shape| (shape, planned.clone()));
        let mut state = self.lane.lock();
        let op = self.bind(&mut state, planned, reached, request, keep);
        if let Some((shape, planned)) = again {
            state.expect_repeat(shape, planned, op.call);
        }
        let number = self.lane.enqueue(&mut state, op);
        drop(state);
        progress().activate(&self.lane);
        Ok(number)
    }

    fn start_at_once(
        &self,
        request: &Request<'_>,
        shape: &CallShape,
        keep: &mut Option<Box<dyn Any + Send>>,
    ) -> Option<u64> {
        if !fork::is(self.generation) {
            return None;
        }
        let mut state = self.lane.lock();
        let as_op = |planned, call| Op {
            keep: keep.take(),
            ..op_of(planned, call, request)
        };
        let (key, ends) = (shape.key(), request.asked.ends);
        match self.at_once(&mut state, key, ends, as_op, None) {
            Ended::Not => None,
            // The lock is held: it is the last one.
            Ended::Done => Some(self.lane.completed()),
            Ended::Queued(number) => {
                drop(state);
                progress().activate(&self.lane);
                Some(number)
            }
        }
    }

    /// Whether the next request like this one can run at once with this plan, wherever its buffers lie.
    fn can_repeat(&self, shape: &CallShape, request: &Request<'_>, planned: &Planned) -> bool {
        let for_windows = || {
            let windows = self.goes_over_windows(shape.op, shape.bytes());
            self.plan(request, windows, false)
        };
        planned.direct.is_some()
            && (!shape.windows
                || for_windows().is_ok_and(|all| !all.windowed && all.hash == planned.hash))
    }

    /// Whether the communicator can take a call now, and the call's plan.
    fn check(&self, request: &Request<'_>) -> Result<(Arc<Planned>, Reached)> {
        if !fork::is(self.generation) {
            return Err(Error::ForkedProcess);
        }
        if let Some(error) = self.lane.failure() {
            return Err(error.clone());
        }
        let Asked { op, ends, .. } = request.asked;
        let windowed = match request.kind() {
            // What peers read there is not scaled.
            Some(ReductionKind::ScaledSum) => None,
            _ if ends.input == ends.output && !op.runs_in_place(true) => None,
            _ if !op.is_collective() || !self.goes_over_windows(op, 0) => None,
            // Where the output lies only the root knows.
            _ if matches!(op, PlanOp::Reduce { .. }) => {
                self.windows.find(Ends { output: 0, ..ends }, InPlace::No)
            }
            _ => self.windows.find(ends, self.in_place(request)),
        };
        let is_told_of = matches!(op, PlanOp::Reduce { root } if root == self.rank);
        let (told, points) = match windowed.is_some() && is_told_of {
            true => (self.windows.told(ends.output), false),
            false => self.points(op, request.bytes(), ends.input),
        };
        let in_windows = windowed.is_some() || points;
        let planned = self.plan(request, in_windows, is_told_of && told == [0; 2])?;
        let windowed = windowed.filter(|_| planned.windowed);
        // Peers read this rank's input while this rank writes its output.
        let is_overwritten = ends.input == ends.output && !op.runs_in_place(true);
        let aside = match planned.reads && is_overwritten && ends.input != 0 {
            true => Some(self.aside(request)?),
            false => None,
        };
        Ok((
            planned,
            Reached {
                windowed,
                told,
                aside,
            },
        ))
    }

    /// Where a message of so many bytes lies in a window, and whether its receiver should take it from there.
    fn points(&self, op: PlanOp, bytes: u64, input: u64) -> ([u64; 2], bool) {
        let PlanOp::Send { to } = op else {
            return ([0; 2], false);
        };
        if bytes < LONG_MESSAGE || !self.windows.has_any() {
            return ([0; 2], false);
        }
        let told = self.windows.told(input);
        let forced = self.overrides.find(op, bytes);
        let points = told != [0; 2]
            && match forced.and_then(|rule| rule.windowed) {
                Some(_) => self.goes_over_windows(op, bytes),
                None => self.lane.lock().should_point(to, bytes),
            };
        (told, points)
    }

    /// Room for the input of a request.
    fn aside(&self, request: &Request<'_>) -> Result<Aside> {
        let bytes = request.bytes();
        Ok(Aside {
            of: request.asked.ends.input,
            bytes,
            memory: self.asides.take(&self.world.device, bytes)?,
        })
    }

    fn bind(
        &self,
        state: &mut State,
        planned: Arc<Planned>,
        reached: Reached,
        request: Request<'_>,
        keep: Option<Box<dyn Any + Send>>,
    ) -> Op {
        let Reached {
            windowed,
            told,
            aside,
        } = reached;
        let call = self.sign(state, &planned, windowed.as_ref(), &request);
        let planned = planned.of_call(call.sequence).clone();
        let mut op = Op {
            keep,
            peers: windowed.map(|w| w.peers).unwrap_or_default(),
            ..op_of(planned, call, &request)
        };
        if op.planned.reads {
            if let Some(aside) = aside {
                op.input = aside.memory.base();
                op.aside = Some(aside);
            }
            op.ends = Some(Box::new([op.input, op.output]));
        }
        if op.planned.windowed && matches!(op.planned.program.op, PlanOp::Send { .. }) {
            op.ends = Some(Box::new(told));
        }
        if op.planned.tells
            && let PlanOp::Reduce { root } = op.planned.program.op
        {
            if root == self.rank {
                op.ends = Some(Box::new(told));
            } else {
                let bytes = op.planned.geometry.count() * op.planned.element;
                op.target = Some(Box::new(Target::new(root, bytes, self.windows.of(root))));
            }
        }
        op
    }

    /// The signature of a request.
    #[inline]
    fn sign(
        &self,
        state: &mut State,
        planned: &Planned,
        windowed: Option<&Windowed>,
        request: &Request<'_>,
    ) -> Call {
        let Asked { op, kind, .. } = request.asked;
        Call {
            kind,
            sequence: state.next_sequence(op),
            count: self.api_count(&request.asked),
            dtype: (op != PlanOp::Barrier).then_some(request.dtype),
            op: request.kind(),
            root: op.root(),
            plan: windowed.map_or(planned.hash, |windowed| {
                mix(u64::from(planned.hash) ^ windowed.key) as u32
            }),
            recorded: false,
        }
    }

    fn in_place<'a>(&self, request: &Request<'a>) -> InPlace<'a> {
        let Asked {
            op, sizes, ends, ..
        } = request.asked;
        let Ends { input, output } = ends;
        let element = request.dtype.size() as u64;
        let starts = match sizes {
            Sizes::Equal(count) => Starts::Equal(count / u64::from(self.size()) * element),
            Sizes::Parts(counts) => Starts::Parts(counts, element),
        };
        match op {
            PlanOp::AllGather if input == output + starts.of(self.rank) => {
                InPlace::InputInOutput(starts)
            }
            PlanOp::ReduceScatter if output == input + starts.of(self.rank) => {
                InPlace::OutputInInput(starts)
            }
            _ => InPlace::No,
        }
    }

    /// The count that the caller gave: where each rank has a block, one of these.
    fn api_count(&self, asked: &Asked<'_>) -> u64 {
        match (asked.kind, asked.sizes) {
            (CallKind::AllToAllV, _) => Call::PER_PAIR,
            (_, Sizes::Parts(counts)) => counts.iter().sum(),
            (_, Sizes::Equal(count)) if asked.op.has_block_per_rank() => {
                count / u64::from(self.size())
            }
            (_, Sizes::Equal(count)) => count,
        }
    }
}

/// An op of a request that reaches into no windows.
fn op_of(planned: Arc<Planned>, call: Call, request: &Request<'_>) -> Op {
    let Asked {
        kind, sizes, ends, ..
    } = request.asked;
    let pairs: &[u64] = match (kind, sizes) {
        (CallKind::AllToAllV, Sizes::Parts(pairs)) => pairs,
        _ => &[],
    };
    Op {
        pairs: pairs.into(),
        reduction: request.reduction.clone(),
        ..Op::new(planned, call, ends.both(), request.deadline)
    }
}
