//! Many trees at once, each hop of each at a time of its own, with two slots between any two ranks.
//!
//! Time is counted in *moments*; all ranks go through them in the same order, and so many moments
//! are a round, in which a piece enters. A rank acts on a tree once for each piece, at one moment: it
//! takes what its neighbours put for it at earlier moments, and puts for its other neighbours.
//!
//! When it puts, its peer has done with all earlier moments. So it never waits for a slot if at no
//! moment more than two messages between two ranks are on their way, both ends included, and slots
//! are taken in the order in which they were put if messages don't overtake each other. Then nobody
//! waits for anybody who waits for him. Trees are placed one after the other, each hop as early as
//! these two rules allow; if there is no room for a tree, rounds get longer.

use std::collections::HashMap;

use super::flow::Flow;

/// Messages that may be on their way from one rank to another.
const SLOTS: usize = 2;

/// When what is put from one rank to another: at which moments it is put and taken, the former
/// within the first round.
type Channel = Vec<(u32, u32)>;

/// What has been placed so far.
struct Weave {
    round: u32,
    channels: HashMap<(u32, u32), Channel>,
}

/// Gives every flow its moments; returns how many moments are a round.
///
/// A flow that comes after another one starts when that one has come to its root.
pub(super) fn weave(flows: &mut [Flow]) -> u32 {
    let mut uses: HashMap<(u32, u32), u32> = HashMap::new();
    for flow in flows.iter() {
        for hop in flow.hops() {
            *uses.entry(hop).or_default() += 1;
        }
    }
    let mut round = uses.into_values().max().unwrap_or(1).max(2);
    while !place_all(flows, round) {
        round = round + round / 4 + 1;
    }
    let earliest = flows.iter().flat_map(Flow::moments).min().unwrap_or(0);
    // Whole rounds, so that what comes together stays together.
    let later = earliest.div_euclid(i64::from(round)) * i64::from(round);
    flows.iter_mut().for_each(|flow| flow.shift(-later));
    round
}

fn place_all(flows: &mut [Flow], round: u32) -> bool {
    let mut weave = Weave {
        round,
        channels: HashMap::new(),
    };
    for index in 0..flows.len() {
        let (before, rest) = flows.split_at_mut(index);
        let flow = &mut rest[0];
        let first = match flow.after {
            None => 0,
            Some(other) => before[other].root_moment() + 1,
        };
        let mut starts = first..first + i64::from(round);
        if !starts.any(|start| weave.place(flow, start)) {
            return false;
        }
        for (channel, put, taken) in flow.messages() {
            let message = weave.reduced(put, taken);
            weave.channels.entry(channel).or_default().push(message);
        }
    }
    true
}

impl Weave {
    /// Gives each node of a flow its moment, the root's first, if there is room.
    fn place(&self, flow: &mut Flow, start: i64) -> bool {
        if !self.can_start(flow, 0, start) {
            return false;
        }
        flow.set_moment(0, start);
        for node in 0..flow.len() {
            let near = flow.moment(node);
            for child in flow.children(node) {
                let Some(far) = self.hop(flow, child, near) else {
                    return false;
                };
                flow.set_moment(child, far);
            }
        }
        true
    }

    /// The moment nearest to its parent's at which a node can act.
    fn hop(&self, flow: &Flow, child: usize, near: i64) -> Option<i64> {
        let channel = flow.channel(child);
        (1..=i64::from(self.round))
            .map(|distance| flow.away(near, distance))
            .find(|&far| self.fits(channel, near, far) && self.can_start(flow, child, far))
    }

    /// Whether a node that acts at a moment leaves its children any.
    fn can_start(&self, flow: &Flow, node: usize, moment: i64) -> bool {
        let next = flow.away(moment, 1);
        let mut children = flow.children(node);
        children.all(|child| self.fits(flow.channel(child), moment, next))
    }

    /// Whether a message can be between two moments, whichever is first, with all others there.
    fn fits(&self, channel: (u32, u32), one: i64, other: i64) -> bool {
        let Some(others) = self.channels.get(&channel) else {
            return true;
        };
        let (put, taken) = self.reduced(one.min(other), one.max(other));
        let (put, taken, round) = (i64::from(put), i64::from(taken), i64::from(self.round));
        if taken - put >= round {
            return false;
        }
        let mut at_once = Vec::new();
        for &(start, end) in others {
            for shift in [-round, 0, round] {
                let (start, end) = (i64::from(start) + shift, i64::from(end) + shift);
                if end < put || start > taken {
                    continue;
                }
                let overtakes = (start < put) != (end < taken);
                if overtakes || start == put || end == taken {
                    return false;
                }
                at_once.push((start.max(put), end.min(taken)));
            }
        }
        // Any two of the others that meet here would make three.
        let meet = |a: &(i64, i64), b: &(i64, i64)| a.0 <= b.1 && b.0 <= a.1;
        let pairs = || (0..at_once.len()).flat_map(|a| (a + 1..at_once.len()).map(move |b| (a, b)));
        debug_assert_eq!(SLOTS, 2, "the rule below is for two slots");
        !pairs().any(|(a, b)| meet(&at_once[a], &at_once[b]))
    }

    /// The same two moments, the first of them within the first round.
    fn reduced(&self, put: i64, taken: i64) -> (u32, u32) {
        let start = put.rem_euclid(i64::from(self.round));
        (start as u32, (start + taken - put) as u32)
    }
}
