//! On families of networks every construction is whole and reaches its bound.

use unisono_bound::{Op, bound};
use unisono_network::{Network, Rational, to_f64};
use unisono_pack::{
    Packing, all_gather, all_reduce, all_to_all, broadcast, check, reduce, reduce_scatter, rings,
    shallow_all_gather,
};

mod families;

/// What share of the bound must be reached.
const SHARE: f64 = 0.99;

fn share(name: &str, network: &Network, op: Op, rate: Rational) -> f64 {
    let limit = bound(network, op).expect("ranks are connected").limit;
    let share = to_f64(rate) / to_f64(limit.high().expect("more than one rank"));
    assert!(share <= 1.000_001, "{name}, {op:?}: {share} of the bound");
    share
}

fn packed(name: &str, network: &Network, op: Op, packing: &Packing) {
    assert_eq!(check::packing(network, packing), Ok(()), "{name}, {op:?}");
    let share = share(name, network, op, packing.bytes_per_second());
    assert!(share >= SHARE, "{name}, {op:?}: {share}");
}

#[test]
fn all_gather_and_reduce_scatter() {
    for (name, network) in families::small() {
        let packing = all_gather(&network).expect("a packing");
        packed(&name, &network, Op::AllGather, &packing);
        let weights = packing.root_weights();
        assert!(weights.iter().all(|weight| *weight == weights[0]), "{name}");
        let packing = reduce_scatter(&network).expect("a packing");
        packed(&name, &network, Op::ReduceScatter, &packing);
    }
}

#[test]
fn broadcast_and_reduce() {
    for (name, network) in families::small() {
        for root in [0, network.ranks() - 1] {
            let packing = broadcast(&network, root).expect("a packing");
            assert!(packing.trees.iter().all(|tree| tree.root == root));
            packed(&name, &network, Op::Broadcast { root }, &packing);
            let packing = reduce(&network, root).expect("a packing");
            packed(&name, &network, Op::Reduce { root }, &packing);
        }
    }
}

#[test]
fn all_reduce_in_pairs() {
    for (name, network) in families::small() {
        let packing = all_reduce(&network).expect("a packing");
        assert_eq!(check::pairs(&network, &packing), Ok(()), "{name}");
        let op = Op::AllReduce { in_network: false };
        let share = share(&name, &network, op, packing.bytes_per_second());
        assert!(share >= SHARE, "{name}: {share}");
    }
}

#[test]
fn all_to_all_by_routes() {
    for (name, network) in families::small() {
        let routing = all_to_all(&network).expect("routes");
        assert_eq!(check::routing(&network, &routing), Ok(()), "{name}");
        let rate = routing.bytes_per_second() * i128::from(network.ranks());
        let share = share(&name, &network, Op::AllToAll, rate);
        assert!(share >= SHARE, "{name}: {share}");
    }
}

#[test]
fn rings_use_what_they_can() {
    // On these, rings are as good as anything; all_gather's bound is `n / (n - 1)` of their rate.
    let full = [
        families::ring(8),
        families::cube_mesh(),
        families::hypercube(3),
        families::torus(&[4, 4]),
        families::torus(&[3, 3, 3]),
        families::torus(&[8, 8]),
        families::mesh(8, false),
        families::fat_tree(4, 4, 2, 2),
        families::star(8),
        families::dragonfly(5, 4, 2),
    ];
    for (name, network) in &full {
        let rings = rings(network).expect("rings");
        assert_eq!(check::rings(network, &rings), Ok(()), "{name}");
        let n = i128::from(network.ranks());
        let rate = rings.bytes_per_second() * n / (n - 1);
        let share = share(name, network, Op::AllGather, rate);
        assert!(share >= SHARE, "{name}: {share}");
    }
    for (name, network) in families::small() {
        let rings = rings(&network).expect("rings");
        assert_eq!(check::rings(&network, &rings), Ok(()), "{name}");
    }
}

#[test]
fn known_figures() {
    // algbw in GB/s of all_gather and all_reduce, from the bounds of these machines.
    let figures = [
        (families::cube_mesh(), 1200.0 / 7.0, 600.0 / 7.0),
        (families::mesh(8, true), 3072.0 / 7.0, 1728.0 / 7.0),
        (families::dies(), 200.0, 150.0),
        (families::star(8), 3600.0 / 7.0, 1800.0 / 7.0),
        (families::torus(&[4, 4]), 640.0 / 3.0, 320.0 / 3.0),
        (families::rails(2, 8, 450, 50), 1600.0 / 3.0, 800.0 / 3.0),
    ];
    for ((name, network), gathered, reduced) in figures {
        let near = |rate: Rational, expected: f64| {
            let rate = to_f64(rate) / 1e9;
            assert!(
                (rate / expected - 1.0).abs() < 0.003,
                "{name}: {rate}, not {expected}"
            );
        };
        near(
            all_gather(&network).expect("a packing").bytes_per_second(),
            gathered,
        );
        near(
            all_reduce(&network).expect("a packing").bytes_per_second(),
            reduced,
        );
    }
}

#[test]
fn regular_networks_of_hundreds_of_ranks_have_shallow_trees() {
    let networks = [
        (families::torus(&[16, 16]), 16),
        (families::rails(16, 8, 450, 50), 2),
        (families::fat_tree(16, 16, 8, 2), 2),
        (families::hypercube(8), 8),
    ];
    for ((name, network), depth) in networks {
        let packing = shallow_all_gather(&network).expect("a packing");
        packed(&name, &network, Op::AllGather, &packing);
        assert!(packing.depth() <= depth, "{name}: {}", packing.depth());
    }
}

#[test]
fn one_root_reaches_hundreds_of_ranks_at_full_speed() {
    let networks = [
        (families::torus(&[16, 16]), 64),
        (families::hypercube(8), 32),
        (families::rails(32, 8, 450, 50), 6),
        // A rank's links are as narrow as all rails of its box together.
        (families::rails(12, 20, 950, 50), 40),
        (families::fat_tree(16, 16, 8, 2), 12),
        (families::dragonfly(17, 4, 4), 6),
        (families::two_islands(120, 90), 3),
    ];
    for ((name, network), depth) in networks {
        let root = network.ranks() / 2 + 1;
        let packing = broadcast(&network, root).expect("a packing");
        packed(&name, &network, Op::Broadcast { root }, &packing);
        assert!(packing.depth() <= depth, "{name}: {}", packing.depth());
        let packing = reduce(&network, root).expect("a packing");
        packed(&name, &network, Op::Reduce { root }, &packing);
    }
}
