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

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the program's ordinary memory, which the device may not reach.
    Slice(u64),
    /// In the device's.
    Device(u64),
}

impl Place {
    fn address(self) -> u64 {
        let (Self::Slice(address) | Self::Device(address)) = self;
        address
    }
}

impl Communicator {
    /// Runs `op` on `count` floats of the whole message by a certain plan, if one is named, and blocks.
    ///
    /// Input and output have at least as many elements as the whole message, and lie alike.
    pub(crate) fn run_at(
        &self,
        op: Op,
        count: u64,
        reduction: Option<ReduceOp>,
        [input, output]: [Place; 2],
        forced: Option<Forced>,
    ) -> Result<()> {
        let asked = Asked {
            op,
            kind: CallKind::of(op),
            sizes: Sizes::Equal(count),
            ends: Ends {
                input: input.address(),
                output: output.address(),
            },
        };
        let request = Request {
            forced,
            ..self.request(asked, DataType::F32, reduction.map(Into::into))
        };
        match input {
            Place::Slice(_) => self.shared.run_slices(request),
            Place::Device(_) => self.shared.run(request),
        }
    }

    /// Bytes of a slot: the largest put.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.shared.slot_bytes
    }

    /// What the cost model knows of this communicator's links.
    pub(crate) fn fabric(&self) -> &Fabric {
        &self.shared.fabric
    }

    /// Those of its ranks, as the job counts them, that may run on the same cores as this one.
    pub(crate) fn sharing_cores(&self) -> Vec<u32> {
        let sharing = self
            .shared
            .world
            .table
            .sharing_cores(self.shared.world.rank);
        sharing
            .filter(|rank| self.members().contains(rank))
            .collect()
    }

    /// The ranks of the job that this communicator is of, by rank.
    pub(crate) fn members(&self) -> &[u32] {
        &self.shared.members
    }
}
