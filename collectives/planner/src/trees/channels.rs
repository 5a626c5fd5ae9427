//! How many lanes each tree gets.

use std::collections::BTreeMap;

use super::Lanes;

/// Hands out lanes to trees.
pub(crate) struct Channels {
    /// Lanes for each unit of weight: this many for that much.
    rate: Option<(u64, u64)>,
    next: u32,
}

/// The lanes of one tree, used in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channel {
    first: u32,
    pub(crate) count: u32,
}

impl Channels {
    pub(crate) fn new(weights: &[u64], lanes: Lanes) -> Self {
        let rate = match lanes {
            Lanes::Path => None,
            Lanes::Share { most } | Lanes::Through { most } => Some(rate(weights, u64::from(most))),
        };
        Self { rate, next: 1 }
    }

    pub(crate) fn next(&mut self, weight: u64) -> Channel {
        let Some(rate) = self.rate else {
            return Channel { first: 0, count: 1 };
        };
        let count = u32::try_from(lanes(weight, rate)).unwrap_or(u32::MAX);
        let first = self.next;
        self.next = self.next.saturating_add(count);
        Channel { first, count }
    }
}

impl Channel {
    pub(crate) fn of(self, piece: u64) -> u32 {
        self.first + (piece % u64::from(self.count)) as u32
    }
}

fn lanes(weight: u64, (count, of): (u64, u64)) -> u64 {
    let exact = u128::from(weight) * u128::from(count);
    (((exact + u128::from(of) / 2) / u128::from(of)) as u64).max(1)
}

/// By how many millionths the slowest tree may be slower than its part, beyond what can't be helped. More lanes are
/// more even, but each chunk then takes as many times as long, and pipelines fill as much later.
const UNEVEN: u128 = 5_000;

/// Lanes for weight such that there are no more than `most`, and the tree that gets the fewest for
/// its weight gets nearly its part of all. As few as that takes.
fn rate(weights: &[u64], most: u64) -> (u64, u64) {
    let sum: u64 = weights.iter().sum();
    let divisor = weights.iter().fold(0, |a, &b| gcd(a, b)).max(1);
    // Routes are as many as pairs of ranks, and of few weights.
    let mut alike = BTreeMap::new();
    for weight in weights {
        *alike.entry(*weight).or_insert(0u64) += 1;
    }
    // In how many lanes, and how fast the slowest tree is then beside its part, in millionths.
    let part = |count: u64| {
        let taken = |weight: u64| lanes(weight, (count, sum));
        let all: u64 = (alike.iter())
            .map(|(&weight, times)| times * taken(weight))
            .sum();
        let slowest = alike.keys().map(|&weight| {
            let has = u128::from(taken(weight)) * u128::from(sum) * 1_000_000;
            has / (u128::from(weight.max(1)) * u128::from(all))
        });
        (slowest.min().unwrap_or(0), all)
    };
    let exact = sum / divisor;
    let counts = 1..=most.min(exact).max(1);
    let parts: Vec<(u64, (u128, u64))> = counts.map(|count| (count, part(count))).collect();
    let best = parts.iter().map(|(_, (slowest, _))| *slowest).max();
    let enough = best.unwrap_or(0).saturating_sub(UNEVEN);
    let fewest = (parts.into_iter())
        .filter(|(_, (slowest, _))| *slowest >= enough)
        .min_by_key(|(_, (_, all))| *all);
    (fewest.map_or(1, |(count, _)| count), sum)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
