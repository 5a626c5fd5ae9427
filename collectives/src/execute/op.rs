//! One call, bound to its buffers: what the executor runs.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_plan::{Geometry, Program};

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
    /// What the last reduction of each element divides by; 0 for nothing.
    pub divisor: u32,
    /// Whether the program reaches into the peers' windows.
    pub windowed: bool,
    /// A hash of all that ranks must agree on about how it runs.
    pub hash: u32,
}

impl Planned {
    /// Bytes of scratch that one piece in flight needs.
    pub(super) fn scratch_instance_bytes(&self) -> u64 {
        let blocks = self.program.scratch.count;
        (self.geometry.room(blocks) * self.element).next_multiple_of(64)
    }

    /// Bytes of scratch for all pieces in flight.
    pub(super) fn scratch_bytes(&self) -> u64 {
        if self.program.scratch.is_empty() {
            return 0;
        }
        u64::from(self.program.scratch_instances()) * self.scratch_instance_bytes()
    }
}

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
    pub input: u64,
    pub output: u64,
    /// By rank; empty unless the plan is windowed.
    pub peers: Arc<[PeerBuffers]>,
    /// Buffers that must live until the op is complete.
    #[expect(dead_code, reason = "held, and dropped with the op")]
    pub keep: Option<Box<dyn Any + Send>>,
    pub deadline: Duration,
    /// When its first step started.
    pub started: Option<Instant>,
}
