//! The graphs of many ranks that are planned on: regular, as machines of that size are.

use anyhow::Result;
use clap::ValueEnum;
use unisono_network::Network;
use unisono_regret::families::{boxes, sides, torus};

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
        let (a, b) = sides(ranks);
        Ok(match self {
            Self::Boxes => boxes(ranks / BOX, BOX)?,
            Self::Torus => torus(a, b)?,
        })
    }
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
