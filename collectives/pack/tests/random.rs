//! Random networks: whatever they look like, packings are valid and reach the bound.

use proptest::prelude::*;
use unisono_network::{Builder, Network, to_f64};
use unisono_pack::{all_gather, all_reduce, all_to_all, broadcast, check, reduce, reduce_scatter};

/// A network of ranks and switches, by links.
#[derive(Clone, Debug)]
struct Plan {
    ranks: u32,
    switches: u32,
    /// Ends and capacities each way, in MB/s.
    links: Vec<(u32, u32, u64, u64)>,
}

impl Plan {
    fn build(&self) -> Network {
        let mut builder = Builder::new(self.ranks);
        for _ in 0..self.switches {
            builder.switch(false);
        }
        for &(one, other, there, back) in &self.links {
            builder.edge(one, other, there * 1_000_000, 0);
            builder.edge(other, one, back * 1_000_000, 0);
        }
        builder.build().expect("the links are sound")
    }
}

/// A random tree that joins all vertices, and some links more. Each link is as wide both ways,
/// unless `lopsided`.
fn plans(switches: impl Strategy<Value = u32>, lopsided: bool) -> impl Strategy<Value = Plan> {
    let capacity = prop_oneof![
        prop::sample::select(vec![10_000u64, 25_000, 50_000, 100_000, 200_000]),
        1_000u64..60_000,
    ];
    (2u32..8, switches).prop_flat_map(move |(ranks, switches)| {
        let n = ranks + switches;
        let tree: Vec<_> = (1..n).map(|vertex| 0..vertex).collect();
        let link = (0..n, 0..n, capacity.clone(), capacity.clone());
        let widths = prop::collection::vec((capacity.clone(), capacity.clone()), n as usize - 1);
        (tree, widths, prop::collection::vec(link, 0..12)).prop_map(move |(tree, widths, more)| {
            let tree = (1..)
                .zip(tree)
                .zip(widths)
                .map(|((vertex, to), (there, back))| (vertex, to, there, back));
            let more = more.into_iter().filter(|(one, other, ..)| one != other);
            let links = tree.chain(more).map(|(one, other, there, back)| {
                (one, other, there, if lopsided { back } else { there })
            });
            Plan {
                ranks,
                switches,
                links: links.collect(),
            }
        })
    })
}

/// The bound of trees with roots of equal weight, or of one root, by looking at every cut.
fn cut_bound(network: &Network, root: Option<u32>) -> f64 {
    let n = network.vertices().len();
    let ranks = (1u32 << network.ranks()) - 1;
    let mut least = f64::INFINITY;
    for inside in 1u32..1 << n {
        let roots = match root {
            Some(root) => u32::from(inside & (1 << root) != 0),
            None => (inside & ranks).count_ones(),
        };
        if inside & ranks == ranks || roots == 0 {
            continue;
        }
        let leaving = network
            .edges()
            .iter()
            .filter(|edge| inside & (1 << edge.from) != 0 && inside & (1 << edge.to) == 0);
        let leaving: u64 = leaving.map(|edge| edge.bytes_per_second).sum();
        least = least.min(leaving as f64 / f64::from(roots));
    }
    least
        * if root.is_some() {
            1.0
        } else {
            f64::from(network.ranks())
        }
}

fn check_all(network: &Network, share: f64) -> Result<(), TestCaseError> {
    let gathered = all_gather(network).expect("ranks are connected");
    prop_assert_eq!(check::packing(network, &gathered), Ok(()));
    let bound = cut_bound(network, None);
    prop_assert!(
        to_f64(gathered.bytes_per_second()) >= bound * share,
        "all_gather {} of {bound}",
        to_f64(gathered.bytes_per_second())
    );
    let weights = gathered.root_weights();
    prop_assert!(weights.iter().all(|weight| *weight == weights[0]));

    let scattered = reduce_scatter(network).expect("ranks are connected");
    prop_assert_eq!(check::packing(network, &scattered), Ok(()));
    let bound = cut_bound(&network.reversed(), None);
    prop_assert!(
        to_f64(scattered.bytes_per_second()) >= bound * share,
        "reduce_scatter {} of {bound}",
        to_f64(scattered.bytes_per_second())
    );

    for root in 0..network.ranks() {
        let packing = broadcast(network, root).expect("ranks are connected");
        prop_assert_eq!(check::packing(network, &packing), Ok(()));
        prop_assert!(packing.trees.iter().all(|tree| tree.root == root));
        let bound = cut_bound(network, Some(root));
        prop_assert!(
            to_f64(packing.bytes_per_second()) >= bound * share,
            "broadcast {} of {bound}",
            to_f64(packing.bytes_per_second())
        );
        let packing = reduce(network, root).expect("ranks are connected");
        prop_assert_eq!(check::packing(network, &packing), Ok(()));
    }

    let reduced = all_reduce(network).expect("ranks are connected");
    prop_assert_eq!(check::pairs(network, &reduced), Ok(()));
    let (a, b) = (
        to_f64(gathered.bytes_per_second()),
        to_f64(scattered.bytes_per_second()),
    );
    prop_assert!(to_f64(reduced.bytes_per_second()) >= a * b / (a + b) * 0.999_999);

    let routing = all_to_all(network).expect("ranks are connected");
    prop_assert_eq!(check::routing(network, &routing), Ok(()));
    prop_assert!(
        to_f64(routing.bytes_per_second()) >= routing.bound * 0.98,
        "all_to_all {} of {}",
        to_f64(routing.bytes_per_second()),
        routing.bound
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn networks_of_ranks(plan in plans(Just(0), true)) {
        check_all(&plan.build(), 0.98)?;
    }

    #[test]
    fn networks_with_switches(plan in plans(1u32..5, false)) {
        check_all(&plan.build(), 0.95)?;
    }

    #[test]
    fn networks_with_lopsided_switches(plan in plans(1u32..4, true)) {
        check_all(&plan.build(), 0.0)?;
    }
}
