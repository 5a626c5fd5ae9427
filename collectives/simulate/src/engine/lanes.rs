//! Lanes that take whoever is ready.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::LaneId;

pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// Lanes that may be free and have somebody waiting.
    touched: Vec<u32>,
}

#[derive(Debug, Clone, Default)]
struct Lane {
    taken: bool,
    touched: bool,
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Lanes {
    pub(super) fn new(count: usize) -> Self {
        Self {
            lanes: vec![Lane::default(); count],
            touched: Vec::new(),
        }
    }

    /// A task has nothing but its lane to wait for.
    pub(super) fn wait(&mut self, lane: LaneId, priority: u64, task: u32) {
        self.lanes[lane.0 as usize]
            .waiting
            .push(Reverse((priority, task)));
        self.touch(lane.0);
    }

    /// The task that had the lane has ended.
    pub(super) fn leave(&mut self, lane: LaneId) {
        self.lanes[lane.0 as usize].taken = false;
        self.touch(lane.0);
    }

    /// A task that gets its lane now, if there is one.
    pub(super) fn next(&mut self) -> Option<u32> {
        while let Some(lane) = self.touched.pop() {
            let lane = &mut self.lanes[lane as usize];
            lane.touched = false;
            if !lane.taken
                && let Some(Reverse((_, task))) = lane.waiting.pop()
            {
                lane.taken = true;
                return Some(task);
            }
        }
        None
    }

    fn touch(&mut self, lane: u32) {
        if !std::mem::replace(&mut self.lanes[lane as usize].touched, true) {
            self.touched.push(lane);
        }
    }
}
