use super::*;
use crate::Builder;

const GB: u64 = 1_000_000_000;

fn vertices(network: &Network, path: &[EdgeId]) -> Vec<u32> {
    path.iter().map(|edge| network.edge(*edge).to).collect()
}

#[test]
fn switches_are_preferred_to_devices_and_wide_to_narrow() {
    // 0 to 2: over rank 1, or over two switches, of which one way is wider.
    let mut builder = Builder::new(3);
    let [a, b, narrow, wide] = std::array::from_fn(|_| builder.switch(false));
    builder.duplex(0, 1, 100 * GB, 1);
    builder.duplex(1, 2, 100 * GB, 1);
    builder.duplex(0, a, 10 * GB, 5);
    for (middle, width) in [(narrow, 5), (wide, 8)] {
        builder.duplex(a, middle, width * GB, 5);
        builder.duplex(middle, b, width * GB, 5);
    }
    builder.duplex(b, 2, 10 * GB, 5);
    let network = builder.build().unwrap();
    let mut router = Router::new(&network);
    let path = router.path(0, 2).unwrap();
    assert_eq!(vertices(&network, &path), [a, wide, b, 2]);
    let facts = network.path_facts(&path);
    assert_eq!((facts.bytes_per_second, facts.latency_ns), (8 * GB, 20));
    assert_eq!(router.path(0, 0), Some(vec![]));
    assert_eq!(router.path(0, 3), None);
}

#[test]
fn devices_relay_where_nothing_else_does_and_nobody_answers_for_an_island() {
    let mut builder = Builder::new(4);
    builder.duplex(0, 1, GB, 0);
    builder.edge(1, 2, GB, 0);
    let network = builder.build().unwrap();
    let mut router = Router::new(&network);
    assert_eq!(vertices(&network, &router.path(0, 2).unwrap()), [1, 2]);
    assert_eq!(router.path(2, 0), None);
    assert_eq!(router.path(0, 3), None);
    assert_eq!(
        router.spread(&[(0, 3, 1), (1, 2, 1)]),
        [None, Some(vec![2])]
    );
}

#[test]
fn pairs_spread_over_paths_of_one_length() {
    // Two leaves under four spines: eight pairs, two over each spine.
    let mut builder = Builder::new(16);
    let leaves = [builder.switch(false), builder.switch(false)];
    for rank in 0..16 {
        builder.duplex(rank, leaves[rank as usize / 8], 10 * GB, 0);
    }
    let mut up = Vec::new();
    for _ in 0..4 {
        let spine = builder.switch(false);
        up.push(builder.duplex(leaves[0], spine, 20 * GB, 0)[0]);
        builder.duplex(leaves[1], spine, 20 * GB, 0);
    }
    let network = builder.build().unwrap();
    let pairs: Vec<_> = (0..8).map(|rank| (rank, rank + 8, 1 << 20)).collect();
    let paths = Router::new(&network).spread(&pairs);
    for edge in up {
        let through = paths.iter().flatten().filter(|path| path.contains(&edge));
        assert_eq!(through.count(), 2);
    }
}

/// The most that one edge carries if rank `i` sends one block to each of `i + shifts`.
#[test]
fn pairs_stay_on_the_wide_one_of_two_switches_until_it_is_the_fuller_one() {
    let mut builder = Builder::new(8);
    let (wide, narrow) = (builder.switch(false), builder.switch(false));
    for rank in 0..8 {
        builder.duplex(rank, narrow, 50 * GB, 0);
        builder.duplex(rank, wide, 450 * GB, 0);
    }
    let network = builder.build().unwrap();
    let pairs: Vec<_> = (0..8)
        .flat_map(|from| (0..8).map(move |to| (from, to, 1 << 20)))
        .filter(|(from, to, _)| from != to)
        .collect();
    for path in Router::new(&network).spread(&pairs) {
        assert_eq!(vertices(&network, &path.unwrap())[0], wide);
    }
}

fn busiest(network: &Network, shifts: std::ops::Range<u32>) -> u32 {
    let ranks = network.ranks();
    let mut load = vec![0; network.edges().len()];
    let mut router = Router::new(network);
    for from in 0..ranks {
        for shift in shifts.clone() {
            for edge in router.path(from, (from + shift) % ranks).unwrap() {
                load[edge as usize] += 1;
            }
        }
    }
    load.into_iter().max().unwrap_or(0)
}

fn torus(rows: u32, columns: u32) -> Network {
    let mut builder = Builder::new(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let at = |row: u32, column: u32| row % rows * columns + column % columns;
            if columns > 1 {
                builder.duplex(at(row, column), at(row, column + 1), 50 * GB, 0);
            }
            if rows > 1 {
                builder.duplex(at(row, column), at(row + 1, column), 50 * GB, 0);
            }
        }
    }
    builder.build().unwrap()
}

#[test]
fn loads_on_rings_and_tori_are_the_known_ones() {
    // Pairwise all_gather on a ring of 8: step k goes k hops, all one way at half the ring.
    let ring = torus(1, 8);
    let steps: Vec<u32> = (1..8)
        .map(|shift| busiest(&ring, shift..shift + 1))
        .collect();
    assert_eq!(steps, [1, 2, 3, 4, 3, 2, 1]);
    // Everything at once on a ring of 16: 1 + 2 + … + 8.
    assert_eq!(busiest(&torus(1, 16), 1..16), 36);
    let square = torus(4, 4);
    let steps: Vec<u32> = (1..16)
        .map(|shift| busiest(&square, shift..shift + 1))
        .collect();
    assert_eq!(steps[..8], [1, 2, 1, 1, 2, 2, 2, 2], "{steps:?}");
}
