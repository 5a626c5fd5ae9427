//! The flows that are under way, by route.
//!
//! All flows of a route go at one rate, so a route keeps one count of the bytes that each flow
//! would have moved had it been there from the beginning. A flow ends when that count has grown by
//! its bytes: a value that is known when it starts and never changes, whatever the rates do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::SECOND;
use crate::events::{Ordered, Queue};
use crate::fair::Rates;
use crate::model::Model;

pub(super) struct Flows<'m> {
    model: &'m Model,
    rates: Rates<'m>,
    routes: Vec<Route>,
    /// Routes on which a flow started or ended at this moment.
    touched: Vec<u32>,
    changed: Vec<u32>,
    /// Flows on each resource, since when there have been some, and what that came to.
    users: Vec<u32>,
    since: Vec<f64>,
    busy: Vec<f64>,
    bytes: Vec<u64>,
    spare: Vec<u32>,
}

#[derive(Debug, Clone, Default)]
struct Route {
    /// Bytes that each flow has moved, up to `at`.
    served: f64,
    at: f64,
    rate: f64,
    touched: bool,
    /// The value of `served` at which each flow ends.
    ends: BinaryHeap<Reverse<(Ordered, u32)>>,
}

impl Route {
    fn advance(&mut self, now: f64) {
        if now > self.at {
            self.served += self.rate * (now - self.at) / SECOND;
        }
        self.at = now;
    }
}

impl<'m> Flows<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        let resources = model.resources();
        Self {
            model,
            rates: Rates::new(&model.capacities, &model.routes),
            routes: vec![Route::default(); model.routes.len()],
            touched: Vec::new(),
            changed: Vec::new(),
            users: vec![0; resources],
            since: vec![0.0; resources],
            busy: vec![0.0; resources],
            bytes: vec![0; resources],
            spare: Vec::new(),
        }
    }

    /// Bytes of a task begin to move.
    pub(super) fn start(&mut self, task: u32, route: u32, bytes: u64, now: f64) {
        let state = &mut self.routes[route as usize];
        if state.ends.is_empty() {
            // Small numbers are more exact.
            state.served = 0.0;
            state.at = now;
        } else {
            state.advance(now);
        }
        let end = Ordered(state.served + bytes as f64);
        state.ends.push(Reverse((end, task)));
        self.rates.states[route as usize].flows += 1;
        self.touch(route);
        for hop in self.model.routes.of(route) {
            let place = hop.resource as usize;
            let passed = bytes.saturating_mul(u64::from(hop.times));
            self.bytes[place] = self.bytes[place].saturating_add(passed);
            if self.users[place] == 0 {
                self.since[place] = now;
            }
            self.users[place] += 1;
        }
    }

    /// The tasks of a route whose last byte arrives up to `until`, all taken as arriving now.
    pub(super) fn take_ended(&mut self, route: u32, now: f64, until: f64) -> Vec<u32> {
        let mut done = std::mem::take(&mut self.spare);
        let state = &mut self.routes[route as usize];
        // What was announced ends, even if rounding left a trace of it.
        let next = state.ends.peek().map(|Reverse((end, _))| end.0);
        state.advance(now);
        state.served = state.served.max(next.unwrap_or(0.0));
        let slack = state.rate * (until - now) / SECOND;
        while let Some(&Reverse((end, task))) = state.ends.peek() {
            if end.0 > state.served + slack {
                break;
            }
            state.ends.pop();
            done.push(task);
        }
        self.rates.states[route as usize].flows -= done.len() as u32;
        self.touch(route);
        for hop in self.model.routes.of(route) {
            let place = hop.resource as usize;
            self.users[place] -= done.len() as u32;
            if self.users[place] == 0 {
                self.busy[place] += now - self.since[place];
            }
        }
        done
    }

    /// How many rates have been solved.
    pub(super) fn solved(&self) -> u64 {
        self.rates.solved
    }

    /// Takes back the memory of a list that [`Self::take_ended`] gave.
    pub(super) fn give_back(&mut self, list: Vec<u32>) {
        self.spare = list;
    }

    /// Finds the new rates and announces who ends next.
    pub(super) fn settle(&mut self, now: f64, queue: &mut Queue) {
        self.changed.clear();
        self.rates.settle(&self.touched, &mut self.changed);
        for place in 0..self.changed.len() {
            let route = self.changed[place];
            let state = &mut self.routes[route as usize];
            state.advance(now);
            state.rate = self.rates.states[route as usize].rate;
            self.touch(route);
        }
        for place in 0..self.touched.len() {
            let route = self.touched[place];
            let state = &mut self.routes[route as usize];
            state.touched = false;
            match state.ends.peek() {
                Some(&Reverse((end, _))) => {
                    state.advance(now);
                    let left = (end.0 - state.served).max(0.0);
                    queue.end_at(route, now + left / state.rate * SECOND);
                }
                None => queue.ends_never(route),
            }
        }
        self.touched.clear();
    }

    /// Bytes that passed each resource, and for how long it was used.
    pub(super) fn totals(self) -> (Vec<u64>, Vec<f64>) {
        (self.bytes, self.busy)
    }

    fn touch(&mut self, route: u32) {
        let state = &mut self.routes[route as usize];
        if !state.touched {
            state.touched = true;
            self.touched.push(route);
        }
    }
}
