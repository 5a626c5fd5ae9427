//! A few regular topologies with the plainest routes.

/// Links, and how to go over them from rank to rank.
pub struct Fabric {
    /// For messages of tests.
    pub name: String,
    /// How many ranks.
    pub ranks: usize,
    /// Bandwidth of each link in bytes a second.
    pub capacities: Vec<u64>,
    kind: Kind,
}

enum Kind {
    Torus(Vec<usize>),
    Mesh,
    FatTree { below: usize },
}

const GIGA: u64 = 1_000_000_000;

impl Fabric {
    /// A torus: link `2 (d p + r)` goes from rank `r` up dimension `d`, the next one down.
    pub fn torus(dims: &[usize], gigabytes: u64) -> Self {
        let ranks: usize = dims.iter().product();
        Self {
            name: format!("torus {dims:?}"),
            ranks,
            capacities: vec![gigabytes * GIGA; 2 * dims.len() * ranks],
            kind: Kind::Torus(dims.to_vec()),
        }
    }

    /// A link from everybody to everybody.
    pub fn mesh(ranks: usize, gigabytes: u64) -> Self {
        Self {
            name: format!("mesh {ranks}"),
            ranks,
            capacities: vec![gigabytes * GIGA; ranks * ranks],
            kind: Kind::Mesh,
        }
    }

    /// Leaves with so many ranks below and one spine; the uplinks are `taper` times narrower than
    /// what is below them. Links: up and down of each rank, then of each leaf.
    pub fn fat_tree(leaves: usize, below: usize, gigabytes: u64, taper: u64) -> Self {
        let ranks = leaves * below;
        let mut capacities = vec![gigabytes * GIGA; 2 * ranks];
        capacities.resize(
            2 * (ranks + leaves),
            gigabytes * GIGA * below as u64 / taper,
        );
        Self {
            name: format!("fat-tree {leaves}x{below} / {taper}"),
            ranks,
            capacities,
            kind: Kind::FatTree { below },
        }
    }

    /// The links from one rank to another: dimension by dimension, the last one first, the short
    /// way, upwards if both are equally short.
    pub fn route(&self, from: usize, to: usize) -> Vec<u32> {
        let mut links = Vec::new();
        match &self.kind {
            Kind::Mesh => links.push(from * self.ranks + to),
            Kind::FatTree { below } => {
                let (a, b) = (from / below, to / below);
                links.push(2 * from);
                if a != b {
                    links.push(2 * (self.ranks + a));
                    links.push(2 * (self.ranks + b) + 1);
                }
                links.push(2 * to + 1);
            }
            Kind::Torus(dims) => {
                let mut at = from;
                let mut stride = 1;
                for (d, &size) in dims.iter().enumerate().rev() {
                    let digit = |rank: usize| rank / stride % size;
                    let up = (digit(to) + size - digit(at)) % size;
                    let (count, by, down) = if 2 * up <= size {
                        (up, 1, 0)
                    } else {
                        (size - up, size - 1, 1)
                    };
                    for _ in 0..count {
                        links.push(2 * (d * self.ranks + at) + down);
                        at = at - digit(at) * stride + (digit(at) + by) % size * stride;
                    }
                    stride *= size;
                }
            }
        }
        links.into_iter().map(|link| link as u32).collect()
    }
}
