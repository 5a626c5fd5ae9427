//! Rings over islands, one for each rail.
//!
//! Each ring enters an island at one rank and leaves it at another, so that no network card is
//! entered and left by the same ring, and goes on where the next island's rank is on the same rail.
//! With a ring for each rail, every card is entered once and left once.

use unisono_network::levels::levels;
use unisono_network::{Network, to_f64};

use super::Rings;
use crate::error::PackError;

/// The best of one ring, one ring each way, and a ring for each rail.
pub(super) fn rings(network: &Network) -> Result<Rings, PackError> {
    let levels = levels(network);
    let place = {
        let mut place = vec![0; network.ranks() as usize];
        for (at, &rank) in levels.order().iter().enumerate() {
            place[rank as usize] = at;
        }
        place
    };
    let lowest = &levels.levels()[0].groups;
    let mut islands: Vec<&[u32]> = lowest.iter().map(Vec::as_slice).collect();
    islands.sort_by_key(|island| place[island[0] as usize]);
    let one: Vec<u32> = order(&islands, 0);
    let back: Vec<u32> = one.iter().rev().copied().collect();
    let mut best = Rings::laid(network, &[(one.clone(), 1)])?;
    let rails = islands.iter().map(|island| island.len()).min().unwrap_or(1);
    let by_rail = (0..rails).map(|rail| (order(&islands, rail), 1)).collect();
    for orders in [vec![(one, 1), (back, 1)], by_rail] {
        let rings = Rings::laid(network, &orders)?;
        // More rings for a little more speed are not worth it.
        if to_f64(rings.bytes_per_second()) > 1.001 * to_f64(best.bytes_per_second()) {
            best = rings;
        }
    }
    Ok(best)
}

/// One ring over all islands, shifted by so many rails.
fn order(islands: &[&[u32]], shift: usize) -> Vec<u32> {
    let count = islands.len();
    // Where each island is entered: neighbours differ, also the last and the first.
    let gate = |at: usize| match at {
        at if at == count => 0,
        at if at + 1 == count && count % 2 == 1 && count > 1 => 2,
        at => at % 2,
    };
    let mut order = Vec::new();
    for (at, island) in islands.iter().enumerate() {
        let size = island.len();
        let enter = (gate(at) + shift) % size;
        let leave = (gate(at + 1) + shift) % size;
        order.push(island[enter]);
        let between = (1..size).map(|step| (enter + step) % size);
        order.extend(between.filter(|&one| one != leave).map(|one| island[one]));
        if leave != enter {
            order.push(island[leave]);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ring_visits_all_and_changes_rails_between_islands() {
        for count in 1..6 {
            let ranks: Vec<u32> = (0..count * 4).collect();
            let islands: Vec<&[u32]> = ranks.chunks(4).collect();
            for shift in 0..4 {
                let order = order(&islands, shift);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, ranks);
                for at in 0..count as usize {
                    let island = &order[at * 4..at * 4 + 4];
                    assert!(island.iter().all(|rank| rank / 4 == island[0] / 4));
                    let next = order[(at * 4 + 4) % order.len()];
                    if count > 1 {
                        assert_eq!(island[3] % 4, next % 4, "the same rail: {order:?}");
                        assert_ne!(island[0], island[3]);
                    }
                }
            }
        }
    }
}
