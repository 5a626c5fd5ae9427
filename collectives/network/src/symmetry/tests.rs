use proptest::prelude::*;

use super::*;
use crate::Builder;

const GB: u64 = 1_000_000_000;

fn classes(network: &Network) -> (usize, usize) {
    let symmetry = Symmetry::of(network).unwrap();
    (
        symmetry.vertices().sizes().len(),
        symmetry.arcs().sizes().len(),
    )
}

#[test]
fn a_torus_is_one_class_of_ranks_and_one_of_links_for_each_length() {
    for (rows, columns, expected) in [
        (4, 4, (1, 1)),
        (5, 5, (1, 1)),
        (3, 6, (1, 2)),
        (8, 32, (1, 2)),
    ] {
        let mut builder = Builder::new(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let at = |row: u32, column: u32| row % rows * columns + column % columns;
                builder.duplex(at(row, column), at(row, column + 1), 50 * GB, 0);
                builder.duplex(at(row, column), at(row + 1, column), 50 * GB, 0);
            }
        }
        assert_eq!(
            classes(&builder.build().unwrap()),
            expected,
            "{rows} x {columns}"
        );
    }
}

#[test]
fn boxes_and_rails_have_four_classes_of_links() {
    let mut builder = Builder::new(1024);
    let rails: Vec<u32> = (0..8).map(|_| builder.switch(false)).collect();
    for one in 0..128 {
        let inside = builder.switch(false);
        for rank in 0..8 {
            builder.duplex(one * 8 + rank, inside, 450 * GB, 0);
            builder.duplex(one * 8 + rank, rails[rank as usize], 50 * GB, 0);
        }
    }
    assert_eq!(classes(&builder.build().unwrap()), (3, 4));
}

#[test]
fn a_mesh_is_one_class_until_a_link_is_gone() {
    let mesh = |without: Option<(u32, u32)>| {
        let mut builder = Builder::new(8);
        for one in 0..8 {
            for other in 0..one {
                if without != Some((other, one)) {
                    builder.duplex(one, other, 64 * GB, 0);
                }
            }
        }
        builder.build().unwrap()
    };
    assert_eq!(classes(&mesh(None)), (1, 1));
    // Ranks at the gap and others; links from one kind to the other, and among the others.
    assert_eq!(classes(&mesh(Some((2, 5)))), (2, 3));
}

#[test]
fn what_only_looks_alike_is_not_joined() {
    // Two rings of three and one of six: every vertex has two neighbours.
    let mut builder = Builder::new(12);
    for ring in [&[0, 1, 2][..], &[3, 4, 5], &[6, 7, 8, 9, 10, 11]] {
        for (place, &rank) in ring.iter().enumerate() {
            builder.duplex(rank, ring[(place + 1) % ring.len()], GB, 0);
        }
    }
    let symmetry = Symmetry::of(&builder.build().unwrap()).unwrap();
    assert_eq!(symmetry.vertices().sizes(), [6, 6]);
    assert_eq!(symmetry.vertices().representatives(), [0, 6]);
    // One way round is not the other where widths differ.
    let mut builder = Builder::new(5);
    for rank in 0..5 {
        builder.edge(rank, (rank + 1) % 5, GB, 0);
        builder.edge((rank + 1) % 5, rank, 2 * GB, 0);
    }
    assert_eq!(classes(&builder.build().unwrap()), (1, 2));
}

proptest! {
    /// Classes are what all renumberings of six vertices say, or finer.
    #[test]
    fn classes_are_never_too_large(arcs in prop::collection::btree_map((0..6u32, 0..6u32), 0..2u64, 0..16)) {
        let arcs: Vec<_> = arcs.into_iter().filter(|((from, to), _)| from != to).map(|((from, to), label)| (from, to, label)).collect();
        let found = Symmetry::of_arcs(&[0; 6], &arcs);
        let mut vertices = Merging::new(6);
        let mut links = Merging::new(arcs.len());
        let mut order = [0, 1, 2, 3, 4, 5];
        permutations(&mut order, 0, &mut |image| {
            let goes = |&(from, to, label): &(u32, u32, u64)| {
                arcs.iter().position(|arc| *arc == (image[from as usize], image[to as usize], label))
            };
            let places: Option<Vec<usize>> = arcs.iter().map(goes).collect();
            for (arc, place) in (0..).zip(places.iter().flatten()) {
                links.join(arc, *place as u32);
            }
            if places.is_some() {
                (0..6).for_each(|vertex| vertices.join(vertex, image[vertex as usize]));
            }
        });
        // The search gives up where it would have to go back often, so it may miss some.
        prop_assert!(within(found.vertices(), &vertices.classes(), 6));
        prop_assert!(within(found.arcs(), &links.classes(), arcs.len() as u32));
    }
}

/// Whether what one kind of classes puts together is together in the other too.
fn within(fine: &Classes, coarse: &Classes, count: u32) -> bool {
    let alike = |classes: &Classes, a, b| classes.of(a) == classes.of(b);
    let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
    pairs
        .into_iter()
        .all(|(a, b)| !alike(fine, a, b) || alike(coarse, a, b))
}

fn permutations(order: &mut [u32; 6], from: usize, see: &mut impl FnMut(&[u32; 6])) {
    if from == order.len() {
        return see(order);
    }
    for place in from..order.len() {
        order.swap(from, place);
        permutations(order, from + 1, see);
        order.swap(from, place);
    }
}
