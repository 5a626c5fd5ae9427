//! Which routes must be solved again, found by where the certificate of fairness fails.

use super::{Rates, SAME, State};

/// After so many failed certificates, everything that is connected is solved at once.
const PATIENCE: usize = 6;

impl Rates<'_> {
    pub(super) fn begin(&mut self) {
        self.work.epoch += 1;
        self.work.chosen.clear();
        self.work.around.clear();
    }

    /// Chooses a route that changed, and those that are held by a resource on its way.
    pub(super) fn choose_around(&mut self, route: u32) {
        if self.states[route as usize].flows > 0 {
            self.choose(route);
        }
        for hop in self.routes.range(route) {
            let resource = self.routes.hops[hop].resource;
            for place in 0..self.members[resource as usize].len() {
                let other = self.members[resource as usize][place].route;
                if self.states[other as usize].bottleneck == resource {
                    self.choose(other);
                }
            }
        }
    }

    /// Solves the chosen routes, then those around them whose rates no longer are fair, until all
    /// are.
    pub(super) fn solve_and_grow(&mut self) {
        for round in 0.. {
            self.fill();
            let before = self.work.chosen.len();
            self.choose_unfair();
            if self.work.chosen.len() == before {
                return;
            }
            if round >= PATIENCE {
                self.choose_connected();
                return self.fill();
            }
        }
    }

    fn choose(&mut self, route: u32) {
        let state = &mut self.states[route as usize];
        if state.chosen_at == self.work.epoch {
            return;
        }
        state.chosen_at = self.work.epoch;
        self.work.chosen.push((route, state.rate));
        for hop in self.routes.of(route) {
            let seen = &mut self.work.around_at[hop.resource as usize];
            if *seen != self.work.epoch {
                *seen = self.work.epoch;
                self.work.around.push(hop.resource);
            }
        }
    }

    /// Chooses the routes whose rates can't stay as they are. A route is held by a resource that
    /// is full and on which nothing is faster; where that fails on a resource around the chosen
    /// routes, the other routes there must rise or give way.
    fn choose_unfair(&mut self) {
        for place in 0..self.work.around.len() {
            let resource = self.work.around[place];
            let (mut load, mut fastest) = (0.0, 0.0f64);
            // The slowest chosen route that this resource holds.
            let mut slowest = f64::INFINITY;
            for &member in &self.members[resource as usize] {
                let state = &self.states[member.route as usize];
                load += self.take(member);
                fastest = fastest.max(state.rate);
                if state.chosen_at == self.work.epoch && state.bottleneck == resource {
                    slowest = slowest.min(state.rate);
                }
            }
            let full = load >= self.capacity[resource as usize] * (1.0 - SAME);
            for index in 0..self.members[resource as usize].len() {
                let route = self.members[resource as usize][index].route;
                let State {
                    rate, bottleneck, ..
                } = self.states[route as usize];
                let held = bottleneck == resource;
                let may_rise = held && (!full || rate < fastest * (1.0 - SAME));
                if may_rise || rate > slowest * (1.0 + SAME) {
                    // A chosen route stays chosen.
                    self.choose(route);
                }
            }
        }
    }

    /// Chooses everything that shares a resource with what is chosen, and so on.
    fn choose_connected(&mut self) {
        let mut place = 0;
        while let Some(&resource) = self.work.around.get(place) {
            for index in 0..self.members[resource as usize].len() {
                let route = self.members[resource as usize][index].route;
                self.choose(route);
            }
            place += 1;
        }
    }
}
