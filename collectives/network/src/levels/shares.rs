//! Shares of a message by what ranks can carry.
//!
//! What a group of ranks has must go to the other groups, so a member that reaches them by wide links
//! had better have more of it. Between groups that exchange directly there is another choice: who adds
//! up a part sends out sums for all others, so a slow group had better add up little.
//!
//! All is done with integers, so that every host finds the same.

use std::collections::{BTreeMap, BTreeSet};

use super::{Level, Levels};

/// The most units of a group that get shares of their own.
const MOST_UNITS: usize = 256;
/// Shares are parts of a divisor of this: groups that are cut differently then have few different cuts.
const FINEST: u32 = 5760;
/// One part of so many is little.
const LITTLE: u32 = 32;

/// The way from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What it carries alone, in bytes a second.
    pub bytes_per_second: u64,
    /// What it shares with other ways, as far as that is known.
    pub shared: Vec<Shared>,
}

/// What several ways share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The same number for ways that share it.
    pub id: u64,
    /// What it carries in all, in bytes a second.
    pub bytes_per_second: u64,
}

impl Levels {
    /// How much of what its group has each unit should have, for every level: the units are those of
    /// [`Levels::group_of`]. `exchanges` says whether the groups of the second highest level exchange
    /// parts directly, each with each, so that they too may have unequal ones.
    ///
    /// None if all parts should be equal, as where rates are about the same or unknown (0).
    pub fn weights(&self, exchanges: bool, way: impl Fn(u32, u32) -> Way) -> Option<Vec<Vec<u32>>> {
        let top = self.levels.len().checked_sub(1)?;
        let mut weights: Vec<Vec<u32>> = Vec::new();
        let mut widest: Vec<u128> = Vec::new();
        for level in 0..top {
            let carried = self.carried(level, &way)?;
            widest = carried.iter().map(|carried| carried.at_best).collect();
            let group_of = self.group_of(level);
            let groups = self.levels[level].groups.len();
            let all: Vec<u128> = carried.iter().map(|carried| carried.in_all).collect();
            let units = self.units(level, &all);
            weights.push(by_group(&group_of, groups, |members| {
                let rates: Vec<u128> = members.iter().map(|&unit| units[unit]).collect();
                parts(&rates)
            }));
        }
        let units = self.units(top, &widest);
        weights.push(match exchanges {
            true => parts(&poured(&units)),
            false => vec![1; units.len()],
        });
        let equal = |weights: &Vec<u32>| weights.iter().all(|&weight| weight == 1);
        (!weights.iter().all(equal)).then_some(weights)
    }

    /// What each rank can send to, and get from, the groups beside its own, one rank of each at a time.
    fn carried(&self, level: usize, way: &impl Fn(u32, u32) -> Way) -> Option<Vec<Carried>> {
        let ranks = self.order().len();
        let [of_rank, above] = [level, level + 1].map(|level| self.levels[level].of_rank(ranks));
        let beside =
            |one: usize, other: usize| above[one] == above[other] && of_rank[one] != of_rank[other];
        let mut users: BTreeMap<u64, Users> = BTreeMap::new();
        for from in 0..ranks {
            for to in (0..ranks).filter(|&to| beside(from, to)) {
                for shared in way(from as u32, to as u32).shared {
                    let users = users.entry(shared.id).or_default();
                    users.sending.insert((from, of_rank[to]));
                    users.receiving.insert((of_rank[from], to));
                }
            }
        }
        let mut carried = Vec::with_capacity(ranks);
        for one in 0..ranks {
            let mut others: BTreeMap<u32, [Vec<Way>; 2]> = BTreeMap::new();
            for other in (0..ranks).filter(|&other| beside(one, other)) {
                let [out, back] = others.entry(of_rank[other]).or_default();
                out.push(way(one as u32, other as u32));
                back.push(way(other as u32, one as u32));
            }
            let both = others
                .values()
                .map(|[out, back]| rate(out, &users, true).min(rate(back, &users, false)));
            let rates: Vec<u64> = both.collect();
            if rates.contains(&0) {
                return None;
            }
            let widest = rates.iter().max().copied().unwrap_or(0);
            carried.push(Carried {
                in_all: rates.iter().copied().map(u128::from).sum(),
                at_best: u128::from(widest) * rates.len() as u128,
            });
        }
        Some(carried)
    }

    /// The sums over the units of a level.
    fn units(&self, level: usize, of_rank: &[u128]) -> Vec<u128> {
        match level.checked_sub(1) {
            None => of_rank.to_vec(),
            Some(below) => {
                let sum = |group: &Vec<u32>| group.iter().map(|&rank| of_rank[rank as usize]).sum();
                self.levels[below].groups.iter().map(sum).collect()
            }
        }
    }
}

/// What all ways from one rank to a group carry, or back: together as much as what they all share does,
/// if that is known; else the widest, as if it were the rank's own end that makes it no wider.
fn rate(ways: &[Way], users: &BTreeMap<u64, Users>, out: bool) -> u64 {
    let share = |shared: &Shared, count: &dyn Fn(&Users) -> u64| {
        let users = users.get(&shared.id).map_or(1, count);
        (shared.bytes_per_second / users.max(1)).max(1)
    };
    let alone = |way: &Way| {
        let least = |users: &Users| users.sending().min(users.receiving());
        let shares = way.shared.iter().map(|shared| share(shared, &least));
        shares.fold(way.bytes_per_second, u64::min)
    };
    let own_end: &dyn Fn(&Users) -> u64 = match out {
        true => &Users::sending,
        false => &Users::receiving,
    };
    let Some((first, others)) = ways.split_first() else {
        return 0;
    };
    let in_common = |shared: &&Shared| others.iter().all(|way| way.shared.contains(shared));
    let common = first.shared.iter().filter(in_common);
    match common.map(|shared| share(shared, own_end)).min() {
        Some(narrowest) => {
            let sum = ways.iter().map(alone).fold(0, u64::saturating_add);
            sum.min(narrowest)
        }
        None => ways.iter().map(alone).max().unwrap_or(0),
    }
}

/// Who shares something. A rank exchanges with one of each other group at a time, whichever it is: so
/// the way out of a rank is used once for each group to which it leads, and the way into a rank once for
/// each group from which it comes.
#[derive(Default)]
struct Users {
    sending: BTreeSet<(usize, u32)>,
    receiving: BTreeSet<(u32, usize)>,
}

impl Users {
    fn sending(&self) -> u64 {
        self.sending.len() as u64
    }

    fn receiving(&self) -> u64 {
        self.receiving.len() as u64
    }
}

/// What a rank carries to other groups, in bytes a second.
struct Carried {
    /// To those that there are.
    in_all: u128,
    /// If all of them were as near as the nearest: what it could do itself, were the others not slow.
    at_best: u128,
}

impl Level {
    /// The number of each rank's group.
    pub(super) fn of_rank(&self, ranks: usize) -> Vec<u32> {
        let mut of_rank = vec![0; ranks];
        for (group, members) in (0..).zip(&self.groups) {
            for &rank in members {
                of_rank[rank as usize] = group;
            }
        }
        of_rank
    }
}

/// What `of` says for the units of each group, by unit.
fn by_group(group_of: &[u32], groups: usize, of: impl Fn(&[usize]) -> Vec<u32>) -> Vec<u32> {
    let mut members = vec![Vec::new(); groups];
    for (unit, &group) in group_of.iter().enumerate() {
        members[group as usize].push(unit);
    }
    let mut all = vec![1; group_of.len()];
    for units in members {
        for (&unit, weight) in units.iter().zip(of(&units)) {
            all[unit] = weight;
        }
    }
    all
}

/// What each of some groups should add up, by what it carries, if all exchange with all: of `n` one
/// with a part `x` sends and gets `1 + (n - 2) x` of the message. Who is too slow for that adds up
/// nothing.
fn poured(rates: &[u128]) -> Vec<u128> {
    let count = rates.len() as u128;
    if count < 3 || alike(rates) {
        return vec![1; rates.len()];
    }
    // The slowest go first: without them the others have more to do.
    let mut fastest: Vec<u128> = rates.to_vec();
    fastest.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum: u128 = fastest.iter().sum();
    while let Some(&slowest) = fastest.last() {
        // In the time that all take, in which they carry `sum`.
        let all = count - 2 + fastest.len() as u128;
        if slowest.saturating_mul(all) > sum {
            break;
        }
        sum -= slowest;
        fastest.pop();
    }
    let all = count - 2 + fastest.len() as u128;
    let part = |&rate: &u128| rate.saturating_mul(all).saturating_sub(sum);
    rates.iter().map(part).collect()
}

/// Rates of which the lowest has at least nine tenths of the highest count as the same.
fn alike(rates: &[u128]) -> bool {
    let least = rates.iter().min().copied().unwrap_or(0);
    let most = rates.iter().max().copied().unwrap_or(0);
    least.saturating_mul(10) >= most.saturating_mul(9)
}

/// Small whole weights in the proportion of some rates, so that nobody has a twentieth more than its
/// part; each has something.
fn parts(rates: &[u128]) -> Vec<u32> {
    let sum: u128 = rates.iter().sum();
    if rates.len() > MOST_UNITS || alike(rates) || sum == 0 {
        return vec![1; rates.len()];
    }
    let totals = (rates.len() as u32..=FINEST).filter(|total| FINEST.is_multiple_of(*total));
    let mut found = vec![1; rates.len()];
    for total in totals {
        let weights = apportioned(rates, sum, total);
        if weights.iter().sum::<u32>() != total {
            continue;
        }
        let fits = |(&weight, &rate): (&u32, &u128)| {
            let (has, should) = (u128::from(weight) * sum, rate * u128::from(total));
            match rate {
                // Everybody has something; that of who should have nothing is small.
                0 => total >= LITTLE,
                _ => has.saturating_mul(20) <= should.saturating_mul(21),
            }
        };
        let good = weights.iter().zip(rates).all(fits);
        found = weights;
        if good {
            break;
        }
    }
    found
}

/// Weights that add up to `total`, as near to the rates as those whole numbers can be; they add up to
/// more where too many have the one that everybody gets.
fn apportioned(rates: &[u128], sum: u128, total: u32) -> Vec<u32> {
    let whole = |&rate: &u128| ((rate * u128::from(total) / sum) as u32).max(1);
    let mut weights: Vec<u32> = rates.iter().map(whole).collect();
    let mut given: u32 = weights.iter().sum();
    while given < total {
        // Who would be loaded least with one more.
        let load = |&a: &usize, &b: &usize| {
            let times = |one: usize, other: usize| (u128::from(weights[one]) + 1) * rates[other];
            times(a, b).cmp(&times(b, a))
        };
        let carriers = (0..rates.len()).filter(|&at| rates[at] > 0);
        let Some(next) = carriers.min_by(load) else {
            break;
        };
        weights[next] += 1;
        given += 1;
    }
    weights
}

#[cfg(test)]
mod tests;
