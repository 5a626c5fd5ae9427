//! The answer, and who gives it for which op.

use unisono_network::{Network, Rational, to_f64};

use crate::problem::Problem;
use crate::{BoundError, Certificate, Op, connected, cuts, exchange, latency, reduction, shared};

/// How fast an op can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The op.
    pub op: Op,
    /// The highest algbw, in bytes a second, when latencies do not count.
    pub limit: Limit,
    /// The time that the shortest message needs, in nanoseconds: the longest of the shortest paths
    /// that the op cannot do without.
    pub latency_ns: u64,
    /// What stands in the way of more.
    pub certificate: Certificate,
}

/// A highest algbw in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing needs to move: one rank.
    Unlimited,
    /// Exactly this: no plan is faster, and plans come as close to it as one likes.
    Exact(Rational),
    /// Between these: no plan is faster than `high`, and some plan reaches `low`.
    Between {
        /// What some plan reaches.
        low: Rational,
        /// What no plan exceeds.
        high: Rational,
    },
}

impl Limit {
    /// From both ends: exact if they meet.
    pub(crate) fn between(low: Rational, high: Rational) -> Self {
        if low == high {
            Self::Exact(high)
        } else {
            Self::Between { low, high }
        }
    }

    /// The same, and no more than something else allows.
    fn at_most(self, other: Option<Rational>) -> Self {
        match (self.high(), other) {
            (Some(high), Some(other)) if other < high => Self::Exact(other),
            _ => self,
        }
    }

    /// What no plan exceeds, in bytes a second; none if there is no limit.
    pub fn high(self) -> Option<Rational> {
        match self {
            Self::Unlimited => None,
            Self::Exact(value) | Self::Between { high: value, .. } => Some(value),
        }
    }

    /// What some plan reaches, in bytes a second; none if there is no limit.
    pub fn low(self) -> Option<Rational> {
        match self {
            Self::Unlimited => None,
            Self::Exact(value) | Self::Between { low: value, .. } => Some(value),
        }
    }

    /// Whether it is known exactly.
    pub fn is_exact(self) -> bool {
        !matches!(self, Self::Between { .. })
    }
}

impl Bound {
    /// The least time in seconds for a message of so many bytes, latencies counted.
    pub fn seconds(&self, bytes: u64) -> f64 {
        let by_bandwidth = match self.limit.high() {
            Some(high) => bytes as f64 / to_f64(high),
            None => 0.0,
        };
        by_bandwidth.max(self.latency_ns as f64 * 1e-9)
    }

    /// The highest algbw in bytes a second for a message of so many bytes, latencies counted;
    /// infinite where nothing takes time.
    pub fn algbw(&self, bytes: u64) -> f64 {
        bytes as f64 / self.seconds(bytes)
    }
}

/// The bound of an op on a network.
///
/// # Errors
/// If the op names a rank that is not there, something must flow where nothing can, or the network has
/// more parts than can be numbered.
pub fn bound(network: &Network, op: Op) -> Result<Bound, BoundError> {
    check_ranks(network, op)?;
    if network.ranks() == 1 || matches!(op, Op::SendRecv { from, to } if from == to) {
        return Ok(Bound {
            op,
            limit: Limit::Unlimited,
            latency_ns: 0,
            certificate: Certificate::Nothing,
        });
    }
    connected::check(network, op)?;
    let latency_ns = latency::longest(network, op);
    let unshared = shared::unshare(network, op)?;
    let (mut limit, certificate) = bandwidth(&unshared.above, op);
    if let Some(below) = unshared.below {
        let high = limit.at_most(unshared.copies).high();
        let low = bandwidth(&below, op).0.low();
        if let (Some(low), Some(high)) = (low, high) {
            limit = Limit::between(low.min(high), high);
        }
    }
    Ok(Bound {
        op,
        limit,
        latency_ns,
        certificate,
    })
}

/// The bandwidth part of a bound, between ranks that reach each other.
fn bandwidth(network: &Network, op: Op) -> (Limit, Certificate) {
    match op {
        Op::AllGather => cuts::all_gather(&Problem::new(network)),
        Op::Broadcast { root } => cuts::broadcast(&Problem::new(network), root),
        Op::Gather { root } => cuts::gather(&Problem::new(network), root),
        Op::SendRecv { from, to } => cuts::send(&Problem::new(network), from, to),
        Op::ReduceScatter | Op::Reduce { .. } | Op::Scatter { .. } => {
            let (limit, certificate) = bandwidth(&network.reversed(), op.mirrored());
            (limit, certificate.mirrored())
        }
        Op::AllReduce { in_network } => reduction::all_reduce(&Problem::new(network), in_network),
        Op::AllToAll => exchange::all_to_all(&Problem::new(network)),
    }
}

fn check_ranks(network: &Network, op: Op) -> Result<(), BoundError> {
    let ranks = network.ranks();
    let named = match op {
        Op::Broadcast { root }
        | Op::Reduce { root }
        | Op::Scatter { root }
        | Op::Gather { root } => [root, root],
        Op::SendRecv { from, to } => [from, to],
        Op::AllGather | Op::ReduceScatter | Op::AllReduce { .. } | Op::AllToAll => [0, 0],
    };
    match named.into_iter().find(|rank| *rank >= ranks) {
        Some(rank) => Err(BoundError::UnknownRank { rank, ranks }),
        None => Ok(()),
    }
}
