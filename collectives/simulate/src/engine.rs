//! The simulation: from one moment to the next.

mod flows;
mod lanes;

use crate::error::SimulateError;
use crate::events::{Event, Queue, same_moment};
use crate::fair::check_routes;
use crate::model::{Model, TaskId};
use crate::outcome::{Outcome, Span};
use flows::Flows;
use lanes::Lanes;

/// Picoseconds in a second.
const SECOND: f64 = 1e12;

/// Runs all tasks of the model.
///
/// Takes time in proportion to the tasks, plus, for each moment at which some flow starts or ends,
/// to the routes whose rates that may change.
///
/// # Errors
/// If the model names what it does not have, a route carries nothing, or tasks wait for each other in a
/// circle.
pub fn simulate(model: &Model) -> Result<Outcome, SimulateError> {
    simulate_within(model, Allowance::NONE)
}

/// How exact a simulation is that would take too long to be exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// By about which part the makespan may be wrong: 0.01 is one per cent.
    pub share: f64,
    /// How many rates are solved before that part is made use of.
    pub after: u64,
}

impl Allowance {
    /// Everything is exact.
    pub const NONE: Self = Self {
        share: 0.0,
        after: u64::MAX,
    };
}

/// Runs all tasks of the model, exactly as long as that is cheap. When [`Allowance::after`] rates
/// have been solved, what happens at nearly the same time is taken together from then on, so that
/// rates are solved less often, the more flows there are.
///
/// Each event may then come too early or too late by half of [`Allowance::share`] of the least
/// makespan (that of the fullest resource), divided by the longest chain of events that follow each
/// other. What flows move in that time is lost or gained, on the whole as much of one as of the
/// other.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_within(model: &Model, allowance: Allowance) -> Result<Outcome, SimulateError> {
    check(model)?;
    let mut run = Run::new(model);
    run.begin();
    let mut exact = true;
    while let Some((now, event)) = run.queue.pop(f64::INFINITY) {
        if exact && run.flows.solved() >= allowance.after {
            exact = false;
            run.grain = allowance.share * fullest(model) / run.longest_chain() as f64;
        }
        run.moment(now, event);
    }
    run.outcome()
}

/// For how long the fullest resource is busy, in picoseconds.
fn fullest(model: &Model) -> f64 {
    let mut flows = vec![0.0; model.routes.len()];
    for (route, &bytes) in model.tasks.route.iter().zip(&model.tasks.bytes) {
        flows[route.0 as usize] += bytes as f64;
    }
    let mut loads = vec![0.0; model.resources()];
    for (route, bytes) in (0..).zip(flows) {
        for hop in model.routes.of(route) {
            loads[hop.resource as usize] += bytes * f64::from(hop.times);
        }
    }
    let times = loads.iter().zip(&model.capacities);
    times
        .map(|(load, &capacity)| load / capacity as f64 * SECOND)
        .fold(0.0, f64::max)
}

fn check(model: &Model) -> Result<(), SimulateError> {
    check_routes(model)?;
    let (tasks, routes, lanes) = (model.tasks(), model.routes.len(), model.lanes.len());
    for task in 0..tasks {
        let route = model.tasks.route[task].0;
        if route as usize >= routes {
            return Err(SimulateError::NoSuchRoute {
                task: task as u32,
                route,
                routes,
            });
        }
        let lane = model.tasks.lane[task].filter(|lane| lane.0 as usize >= lanes);
        if let Some(lane) = lane {
            return Err(SimulateError::NoSuchLane {
                task: task as u32,
                lane: lane.0,
                lanes,
            });
        }
        let bad = (model.tasks.after(task).iter()).find(|after| after.0 as usize >= tasks);
        if let Some(after) = bad {
            return Err(SimulateError::NoSuchTask {
                task: task as u32,
                after: after.0,
                tasks,
            });
        }
    }
    Ok(())
}

struct Run<'m> {
    model: &'m Model,
    queue: Queue,
    flows: Flows<'m>,
    lanes: Lanes,
    sequence: Vec<TaskId>,
    /// How many tasks each task still waits for.
    waits: Vec<u32>,
    /// Who waits for each task, and where each task's list begins.
    waiters: Vec<u32>,
    starts: Vec<u32>,
    spans: Vec<Span>,
    ended: Vec<bool>,
    left: usize,
    /// Tasks that start at this moment.
    ready: Vec<u32>,
    /// What happens at this moment.
    events: Vec<Event>,
    makespan: f64,
    /// Events within so many picoseconds are one moment.
    grain: f64,
}

impl<'m> Run<'m> {
    fn new(model: &'m Model) -> Self {
        let count = model.tasks();
        let mut waits = vec![0u32; count];
        let mut starts = vec![0u32; count + 1];
        let befores = |task: usize| {
            let after = model.tasks.after(task).iter().map(|after| after.0);
            after.chain(model.tasks.before[task])
        };
        for (task, wait) in waits.iter_mut().enumerate() {
            for before in befores(task) {
                *wait += 1;
                starts[before as usize + 1] += 1;
            }
        }
        for task in 0..count {
            starts[task + 1] += starts[task];
        }
        let mut ends = starts.clone();
        let mut waiters = vec![0u32; starts[count] as usize];
        for task in 0..count {
            for before in befores(task) {
                let end = &mut ends[before as usize];
                waiters[*end as usize] = task as u32;
                *end += 1;
            }
        }
        Self {
            model,
            queue: Queue::new(model.routes.len()),
            flows: Flows::new(model),
            lanes: Lanes::new(model.lanes.len()),
            sequence: Vec::with_capacity(count),
            waits,
            waiters,
            starts,
            spans: vec![Span::default(); count],
            ended: vec![false; count],
            left: count,
            ready: Vec::new(),
            events: Vec::new(),
            makespan: 0.0,
            grain: 0.0,
        }
    }

    /// How many tasks that take time can run one after the other at most, or more: a chain of those
    /// that wait for each other by name, and a lane.
    fn longest_chain(&self) -> usize {
        let tasks = &self.model.tasks;
        let moves =
            |task: usize| tasks.bytes[task] > 0 && !self.model.routes.is_free(tasks.route[task].0);
        let timed = |task: usize| usize::from(tasks.delay_ps[task] > 0 || moves(task));
        let mut waits = vec![0u32; self.waits.len()];
        for &waiter in &self.waiters {
            waits[waiter as usize] += 1;
        }
        let mut ready: Vec<usize> = (0..waits.len()).filter(|&task| waits[task] == 0).collect();
        let mut before = vec![0; waits.len()];
        let mut longest = 1;
        while let Some(task) = ready.pop() {
            let chain = before[task] + timed(task);
            longest = longest.max(chain);
            for index in self.starts[task]..self.starts[task + 1] {
                let waiter = self.waiters[index as usize] as usize;
                before[waiter] = before[waiter].max(chain);
                waits[waiter] -= 1;
                if waits[waiter] == 0 {
                    ready.push(waiter);
                }
            }
        }
        let mut lanes = vec![0; self.model.lanes.len()];
        for (task, lane) in tasks.lane.iter().enumerate() {
            if let Some(lane) = lane {
                lanes[lane.0 as usize] += timed(task);
            }
        }
        longest + lanes.into_iter().max().unwrap_or(0)
    }

    fn begin(&mut self) {
        let tasks = 0..self.waits.len() as u32;
        self.ready = tasks.filter(|&t| self.waits[t as usize] == 0).collect();
        self.start_ready(0.0);
        self.finish_moment(0.0);
    }

    /// Takes all that happens at one moment, of which this event is the first.
    fn moment(&mut self, first: f64, event: Event) {
        let until = same_moment(first).max(first + self.grain);
        let mut events = std::mem::take(&mut self.events);
        events.push(event);
        let mut last = first;
        while let Some((time, event)) = self.queue.pop(until) {
            last = time;
            events.push(event);
        }
        // What comes too early and what comes too late make up for each other.
        let now = match self.grain > 0.0 {
            true => (first + last) / 2.0,
            false => first,
        };
        for event in events.drain(..) {
            self.take(event, now, until);
        }
        self.events = events;
        self.finish_moment(now);
    }

    fn take(&mut self, event: Event, now: f64, until: f64) {
        match event {
            Event::Delayed { task } => self.flow(task, now),
            Event::Ends { route } => {
                let mut done = self.flows.take_ended(route, now, until);
                for task in done.drain(..) {
                    self.end(task, now);
                }
                self.flows.give_back(done);
            }
        }
        self.start_ready(now);
    }

    /// Gives the free lanes to those that are ready now that all that ends at this moment has
    /// ended, and finds the new rates.
    fn finish_moment(&mut self, now: f64) {
        while let Some(task) = self.lanes.next() {
            self.start(task, now);
            self.start_ready(now);
        }
        self.flows.settle(now, &mut self.queue);
    }

    fn start_ready(&mut self, now: f64) {
        while let Some(task) = self.ready.pop() {
            match self.model.tasks.lane[task as usize] {
                None => self.start(task, now),
                Some(lane) => {
                    let priority = self.model.tasks.priority[task as usize];
                    self.lanes.wait(lane, priority, task);
                }
            }
        }
    }

    fn start(&mut self, task: u32, now: f64) {
        self.sequence.push(TaskId(task));
        self.spans[task as usize].start_ps = now;
        match self.model.tasks.delay_ps[task as usize] {
            0 => self.flow(task, now),
            delay => self.queue.delayed_until(now + delay as f64, task),
        }
    }

    /// The delay is over: bytes begin to move, or there are none.
    fn flow(&mut self, task: u32, now: f64) {
        let bytes = self.model.tasks.bytes[task as usize];
        let route = self.model.tasks.route[task as usize].0;
        if bytes == 0 || self.model.routes.is_free(route) {
            self.end(task, now);
        } else {
            self.flows.start(task, route, bytes, now);
        }
    }

    fn end(&mut self, task: u32, now: f64) {
        let place = task as usize;
        self.spans[place].end_ps = now;
        self.ended[place] = true;
        self.left -= 1;
        self.makespan = self.makespan.max(now);
        if let Some(lane) = self.model.tasks.lane[place] {
            self.lanes.leave(lane);
        }
        for index in self.starts[place]..self.starts[place + 1] {
            let waiter = self.waiters[index as usize];
            let waits = &mut self.waits[waiter as usize];
            *waits -= 1;
            if *waits == 0 {
                self.ready.push(waiter);
            }
        }
    }

    fn outcome(self) -> Result<Outcome, SimulateError> {
        if self.left > 0 {
            let task = self.ended.iter().position(|ended| !ended).unwrap_or(0);
            return Err(SimulateError::Circle {
                task: task as u32,
                left: self.left,
            });
        }
        let solved = self.flows.solved();
        let (bytes, busy_ps) = self.flows.totals();
        Ok(Outcome {
            tasks: self.spans,
            sequence: self.sequence,
            bytes,
            busy_ps,
            makespan_ps: self.makespan,
            solved,
        })
    }
}
