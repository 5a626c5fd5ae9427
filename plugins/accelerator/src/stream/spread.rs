//! Copies to several other devices at once, or from several.
//!
//! A native stream does one copy after the other, and a copy uses one link: a device with a link to each of
//! seven others would use one of them at a time. So copies to other devices that follow each other are
//! gathered, and those to different devices are put on native streams of their own, *branches*, that begin
//! behind all that came before and that the stream waits for before it goes on. Nobody can tell that from
//! one after the other: they read this device's memory and write that of different others, so none reads
//! or overwrites what another writes. So are copies from other devices: they read those and write places of
//! this device's memory that lie apart.
//!
//! A branch has a hardware queue, of which there are few, and waits on it for what came before. Only one
//! stream uses it at a time, until all that it was given is done: of two that shared it, one could wait for
//! the other. Where there are not enough of them, a kernel does the copies of one device each at once, on the
//! stream itself, where the runtime has one; else copies go one after the other as ever.
#![allow(
    unsafe_code,
    reason = "calls the runtime with the addresses of commands"
)]

use std::sync::Arc;

use unisono_plugin::abi::CommandCopy;
use unisono_plugin::{DeviceId, MemoryView, Result};

use super::AcceleratorStream;
use super::step::Step;
use crate::Runtime;
use crate::state::Tenure;

/// Shorter copies take less time than to begin and to join a branch.
const SHORTEST: u64 = 64 << 10;
/// Copies that are gathered at most.
const MOST: usize = 64;
/// Branches of one stream at most: with its own a link to each other device of a box of eight.
const BRANCHES: usize = 6;

/// A native stream that copies beside another.
#[derive(Debug)]
pub(crate) struct Branch<R: Runtime> {
    pub(crate) native: R::Stream,
    /// Recorded on the stream that it leaves.
    pub(crate) fork: R::Event,
    /// Recorded on itself.
    pub(crate) join: R::Event,
}

/// What a stream has to spread.
#[derive(Debug)]
pub(super) struct Spread<R: Runtime> {
    /// Copies that were not handed over, and the other devices that they go to or, all of them, come from.
    gathered: Vec<(CommandCopy, DeviceId)>,
    inwards: bool,
    branches: Vec<Branch<R>>,
}

impl<R: Runtime> Spread<R> {
    pub(super) fn new() -> Self {
        Self {
            gathered: Vec::new(),
            inwards: false,
            branches: Vec::new(),
        }
    }

    /// The branches, for who gives them back once all is done.
    pub(super) fn into_branches(self) -> Vec<Branch<R>> {
        self.branches
    }
}

impl<R: Runtime> AcceleratorStream<R> {
    /// Takes a copy that may go beside others, to be handed over by [`spread`](Self::spread); false if
    /// it is none.
    pub(super) fn gather(&mut self, copy: &CommandCopy) -> Result<bool> {
        if copy.bytes < SHORTEST || copy.repeat != 1 || !matches!(self.tenure, Tenure::Own(_)) {
            return Ok(false);
        }
        let process = self.device.process();
        let mut find = |address| self.recent.find(&process.regions, address, copy.bytes);
        let (Some(from), Some(to)) = (find(copy.src), find(copy.dst)) else {
            return Ok(false);
        };
        let own = self.device.runtime.id();
        let on_device = |view: &MemoryView| view.host == 0;
        if !on_device(&from) || !on_device(&to) || (from.device == own) == (to.device == own) {
            return Ok(false);
        }
        let inwards = to.device == own;
        // What came before comes before it on the stream itself.
        self.flush()?;
        let Spread {
            gathered,
            inwards: before,
            ..
        } = &self.spread;
        let turns = inwards != *before;
        let is_apart = |(other, _): &(CommandCopy, DeviceId)| {
            let bytes = if other.dst < copy.dst {
                other.bytes
            } else {
                copy.bytes
            };
            other.dst.abs_diff(copy.dst) >= bytes
        };
        if turns || gathered.len() == MOST || inwards && !gathered.iter().all(is_apart) {
            self.spread()?;
        }
        self.spread.inwards = inwards;
        let other = if inwards { from.device } else { to.device };
        self.spread.gathered.push((*copy, other));
        Ok(true)
    }

    /// Hands over what was gathered: on as many native streams as there are devices and branches.
    pub(super) fn spread(&mut self) -> Result<()> {
        if self.spread.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.spread.gathered);
        let done = self
            .not_together()
            .and_then(|()| self.spread_all(&gathered));
        self.spread.gathered = gathered;
        self.spread.gathered.clear();
        done
    }

    fn spread_all(&mut self, gathered: &[(CommandCopy, DeviceId)]) -> Result<()> {
        let mut devices: Vec<DeviceId> = Vec::with_capacity(BRANCHES + 1);
        for (_, other) in gathered {
            if !devices.contains(other) {
                devices.push(*other);
            }
        }
        let device = Arc::clone(&self.device);
        let wanted = (devices.len() - 1).min(BRANCHES);
        let missing = wanted.saturating_sub(self.spread.branches.len());
        if missing > 0 {
            let more = device.take_branches(missing)?;
            self.spread.branches.extend(more);
        }
        let runtime = &*device.runtime;
        if self.spread.branches.len() < wanted && runtime.copies_at_once() > 1 {
            return self.at_once(gathered);
        }
        let branches = &self.spread.branches[..wanted.min(self.spread.branches.len())];
        if let Some(first) = branches.first() {
            runtime.record(self.native, first.fork)?;
            for branch in branches {
                runtime.wait_event(branch.native, first.fork)?;
            }
        }
        let mut done = Ok(());
        for (copy, other) in gathered {
            let lane = devices.iter().position(|device| device == other);
            let lane = lane.unwrap_or(0);
            // The first device's are the stream's own.
            let lane = lane % (branches.len() + 1);
            let branch = lane.checked_sub(1).map(|at| branches[at].native);
            let native = branch.unwrap_or(self.native);
            // SAFETY: checked to be memory of devices; the submitter's promise keeps it until the command
            // is complete, which is behind the join.
            done = done.and_then(|()| unsafe { Step::Copy(*copy).run(runtime, native) });
        }
        // Whatever was handed over is joined, so that the stream is quiet when its branches are.
        for branch in branches {
            let joined = runtime
                .record(branch.native, branch.join)
                .and_then(|()| runtime.wait_event(self.native, branch.join));
            done = done.and(joined);
        }
        if !branches.is_empty() {
            self.operations += 1 + branches.len() as u64;
        }
        done
    }

    /// Hands over what was gathered by calls that each copy to, or from, different devices at once. Copies to one
    /// device come one after the other, as they may overwrite what another wrote, and so do those from one, by its
    /// link.
    fn at_once(&mut self, gathered: &[(CommandCopy, DeviceId)]) -> Result<()> {
        let runtime = &*self.device.runtime;
        let mut left: Vec<(CommandCopy, DeviceId)> = gathered.to_vec();
        while !left.is_empty() {
            let (mut now, mut devices) = (Vec::with_capacity(BRANCHES + 1), Vec::new());
            left.retain(|(copy, other)| {
                let later = devices.contains(other) || now.len() == runtime.copies_at_once();
                if !later {
                    now.push(*copy);
                }
                // Behind one that comes later nothing of its device comes now.
                devices.push(*other);
                later
            });
            // SAFETY: checked to be memory of devices; the submitter's promise keeps it until the command
            // is complete, which is behind this on the stream.
            unsafe { runtime.copy_at_once(self.native, &now) }?;
        }
        Ok(())
    }

    /// Gives the branches back, when all is done that the stream was given.
    pub(super) fn give_branches_back(&mut self) {
        if !self.spread.branches.is_empty() {
            let branches = std::mem::take(&mut self.spread.branches);
            self.device.give_branches(branches);
        }
    }
}
