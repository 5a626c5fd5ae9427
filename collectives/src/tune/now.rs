//! What the candidates of one call take right now.

use unisono_plan::OpKind;
use unisono_plan::cost::Picoseconds;

use super::TuneOptions;
use super::cell::Bench;
use super::grid::{fitting, whole};
use super::variant::Variant;
use crate::communicator::Explanation;
use crate::error::Result;
use crate::{Communicator, DataType};

impl Communicator {
    /// [`Communicator::explain`], with every candidate measured right now, on floats. All ranks call
    /// this together, and all get the same table. Of `options` counts how long it may take; the root
    /// of a rooted operation is rank 0.
    ///
    /// # Errors
    /// As [`Communicator::explain`], and of a call that fails.
    pub fn explain_measured(
        &self,
        op: OpKind,
        bytes: u64,
        options: &TuneOptions,
    ) -> Result<Explanation> {
        let mut explained =
            self.explain(whole(op), fitting(op, bytes, self.size()), DataType::F32)?;
        if self.size() < 2 {
            return Ok(explained);
        }
        let options = TuneOptions {
            max_bytes: bytes,
            ..options.clone()
        };
        let bench = &mut Bench::new(self, &options, false)?;
        let mut cell = bench.cell(op, bytes)?;
        let candidates = bench.candidates(&cell)?;
        let variants = candidates
            .iter()
            .map(|candidate| Variant::new(op, candidate));
        bench.add(&mut cell, variants.collect())?;
        for round in 0..options.rounds.max(1) {
            let turn = cell.sifted(0, round);
            bench.round(&mut cell, turn, round)?;
        }
        for (candidate, entry) in candidates.iter().zip(&cell.entries) {
            let time = Picoseconds((entry.middle() * 1e12) as u128);
            explained.set_now(candidate.plan, candidate.windowed, time);
        }
        Ok(explained)
    }
}
