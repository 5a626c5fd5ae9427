//! How long bounds take on networks of a thousand ranks: `cargo run --release --example times`.

use std::time::Instant;

use unisono_bound::{Op, bound};
use unisono_network::{Builder, Network, to_f64};

const GB: u64 = 1_000_000_000;

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    for (name, network) in families() {
        if !name.contains(&only) {
            continue;
        }
        println!(
            "{name}: {} ranks, {} vertices, {} edges",
            network.ranks(),
            network.vertices().len(),
            network.edges().len()
        );
        let all = [
            Op::AllGather,
            Op::ReduceScatter,
            Op::Broadcast { root: 0 },
            Op::Reduce { root: 0 },
            Op::Scatter { root: 0 },
            Op::Gather { root: 0 },
            Op::AllReduce { in_network: false },
            Op::AllReduce { in_network: true },
            Op::AllToAll,
        ];
        let wanted = std::env::args().nth(2).unwrap_or_default();
        for op in all
            .into_iter()
            .filter(|op| format!("{op:?}").contains(&wanted))
        {
            let start = Instant::now();
            match bound(&network, op) {
                Ok(found) => {
                    let ends = [found.limit.low(), found.limit.high()]
                        .map(|end| end.map_or(f64::INFINITY, |end| to_f64(end) / 1e9));
                    let took = start.elapsed().as_secs_f64();
                    println!(
                        "  {op:?} {}: {:.4} to {:.4} GB/s, latency {} ns, {took:.3} s: {}",
                        if found.limit.is_exact() {
                            "exact"
                        } else {
                            "between"
                        },
                        ends[0],
                        ends[1],
                        found.latency_ns,
                        found.certificate
                    );
                }
                Err(error) => println!("  {op:?}: {error}"),
            }
        }
    }
}

fn families() -> Vec<(&'static str, Network)> {
    vec![
        ("small random, 8 x 3", random(8, 3, false)),
        ("small random, 16 x 3", random(16, 3, false)),
        ("small random, 24 x 3", random(24, 3, false)),
        ("small random, 32 x 3", random(32, 3, false)),
        ("small random duplex, 32 x 3", random(32, 3, true)),
        ("ring of 1024", ring(1024)),
        ("line of 1024", line(1024)),
        ("full mesh of 128", mesh(128)),
        ("torus 32 x 32", torus(32, 32)),
        ("torus 16 x 64", torus(16, 64)),
        ("128 boxes x 8 with rails", boxes(128, 8)),
        ("fat-tree of 3 levels, tapered", fat_tree()),
        (
            "random regular, 1024 x 10, random capacities",
            random(1024, 10, true),
        ),
        (
            "random regular, 1024 x 3, random capacities",
            random(1024, 3, true),
        ),
        (
            "random, 1024 x 19, random capacities each way",
            random(1024, 10, false),
        ),
        (
            "random, 1024 x 5, random capacities each way",
            random(1024, 3, false),
        ),
    ]
}

fn built(builder: Builder) -> Network {
    match builder.build() {
        Ok(network) => network,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

fn ring(ranks: u32) -> Network {
    let mut builder = Builder::new(ranks);
    for rank in 0..ranks {
        builder.duplex(rank, (rank + 1) % ranks, 50 * GB, 700);
    }
    built(builder)
}

fn line(ranks: u32) -> Network {
    let mut builder = Builder::new(ranks);
    for rank in 1..ranks {
        builder.duplex(rank - 1, rank, 50 * GB, 700);
    }
    built(builder)
}

fn mesh(ranks: u32) -> Network {
    let mut builder = Builder::new(ranks);
    for one in 0..ranks {
        for other in 0..one {
            builder.duplex(one, other, 28 * GB, 700);
        }
    }
    built(builder)
}

fn torus(rows: u32, columns: u32) -> Network {
    let mut builder = Builder::new(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let at = |row: u32, column: u32| row % rows * columns + column % columns;
            builder.duplex(at(row, column), at(row, column + 1), 50 * GB, 700);
            builder.duplex(at(row, column), at(row + 1, column), 50 * GB, 700);
        }
    }
    built(builder)
}

fn boxes(boxes: u32, ranks: u32) -> Network {
    let mut builder = Builder::new(boxes * ranks);
    let rails: Vec<u32> = (0..ranks).map(|_| builder.switch(true)).collect();
    for one in 0..boxes {
        let inside = builder.switch(true);
        for rank in 0..ranks {
            builder.duplex(one * ranks + rank, inside, 450 * GB, 500);
            builder.duplex(one * ranks + rank, rails[rank as usize], 50 * GB, 2000);
        }
    }
    built(builder)
}

/// 1,024 ranks, 16 to a leaf, 8 leaves to a pod with 4 spines, 8 pods under 4 cores.
fn fat_tree() -> Network {
    let mut builder = Builder::new(1024);
    let cores: Vec<u32> = (0..4).map(|_| builder.switch(true)).collect();
    for pod in 0..8 {
        let spines: Vec<u32> = (0..4).map(|_| builder.switch(true)).collect();
        for (&spine, &core) in spines.iter().zip(&cores) {
            builder.duplex(spine, core, 200 * GB, 1000);
        }
        for leaf in 0..8 {
            let switch = builder.switch(true);
            for &spine in &spines {
                builder.duplex(switch, spine, 50 * GB, 1000);
            }
            for rank in 0..16 {
                builder.duplex((pod * 8 + leaf) * 16 + rank, switch, 25 * GB, 1000);
            }
        }
    }
    built(builder)
}

/// So many rings through all ranks in random orders, with random capacities.
fn random(ranks: u32, rings: u32, duplex: bool) -> Network {
    let mut builder = Builder::new(ranks);
    let mut state = 1u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..rings {
        let mut order: Vec<u32> = (0..ranks).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, next(place as u64 + 1) as usize);
        }
        for place in 0..order.len() {
            let (one, other) = (order[place], order[(place + 1) % order.len()]);
            let wide = 10 * GB + next(90 * GB);
            let back = if duplex {
                wide
            } else {
                10 * GB + next(90 * GB)
            };
            builder.edge(one, other, wide, 500 + next(1000));
            builder.edge(other, one, back, 500 + next(1000));
        }
    }
    built(builder)
}
