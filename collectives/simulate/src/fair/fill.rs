//! Progressive filling: shares out what the chosen routes may have.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{BY_LIMIT, Rates};
use crate::events::Ordered;

/// What may be the next to hold some routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Limit(u32),
    Resource(u32),
}

impl Rates<'_> {
    /// Gives the chosen routes the rates that are fair among themselves, in what the other routes
    /// leave of the resources.
    pub(super) fn fill(&mut self) {
        self.solved += self.work.chosen.len() as u64;
        let mut heap = self.shares();
        while let Some(Reverse((share, holder))) = heap.pop() {
            match holder {
                Holder::Limit(route) => {
                    if !self.states[route as usize].fixed {
                        self.fix(route, share.0, BY_LIMIT);
                    }
                }
                Holder::Resource(resource) => {
                    let place = resource as usize;
                    let uses = self.work.uses[place];
                    if uses == 0 {
                        continue;
                    }
                    // Shares only grow while others are fixed, so an old entry comes early.
                    let now = self.work.left[place] / uses as f64;
                    if now > share.0 {
                        heap.push(Reverse((Ordered(now), holder)));
                        continue;
                    }
                    self.fix_all(resource, share.0);
                }
            }
        }
    }

    /// What is left of each resource, and what each use could have of it.
    fn shares(&mut self) -> BinaryHeap<Reverse<(Ordered, Holder)>> {
        let mut entries = Vec::with_capacity(self.work.around.len());
        for &resource in &self.work.around {
            let place = resource as usize;
            let (mut taken, mut uses) = (0.0, 0);
            for &member in &self.members[place] {
                let state = &self.states[member.route as usize];
                if state.chosen_at == self.work.epoch {
                    uses += u64::from(state.flows) * u64::from(member.times);
                } else {
                    taken += self.take(member);
                }
            }
            self.work.left[place] = (self.capacity[place] - taken).max(0.0);
            self.work.uses[place] = uses;
            if uses > 0 {
                let share = self.work.left[place] / uses as f64;
                entries.push(Reverse((Ordered(share), Holder::Resource(resource))));
            }
        }
        for &(route, _) in &self.work.chosen {
            self.states[route as usize].fixed = false;
            if let Some(limit) = self.routes.limits[route as usize] {
                entries.push(Reverse((Ordered(limit as f64), Holder::Limit(route))));
            }
        }
        BinaryHeap::from(entries)
    }

    fn fix_all(&mut self, resource: u32, rate: f64) {
        for place in 0..self.members[resource as usize].len() {
            let route = self.members[resource as usize][place].route;
            let state = &self.states[route as usize];
            if state.chosen_at == self.work.epoch && !state.fixed {
                self.fix(route, rate, resource);
            }
        }
    }

    fn fix(&mut self, route: u32, rate: f64, bottleneck: u32) {
        let state = &mut self.states[route as usize];
        state.rate = rate;
        state.bottleneck = bottleneck;
        state.fixed = true;
        let flows = u64::from(state.flows);
        for hop in self.routes.of(route) {
            let place = hop.resource as usize;
            let uses = flows * u64::from(hop.times);
            self.work.uses[place] -= uses;
            let left = self.work.left[place] - rate * uses as f64;
            self.work.left[place] = left.max(0.0);
        }
    }
}
