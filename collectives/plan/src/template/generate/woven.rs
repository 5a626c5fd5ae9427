//! Programs from flows: what each rank does, moment by moment.

use crate::builder::{Builder, input, local, out, slot};
use crate::ir::{Buffer, Op, Place, Value};

use super::flow::{Flow, Kind};
use super::weave::weave;

/// Flows with their moments, and where each rank is in them.
#[derive(Debug)]
pub(super) struct Woven {
    flows: Vec<Flow>,
    /// Moments of a round.
    round: i64,
    /// For each rank the flows that it is in, and its node there.
    nodes: Vec<Vec<(usize, usize)>>,
}

impl Woven {
    pub(super) fn new(mut flows: Vec<Flow>, ranks: u32) -> Self {
        let round = i64::from(weave(&mut flows));
        let mut nodes = vec![Vec::new(); ranks as usize];
        for (index, flow) in flows.iter().enumerate() {
            for node in 0..flow.len() {
                nodes[flow.rank(node) as usize].push((index, node));
            }
        }
        Self {
            flows,
            round,
            nodes,
        }
    }

    /// Adds the steps of the builder's rank.
    pub(super) fn build(&self, b: &mut Builder) {
        let mut acts = self.nodes[b.rank() as usize].clone();
        let moment = |&(flow, node): &(usize, usize)| self.flows[flow].moment(node);
        acts.sort_by_key(|act| (moment(act) % self.round, act.0));
        for act in acts {
            b.skew((moment(&act) / self.round) as u16);
            let (flow, node) = (&self.flows[act.0], act.1);
            match flow.kind {
                Kind::Out => hand_out(b, flow, node),
                Kind::In => sum_up(b, flow, node),
                Kind::Route => hand_on(b, flow, node),
                Kind::Acknowledge => {
                    for child in flow.children(node) {
                        b.hear(flow.rank(child));
                    }
                    flow.parent(node).into_iter().for_each(|to| b.signal(to));
                }
                Kind::Go => {
                    flow.parent(node).into_iter().for_each(|from| b.hear(from));
                    for child in flow.children(node) {
                        b.signal(flow.rank(child));
                    }
                }
            }
        }
    }
}

/// From the parent, or the own memory, to the children and the output.
fn hand_out(b: &mut Builder, flow: &Flow, node: usize) {
    let blocks = flow.blocks_at(node);
    let parent = flow.parent(node);
    let source = match parent {
        Some(from) => {
            b.wait(from, blocks);
            slot(from, blocks)
        }
        // What was added up before is in the output.
        None if b.op() == Op::AllReduce => out(blocks),
        None => input(blocks),
    };
    for child in flow.children(node) {
        b.put(flow.rank(child), Value::Copy(source));
    }
    if source != out(blocks) {
        b.copy(out(blocks), source);
    }
    parent.into_iter().for_each(|from| b.release(from));
}

/// From the input at the start of a path, from rank to rank, to the output at its end.
fn hand_on(b: &mut Builder, flow: &Flow, node: usize) {
    let blocks = flow.blocks_at(node);
    let source = match flow.parent(node) {
        Some(from) => {
            b.wait(from, blocks);
            slot(from, blocks)
        }
        // In place, what comes overwrites what goes.
        None if b.op() == Op::AllToAll => local(Buffer::Scratch, blocks),
        None => input(blocks),
    };
    match flow.children(node).next() {
        Some(next) => b.put(flow.rank(next), Value::Copy(source)),
        None => b.copy(out(blocks), source),
    }
    flow.parent(node)
        .into_iter()
        .for_each(|from| b.release(from));
}

/// From the children, added to the own input, to the parent or the output.
fn sum_up(b: &mut Builder, flow: &Flow, node: usize) {
    let blocks = flow.blocks_at(node);
    let parent = flow.parent(node);
    let kept = match parent {
        Some(_) => local(Buffer::Scratch, blocks),
        None => out(blocks),
    };
    let mut sum: Place = input(blocks);
    let children = flow.children(node);
    let count = children.len();
    for (index, child) in children.enumerate() {
        let from = flow.rank(child);
        let last = index + 1 == count;
        b.wait(from, blocks);
        match parent {
            Some(to) if last => {
                let (a, theirs, last) = (sum, slot(from, blocks), false);
                b.put(to, Value::Reduce { a, b: theirs, last });
            }
            _ => b.reduce(kept, sum, slot(from, blocks), last),
        }
        b.release(from);
        sum = kept;
    }
    if let (0, Some(to)) = (count, parent) {
        b.put(to, Value::Copy(sum));
    }
}
