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

/// Runs all tasks of the model.
///
/// Takes time in proportion to the tasks, plus, for each moment at which some flow starts or ends,
/// to the routes whose rates that may change.
pub fn simulate(model: &Model) -> Result<Outcome, SimulateError> {
    check(model)?;
    let mut run = Run::new(model);
    run.begin();
    while let Some((now, event)) = run.queue.pop(f64::INFINITY) {
        let until = same_moment(now);
        run.take(event, now);
        while let Some((_, event)) = run.queue.pop(until) {
            run.take(event, now);
        }
        run.finish_moment(now);
    }
    run.outcome()
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
    makespan: f64,
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
            queue: Queue::default(),
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
            makespan: 0.0,
        }
    }

    fn begin(&mut self) {
        let tasks = 0..self.waits.len() as u32;
        self.ready = tasks.filter(|&t| self.waits[t as usize] == 0).collect();
        self.start_ready(0.0);
        self.finish_moment(0.0);
    }

    fn take(&mut self, event: Event, now: f64) {
        match event {
            Event::Delayed { task } => self.flow(task, now),
            Event::Ends { route, version } => {
                let mut done = self.flows.take_ended(route, version, now);
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
            delay => self.queue.push(now + delay as f64, Event::Delayed { task }),
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
        let (bytes, busy_ps) = self.flows.totals();
        Ok(Outcome {
            tasks: self.spans,
            sequence: self.sequence,
            bytes,
            busy_ps,
            makespan_ps: self.makespan,
        })
    }
}
