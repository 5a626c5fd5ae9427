//! Without latencies plans come near the bound: 98 % of it where ranks are joined directly, 95 %
//! where switches lie between.

use std::path::Path;

use unisono_graph::LinkGraph;
use unisono_network::{Builder, Network};
use unisono_plan::Op;
use unisono_planner::{Request, plan};

const GB: u64 = 1_000_000_000;
/// Long enough that filling pipelines takes nothing.
const BYTES: u64 = 1 << 30;

const OPS: [Op; 8] = [
    Op::AllReduce,
    Op::AllGather,
    Op::ReduceScatter,
    Op::Broadcast { root: 0 },
    Op::Reduce { root: 0 },
    Op::Gather { root: 0 },
    Op::Scatter { root: 0 },
    Op::AllToAll,
];

fn check(name: &str, network: &Network) {
    let switched = network.vertices().len() > network.ranks() as usize;
    let least = if switched { 0.95 } else { 0.98 };
    for op in OPS {
        let planned = plan(network, &Request::new(op, BYTES)).unwrap();
        let share = planned.share_of_bound();
        println!("{share:.4} {name} {op} by {}", planned.algorithm);
        assert!(share >= least, "{name}: {op} reaches {share} of the bound");
        assert!(
            share < 1.000_1,
            "{name}: {op} is faster than can be: {share}"
        );
    }
}

/// Links both ways: a, b, GB/s.
fn linked(ranks: u32, links: &[(u32, u32, u64)]) -> Network {
    let mut builder = Builder::new(ranks);
    for &(a, b, gigabytes) in links {
        builder.duplex(a, b, gigabytes * GB, 0);
    }
    builder.build().unwrap()
}

#[test]
fn directly_joined_ranks_come_within_two_per_cent() {
    let ring: Vec<_> = (0..5).map(|rank| (rank, (rank + 1) % 5, 50)).collect();
    check("ring of 5", &linked(5, &ring));
    let line: Vec<_> = (0..4).map(|rank| (rank, rank + 1, 10)).collect();
    check("line of 5", &linked(5, &line));
    let cube = (0..8u32).flat_map(|a| [1, 2, 4].map(|bit| (a, a ^ bit, 25)));
    let cube: Vec<_> = cube.filter(|(a, b, _)| a < b).collect();
    check("hypercube of 8", &linked(8, &cube));
    let pairs = (0..6).flat_map(|b| (0..b).map(move |a| (a, b, 64)));
    check("mesh of 6", &linked(6, &pairs.clone().collect::<Vec<_>>()));
    let dead: Vec<_> = pairs.filter(|&(a, b, _)| (a, b) != (1, 4)).collect();
    check("mesh of 6 without a link", &linked(6, &dead));
    let torus = (0..12u32).flat_map(|rank| {
        let (x, y) = (rank / 4, rank % 4);
        [
            (rank, (x + 1) % 3 * 4 + y, 50),
            (rank, x * 4 + (y + 1) % 4, 50),
        ]
    });
    check("torus 3 x 4", &linked(12, &torus.collect::<Vec<_>>()));
}

fn torus(sides: [u32; 3]) -> Network {
    let at = |place: [u32; 3]| (place[0] * sides[1] + place[1]) * sides[2] + place[2];
    let ranks = sides.iter().product();
    let mut links = Vec::new();
    for rank in 0..ranks {
        let place = [
            rank / (sides[1] * sides[2]),
            rank / sides[2] % sides[1],
            rank % sides[2],
        ];
        for axis in (0..3).filter(|&axis| sides[axis] > 1) {
            let mut next = place;
            next[axis] = (next[axis] + 1) % sides[axis];
            links.push((rank, at(next), 50));
        }
    }
    linked(ranks, &links)
}

/// Pipelines of many ranks are long: which of rings and trees is best shows only where both are cut finer.
#[test]
fn larger_tori_come_within_two_per_cent() {
    check("torus 5 x 5", &torus([1, 5, 5]));
    check("torus 3 x 4 x 5", &torus([3, 4, 5]));
}

#[test]
fn ranks_behind_switches_come_within_five_per_cent() {
    // Two islands, one with more ranks and wider links than the other.
    let mut builder = Builder::new(5);
    let (left, right) = (builder.switch(false), builder.switch(false));
    for rank in 0..5 {
        let (switch, wide) = if rank < 3 { (left, 100) } else { (right, 60) };
        builder.duplex(rank, switch, wide * GB, 0);
    }
    builder.duplex(left, right, 20 * GB, 0);
    check("unequal islands", &builder.build().unwrap());
    let boxes = |count: u32, each: u32| {
        let mut builder = Builder::new(count * each);
        let rails: Vec<u32> = (0..each).map(|_| builder.switch(false)).collect();
        for number in 0..count {
            let switch = builder.switch(false);
            for (place, &rail) in (0..each).zip(&rails) {
                builder.duplex(number * each + place, switch, 300 * GB, 0);
                builder.duplex(number * each + place, rail, 25 * GB, 0);
            }
        }
        builder.build().unwrap()
    };
    // Three of them, interleaved, each rank on one of two rails.
    let island_of = [1, 0, 2, 1, 1, 2, 0, 1, 2, 2, 0, 1, 2, 0, 1];
    let mut builder = Builder::new(15);
    let switches: Vec<u32> = (0..5).map(|_| builder.switch(false)).collect();
    let mut members = [0; 3];
    for (rank, island) in (0..).zip(island_of) {
        builder.duplex(rank, switches[island], 100 * GB, 0);
        builder.duplex(rank, switches[3 + members[island] % 2], 12_500_000_000, 0);
        members[island] += 1;
    }
    check("interleaved islands", &builder.build().unwrap());
    check("two boxes of 4", &boxes(2, 4));
    check("four boxes of 4", &boxes(4, 4));
    let mut builder = Builder::new(12);
    let spine = builder.switch(false);
    for pod in 0..4 {
        let leaf = builder.switch(false);
        for host in 0..3 {
            builder.duplex(pod * 3 + host, leaf, 25 * GB, 0);
        }
        builder.duplex(leaf, spine, 40 * GB, 0);
    }
    check("tapered fat-tree", &builder.build().unwrap());
}

/// Three and more islands on one spine are packed into many trees, whose pipelines fill late.
#[test]
fn several_unequal_islands_come_within_five_per_cent() {
    let sizes = [3, 7, 7, 6];
    let mut builder = Builder::new(sizes.iter().sum());
    let spine = builder.switch(false);
    let mut first = 0;
    for size in sizes {
        for place in 0..size {
            builder.duplex(first + place, first + (place + 1) % size, 100 * GB, 0);
            builder.duplex(first + place, spine, 25 * GB, 0);
        }
        first += size;
    }
    check("unequal islands of rings", &builder.build().unwrap());
}

/// The graphs that others have checked, where they are at hand.
#[test]
fn known_graphs_come_as_near() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/known_answers.json");
    let Ok(text) = std::fs::read_to_string(file) else {
        return;
    };
    let known: serde_json::Value = serde_json::from_str(&text).unwrap();
    for one in known["graphs"].as_array().unwrap() {
        let name = one["name"].as_str().unwrap();
        let graph = LinkGraph::from_json(&one["graph"].to_string()).unwrap();
        let network = Network::from_graph(&graph).unwrap();
        // The large ones take most of the time.
        if network.ranks() <= 12 || std::env::var_os("UNISONO_SOAK").is_some() {
            check(name, &network);
        }
    }
}
