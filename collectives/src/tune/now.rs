//! What the candidates of one call take right now.

use unisono_plan::OpKind;

use super::TuneOptions;
use super::clock::Buffers;
use super::sweep::{Plans, fitting, whole};
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
        let bytes = fitting(op, bytes, self.size());
        let mut explained = self.explain(whole(op), bytes, DataType::F32)?;
        if self.size() < 2 {
            return Ok(explained);
        }
        let elements = (bytes / 4) as usize + self.size() as usize;
        let plans = Plans {
            on: self,
            options,
            op: whole(op),
            bytes,
            windowed: false,
        };
        for (candidate, time) in plans.now(&mut Buffers::new(self, elements, false)?)? {
            explained.set_now(candidate.plan, candidate.windowed, time);
        }
        Ok(explained)
    }
}
