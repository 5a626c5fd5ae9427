//! Up an in-tree, reducing.

use std::ops::Range;

use unisono_network::{Network, Router};

use super::{Chunk, Cutting, Shape, back, input};
use crate::schedule::{Extent, Kind, Part, Place, StepId, Turn, Weave};

/// Memory that chunks use in turn.
#[derive(Default)]
struct Ring {
    places: Vec<Place>,
    /// For each chunk so far the step after which its place is free, as the next user must see it.
    free: Vec<StepId>,
}

pub(super) struct Collect<'s, 't> {
    shape: &'s Shape<'t>,
    slots: u64,
    pieces: u64,
    /// For each rank, where its chunks arrive at its parent.
    arrivals: Vec<Ring>,
    /// For each rank, where it adds up what doesn't fit into one sum.
    sums: Vec<Ring>,
}

impl<'s, 't> Collect<'s, 't> {
    /// Each of the tree's lanes has its own places.
    pub(super) fn new(shape: &'s Shape<'t>, cutting: Cutting, lanes: u32, pieces: u64) -> Self {
        let count = shape.children.len();
        Self {
            shape,
            slots: (u64::from(cutting.slots.max(1)) * u64::from(lanes)).min(pieces),
            pieces,
            arrivals: (0..count).map(|_| Ring::default()).collect(),
            sums: (0..count).map(|_| Ring::default()).collect(),
        }
    }

    /// Collects a chunk at the root's place. Gives the step after which it is complete there; none
    /// if the root is alone. The result has so many hops to go `beyond` the root.
    pub(super) fn chunk(
        &mut self,
        weave: &mut Weave,
        network: &Network,
        range: Range<u64>,
        to: Place,
        chunk: Chunk,
        beyond: u32,
    ) -> Option<StepId> {
        let shape = self.shape;
        let mut router = Router::new(network);
        let bytes = range.end - range.start;
        let slot = (chunk.piece % self.slots) as usize;
        // Pieces differ by an element at most; the first round has them all in turn.
        let room = bytes + weave.message().element;
        let mut put: Vec<Option<StepId>> = vec![None; shape.children.len()];
        let mut complete = None;
        for &rank in shape.order.iter().rev() {
            let index = rank as usize;
            let root = rank == shape.root();
            let own = input(weave.op(), weave, rank, range.start);
            let children = &shape.children[index];
            // With one child, or as the last operand, the sum is made on the way to the parent.
            let on_the_way = usize::from(!root);
            let steps = children.len().saturating_sub(on_the_way);
            if steps > 0 && !root && self.sums[index].places.len() <= slot {
                let place = weave.scratch(rank, room);
                self.sums[index].places.push(place);
            }
            let mut sum = own;
            let mut before = None;
            for (number, &child) in children[..steps].iter().enumerate() {
                let target = if root {
                    to
                } else {
                    self.sums[index].places[slot]
                };
                let mut after: Vec<StepId> = put[child as usize].into_iter().collect();
                after.extend(before);
                if number == 0 && !root && chunk.piece >= self.slots {
                    let last = (chunk.piece - self.slots) as usize;
                    after.extend(self.sums[index].free.get(last));
                }
                let step = weave.step(Part {
                    rank,
                    peer: rank,
                    kind: Kind::Reduce,
                    path: &[],
                    extents: &[Extent {
                        a: sum,
                        b: Some(self.arrivals[child as usize].places[slot]),
                        to: target,
                        bytes,
                    }],
                    after: &after,
                    turn: Turn::Path(chunk.lane),
                    priority: chunk.priority(shape.depth[index] + beyond),
                });
                self.release(weave, &mut router, child, step, chunk);
                sum = target;
                before = Some(step);
            }
            if root {
                complete = before;
                continue;
            }
            let parent = shape.parent(rank);
            let last = children.last().copied();
            let mut after: Vec<StepId> = before.into_iter().collect();
            after.extend(last.and_then(|child| put[child as usize]));
            if self.arrivals[index].places.len() <= slot {
                let place = weave.scratch(parent, room);
                self.arrivals[index].places.push(place);
            }
            if chunk.piece >= self.slots {
                let earlier = (chunk.piece - self.slots) as usize;
                after.extend(self.arrivals[index].free.get(earlier));
            }
            let step = weave.step(Part {
                rank,
                peer: parent,
                kind: Kind::Put,
                path: shape.path(rank),
                extents: &[Extent {
                    a: sum,
                    b: last.map(|child| self.arrivals[child as usize].places[slot]),
                    to: self.arrivals[index].places[slot],
                    bytes,
                }],
                after: &after,
                turn: Turn::Path(chunk.lane),
                priority: chunk.priority(shape.depth[index] + beyond),
            });
            if let Some(child) = last {
                self.release(weave, &mut router, child, step, chunk);
            }
            self.sums[index].free.push(step);
            put[index] = Some(step);
        }
        complete
    }

    /// Tells a child that the place of its chunk is free, if it will need it again.
    fn release(
        &mut self,
        weave: &mut Weave,
        router: &mut Router<'_>,
        child: u32,
        read: StepId,
        chunk: Chunk,
    ) {
        if chunk.piece + self.slots >= self.pieces {
            return;
        }
        let parent = self.shape.parent(child);
        let path = back(router, parent, child);
        let step = weave.step(Part {
            rank: parent,
            peer: child,
            kind: Kind::Signal,
            path: &path,
            extents: &[],
            after: &[read],
            turn: Turn::Path(0),
            priority: chunk.priority(0),
        });
        self.arrivals[child as usize].free.push(step);
    }
}
