//! Routes from one rank to all others, as wide as can be.
//!
//! A scatter sends equally much to everybody, so it is a maximum flow in which each rank takes the
//! same; how much that is, the bound says. A gather is a scatter on the network turned around, a
//! send a flow to one rank.

use std::collections::VecDeque;

use unisono_network::{EdgeId, Network, Rational};
use unisono_pack::Route;

/// Routes of a scatter of so many bytes a second in all, as the bound says. None if they can't be.
#[must_use]
pub fn scatter(network: &Network, root: u32, bytes_per_second: Rational) -> Option<Vec<Route>> {
    let each = bytes_per_second / i128::from(network.ranks());
    routes(network, root, |rank| rank != root, each)
}

/// Routes of a gather.
#[must_use]
pub fn gather(network: &Network, root: u32, bytes_per_second: Rational) -> Option<Vec<Route>> {
    let mut routes = scatter(&network.reversed(), root, bytes_per_second)?;
    for route in &mut routes {
        route.ranks.reverse();
        route.edges.reverse();
    }
    Some(routes)
}

/// Routes of a send from one rank to another.
#[must_use]
pub fn send(
    network: &Network,
    from: u32,
    to: u32,
    bytes_per_second: Rational,
) -> Option<Vec<Route>> {
    routes(network, from, |rank| rank == to, bytes_per_second)
}

/// Routes from the root to all ranks that take something, `each` the same.
fn routes(
    network: &Network,
    root: u32,
    takes: impl Fn(u32) -> bool,
    each: Rational,
) -> Option<Vec<Route>> {
    let scale = *each.denom();
    let mut flow = Flow {
        network,
        room: (network.edges().iter())
            .map(|edge| i128::from(edge.bytes_per_second).checked_mul(scale))
            .collect::<Option<_>>()?,
        flow: vec![0; network.edges().len()],
    };
    let mut left: Vec<i128> = (0..network.ranks())
        .map(|rank| if takes(rank) { *each.numer() } else { 0 })
        .collect();
    while flow.augment(root, &mut left) {}
    if left.iter().any(|&left| left > 0) {
        return None;
    }
    let mut routes = Vec::new();
    for to in (0..network.ranks()).filter(|&rank| takes(rank)) {
        let mut of_rank = flow.taken(root, to, *each.numer());
        of_rank.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        for (edges, weight) in of_rank {
            let stops = edges
                .iter()
                .filter_map(|&edge| network.rank_of(network.edge(edge).to));
            routes.push(Route {
                ranks: std::iter::once(root).chain(stops).collect(),
                // Parts of a million are fine enough.
                weight: (weight * 1_000_000 / each.numer()).max(1) as u64,
                edges,
            });
        }
    }
    Some(routes)
}

struct Flow<'n> {
    network: &'n Network,
    /// What each edge can still carry.
    room: Vec<i128>,
    flow: Vec<i128>,
}

impl Flow<'_> {
    /// Sends more to a rank that still takes something, over a shortest path on which there is room.
    fn augment(&mut self, root: u32, left: &mut [i128]) -> bool {
        let network = self.network;
        // How each vertex is reached: over an edge, forward or taking back what flows on it.
        let mut by: Vec<Option<(EdgeId, bool)>> = vec![None; network.vertices().len()];
        let mut queue = VecDeque::from([root]);
        let mut target = None;
        'search: while let Some(at) = queue.pop_front() {
            let forward = network.out_edges(at).iter().map(|&edge| (edge, true));
            let back = network.in_edges(at).iter().map(|&edge| (edge, false));
            for (id, forward) in forward.chain(back) {
                let edge = network.edge(id);
                let (next, room) = match forward {
                    true => (edge.to, self.room[id as usize]),
                    false => (edge.from, self.flow[id as usize]),
                };
                if room == 0 || next == root || by[next as usize].is_some() {
                    continue;
                }
                by[next as usize] = Some((id, forward));
                if network
                    .rank_of(next)
                    .is_some_and(|rank| left[rank as usize] > 0)
                {
                    target = Some(next);
                    break 'search;
                }
                queue.push_back(next);
            }
        }
        let Some(target) = target else {
            return false;
        };
        let mut path = Vec::new();
        let mut amount = left[target as usize];
        let mut at = target;
        while let Some((id, forward)) = by[at as usize].filter(|_| at != root) {
            let edge = network.edge(id);
            let room = if forward {
                self.room[id as usize]
            } else {
                self.flow[id as usize]
            };
            amount = amount.min(room);
            path.push((id, forward));
            at = if forward { edge.from } else { edge.to };
        }
        for (id, forward) in path {
            let change = if forward { amount } else { -amount };
            self.room[id as usize] -= change;
            self.flow[id as usize] += change;
        }
        left[target as usize] -= amount;
        true
    }

    /// Takes what flows to a rank out of the flow, path by path, the shortest first.
    fn taken(&mut self, root: u32, to: u32, mut amount: i128) -> Vec<(Vec<EdgeId>, i128)> {
        let network = self.network;
        let mut paths = Vec::new();
        while amount > 0 {
            let mut by: Vec<Option<EdgeId>> = vec![None; network.vertices().len()];
            let mut queue = VecDeque::from([root]);
            while let Some(at) = queue.pop_front() {
                for &id in network.out_edges(at) {
                    let next = network.edge(id).to;
                    let free = next != root && by[next as usize].is_none();
                    if free && self.flow[id as usize] > 0 {
                        by[next as usize] = Some(id);
                        queue.push_back(next);
                    }
                }
            }
            let mut path = Vec::new();
            let mut at = to;
            while let Some(id) = by[at as usize].filter(|_| at != root) {
                path.push(id);
                at = network.edge(id).from;
            }
            path.reverse();
            let narrowest = path.iter().map(|&id| self.flow[id as usize]).min();
            let Some(narrowest) = narrowest else {
                break;
            };
            let taken = narrowest.min(amount);
            for &id in &path {
                self.flow[id as usize] -= taken;
            }
            amount -= taken;
            paths.push((path, taken));
        }
        paths
    }
}
