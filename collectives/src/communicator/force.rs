//! Calls whose plan the caller names, for measuring it.

use unisono_plan::Op;
use unisono_plan::cost::Fabric;
use unisono_plan::geometry::Sizes;
use unisono_plan::select::Plan;

use super::Communicator;
use super::asked::{Asked, Ends};
use super::start::Request;
use crate::error::Result;
use crate::signature::CallKind;
use crate::{DataType, ReduceOp};

/// One plan of the communicator's fabric, cut in a certain way. All ranks must name the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Forced {
    pub plan: Plan,
    pub windowed: bool,
    /// Bytes of the largest put.
    pub put_bytes: u64,
}

impl Communicator {
    /// Runs `op` on `count` elements of the whole message by a certain plan, and blocks.
    ///
    /// `send` and `recv` have at least as many elements as the whole message.
    pub(crate) fn run_forced(
        &self,
        op: Op,
        count: u64,
        reduction: Option<ReduceOp>,
        send: &[f32],
        recv: &mut [f32],
        forced: Forced,
    ) -> Result<()> {
        debug_assert!(count as usize <= send.len().min(recv.len()));
        let asked = Asked {
            op,
            kind: CallKind::of(op),
            sizes: Sizes::Equal(count),
            ends: Ends {
                input: send.as_ptr() as u64,
                output: recv.as_mut_ptr() as u64,
            },
        };
        let request = self.request(asked, DataType::F32, reduction.map(Into::into));
        self.shared.run_slices(Request {
            forced: Some(forced),
            ..request
        })
    }

    /// Bytes of a slot: the largest put.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.shared.slot_bytes
    }

    /// What the cost model knows of this communicator's links.
    pub(crate) fn fabric(&self) -> &Fabric {
        &self.shared.fabric
    }

    /// The ranks of the job that this communicator is of, by rank.
    pub(crate) fn members(&self) -> &[u32] {
        &self.shared.members
    }
}
