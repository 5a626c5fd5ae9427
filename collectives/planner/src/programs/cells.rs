//! Who wrote and who reads each block of each piece of a rank's memory.

use rustc_hash::FxHashMap;
use unisono_plan::Buffer;

use crate::schedule::StepId;

/// A block of a piece in a buffer; in scratch, of an instance.
pub(super) type Cell = (Buffer, u32, u64);

#[derive(Debug, Default)]
struct Trace {
    writer: Option<StepId>,
    readers: Vec<StepId>,
}

/// The memory of one rank.
#[derive(Debug, Default)]
pub(super) struct Cells {
    traces: FxHashMap<Cell, Trace>,
}

impl Cells {
    /// What a reader of the cell waits for.
    pub(super) fn before_read(&self, cell: Cell, after: &mut Vec<StepId>) {
        after.extend(self.traces.get(&cell).and_then(|trace| trace.writer));
    }

    /// What a writer of the cell waits for.
    pub(super) fn before_write(&self, cell: Cell, after: &mut Vec<StepId>) {
        if let Some(trace) = self.traces.get(&cell) {
            match trace.readers.is_empty() {
                true => after.extend(trace.writer),
                // They have waited for the writer.
                false => after.extend_from_slice(&trace.readers),
            }
        }
    }

    pub(super) fn read(&mut self, cell: Cell, by: StepId) {
        self.traces.entry(cell).or_default().readers.push(by);
    }

    pub(super) fn written(&mut self, cell: Cell, by: StepId) {
        let trace = self.traces.entry(cell).or_default();
        trace.writer = Some(by);
        trace.readers.clear();
    }
}
