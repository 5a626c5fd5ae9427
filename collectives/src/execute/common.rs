//! What the tracks of one rank share.

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_hal::{Batch, Cpu, Device, Memory, MemoryKind, MemoryRequest};
use unisono_plan::Op as PlanOp;

use super::direct::{Answers, Direct, Owed};
use super::due_bells::DueBells;
use super::lower::{BATCH, Waiting};
use super::op::Planned;
use super::peer::{Load, Own, Peer, Way};
use super::windows::Windows;
use crate::error::Result;

/// What the tracks of one rank share.
pub(super) struct Common {
    pub own: Own,
    pub peers: Vec<Peer>,
    pub device: Device,
    /// Whether any peer is reached by a posted link.
    pub posted: bool,
    /// Where all memory is this CPU's, and links read it: what it may do by itself.
    pub cpu: Option<Cpu>,
    /// Bells to ring for flags that a direct run has raised; none between runs.
    pub bells: DueBells,
    /// Whether credits, or what goes along with a later put, may lie in the batches of posted links.
    pub held_back: bool,
    /// Whether a posted link may have something left to do since it was driven last.
    pub unsent: bool,
    /// Of direct runs.
    pub owed: Owed,
    pub answers: Answers,
    /// Whether the last put that a call took which only takes had none behind it yet: this rank is on the heels of who puts.
    pub trails: bool,
    /// Ops begun so far.
    pub number: u64,
    scratch: Option<Memory>,
    /// Scratch that was too small for a later op; ops in flight may still use it.
    pub outgrown: Vec<Memory>,
    /// The communicator's windows, from which messages may be taken.
    pub windows: Arc<Windows>,
}

impl Common {
    pub(super) fn new(own: Own, mut peers: Vec<Peer>, device: Device) -> Self {
        for peer in &mut peers {
            peer.set_lines(&own);
        }
        let posted = peers.iter().any(|p| matches!(p.way, Way::Posted(_)));
        let plain = peers.iter().all(|peer| match peer.way {
            Way::Own => true,
            Way::Mapped { inline, .. } => inline,
            Way::Posted(_) => peer.near.plain,
        });
        Self {
            own,
            cpu: Cpu::of(&device).filter(|_| plain),
            bells: DueBells::of(&peers),
            held_back: false,
            unsent: false,
            owed: Owed::default(),
            answers: Answers::default(),
            peers,
            device,
            posted,
            trails: false,
            number: 0,
            scratch: None,
            outgrown: Vec::new(),
            windows: Arc::default(),
        }
    }

    pub(super) fn scratch_bytes(&self) -> u64 {
        self.scratch.as_ref().map_or(0, Memory::len)
    }

    /// Where scratch begins, 0 if there is none.
    #[inline]
    pub(super) fn scratch_base(&self) -> u64 {
        self.scratch.as_ref().map_or(0, Memory::base)
    }

    /// The number of an op that begins, on the main track or `beside` it, for which slots change hands.
    #[inline]
    pub(super) fn number_next(&mut self, planned: &Planned, beside: bool) -> u64 {
        self.number += 1;
        if let Some(load) = planned.load {
            self.begin_message(planned.program.op, load, beside);
        }
        for peer in &*planned.exchanges {
            self.peers[*peer as usize].swap_slots(&self.own);
        }
        self.number
    }

    /// A message begins that may go by a shuttle.
    #[inline(never)]
    fn begin_message(&mut self, op: PlanOp, load: Load, beside: bool) {
        match op {
            PlanOp::Send { to } => self.peers[to as usize].send_message(load, beside),
            PlanOp::Recv { from } => self.peers[from as usize].receive_message(load),
            _ => {}
        }
    }

    /// Begins a direct run: whether what is owed must be made up first.
    #[inline]
    pub(super) fn begin(&mut self, planned: &Arc<Planned>, direct: &Direct) -> bool {
        let due = self.owed.is_due(planned);
        self.owed.begin(planned, direct);
        if self.posted {
            self.begin_posted(planned);
        }
        due
    }

    /// What is held back for links goes first, if it is of calls of another plan.
    #[inline(never)]
    fn begin_posted(&mut self, planned: &Arc<Planned>) {
        if self.answers.begin(planned) {
            self.send_answers();
        }
    }

    /// The CPU of a direct run, which none begins without.
    #[inline]
    pub(super) fn running_cpu(&self) -> &Cpu {
        self.cpu.as_ref().expect("calls run directly on CPUs alone")
    }

    /// Rings the bells of those whose flags a direct run has raised.
    #[inline]
    #[allow(unsafe_code, reason = "bells are addresses")]
    pub(super) fn ring(&mut self) {
        let Some(bells) = self.bells.due() else {
            return;
        };
        // SAFETY: bells of peers whose memory the lane keeps imported.
        unsafe { self.running_cpu().ring(bells) };
        self.bells.rung();
    }

    /// Whether nothing is owed by ranks that links reach. Takes what has come.
    pub(super) fn is_even(&mut self) -> bool {
        if !self.posted || self.owed.count == 0 || self.cpu.is_none() {
            return true;
        }
        self.make_up_posted()
    }

    /// Writes waits for what is owed, as much as a batch holds, behind `emitted` commands.
    pub(super) fn make_up_in(
        &mut self,
        emitted: u64,
        batch: &mut Batch,
        waiting: &mut VecDeque<Waiting>,
    ) {
        while batch.len() < BATCH
            && let Some(peer) = self.owed.first(&self.peers)
        {
            waiting.push_back(Waiting {
                command: emitted + batch.len() as u64,
                peer,
                step: None,
            });
            let made_up = self.peers[peer as usize].make_up(&self.own, batch);
            self.owed.count -= u32::from(made_up);
        }
    }

    /// Gives links the answers that were held back, and what else lies there; true if there were answers.
    #[cold]
    pub(super) fn send_answers(&mut self) -> bool {
        let mut sent = false;
        for peer in &mut self.peers {
            if let Way::Posted(posted) = &mut peer.way
                && !posted.batch.is_empty()
            {
                sent |= posted.holds_answers;
                self.unsent |= !posted.push();
            }
        }
        (self.answers.held, self.answers.puts) = (false, false);
        sent
    }

    /// Room for what an op needs beside its buffers.
    #[cold]
    pub(super) fn prepare(&mut self, planned: &Planned) -> Result<()> {
        let scratch = planned.scratch_bytes();
        if scratch > self.scratch_bytes() {
            let request = MemoryRequest::new(MemoryKind::Data, scratch);
            let larger = self.device.alloc(&request)?;
            self.outgrown.extend(self.scratch.replace(larger));
        }
        Ok(())
    }
}
