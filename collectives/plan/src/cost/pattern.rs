//! Rounds of messages, and what the slowest link of a round is.

use std::collections::BTreeMap;

use super::fabric::{Link, Node, Port};
use super::rate::{Rate, Ratio};

/// How many times as long as for a rank with a core to itself a message that is a call of the operating system is counted
/// where ranks take turns on a core and all wait for each other. With it the model fits what was measured on an EPYC 7003 of
/// 2 cores, over TCP: all_reduces of 4 bytes by `mesh_one_shot` among 4, 8 and 12 ranks took 66 to 81, 345 to 398 and 834 us,
/// predicted are 72, 325 and 758 (`cargo xtask peers -- --dirty --ranks 4,8,12 --ops all_reduce --sizes 4 --transport tcp`,
/// with `UNISONO_ALGORITHMS=[{op: all_reduce, use: mesh_one_shot}]`; `unisono explain all_reduce --bytes 4 --ranks 8
/// --without-links shm`).
const COLD: Ratio = Ratio { num: 9, den: 4 };

/// One round of messages, in which all ranks take part at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pattern {
    pub(super) alpha_ps: u128,
    /// The same where no other rank of a core works.
    pub(super) lone_alpha_ps: u128,
    pub(super) rate: Rate,
    /// The same where no other rank of a core works.
    pub(super) lone_rate: Rate,
    /// Whether some link is served by a core.
    pub(super) by_core: bool,
    /// What the costliest message takes a core, at each end: while all ranks work, and alone. 0 where that is not more
    /// than for any message.
    pub(super) message_ps: u128,
    pub(super) lone_message_ps: u128,
    /// What `lone_message_ps` is where ranks take turns on the core and all wait for each other.
    pub(super) cold_message_ps: u128,
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
            lone_alpha_ps: self.lone_alpha_ps.max(other.lone_alpha_ps),
            rate: self.rate.min(other.rate),
            lone_rate: self.lone_rate.min(other.lone_rate),
            by_core: self.by_core || other.by_core,
            message_ps: self.message_ps.max(other.message_ps),
            lone_message_ps: self.lone_message_ps.max(other.lone_message_ps),
            cold_message_ps: self.cold_message_ps.max(other.cold_message_ps),
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

    /// The same round where one rank alone sends, or receives: it has a core to itself but for the others' ends of one
    /// message each. `crowd` is the ranks on each core.
    pub(super) fn of_root(self, crowd: Ratio) -> Pattern {
        let fan = u128::from(self.fan.max(1));
        let works = Ratio::new((fan - 1) * crowd.den + crowd.num, fan * crowd.den);
        Pattern {
            // Others have turns while it sends, but its next message waits for none of them.
            alpha_ps: match self.is_served() {
                true => self.lone_alpha_ps,
                false => self.alpha_ps,
            },
            // A phase counts both ends.
            message_ps: (self.lone_message_ps * works.num).div_ceil(2 * works.den),
            rate: self.rate_of(works),
            ..self
        }
    }

    /// The same round where so many of the ranks take part. Where no message is a call of the operating system ranks wait
    /// for each other in turns, and it is as if all took part.
    pub(super) fn of_some(self, some: u32, ranks: u32, crowd: Ratio) -> Pattern {
        if !self.is_served() {
            return self;
        }
        let part = crowd.part(some.min(ranks).into(), ranks.into());
        let part = part.at_least_one();
        Pattern {
            message_ps: (self.cold_message_ps * part.num).div_ceil(part.den),
            rate: self.rate_of(part),
            ..self
        }
    }

    /// The same where half of them send and half receive, and the others wait for them: a first byte takes no turns of theirs.
    pub(super) fn of_pairs(self, some: u32, ranks: u32, crowd: Ratio) -> Pattern {
        if !self.is_served() {
            return self;
        }
        let part = crowd.part(some.min(ranks).into(), ranks.into());
        let part = part.at_least_one();
        Pattern {
            alpha_ps: self.alpha_of(part, crowd),
            message_ps: one_way(self.cold_message_ps, part),
            ..self.of_some(some, ranks, crowd)
        }
    }

    /// The same where half of them send and half receive, and the others are in calls before and behind: nobody waits for
    /// all.
    pub(super) fn of_level(self, some: u32, ranks: u32, crowd: Ratio) -> Pattern {
        let part = crowd.part(some.min(ranks).into(), ranks.into());
        let part = part.at_least_one();
        Pattern {
            alpha_ps: match self.is_served() {
                true => self.lone_alpha_ps,
                false => self.alpha_of(part, crowd),
            },
            message_ps: one_way(self.lone_message_ps, part),
            rate: match self.is_served() {
                true => self.rate_of(part),
                // The senders' cores move the bytes.
                false => self.rate_of(Ratio::new(part.num, 2 * part.den).at_least_one()),
            },
            ..self
        }
    }

    /// How long a first byte takes where `part` of the `crowd` of ranks on a core work.
    fn alpha_of(self, part: Ratio, crowd: Ratio) -> u128 {
        let others = |all: Ratio| all.num.saturating_sub(all.den);
        if !self.by_core || others(crowd) == 0 {
            return self.alpha_ps;
        }
        let turns = self.alpha_ps.saturating_sub(self.lone_alpha_ps);
        let theirs = turns * others(part) * crowd.den / (others(crowd) * part.den);
        self.lone_alpha_ps + theirs
    }

    /// Whether the senders' cores alone move bytes, into memory where the receivers use them.
    pub(super) fn is_filled(self) -> bool {
        self.by_core && self.lone_message_ps == 0
    }

    /// Whether messages are calls of the operating system.
    pub(super) fn is_served(self) -> bool {
        self.by_core && self.lone_message_ps > 0
    }

    /// What a link carries where its core has so many times its work to do: no less than while all ranks work.
    fn rate_of(&self, works: Ratio) -> Rate {
        if !self.by_core {
            return self.rate;
        }
        let shared = self.lone_rate.shared(works);
        match shared.min(self.rate) == self.rate {
            true => shared,
            false => self.rate,
        }
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

/// What a message takes a core on which `part` ranks work, if half of them send and half receive. A phase counts both ends,
/// which follow each other where nobody else works.
fn one_way(message_ps: u128, part: Ratio) -> u128 {
    match part.num >= 2 * part.den {
        true => (message_ps * part.num).div_ceil(2 * part.den),
        false => message_ps,
    }
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
        link.message_ps = scaled(self.cold(link), self.crowd);
        if link.by_core && self.crowd.num > self.crowd.den {
            // Every other rank of the core has its turn before the round is over.
            let others = Ratio::new(self.crowd.num - self.crowd.den, self.crowd.den);
            let switches = scaled(self.switch_ps, others);
            link.alpha_ps = scaled(link.alpha_ps, self.crowd).saturating_add(switches);
            link.rate = link.rate.shared(self.crowd);
        }
        link
    }

    /// What a message takes a core where all ranks wait for each other: if they take turns on the core, who had it before has
    /// filled its caches with other code and data. Of a root and of the levels of its tree that is not so (`of_root`,
    /// `of_level`): nobody waits for all, and a rank sends much while it has the core.
    fn cold(&self, link: Link) -> u64 {
        match link.by_core && self.crowd.num > self.crowd.den {
            true => scaled(link.message_ps, COLD),
            false => link.message_ps,
        }
    }

    pub(super) fn pattern(&self, fan: u64, pairs: impl Iterator<Item = (u32, u32)>) -> Pattern {
        self.weighted(fan, 1, pairs.map(|(from, to)| (from, to, 1)))
    }

    /// The pattern of messages of unequal weights, as one of messages that all have `most`, the
    /// weight of the heaviest: rates count as many times higher as what goes is less.
    pub(super) fn weighted(
        &self,
        fan: u64,
        most: u64,
        messages: impl Iterator<Item = (u32, u32, u64)>,
    ) -> Pattern {
        let mut pattern = Pattern {
            fan,
            ..Pattern::default()
        };
        let mut leaving = vec![Sum::default(); self.nodes.len()];
        let mut sent = vec![0u64; self.node_of.len()];
        // What all messages of a rank take one after the other, where they are not alike.
        let mut in_turn = vec![0u128; self.node_of.len()];
        let mut alike = true;
        let mut ports: BTreeMap<u32, (Sum, Rate)> = BTreeMap::new();
        for (from, to, weight) in messages.filter(|(from, to, _)| from != to) {
            let Link {
                alpha_ps,
                rate,
                by_core,
                message_ps,
                port,
            } = self.crowded(from, to);
            let lone = (self.link)(from, to);
            let raised = lone.rate.raised(most.into(), weight.into());
            pattern.lone_rate = pattern.lone_rate.min(raised);
            pattern.message_ps = pattern.message_ps.max(message_ps.into());
            pattern.lone_message_ps = pattern.lone_message_ps.max(lone.message_ps.into());
            pattern.cold_message_ps = pattern.cold_message_ps.max(self.cold(lone).into());
            sent[from as usize] += 1;
            if let Some(Port { id, rate }) = port {
                ports
                    .entry(id)
                    .or_insert((Sum::default(), rate))
                    .0
                    .add(weight);
            }
            pattern.alpha_ps = pattern.alpha_ps.max(u128::from(alpha_ps));
            pattern.lone_alpha_ps = pattern.lone_alpha_ps.max(lone.alpha_ps.into());
            pattern.rate = pattern.rate.min(rate.raised(most.into(), weight.into()));
            pattern.by_core |= by_core;
            alike &= weight == most;
            let time = rate.time(Ratio::new(weight.into(), 1));
            in_turn[from as usize] = in_turn[from as usize].saturating_add(time);
            let (a, b) = (self.node_of[from as usize], self.node_of[to as usize]);
            if a != b {
                leaving[a as usize].add(weight);
            }
        }
        if pattern.by_core && !alike {
            let slowest = in_turn.into_iter().max().unwrap_or(0);
            pattern.rate = Rate::that_takes(slowest, Ratio::new(most.into(), 1).times(fan.into()));
        }
        for (node, sum) in self.nodes.iter().zip(leaving) {
            let exit = Exit {
                messages: sum.messages,
                rate: sum.raise(node.exit, most),
            };
            if exit.is_narrower(pattern.exit) {
                pattern.exit = exit;
            }
        }
        let of = sent.into_iter().max().unwrap_or(0);
        for (sum, rate) in ports.into_values() {
            let load = Load {
                messages: sum.messages,
                of,
                rate: sum.raise(rate, most),
            };
            if load.is_fuller(pattern.port) {
                pattern.port = load;
            }
        }
        pattern
    }
}

/// Messages and their weights.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    messages: u64,
    weight: u128,
}

impl Sum {
    fn add(&mut self, weight: u64) {
        self.messages += 1;
        self.weight = self.weight.saturating_add(weight.into());
    }

    /// A rate that all share, as if each message had the weight of the heaviest.
    fn raise(&self, rate: Rate, most: u64) -> Rate {
        rate.raised(u128::from(most) * u128::from(self.messages), self.weight)
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
