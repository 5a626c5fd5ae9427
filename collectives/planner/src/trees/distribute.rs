//! Down an out-tree.

use std::ops::Range;

use super::{Chunk, Shape};
use crate::schedule::{Buffer, Extent, Kind, Part, Place, StepId, Turn, Weave};

pub(super) struct Distribute<'s, 't> {
    shape: &'s Shape<'t>,
}

impl<'s, 't> Distribute<'s, 't> {
    pub(super) fn new(shape: &'s Shape<'t>) -> Self {
        Self { shape }
    }

    /// Sends a chunk from the root's place to the output of everybody else. The root has it when
    /// step `ready` has ended.
    pub(super) fn chunk(
        &self,
        weave: &mut Weave,
        range: Range<u64>,
        from: Place,
        ready: Option<StepId>,
        chunk: Chunk,
    ) {
        let shape = self.shape;
        let to = Place::new(Buffer::Out, range.start);
        let mut arrived: Vec<Option<StepId>> = vec![None; shape.children.len()];
        arrived[shape.root() as usize] = ready;
        for &rank in &shape.order {
            let a = if rank == shape.root() { from } else { to };
            for &child in &shape.children[rank as usize] {
                let after = arrived[rank as usize];
                let step = weave.step(Part {
                    rank,
                    peer: child,
                    kind: Kind::Put,
                    path: shape.path(child),
                    extents: &[Extent {
                        a,
                        b: None,
                        to,
                        bytes: range.end - range.start,
                    }],
                    after: after.as_slice(),
                    turn: Turn::Path(chunk.lane),
                    priority: chunk.priority(shape.height[child as usize]),
                });
                arrived[child as usize] = Some(step);
            }
        }
    }
}
