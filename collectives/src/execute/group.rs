//! The messages of a group: they run beside each other, each direction between two ranks on a track
//! of its own.

use std::collections::{BTreeMap, VecDeque};

use unisono_hal::Device;
use unisono_plan::Op as PlanOp;

use super::op::Op;
use super::track::Track;
use crate::error::Result;

/// Tracks that are kept for the next group.
const KEPT: usize = 8;

/// The messages of one group, in turn for tracks.
pub(crate) struct Messages {
    /// One queue for each direction and peer. The next to have a track is the last.
    strands: Vec<VecDeque<Op>>,
    /// Ops of the main track that were called after them.
    pub then: VecDeque<Op>,
}

impl Messages {
    /// Sorts sends and receives by direction and peer.
    ///
    /// If there are more than tracks, they get tracks by the distance between the two ranks, which
    /// both know. So the pair with the least distance of all that are left has tracks on both
    /// sides, and goes on.
    pub(super) fn new(ops: Vec<Op>, rank: u32, ranks: u32) -> Self {
        let mut strands: BTreeMap<(u32, bool), VecDeque<Op>> = BTreeMap::new();
        for op in ops {
            let key = match op.planned.program.op {
                PlanOp::Send { to } => ((to + ranks - rank) % ranks, false),
                PlanOp::Recv { from } => ((rank + ranks - from) % ranks, true),
                _ => (0, false),
            };
            strands.entry(key).or_default().push_back(op);
        }
        Self {
            strands: strands.into_values().rev().collect(),
            then: VecDeque::new(),
        }
    }
}

/// The tracks beside the main one.
#[derive(Default)]
pub(super) struct Beside {
    /// Groups that have not begun, oldest first.
    pub waiting: VecDeque<Messages>,
    /// What has no track yet of the group that runs.
    strands: Vec<VecDeque<Op>>,
    /// What the main track does after it.
    pub then: VecDeque<Op>,
    pub tracks: Vec<Track>,
    idle: Vec<Track>,
    /// Whether a group runs.
    pub running: bool,
}

impl Beside {
    /// Begins the oldest group.
    pub(super) fn begin(&mut self, device: &Device) -> Result<()> {
        if let Some(messages) = self.waiting.pop_front() {
            self.strands = messages.strands;
            self.then = messages.then;
            self.running = true;
            self.fill(device)?;
        }
        Ok(())
    }

    /// Gives tracks to those that wait for one, and takes back what is through. True when all of
    /// the group is.
    pub(super) fn turn(&mut self, device: &Device) -> Result<bool> {
        let (idle, tracks) = std::mem::take(&mut self.tracks)
            .into_iter()
            .partition(Track::is_idle);
        self.tracks = tracks;
        self.idle.extend::<Vec<_>>(idle);
        self.fill(device)?;
        if !self.tracks.is_empty() {
            return Ok(false);
        }
        self.running = false;
        self.idle.truncate(KEPT);
        Ok(true)
    }

    fn fill(&mut self, device: &Device) -> Result<()> {
        // At least one in each direction, else two ranks that send to each other may wait for ever.
        let most = device.info().queues.saturating_sub(1).max(2) as usize;
        while self.tracks.len() < most {
            let Some(strand) = self.strands.pop() else {
                break;
            };
            let mut track = match self.idle.pop() {
                Some(track) => track,
                None => Track::beside(device.stream(0)?, device),
            };
            track.queue = strand;
            self.tracks.push(track);
        }
        Ok(())
    }

    /// Drops what has not started.
    pub(super) fn drop_rest(&mut self) {
        self.then.clear();
        self.waiting.clear();
        self.strands.clear();
        for track in &mut self.tracks {
            track.drop_rest();
        }
    }

    /// Where an op goes that is called now, if not to the main track.
    pub(super) fn behind(&mut self) -> Option<&mut VecDeque<Op>> {
        match self.waiting.back_mut() {
            Some(last) => Some(&mut last.then),
            None => self.running.then_some(&mut self.then),
        }
    }

    /// Whether nothing is to be done.
    pub(super) fn is_idle(&self) -> bool {
        !self.running && self.waiting.is_empty()
    }
}
