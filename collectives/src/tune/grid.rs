//! What is measured: which operations at which sizes, and how far that is.

use unisono_plan::{Op, OpKind};

use super::memory::DTYPE;
use super::{TuneOptions, TuneProgress};

/// All cells: each operation at each of its sizes, operation by operation.
pub(super) fn all(options: &TuneOptions) -> impl Iterator<Item = (OpKind, u64)> {
    let of_op = |op: &OpKind| {
        let op = *op;
        sizes(options, op).into_iter().map(move |bytes| (op, bytes))
    };
    options.ops.iter().flat_map(of_op)
}

/// The sizes of an operation; a barrier has one.
pub(super) fn sizes(options: &TuneOptions, op: OpKind) -> Vec<u64> {
    if op == OpKind::Barrier {
        return vec![options.min_bytes];
    }
    let next = |bytes: &u64| bytes.checked_mul(options.factor);
    let mut sizes: Vec<u64> = std::iter::successors(Some(options.min_bytes), next)
        .take_while(|bytes| *bytes < options.max_bytes)
        .collect();
    sizes.push(options.max_bytes);
    sizes
}

/// The operation with the first rank as its root.
pub(super) fn whole(op: OpKind) -> Op {
    op.with(0, [0, 0])
}

/// The size that the operation can have: whole elements, and whole blocks of them.
pub(super) fn fitting(op: OpKind, bytes: u64, ranks: u32) -> u64 {
    let element = DTYPE.size() as u64;
    let unit = match op {
        OpKind::Barrier => return 0,
        OpKind::AllReduce | OpKind::Broadcast | OpKind::Reduce => element,
        _ => element * u64::from(ranks),
    };
    (bytes / unit).max(1) * unit
}

/// Tells how far the measuring is.
pub(super) struct Steps<'a> {
    progress: &'a mut dyn FnMut(&TuneProgress),
    done: u64,
    total: u64,
}

impl<'a> Steps<'a> {
    pub(super) fn new(progress: &'a mut dyn FnMut(&TuneProgress), total: usize) -> Self {
        Self {
            progress,
            done: 0,
            total: total as u64,
        }
    }

    /// What comes next.
    pub(super) fn next(&mut self, op: OpKind, bytes: u64) {
        (self.progress)(&TuneProgress {
            op,
            bytes,
            done: self.done,
            total: self.total,
        });
        self.done += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_a_factor_and_end_with_the_largest() {
        let options = TuneOptions {
            min_bytes: 8,
            max_bytes: 600,
            ..TuneOptions::default()
        };
        assert_eq!(sizes(&options, OpKind::Reduce), [8, 32, 128, 512, 600]);
        let one = TuneOptions {
            min_bytes: 8,
            max_bytes: 8,
            ..options.clone()
        };
        assert_eq!(sizes(&one, OpKind::Reduce), [8]);
        assert_eq!(sizes(&options, OpKind::Barrier), [8]);
    }

    #[test]
    fn sizes_are_whole_blocks() {
        assert_eq!(fitting(OpKind::AllReduce, 10, 3), 8);
        assert_eq!(fitting(OpKind::AllGather, 100, 3), 96);
        assert_eq!(fitting(OpKind::AllToAll, 1, 3), 12);
        assert_eq!(fitting(OpKind::Barrier, 100, 3), 0);
    }
}
