//! Rounds of messages, and what the slowest link of a round is.

use std::collections::BTreeMap;

use super::fabric::{Link, Node, Port};
use super::rate::{Rate, Ratio};

/// One round of messages, in which all ranks take part at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pattern {
    pub(super) alpha_ps: u128,
    pub(super) rate: Rate,
    /// Whether some link is served by a core.
    pub(super) by_core: bool,
    /// Messages that each rank sends.
    pub(super) fan: u64,
    /// The most messages that leave one node, over the bandwidth that leaves it.
    pub(super) exit: Exit,
    /// The fullest capacity that links share.
    pub(super) port: Load,
}

/// The messages of a round over one [`Port`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Load {
    pub(super) messages: u64,
    /// If each rank sends so many; of fewer there are fewer in proportion.
    pub(super) of: u64,
    pub(super) rate: Rate,
}

/// The narrowest way out of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Exit {
    pub(super) messages: u64,
    pub(super) rate: Rate,
}

impl Pattern {
    /// Two rounds at the same time.
    pub(super) fn beside(self, other: Pattern) -> Pattern {
        let (mine, theirs) = (self.exit, other.exit);
        let mut exit = if theirs.is_narrower(mine) {
            theirs
        } else {
            mine
        };
        exit.messages = mine.messages + theirs.messages;
        let (mine, theirs) = (self.port, other.port);
        let mut port = if theirs.is_fuller(mine) { theirs } else { mine };
        port.messages = mine.messages + theirs.messages;
        port.of = mine.of + theirs.of;
        Pattern {
            alpha_ps: self.alpha_ps.max(other.alpha_ps),
            rate: self.rate.min(other.rate),
            by_core: self.by_core || other.by_core,
            fan: self.fan + other.fan,
            exit,
            port,
        }
    }

    /// The time that the fullest port takes for messages of so many bytes.
    pub(super) fn port_time(&self, bytes: Ratio) -> u128 {
        let Load { messages, of, rate } = self.port;
        let all = bytes.times(u128::from(messages) * u128::from(self.fan));
        rate.time(all.over(u128::from(of.max(1))))
    }

    /// The same round, with so many messages of each rank.
    pub(super) fn with_fan(self, fan: u64) -> Pattern {
        Pattern { fan, ..self }
    }
}

/// The most ranks for each core of a node; at least 1.
pub(super) fn crowding(node_of: &[u32], nodes: &[Node]) -> Ratio {
    let mut ranks_on = vec![0u128; nodes.len()];
    for &node in node_of {
        ranks_on[node as usize] += 1;
    }
    let mut most = Ratio::new(1, 1);
    for (node, &ranks) in nodes.iter().zip(&ranks_on) {
        let cores = u128::from(node.cores);
        if cores > 0 && ranks * most.den > most.num * cores {
            most = Ratio::new(ranks, cores);
        }
    }
    most
}

pub(super) fn scaled(ps: u64, ratio: Ratio) -> u64 {
    let scaled = (u128::from(ps) * ratio.num).div_ceil(ratio.den);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Walks the links of a pattern.
pub(super) struct Survey<'a, L> {
    pub(super) node_of: &'a [u32],
    pub(super) nodes: &'a [Node],
    pub(super) crowd: Ratio,
    pub(super) switch_ps: u64,
    pub(super) link: &'a L,
}

impl<L: Fn(u32, u32) -> Link> Survey<'_, L> {
    /// A link as it is while all ranks work.
    pub(super) fn crowded(&self, from: u32, to: u32) -> Link {
        let mut link = (self.link)(from, to);
        if link.by_core && self.crowd.num > self.crowd.den {
            // Every other rank of the core has its turn before the round is over.
            let others = Ratio::new(self.crowd.num - self.crowd.den, self.crowd.den);
            let switches = scaled(self.switch_ps, others);
            link.alpha_ps = scaled(link.alpha_ps, self.crowd).saturating_add(switches);
            link.rate = link.rate.shared(self.crowd);
        }
        link
    }

    pub(super) fn pattern(&self, fan: u64, pairs: impl Iterator<Item = (u32, u32)>) -> Pattern {
        let mut pattern = Pattern {
            fan,
            ..Pattern::default()
        };
        let mut leaving = vec![0u64; self.nodes.len()];
        let mut sent = vec![0u64; self.node_of.len()];
        let mut ports: BTreeMap<u32, (u64, Rate)> = BTreeMap::new();
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            let Link {
                alpha_ps,
                rate,
                by_core,
                port,
            } = self.crowded(from, to);
            sent[from as usize] += 1;
            if let Some(Port { id, rate }) = port {
                ports.entry(id).or_insert((0, rate)).0 += 1;
            }
            pattern.alpha_ps = pattern.alpha_ps.max(u128::from(alpha_ps));
            pattern.rate = pattern.rate.min(rate);
            pattern.by_core |= by_core;
            let (a, b) = (self.node_of[from as usize], self.node_of[to as usize]);
            if a != b {
                leaving[a as usize] += 1;
            }
        }
        for (node, messages) in self.nodes.iter().zip(leaving) {
            let exit = Exit {
                messages,
                rate: node.exit,
            };
            if exit.is_narrower(pattern.exit) {
                pattern.exit = exit;
            }
        }
        let of = sent.into_iter().max().unwrap_or(0);
        for (messages, rate) in ports.into_values() {
            let load = Load { messages, of, rate };
            if load.is_fuller(pattern.port) {
                pattern.port = load;
            }
        }
        pattern
    }
}

impl Exit {
    fn is_narrower(self, other: Exit) -> bool {
        takes_longer((self.messages, self.rate), (other.messages, other.rate))
    }
}

impl Load {
    fn is_fuller(self, other: Load) -> bool {
        takes_longer((self.messages, self.rate), (other.messages, other.rate))
    }
}

/// Whether so many messages at a rate take longer than others at another.
fn takes_longer((messages, rate): (u64, Rate), (others, theirs): (u64, Rate)) -> bool {
    match (rate.get(), theirs.get()) {
        (None, _) => false,
        (Some(_), None) => messages > 0,
        (Some(mine), Some(theirs)) => {
            u128::from(messages) * u128::from(theirs) > u128::from(others) * u128::from(mine)
        }
    }
}
