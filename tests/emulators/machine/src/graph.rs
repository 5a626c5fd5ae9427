//! Graphs: what was recorded, to be run again and again.
//!
//! What is behind each other runs in that order, and nothing says more. So branches run beside each other, or
//! one node at a time, as the seed says; a launch itself takes its turn on a stream like any operation.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use crate::queue::Worker;
use crate::space::Range;
use crate::{Broken, Device, Machine, Node, Op, Stream};

/// Operations that can be run again and again.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Each after those that it is behind.
    nodes: Vec<Node>,
    /// What its copies and fills were recorded for.
    memory: Vec<(u64, Weak<Range>)>,
}

impl Graph {
    /// What was recorded.
    #[must_use]
    pub fn new(machine: &Machine, nodes: Vec<Node>) -> Self {
        let named = nodes.iter().flat_map(|node| match &node.op {
            Op::Copy { dst, src, .. } => vec![*dst, *src],
            Op::Fill { dst, .. } => vec![*dst],
            _ => Vec::new(),
        });
        let found = named.filter_map(|at| Some((at, Arc::downgrade(&machine.space.find(at)?))));
        Self {
            memory: found.collect(),
            nodes,
        }
    }

    /// What a stream is given that runs it on a device.
    pub(crate) fn ops(&self, machine: &Machine, device: &Device) -> Vec<Op> {
        if let Some(at) = self.stale(machine) {
            eprintln!(
                "emulator: a graph copies at {at:#x}, where other memory was when it was made"
            );
            device.break_down(Broken::IllegalAddress);
        }
        let nodes = self.nodes.iter().map(|node| Node {
            op: node.op.at_launch(),
            after: node.after.clone(),
        });
        let nodes: Vec<Node> = nodes.collect();
        if self.is_chain() {
            return nodes.into_iter().map(|node| node.op).collect();
        }
        vec![Op::Branches(nodes.into())]
    }

    /// Whether each node is behind all before it.
    fn is_chain(&self) -> bool {
        let mut later = self.nodes.iter().enumerate().skip(1);
        later.all(|(at, node)| node.after.contains(&(at - 1)))
    }

    /// The first address that now lies in other memory. A runtime looks up once what a copy is between,
    /// when it is recorded: what came in its place later may be another device's.
    fn stale(&self, machine: &Machine) -> Option<u64> {
        let mut all = self.memory.iter();
        let stale = all.find(|(at, memory)| {
            let now = machine.space.find(*at);
            now.is_none_or(|now| !Weak::ptr_eq(&Arc::downgrade(&now), memory))
        });
        stale.map(|(at, _)| *at)
    }
}

/// Runs nodes that are not a chain. `first` is the first of their numbers among the stream's operations.
pub(crate) fn run(worker: Worker<'_>, stream: &Stream, first: u64, nodes: &[Node]) {
    let mut random = worker.random(stream, first + nodes.len() as u64);
    let one_at_a_time = random.below(4) == 0;
    stream.note_drawn(random);
    let done = Done::default();
    let turn = Mutex::new(());
    let run = |lane: Vec<usize>| {
        for node in lane {
            done.wait_for(&nodes[node].after);
            let turn = one_at_a_time.then(|| lock(&turn));
            worker.run(stream, first + node as u64, &nodes[node].op);
            drop(turn);
            done.add(node);
        }
    };
    std::thread::scope(|scope| {
        for lane in lanes(nodes) {
            scope.spawn(|| run(lane));
        }
    });
}

/// The nodes, cut into chains.
fn lanes(nodes: &[Node]) -> Vec<Vec<usize>> {
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let mut all = lanes.iter_mut();
        let behind = all.find(|lane| lane.last().is_some_and(|last| node.after.contains(last)));
        match behind {
            Some(lane) => lane.push(number),
            None => lanes.push(vec![number]),
        }
    }
    lanes
}

/// The nodes of a run that have ended.
#[derive(Default)]
struct Done {
    nodes: Mutex<Vec<usize>>,
    changed: Condvar,
}

impl Done {
    fn wait_for(&self, all: &[usize]) {
        let missing = |done: &mut Vec<usize>| !all.iter().all(|node| done.contains(node));
        let waited = self.changed.wait_while(lock(&self.nodes), missing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn add(&self, node: usize) {
        lock(&self.nodes).push(node);
        self.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
