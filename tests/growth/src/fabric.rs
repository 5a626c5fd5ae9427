//! The graphs of many ranks that are planned on: regular, as machines of that size are.

use anyhow::Result;
use clap::ValueEnum;
use unisono_network::{Builder, Network};

const GB: u64 = 1_000_000_000;

/// Ranks in a box.
const BOX: u32 = 8;

/// A family of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fabric {
    /// Boxes of eight with a switch each, and a rail for each place in a box.
    Boxes,
    /// A torus of two dimensions, as square as can be.
    Torus,
}

impl Fabric {
    /// In words, for so many ranks.
    pub fn describe(self, ranks: u32) -> String {
        match self {
            Self::Boxes => format!("{} boxes of {BOX}", ranks / BOX),
            Self::Torus => {
                let (a, b) = sides(ranks);
                format!("torus {a} x {b}")
            }
        }
    }

    /// The graph of so many ranks, a multiple of eight.
    pub fn network(self, ranks: u32) -> Result<Network> {
        anyhow::ensure!(
            ranks > BOX && ranks.is_multiple_of(BOX),
            "{ranks} ranks do not fill several boxes of {BOX}"
        );
        match self {
            Self::Boxes => boxes(ranks / BOX),
            Self::Torus => torus(sides(ranks)),
        }
    }
}

/// The two factors of a number that are nearest to each other, the smaller first.
fn sides(ranks: u32) -> (u32, u32) {
    let mut sides = (1..=ranks.isqrt()).rev();
    let a = sides.find(|a| ranks.is_multiple_of(*a)).unwrap_or(1);
    (a, ranks / a)
}

fn boxes(count: u32) -> Result<Network> {
    let mut builder = Builder::new(count * BOX);
    let rails: Vec<u32> = (0..BOX).map(|_| builder.switch(false)).collect();
    for number in 0..count {
        let switch = builder.switch(false);
        for (place, &rail) in (0..BOX).zip(&rails) {
            builder.duplex(number * BOX + place, switch, 450 * GB, 700);
            builder.duplex(number * BOX + place, rail, 50 * GB, 3000);
        }
    }
    Ok(builder.build()?)
}

fn torus((a, b): (u32, u32)) -> Result<Network> {
    let mut builder = Builder::new(a * b);
    let at = |x: u32, y: u32| (x % a) * b + y % b;
    // Two ranks have one link, not two.
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
    Ok(builder.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fabrics_have_their_ranks_and_edges() {
        let edges = |fabric: Fabric, ranks| {
            let network = fabric.network(ranks).unwrap();
            assert_eq!(network.ranks(), ranks);
            network.edges().len()
        };
        // Both directions of two links a rank.
        assert_eq!(edges(Fabric::Boxes, 64), 64 * 4);
        assert_eq!(edges(Fabric::Torus, 128), 128 * 4);
        assert_eq!(Fabric::Torus.describe(128), "torus 8 x 16");
        assert!(Fabric::Boxes.network(20).is_err());
    }
}
