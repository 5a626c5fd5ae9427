//! The checker finds what is wrong.

use unisono_network::Builder;
use unisono_pack::check::{Flaw, packing, pairs, rings, routing};
use unisono_pack::{all_gather, all_reduce, all_to_all};

mod families;

#[test]
fn a_tree_that_does_not_span() {
    let (_, network) = families::mesh(4, false);
    let mut broken = all_gather(&network).expect("a packing");
    let root = broken.trees[0].root;
    let other = (root + 1) % 4;
    broken.trees[0].parents[other as usize] = other;
    assert_eq!(
        packing(&network, &broken),
        Err(Flaw::NotSpanning { tree: 0 })
    );
}

#[test]
fn a_path_that_leads_elsewhere() {
    let (_, network) = families::star(4);
    let mut broken = all_gather(&network).expect("a packing");
    let rank = (broken.trees[0].root + 1) % 4;
    broken.trees[0].paths[rank as usize].reverse();
    assert_eq!(
        packing(&network, &broken),
        Err(Flaw::BrokenPath { tree: 0, rank })
    );
}

#[test]
fn too_much_on_a_link_and_on_a_shared_capacity() {
    let (_, network) = families::mesh(4, false);
    let mut broken = all_gather(&network).expect("a packing");
    broken.unit *= 1_000_001;
    broken.unit /= 1_000_000;
    assert!(matches!(
        packing(&network, &broken),
        Err(Flaw::Overload { .. })
    ));

    let mut builder = Builder::new(3);
    let edges: Vec<_> = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
        .map(|(from, to)| builder.edge(from, to, 100, 0))
        .into();
    let free = builder.clone().build().expect("sound");
    builder.group(100, &edges[..2]);
    let shared = builder.build().expect("sound");
    let broken = all_gather(&free).expect("a packing");
    assert_eq!(packing(&free, &broken), Ok(()));
    assert!(matches!(
        packing(&shared, &broken),
        Err(Flaw::Overload { .. })
    ));
    let whole = all_gather(&shared).expect("a packing");
    assert_eq!(packing(&shared, &whole), Ok(()));
}

#[test]
fn pairs_routes_and_rings() {
    let (_, network) = families::mesh(4, false);
    let mut broken = all_reduce(&network).expect("a packing");
    broken.pairs[0].reduce.weight += 1;
    assert_eq!(pairs(&network, &broken), Err(Flaw::Mismatch { pair: 0 }));
    let mut broken = all_to_all(&network).expect("routes");
    broken.routes[0].weight += 1;
    assert!(matches!(
        routing(&network, &broken),
        Err(Flaw::Share { from: 0, to: 1, .. })
    ));
    let mut broken = unisono_pack::rings(&network).expect("rings");
    broken.rings[0].order.swap(0, 1);
    assert!(matches!(
        rings(&network, &broken),
        Err(Flaw::BrokenPath { tree: 0, .. })
    ));
}
