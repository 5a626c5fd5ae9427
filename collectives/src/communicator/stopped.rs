//! After a failure: no device goes on with what is behind its waits before its peers know of the failure.
//!
//! A device's queue holds commands behind a wait, and nobody can take them back: once the wait is released they run. They
//! copy what never came, and tell peers that it is there. A peer that has not heard of the failure would take it for its
//! data and say that the call went well. So a rank whose lane has failed tells those with which it shares memory, and
//! releases its device's waits when all of them have told as much, are dead or have left. One that does not answer is
//! waited for no longer than a second, and named in a warning.
//!
//! Queues of the CPU are the library's own: what has not started is dropped, and nothing need wait.

use std::time::Instant;

use unisono_graph::{DeviceClass, LinkGraph};

use super::Shared;
use super::told_once::ToldOnce;
use crate::execute::HEARD;

/// The number of this message among a communicator's.
const STOPPED: u64 = 3;

pub(super) struct Stopped {
    /// The ranks with which this one shares memory; none where all devices are CPUs.
    sharing: Vec<u32>,
    told: ToldOnce,
}

impl Stopped {
    /// Of a rank that shares memory with these, in a communicator of `members`.
    pub(super) fn new(graph: &LinkGraph, members: &[u32], sharing: Vec<u32>) -> Self {
        let is_device = |member: &u32| {
            let vertex = graph.rank(*member).map(|at| graph.vertex(at));
            let device = vertex.and_then(|vertex| vertex.device());
            device.is_some_and(|device| device.class != DeviceClass::Cpu)
        };
        Self {
            sharing: match members.iter().any(is_device) {
                true => sharing,
                false => Vec::new(),
            },
            told: ToldOnce::new(STOPPED),
        }
    }

    /// Once the lane has failed: tells, listens, and releases the device's waits if all know. True while it is waited
    /// for somebody.
    pub(super) fn advance(&self, shared: &Shared) -> bool {
        if self.sharing.is_empty() {
            return false;
        }
        let ranks = || self.sharing.iter().copied();
        self.told.tell(shared, ranks());
        let Some(mut state) = shared.lane.try_lock() else {
            return true;
        };
        let Some(until) = state.held_until() else {
            return false;
        };
        let missing = self.told.missing(shared, ranks());
        if !missing.is_empty() {
            if Instant::now() < until {
                return true;
            }
            log::warn!(
                "communicator {:?}, rank {}: ranks {missing:?} did not say within {HEARD:?} that they know of the \
                 failure; this device's queue goes on, and what they receive from it may be no data",
                shared.name,
                shared.rank
            );
        }
        state.release_waits();
        false
    }
}
