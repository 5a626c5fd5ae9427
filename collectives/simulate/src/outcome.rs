//! What a simulation found.

use crate::TaskId;

/// When a task ran, in picoseconds from the start of all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Span {
    /// When all it waited for had ended.
    pub start_ps: f64,
    /// When its last byte had arrived.
    pub end_ps: f64,
}

/// When every task ran, and what every resource carried.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// For each task, in the order in which they were added.
    pub tasks: Vec<Span>,
    /// The tasks in the order in which they started.
    pub sequence: Vec<TaskId>,
    /// For each resource, the bytes that passed it.
    pub bytes: Vec<u64>,
    /// For each resource, for how long some flow used it, in picoseconds.
    pub busy_ps: Vec<f64>,
    /// When the last task ended, in picoseconds.
    pub makespan_ps: f64,
    /// How many rates were solved, those included that were solved again: what the simulation's own time follows.
    pub solved: u64,
}
