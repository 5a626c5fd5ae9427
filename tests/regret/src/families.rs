//! Regular graphs, as machines are built. Bandwidths and latencies are those of usual parts.

use unisono_network::{Builder, Network, NetworkError};

const GB: u64 = 1_000_000_000;

/// The two factors of a number that are nearest to each other, the smaller first.
#[must_use]
pub fn sides(ranks: u32) -> (u32, u32) {
    let root = ranks.isqrt();
    let a = (1..=root).rev().find(|a| ranks.is_multiple_of(*a));
    let a = a.unwrap_or(1);
    (a, ranks / a)
}

/// A ring; two ranks have one link.
///
/// # Errors
/// For a number of ranks of which there is no network, such as none.
pub fn ring(ranks: u32) -> Result<Network, NetworkError> {
    let mut builder = Builder::new(ranks);
    for rank in 0..ranks {
        // Two ranks have one link, not two.
        if ranks > 2 || rank == 0 {
            builder.duplex(rank, (rank + 1) % ranks, 50 * GB, 1000);
        }
    }
    builder.build()
}

/// A link between any two ranks.
///
/// # Errors
/// For a number of ranks of which there is no network, such as none.
pub fn mesh(ranks: u32) -> Result<Network, NetworkError> {
    let mut builder = Builder::new(ranks);
    for one in 0..ranks {
        for other in 0..one {
            builder.duplex(one, other, 28 * GB, 1500);
        }
    }
    builder.build()
}

/// A torus of two dimensions; a side of two has one link, not two.
///
/// # Errors
/// For a number of ranks of which there is no network, such as none.
pub fn torus(a: u32, b: u32) -> Result<Network, NetworkError> {
    let mut builder = Builder::new(a * b);
    let at = |x: u32, y: u32| (x % a) * b + y % b;
    for x in 0..a {
        for y in 0..b {
            if a > 2 || x == 0 {
                builder.duplex(at(x, y), at(x + 1, y), 50 * GB, 700);
            }
            if b > 2 || y == 0 {
                builder.duplex(at(x, y), at(x, y + 1), 50 * GB, 700);
            }
        }
    }
    builder.build()
}

/// Leaves of some hosts each, and half as much bandwidth above them as below.
///
/// # Errors
/// For a number of ranks of which there is no network, such as none.
pub fn fat_tree(leaves: u32, hosts: u32) -> Result<Network, NetworkError> {
    let mut builder = Builder::new(leaves * hosts);
    let spines = [builder.switch(false), builder.switch(false)];
    for number in 0..leaves {
        let leaf = builder.switch(false);
        for host in 0..hosts {
            builder.duplex(number * hosts + host, leaf, 25 * GB, 1000);
        }
        for spine in spines {
            builder.duplex(leaf, spine, 25 * GB * u64::from(hosts) / 4, 1000);
        }
    }
    builder.build()
}

/// Boxes with a switch each, and a rail for each place in a box.
///
/// # Errors
/// For a number of ranks of which there is no network, such as none.
pub fn boxes(count: u32, each: u32) -> Result<Network, NetworkError> {
    let mut builder = Builder::new(count * each);
    let rails: Vec<u32> = (0..each).map(|_| builder.switch(false)).collect();
    for number in 0..count {
        let switch = builder.switch(false);
        for (place, &rail) in (0..each).zip(&rails) {
            builder.duplex(number * each + place, switch, 450 * GB, 700);
            builder.duplex(number * each + place, rail, 50 * GB, 3000);
        }
    }
    builder.build()
}
