//! What happened on the way: for logs, `explain` texts and tests.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Why a connection that is not the job's was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StrayKind {
    /// It did not speak this protocol.
    Garbage,
    /// It spoke another version of it.
    WrongVersion,
    /// It did not know the job's secret.
    WrongSecret,
    /// It knew the secret and could not prove that it is the rank that it claimed.
    WrongRank,
    /// It did not finish its handshake in time.
    Silent,
    /// It closed before its handshake was finished.
    Closed,
    /// It was the oldest of too many unfinished handshakes.
    Crowded,
    /// It runs as another user.
    WrongUser,
}

impl fmt::Display for StrayKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StrayKind::Garbage => "not this protocol",
            StrayKind::WrongVersion => "another version of the protocol",
            StrayKind::WrongSecret => "wrong secret",
            StrayKind::WrongRank => "no proof of its rank",
            StrayKind::Silent => "handshake not finished in time",
            StrayKind::Closed => "closed before its handshake was finished",
            StrayKind::Crowded => "oldest of too many unfinished handshakes",
            StrayKind::WrongUser => "another user's process",
        })
    }
}

/// How many stray connections were dropped, by kind. The first of each kind is logged, the rest counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    counts: BTreeMap<StrayKind, u64>,
}

impl Strays {
    /// How many of one kind.
    pub fn count(&self, kind: StrayKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The kinds that came and how often.
    pub fn iter(&self) -> impl Iterator<Item = (StrayKind, u64)> + '_ {
        self.counts.iter().map(|(&kind, &count)| (kind, count))
    }

    pub(crate) fn note(&mut self, kind: StrayKind, place: &str, from: &str) {
        let count = self.counts.entry(kind).or_insert(0);
        *count += 1;
        if *count == 1 {
            log::warn!(
                "{place}: dropped a connection from {from}: {kind}; more of this kind are only counted"
            );
        }
    }

    pub(crate) fn add(&mut self, others: &Strays) {
        for (kind, count) in others.iter() {
            *self.counts.entry(kind).or_insert(0) += count;
        }
    }

    /// Logs the counts of what came more than once.
    pub(crate) fn log_summary(&self, place: &str) {
        for (kind, count) in self.iter().filter(|&(_, count)| count > 1) {
            log::warn!("{place}: dropped {count} connections in all: {kind}");
        }
    }
}

/// How a rank's join went.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many messages this rank sent to the root: one if it led its node, else none.
    pub root_messages: u32,
    /// Whether it gathered its node's ranks.
    pub node_leader: bool,
    /// How many rounds the exchange of the table took after that.
    pub rounds: u32,
    /// How many control messages this rank sent in those rounds.
    pub exchange_messages: u32,
    /// How long the join took.
    pub elapsed: Duration,
    /// Addresses that were tried in vain, and other things worth knowing.
    pub notes: Vec<String>,
    /// Connections that were dropped before the table stood: at this rank, at the root if this process serves it, and
    /// at this node's meeting if this rank leads it.
    pub strays: Strays,
}
