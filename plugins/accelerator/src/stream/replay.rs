//! Batches that come again and again run as graphs of the runtime's: one call each.
//!
//! Only streams of the plugin's own do that, and only with whole batches of copies, reductions and flags.
//! A program's stream, one that records, one whose counters a recording advances, and a batch with an
//! event go the usual way. So does a batch whose graph is still under way, or for which the device's
//! queue has no room.
//!
//! So does, where a stream waits without a kernel but a graph with one, a batch that waits for a flag of
//! this process alone: such a flag is raised by a program's stream, and what that runs before may need the
//! whole device for itself, and never begin while a kernel waits there.
//!
//! A graph is made only while nothing of this library's is under way on any device of the process, as that
//! may block behind it. A call in the order of a program's stream is always under way there, so it makes none.
#![allow(
    unsafe_code,
    reason = "calls the runtime with the addresses of commands"
)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use unisono_plugin::{Batch, Command, Error, Level, Result, Status, log};

use super::graphs::{Found, Graphs, Made};
use super::step::{Purpose, Script, Step};
use super::{AcceleratorStream, table};
use crate::event::AcceleratorEvent;
use crate::freed::Freed;
use crate::lines::Piece;
use crate::state::{State, Tenure};
use crate::{Runtime, fork};

impl<R: Runtime> AcceleratorStream<R> {
    /// The graphs of a new stream, if it may have some.
    pub(super) fn graphs_for(device: &State<R>, tenure: Tenure) -> Option<Graphs<R>> {
        let may = matches!(tenure, Tenure::Own(_))
            && device.runtime.graphs()
            && device.runtime.has_flag_kernels();
        may.then(Graphs::new)
    }

    /// Hands a checked batch over as a graph: all of it, or nothing, and then it goes the usual way.
    pub(super) fn replay(&mut self, batch: &Batch<'_, AcceleratorEvent<R>>) -> Result<u32> {
        let Some(mut graphs) = self.graphs.take() else {
            return Ok(0);
        };
        let taken = self.replay_by(&mut graphs, batch);
        let device = Arc::clone(&self.device);
        give_up(&device, graphs.gone());
        self.graphs = Some(graphs);
        taken
    }

    fn replay_by(
        &mut self,
        graphs: &mut Graphs<R>,
        batch: &Batch<'_, AcceleratorEvent<R>>,
    ) -> Result<u32> {
        let device = Arc::clone(&self.device);
        // A kernel that waits keeps a device from the other processes that share it.
        let shared = device.is_shared.load(Ordering::Relaxed);
        if shared || !self.recorded.is_empty() {
            // For good.
            graphs.forget_all();
            return Ok(0);
        }
        graphs.forget_removed(&device.process().regions);
        let own_wait = self.waits_for_own && !device.runtime.waits_by_kernel();
        if own_wait || !graphs.name(batch, &self.named) {
            return Ok(0);
        }
        self.advance();
        let operations = operations::<R>(batch);
        let under_way = (self.operations - self.reached).min(device.limit);
        if operations > device.limit - under_way || self.shared.is_aborted() {
            return Ok(0);
        }
        let at = match graphs.find(self.completed) {
            Found::Nothing => return Ok(0),
            Found::Graph(at) => at,
            Found::Worth => {
                let room = device.tables.is_any_ready() || graphs.has_old();
                if !room || !device.failed_graphs.allow(Instant::now()) {
                    return Ok(0);
                }
                // Runtimes may make a graph behind all that is under way, on other devices too. That may
                // wait for this very thread.
                let made = device.process().alone(|| {
                    let table = table_for_one_more(&device, graphs)?;
                    Some(self.make(batch, table))
                });
                match made.flatten() {
                    None => return Ok(0),
                    Some(Ok(made)) => graphs.keep(made),
                    Some(Err(error)) => {
                        graphs.refuse();
                        self.tell(&error);
                        return Ok(0);
                    }
                }
            }
        };
        let _frees_nothing = device.freed.give();
        let steps = self.begin_all(batch, operations)?;
        let made = graphs.launch(at, self.accepted);
        table::fill(&made.table, &steps);
        // SAFETY: what it names was checked with the batch; the submitter's promise keeps it.
        let launched = unsafe { device.runtime.launch_graph(self.native, made.graph) };
        self.spare = steps;
        launched.map_err(|error| self.fail(error))?;
        Ok(batch.len())
    }

    /// What a batch comes down to; for a trial with no counter advanced and no wait noted, and with any
    /// numbers.
    pub(super) fn write_down(
        &mut self,
        batch: &Batch<'_, AcceleratorEvent<R>>,
        purpose: Purpose,
    ) -> Result<Vec<Step>> {
        let mut steps = std::mem::take(&mut self.spare);
        steps.clear();
        self.script = Some(Script { steps, purpose });
        let mut number = self.accepted;
        let mut done = batch.iter().try_for_each(|command| {
            number += 1;
            self.hand_over(&command, number)
        });
        self.mark(number);
        done = done.and_then(|()| self.flush());
        self.pending.clear();
        let steps = self.script.take().map(|script| script.steps);
        done.map(|()| steps.unwrap_or_default())
    }

    /// What a batch comes down to, whose commands count from here on: an abort finds their waits.
    fn begin_all(
        &mut self,
        batch: &Batch<'_, AcceleratorEvent<R>>,
        operations: u64,
    ) -> Result<Vec<Step>> {
        self.shared.refuse(None);
        let steps = self.write_down(batch, Purpose::Graph);
        self.accepted += u64::from(batch.len());
        self.operations += operations;
        self.marks.push_back((self.accepted, self.operations));
        self.publish(true);
        let steps = steps.and_then(|steps| match self.shared.may_go_on() {
            true => Ok(steps),
            false => Err(Error::new(Status::Aborted, "the stream was aborted")),
        });
        steps.map_err(|error| self.fail(error))
    }

    fn make(&mut self, batch: &Batch<'_, AcceleratorEvent<R>>, table: Piece) -> Result<Made<R>> {
        let steps = self.write_down(batch, Purpose::Trial)?;
        let priority = match self.tenure {
            Tenure::Own(priority) => priority,
            Tenure::Wrapped | Tenure::Common => 0,
        };
        let runtime = &*self.device.runtime;
        let stream = self.device.recorder(priority)?;
        let graph = runtime.capture(stream, &mut || {
            // SAFETY: checked to be memory of the device, and checked again before each launch, with its
            // allocation ids; the table is kept with the graph.
            unsafe { table::record(runtime, stream, &table, &steps) }
        })?;
        Ok(Made { graph, table })
    }

    /// Says once for a device that a graph could not be made.
    fn tell(&self, error: &Error) {
        if self.device.failed_graphs.add(Instant::now()) {
            log!(
                self.host,
                Level::Warn,
                "{}: a batch that is repeated cannot be made a graph, and runs command by command: \
                 {error}",
                self.device.info.name
            );
        }
    }
}

/// A table for one graph more: a free one, or that of an old graph, which ends here.
fn table_for_one_more<R: Runtime>(device: &State<R>, graphs: &mut Graphs<R>) -> Option<Piece> {
    device.tables.take_ready().or_else(|| {
        let old = graphs.take_old()?;
        device.runtime.destroy_graph(old.graph);
        Some(old.table)
    })
}

/// Operations that a batch takes in a queue of the device as a graph: neighbouring flags share one.
fn operations<R: Runtime>(batch: &Batch<'_, AcceleratorEvent<R>>) -> u64 {
    let (mut count, mut in_flags) = (0, false);
    for command in batch {
        let work = match command {
            Command::Copy(copy) => R::copy_cost(copy),
            Command::Reduce(reduce) => R::reduce_cost(reduce),
            Command::Scale(_) => 1,
            _ => 0,
        };
        count += if work > 0 { work } else { u64::from(!in_flags) };
        in_flags = work == 0;
    }
    // The last number that it writes.
    count + u64::from(!in_flags)
}

/// Destroys graphs, now or later.
pub(super) fn give_up<R: Runtime>(device: &State<R>, graphs: impl IntoIterator<Item = Made<R>>) {
    for graph in graphs {
        if !fork::is_child() {
            device.freed.add(Freed::Graph(graph), device);
        }
    }
}
