//! Switches removed, without losing what flows.
//!
//! A tree over ranks does not say which switches its edges pass. Here each switch is taken out of
//! the network: what enters it is joined, piece by piece, with what leaves it, and becomes an edge
//! between its neighbours. A piece may be joined only if afterwards still as much can flow from
//! the roots to every rank as the trees need. Bang-Jensen, Frank and Jackson showed that in a
//! network where as much enters each vertex as leaves it all capacity can be joined so ("Preserving
//! and increasing local edge-connectivity in mixed graphs", 1995); Zhao and others packed trees on
//! networks with switches this way ("ForestColl", 2024).
//!
//! Among the many ways to join, the even one is tried first: what enters is spread over all exits
//! in proportion, so that a switch becomes a full mesh and trees stay shallow. What cannot be joined
//! so is joined as it can.
//!
//! To ask often whether enough still flows, the flow to each rank is kept and only mended.

use crate::flow::{Residual, UNBOUNDED};
use crate::strands::Strands;

/// Removes all vertices from `ranks` on. `weights` are the capacities of the roots of the trees; to
/// every rank flows their sum, before and after.
///
/// False if a switch could not be removed, since less enters than leaves it or the other way.
pub(crate) fn remove_switches(
    strands: &mut Strands,
    n: usize,
    ranks: usize,
    weights: &[i64],
) -> bool {
    let mut state = Splitter::new(strands, n, ranks, weights);
    for switch in state.order() {
        state.spread(switch);
        state.finish(switch);
        if !state.drop_rest(switch) {
            return false;
        }
    }
    true
}

struct Splitter<'a> {
    strands: &'a mut Strands,
    n: usize,
    ranks: usize,
    /// What is left between vertices; the flows' source is vertex `n`.
    capacity: Vec<i64>,
    /// For each rank, a flow from the source to it of the wanted size.
    flows: Vec<Residual>,
}

impl<'a> Splitter<'a> {
    fn new(strands: &'a mut Strands, n: usize, ranks: usize, weights: &[i64]) -> Self {
        let wanted: i64 = weights.iter().sum();
        let mut empty = Residual::new(n + 1);
        let mut capacity = vec![0; n * n];
        for from in 0..n {
            for to in 0..n {
                capacity[from * n + to] = strands.capacity(from, to);
                if capacity[from * n + to] > 0 {
                    empty.add(from, to, capacity[from * n + to]);
                }
            }
        }
        for (rank, &weight) in weights.iter().enumerate() {
            empty.add(n, rank, weight);
        }
        let flows = (0..ranks)
            .map(|rank| {
                let mut flow = empty.clone();
                flow.augment(n, rank, wanted);
                flow
            })
            .collect();
        Self {
            strands,
            n,
            ranks,
            capacity,
            flows,
        }
    }

    fn capacity(&self, from: usize, to: usize) -> i64 {
        self.capacity[from * self.n + to]
    }

    fn neighbours(&self, switch: usize) -> (Vec<usize>, Vec<usize>) {
        let ins = (0..self.n).filter(|&from| self.capacity(from, switch) > 0);
        let outs = (0..self.n).filter(|&to| self.capacity(switch, to) > 0);
        (ins.collect(), outs.collect())
    }

    /// Switches in the order of removal: those with ranks next to them first, then few neighbours
    /// first, so that few edges come in for many.
    fn order(&self) -> Vec<usize> {
        let mut switches: Vec<usize> = (self.ranks..self.n).collect();
        switches.sort_by_key(|&switch| {
            let (ins, outs) = self.neighbours(switch);
            let remote = !outs.iter().any(|&to| to < self.ranks);
            (remote, ins.len() * outs.len(), switch)
        });
        switches
    }

    /// Joins in proportion: of what enters from each neighbour, to each exit its share.
    fn spread(&mut self, switch: usize) {
        let (ins, outs) = self.neighbours(switch);
        let shares: Vec<(usize, usize, i64)> = {
            let total = |to: usize| -> i64 {
                let others = outs.iter().filter(|&&out| out != to);
                others.map(|&out| self.capacity(switch, out)).sum()
            };
            let mut shares = Vec::new();
            for turn in 0..outs.len() {
                for (place, &from) in ins.iter().enumerate() {
                    let to = outs[(place + turn) % outs.len()];
                    let exits = total(from);
                    if from != to && exits > 0 {
                        let share = i128::from(self.capacity(from, switch))
                            * i128::from(self.capacity(switch, to))
                            / i128::from(exits);
                        shares.push((from, to, share as i64));
                    }
                }
            }
            shares
        };
        for (from, to, share) in shares {
            self.join(from, switch, to, share.max(1));
        }
    }

    /// Joins whatever can be joined, gives up what is not needed.
    fn finish(&mut self, switch: usize) {
        for same in [false, true] {
            let (ins, outs) = self.neighbours(switch);
            for turn in 0..outs.len() {
                for (place, &from) in ins.iter().enumerate() {
                    let to = outs[(place + turn) % outs.len()];
                    if (from == to) == same {
                        self.join(from, switch, to, i64::MAX);
                    }
                }
            }
        }
    }

    /// Forgets what is left at a switch; false if it is needed.
    fn drop_rest(&mut self, switch: usize) -> bool {
        let (ins, outs) = self.neighbours(switch);
        let edges = ins.iter().map(|&from| (from, switch));
        let edges: Vec<_> = edges.chain(outs.iter().map(|&to| (switch, to))).collect();
        for (from, to) in edges {
            let rest = self.capacity(from, to);
            self.capacity[from * self.n + to] = 0;
            for rank in 0..self.ranks {
                self.flows[rank].add(from, to, -rest);
                if self.mend(rank, &[(from, to)]) > 0 {
                    return false;
                }
            }
        }
        true
    }

    /// Joins up to so much of `from` to `by` with `by` to `to`.
    fn join(&mut self, from: usize, by: usize, to: usize, wanted: i64) {
        let joined = wanted
            .min(self.capacity(from, by))
            .min(self.capacity(by, to));
        if joined <= 0 {
            return;
        }
        let missing: Vec<i64> = (0..self.ranks)
            .map(|rank| self.join_flow(rank, from, by, to, joined))
            .collect();
        // Every cut that became too small lost exactly what was joined, so that this is enough.
        let back = missing.iter().copied().max().unwrap_or(0);
        if back > 0 {
            for (rank, &missing) in missing.iter().enumerate() {
                self.unjoin_flow(rank, from, by, to, back, missing);
            }
        }
        let joined = joined - back;
        if joined > 0 {
            self.strands.join(from, by, to, joined);
            self.capacity[from * self.n + by] -= joined;
            self.capacity[by * self.n + to] -= joined;
            if from != to {
                self.capacity[from * self.n + to] += joined;
            }
        }
    }

    /// The same in one rank's flow; how much less flows then.
    fn join_flow(&mut self, rank: usize, from: usize, by: usize, to: usize, joined: i64) -> i64 {
        let flow = &mut self.flows[rank];
        flow.add(from, by, -joined);
        flow.add(by, to, -joined);
        if from != to {
            flow.add(from, to, joined);
            // What passed by now goes directly.
            let over = (-flow.room(from, by)).max(-flow.room(by, to));
            let direct = over.min(flow.room(to, by)).min(flow.room(by, from));
            if direct > 0 {
                flow.push(from, to, direct);
                flow.push(to, by, direct);
                flow.push(by, from, direct);
            }
        }
        self.mend(rank, &[(from, by), (by, to)])
    }

    /// Takes some of it back.
    fn unjoin_flow(
        &mut self,
        rank: usize,
        from: usize,
        by: usize,
        to: usize,
        back: i64,
        missing: i64,
    ) {
        let source = self.n;
        let flow = &mut self.flows[rank];
        flow.add(from, by, back);
        flow.add(by, to, back);
        if from != to {
            flow.add(from, to, -back);
            let over = -flow.room(from, to);
            if over > 0 {
                flow.push(from, by, over);
                flow.push(by, to, over);
                flow.push(to, from, over);
            }
        }
        flow.augment(source, rank, missing);
    }

    /// Leads flow around edges on which there is more than fits; how much of it is lost.
    fn mend(&mut self, rank: usize, edges: &[(usize, usize)]) -> i64 {
        let source = self.n;
        let flow = &mut self.flows[rank];
        let mut lost = 0;
        for &(from, to) in edges {
            let over = -flow.room(from, to);
            if over <= 0 {
                continue;
            }
            flow.push(to, from, over);
            let around = flow.augment(from, to, over);
            let rest = over - around;
            if rest > 0 {
                if from != source {
                    flow.augment(from, source, rest);
                }
                if to != rank {
                    flow.augment(rank, to, rest);
                }
                lost += rest;
            }
        }
        if lost > 0 {
            lost -= flow.augment(source, rank, lost);
        }
        debug_assert!(lost < UNBOUNDED);
        lost
    }
}
