//! Families of networks, by shape and size. Capacities in GB/s, each way.

#![allow(
    dead_code,
    reason = "each test that includes this file uses what it needs"
)]

use unisono_network::{Builder, Network, VertexId};

const G: u64 = 1_000_000_000;

/// A name and a network.
pub type Named = (String, Network);

fn built(name: impl Into<String>, builder: Builder) -> Named {
    (name.into(), builder.build().expect("the family is sound"))
}

pub fn line(n: u32) -> Named {
    let mut builder = Builder::new(n);
    for rank in 1..n {
        builder.duplex(rank - 1, rank, 10 * G, 0);
    }
    built(format!("line {n}"), builder)
}

pub fn ring(n: u32) -> Named {
    let mut builder = Builder::new(n);
    for rank in 0..n {
        builder.duplex(rank, (rank + 1) % n, 50 * G, 0);
    }
    built(format!("ring {n}"), builder)
}

/// All pairs, but for a dead link between ranks 0 and 1 if wanted.
pub fn mesh(n: u32, dead: bool) -> Named {
    let mut builder = Builder::new(n);
    for one in 0..n {
        for other in one + 1..n {
            if !(dead && (one, other) == (0, 1)) {
                builder.duplex(one, other, 64 * G, 0);
            }
        }
    }
    let name = if dead { "mesh, a link dead," } else { "mesh" };
    built(format!("{name} {n}"), builder)
}

pub fn hypercube(dimensions: u32) -> Named {
    let n = 1 << dimensions;
    let mut builder = Builder::new(n);
    for rank in 0..n {
        for dimension in 0..dimensions {
            let other = rank ^ (1 << dimension);
            if other > rank {
                builder.duplex(rank, other, 25 * G, 0);
            }
        }
    }
    built(format!("hypercube {n}"), builder)
}

/// Two quads of devices, joined in pairs, some links double: the boxes of 2017.
pub fn cube_mesh() -> Named {
    let mut builder = Builder::new(8);
    let double = [
        (0, 3),
        (0, 4),
        (1, 2),
        (1, 5),
        (2, 3),
        (4, 7),
        (5, 6),
        (6, 7),
    ];
    let single = [
        (0, 1),
        (0, 2),
        (1, 3),
        (4, 5),
        (4, 6),
        (5, 7),
        (2, 6),
        (3, 7),
    ];
    for (links, width) in [(double, 50), (single, 25)] {
        for (one, other) in links {
            builder.duplex(one, other, width * G, 0);
        }
    }
    built("cube mesh 8", builder)
}

pub fn torus(sides: &[u32]) -> Named {
    let n: u32 = sides.iter().product();
    let mut builder = Builder::new(n);
    for rank in 0..n {
        let mut stride = 1;
        for &side in sides {
            let at = rank / stride % side;
            let next = rank - at * stride + (at + 1) % side * stride;
            // A side of two has one link, not two.
            if side > 2 || at == 0 {
                builder.duplex(rank, next, 50 * G, 0);
            }
            stride *= side;
        }
    }
    let sides: Vec<String> = sides.iter().map(u32::to_string).collect();
    built(format!("torus {}", sides.join("x")), builder)
}

pub fn star(n: u32) -> Named {
    let mut builder = Builder::new(n);
    let switch = builder.switch(false);
    for rank in 0..n {
        builder.duplex(rank, switch, 450 * G, 0);
    }
    built(format!("star {n}"), builder)
}

/// Boxes of devices on a switch, and for each place in the box a rail switch that joins all boxes.
pub fn rails(boxes: u32, devices: u32, inside: u64, outside: u64) -> Named {
    let n = boxes * devices;
    let mut builder = Builder::new(n);
    let inner: Vec<VertexId> = (0..boxes).map(|_| builder.switch(false)).collect();
    let rail: Vec<VertexId> = (0..devices).map(|_| builder.switch(false)).collect();
    for rank in 0..n {
        builder.duplex(rank, inner[(rank / devices) as usize], inside * G, 0);
        builder.duplex(rank, rail[(rank % devices) as usize], outside * G, 0);
    }
    built(format!("{boxes} boxes x {devices} rails"), builder)
}

/// Leaves of hosts, and spines that join all leaves; `taper` times less leaves a leaf than enters it.
pub fn fat_tree(leaves: u32, hosts: u32, spines: u32, taper: u64) -> Named {
    let n = leaves * hosts;
    let mut builder = Builder::new(n);
    let leaf: Vec<VertexId> = (0..leaves).map(|_| builder.switch(false)).collect();
    let spine: Vec<VertexId> = (0..spines).map(|_| builder.switch(false)).collect();
    for rank in 0..n {
        builder.duplex(rank, leaf[(rank / hosts) as usize], 25 * G, 0);
    }
    for &leaf in &leaf {
        for &spine in &spine {
            let width = 25 * G * u64::from(hosts) / u64::from(spines) / taper;
            builder.duplex(leaf, spine, width, 0);
        }
    }
    built(
        format!("fat-tree {leaves}x{hosts}, {spines} spines, 1/{taper}"),
        builder,
    )
}

/// Groups of routers, all joined; each pair of groups joined by one link.
pub fn dragonfly(groups: u32, routers: u32, hosts: u32) -> Named {
    let n = groups * routers * hosts;
    let mut builder = Builder::new(n);
    let router: Vec<VertexId> = (0..groups * routers)
        .map(|_| builder.switch(false))
        .collect();
    for rank in 0..n {
        builder.duplex(rank, router[(rank / hosts) as usize], 25 * G, 0);
    }
    for group in 0..groups {
        for one in 0..routers {
            for other in one + 1..routers {
                let base = group * routers;
                builder.duplex(
                    router[(base + one) as usize],
                    router[(base + other) as usize],
                    25 * G,
                    0,
                );
            }
        }
        for other in group + 1..groups {
            let from = group * routers + (other - group - 1) % routers;
            let to = other * routers + (group + groups - other - 1) % routers;
            builder.duplex(router[from as usize], router[to as usize], 25 * G, 0);
        }
    }
    built(format!("dragonfly {groups}x{routers}x{hosts}"), builder)
}

/// Two full meshes of different sizes, each behind one network card.
pub fn two_islands(one: u32, other: u32) -> Named {
    let mut builder = Builder::new(one + other);
    let cards = [builder.switch(false), builder.switch(false)];
    builder.duplex(cards[0], cards[1], 12 * G, 0);
    for (range, card) in [(0..one, cards[0]), (one..one + other, cards[1])] {
        for rank in range.clone() {
            builder.duplex(rank, card, 24 * G, 0);
            for peer in rank + 1..range.end {
                builder.duplex(rank, peer, 100 * G, 0);
            }
        }
    }
    built(format!("islands {one} + {other}"), builder)
}

/// Dies in pairs on modules, modules joined by single and double links.
pub fn dies() -> Named {
    let mut builder = Builder::new(8);
    for module in 0..4 {
        builder.duplex(2 * module, 2 * module + 1, 200 * G, 0);
    }
    for (one, other, width) in [
        (0, 4, 100),
        (3, 7, 100),
        (1, 5, 50),
        (2, 6, 50),
        (4, 6, 50),
        (5, 6, 50),
        (5, 7, 50),
    ] {
        builder.duplex(one, other, width * G, 0);
    }
    built("dies 8", builder)
}

/// Networks on which everything is packed.
pub fn small() -> Vec<Named> {
    vec![
        line(2),
        line(5),
        ring(3),
        ring(8),
        ring(17),
        mesh(4, false),
        mesh(8, false),
        mesh(8, true),
        mesh(16, true),
        cube_mesh(),
        hypercube(3),
        hypercube(4),
        torus(&[3, 4]),
        torus(&[4, 4]),
        torus(&[3, 3, 3]),
        torus(&[2, 2, 4]),
        dies(),
        star(8),
        rails(2, 4, 450, 50),
        rails(2, 8, 450, 50),
        rails(4, 8, 450, 50),
        rails(3, 8, 300, 25),
        fat_tree(4, 4, 1, 2),
        fat_tree(4, 4, 2, 2),
        fat_tree(4, 4, 2, 4),
        fat_tree(8, 4, 4, 1),
        dragonfly(5, 4, 2),
        dragonfly(3, 2, 2),
        two_islands(4, 4),
        two_islands(2, 3),
        two_islands(8, 4),
    ]
}

/// Networks of about a thousand ranks.
pub fn large() -> Vec<Named> {
    vec![
        ring(1024),
        mesh(256, false),
        hypercube(10),
        torus(&[32, 32]),
        torus(&[8, 8, 16]),
        star(1024),
        rails(128, 8, 450, 50),
        fat_tree(32, 32, 16, 2),
        dragonfly(33, 8, 4),
    ]
}
