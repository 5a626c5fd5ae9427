//! From a request to an op on the lane.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use unisono_plan::Op as PlanOp;

use super::force::Forced;
use super::ops::Ends;
use super::shared::{Shared, mix};
use super::window::{InPlace, Windowed};
use crate::error::{Error, Result};
use crate::execute::{Op, Planned, State};
use crate::progress::progress;
use crate::signature::{Call, CallKind};
use crate::{DataType, ReduceOp, fork};

/// What a caller asks for.
pub(super) struct Request {
    pub op: PlanOp,
    /// Elements of the whole message.
    pub count: u64,
    pub dtype: DataType,
    pub reduction: Option<ReduceOp>,
    pub ends: Ends,
    pub deadline: Duration,
}

impl Shared {
    /// Runs a request on this thread; returns when it is complete.
    pub(super) fn run(&self, request: &Request) -> Result<()> {
        self.run_as(request, None)
    }

    /// [`Shared::run`], by a certain plan if one is named.
    pub(super) fn run_as(&self, request: &Request, forced: Option<Forced>) -> Result<()> {
        let (planned, windowed) = self.check(request, forced)?;
        let mut state = self.lane.lock();
        let op = self.bind(&mut state, planned, windowed, request, None);
        let number = self.lane.enqueue(&mut state, op);
        progress().wait(&self.lane, state, number, self.policy, self)
    }

    /// Appends a request and returns at once.
    pub(super) fn start(
        &self,
        request: &Request,
        keep: Option<Box<dyn Any + Send>>,
    ) -> Result<u64> {
        let (planned, windowed) = self.check(request, None)?;
        let mut state = self.lane.lock();
        let op = self.bind(&mut state, planned, windowed, request, keep);
        let number = self.lane.enqueue(&mut state, op);
        drop(state);
        progress().activate(&self.lane);
        Ok(number)
    }

    /// Whether the communicator can take a call now, and the call's plan.
    fn check(
        &self,
        request: &Request,
        forced: Option<Forced>,
    ) -> Result<(Arc<Planned>, Option<Windowed>)> {
        if !fork::is(self.generation) {
            return Err(Error::ForkedProcess);
        }
        if let Some(error) = self.lane.failure() {
            return Err(error.clone());
        }
        let windowed = self.windows.find(request.ends, self.in_place(request));
        let planned = self.plan(request, windowed.is_some(), forced)?;
        let windowed = windowed.filter(|_| planned.windowed);
        Ok((planned, windowed))
    }

    fn bind(
        &self,
        state: &mut State,
        planned: Arc<Planned>,
        windowed: Option<Windowed>,
        request: &Request,
        keep: Option<Box<dyn Any + Send>>,
    ) -> Op {
        let kind = kind(request.op);
        let sequence = match request.op {
            PlanOp::Send { to } => state.next_message(to, true),
            PlanOp::Recv { from } => state.next_message(from, false),
            _ => state.next_collective(),
        };
        let call = Call {
            kind,
            sequence,
            count: self.api_count(request),
            dtype: (request.op != PlanOp::Barrier).then_some(request.dtype),
            op: request.reduction,
            root: request.op.root(),
            plan: windowed.as_ref().map_or(planned.hash, |windowed| {
                mix(u64::from(planned.hash) ^ windowed.key) as u32
            }),
        };
        Op {
            words: call.words(),
            planned,
            call,
            input: request.ends.input,
            output: request.ends.output,
            peers: windowed.map(|w| w.peers).unwrap_or_default(),
            keep,
            deadline: request.deadline,
            started: None,
        }
    }

    fn in_place(&self, request: &Request) -> InPlace {
        let Ends { input, output } = request.ends;
        let block_bytes = self.api_count(request) * request.dtype.size() as u64;
        let own = u64::from(self.rank) * block_bytes;
        match request.op {
            PlanOp::AllGather if input == output + own => InPlace::InputInOutput { block_bytes },
            PlanOp::ReduceScatter if output == input + own => {
                InPlace::OutputInInput { block_bytes }
            }
            _ => InPlace::No,
        }
    }

    /// The count that the caller gave: all_gather and reduce_scatter count one rank's share.
    fn api_count(&self, request: &Request) -> u64 {
        if request.op.has_block_per_rank() {
            request.count / u64::from(self.size())
        } else {
            request.count
        }
    }
}

fn kind(op: PlanOp) -> CallKind {
    match op {
        PlanOp::AllReduce => CallKind::AllReduce,
        PlanOp::ReduceScatter => CallKind::ReduceScatter,
        PlanOp::AllGather => CallKind::AllGather,
        PlanOp::Broadcast { .. } => CallKind::Broadcast,
        PlanOp::Reduce { .. } => CallKind::Reduce,
        PlanOp::Gather { .. } => CallKind::Gather,
        PlanOp::Scatter { .. } => CallKind::Scatter,
        PlanOp::AllToAll => CallKind::AllToAll,
        PlanOp::Barrier => CallKind::Barrier,
        PlanOp::Send { .. } | PlanOp::Recv { .. } => CallKind::SendRecv,
    }
}
