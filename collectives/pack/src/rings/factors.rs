//! All links of a regular network divided into rings.
//!
//! A network in which every rank has the same even number of equal duplex links falls apart into
//! sets of cycles that visit every rank once (Petersen's theorem: walk all links in one go, and
//! match what leaves each rank with what enters it). Such a set becomes one ring by exchanging the
//! sides of squares: where two opposite sides of a square are in one set and the other two in
//! another, both sets stay what they are when they swap them, and cycles that were apart grow
//! together. Tori are full of squares.

use unisono_network::{Network, to_f64};

use super::Rings;
use crate::error::PackError;

/// Smaller networks are left to the linear program.
const FEWEST_RANKS: u32 = 12;

/// Rounds over all squares in which nothing has to get better.
const PATIENCE: usize = 400;

/// The rings, each both ways; none if the network is not regular or the cycles did not grow together.
///
/// # Errors
/// As for [`rings`](super::rings).
pub(super) fn rings(network: &Network) -> Result<Option<Rings>, PackError> {
    let Some(neighbours) = regular(network) else {
        return Ok(None);
    };
    let Some(orders) = Factors::new(&neighbours).and_then(Factors::joined) else {
        return Ok(None);
    };
    let mut both = Vec::new();
    for order in orders {
        let back = order.iter().rev().copied().collect();
        both.extend([(order, 1), (back, 1)]);
    }
    let rings = Rings::laid(network, &both)?;
    Ok((to_f64(rings.bytes_per_second()) > 0.0).then_some(rings))
}

/// Each rank's neighbours, if every rank has as many, an even number, by equal duplex links.
fn regular(network: &Network) -> Option<Vec<Vec<u32>>> {
    let first = network.edges().first()?;
    let alike = network
        .edges()
        .iter()
        .all(|edge| edge.bytes_per_second == first.bytes_per_second && edge.group.is_none());
    let ranks = network.ranks();
    if !alike || ranks < FEWEST_RANKS || network.vertices().len() > ranks as usize {
        return None;
    }
    let mut neighbours = Vec::new();
    for rank in 0..ranks {
        let mut to: Vec<u32> = network
            .out_edges(rank)
            .iter()
            .map(|&edge| network.edge(edge).to)
            .collect();
        let mut from: Vec<u32> = network
            .in_edges(rank)
            .iter()
            .map(|&edge| network.edge(edge).from)
            .collect();
        to.sort_unstable();
        from.sort_unstable();
        let once = to.windows(2).all(|pair| pair[0] < pair[1]);
        if !once || to != from || to.len() % 2 == 1 || to.len() > 16 {
            return None;
        }
        neighbours.push(to);
    }
    let degree = neighbours[0].len();
    neighbours
        .iter()
        .all(|to| to.len() == degree)
        .then_some(neighbours)
}

/// Sets of cycles. In each, every rank has two neighbours.
struct Factors {
    /// For each set and rank the two neighbours.
    sides: Vec<Vec<[u32; 2]>>,
}

impl Factors {
    fn new(neighbours: &[Vec<u32>]) -> Option<Self> {
        let mut out = circuit(neighbours);
        let mut sides = Vec::new();
        for _ in 0..neighbours[0].len() / 2 {
            let next = matching(&out)?;
            let mut pairs = vec![[u32::MAX; 2]; next.len()];
            for (from, &to) in (0..).zip(&next) {
                pairs[from as usize][0] = to;
                pairs[to as usize][1] = from;
                out[from as usize].retain(|&one| one != to);
            }
            sides.push(pairs);
        }
        Some(Self { sides })
    }

    /// One order for each set, when all cycles of each have grown together.
    fn joined(mut self) -> Option<Vec<Vec<u32>>> {
        let ranks = self.sides[0].len() as u32;
        let mut cycles: Vec<Vec<u32>> = (0..self.sides.len()).map(|set| self.cycles(set)).collect();
        let count = |cycles: &[u32]| cycles.iter().max().map_or(0, |&last| last + 1);
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut idle = 0;
        while cycles.iter().any(|cycles| count(cycles) > 1) {
            let mut better = false;
            for a in 0..ranks {
                for set in 0..self.sides.len() {
                    for side in 0..2 {
                        let b = self.sides[set][a as usize][side];
                        let Some((other, c, d)) = self.square(set, a, b, &cycles[set]) else {
                            continue;
                        };
                        let before = count(&cycles[set]) + count(&cycles[other]);
                        self.swap(set, other, [a, b, c, d]);
                        let new = [self.cycles(set), self.cycles(other)];
                        let after = count(&new[0]) + count(&new[1]);
                        seed ^= seed << 13;
                        seed ^= seed >> 7;
                        seed ^= seed << 17;
                        if after < before || after == before && seed.is_multiple_of(4) {
                            better |= after < before;
                            let [one, two] = new;
                            cycles[set] = one;
                            cycles[other] = two;
                        } else {
                            self.swap(other, set, [a, b, c, d]);
                        }
                    }
                }
            }
            idle = if better { 0 } else { idle + 1 };
            if idle > PATIENCE {
                return None;
            }
        }
        Some((0..self.sides.len()).map(|set| self.order(set)).collect())
    }

    /// For a side a-b of a set, a square a-b-c-d whose side c-d is on another cycle of the set and
    /// whose other two sides are of one other set.
    fn square(&self, set: usize, a: u32, b: u32, cycles: &[u32]) -> Option<(usize, u32, u32)> {
        for other in (0..self.sides.len()).filter(|&other| other != set) {
            for c in self.sides[other][b as usize] {
                if cycles[c as usize] == cycles[a as usize] {
                    continue;
                }
                for d in self.sides[set][c as usize] {
                    if self.sides[other][a as usize].contains(&d) {
                        return Some((other, c, d));
                    }
                }
            }
        }
        None
    }

    /// Gives a-b and c-d of one set to the other for b-c and d-a.
    fn swap(&mut self, set: usize, other: usize, [a, b, c, d]: [u32; 4]) {
        for (at, old, new) in [(a, b, d), (b, a, c), (c, d, b), (d, c, a)] {
            replace(&mut self.sides[set][at as usize], old, new);
            replace(&mut self.sides[other][at as usize], new, old);
        }
    }

    /// For each rank the number of its cycle.
    fn cycles(&self, set: usize) -> Vec<u32> {
        let sides = &self.sides[set];
        let mut cycles = vec![u32::MAX; sides.len()];
        let mut count = 0;
        for start in 0..sides.len() {
            if cycles[start] != u32::MAX {
                continue;
            }
            let mut next = Some(start as u32);
            while let Some(at) = next {
                cycles[at as usize] = count;
                let open = |rank: &&u32| cycles[**rank as usize] == u32::MAX;
                next = sides[at as usize].iter().find(open).copied();
            }
            count += 1;
        }
        cycles
    }

    /// The ranks along the one cycle of a set.
    fn order(&self, set: usize) -> Vec<u32> {
        let sides = &self.sides[set];
        let mut order = vec![0, sides[0][0]];
        while order.len() < sides.len() {
            let [before, at] = [order[order.len() - 2], order[order.len() - 1]];
            let [one, two] = sides[at as usize];
            order.push(if one == before { two } else { one });
        }
        order
    }
}

fn replace(pair: &mut [u32; 2], old: u32, new: u32) {
    if let Some(side) = pair.iter_mut().find(|side| **side == old) {
        *side = new;
    }
}

/// For each rank where its links lead when all are walked in one go (Hierholzer): as many leave
/// each rank as enter it.
fn circuit(neighbours: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut left: Vec<Vec<u32>> = neighbours.to_vec();
    let mut out = vec![Vec::new(); neighbours.len()];
    for start in 0..neighbours.len() {
        let mut at = start;
        // Degrees are even, so that a walk ends where it began.
        while let Some(to) = left[at].pop() {
            left[to as usize].retain(|&one| one != at as u32);
            out[at].push(to);
            at = to as usize;
        }
    }
    out
}

/// A next rank for each, all different, along links that leave it.
fn matching(out: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut from: Vec<u32> = vec![u32::MAX; out.len()];
    let mut next: Vec<u32> = vec![u32::MAX; out.len()];
    for start in 0..out.len() as u32 {
        // Breadth-first search for a way to change who goes where.
        let mut by: Vec<u32> = vec![u32::MAX; out.len()];
        let mut queue = vec![start];
        let mut head = 0;
        let mut end = None;
        'search: while let Some(&at) = queue.get(head) {
            head += 1;
            for &to in &out[at as usize] {
                if by[to as usize] == u32::MAX {
                    by[to as usize] = at;
                    if from[to as usize] == u32::MAX {
                        end = Some(to);
                        break 'search;
                    }
                    queue.push(from[to as usize]);
                }
            }
        }
        let mut to = end?;
        loop {
            let at = by[to as usize];
            from[to as usize] = at;
            let before = std::mem::replace(&mut next[at as usize], to);
            if at == start {
                break;
            }
            to = before;
        }
    }
    Some(next)
}
