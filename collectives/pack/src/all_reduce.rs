//! Pairs of trees for all_reduce.
//!
//! A share is reduced along an in-tree and distributed along an out-tree; both use the links at the
//! same time. Two ways lead there:
//!
//! 1. Trees of all_gather and of reduce_scatter, at such speeds that both fit. Each root holds an
//!    equal share, as in reduce_scatter followed by all_gather. On most machines nothing is better.
//! 2. Where something is (a mesh that lost a link, chains of devices, unequal islands), roots with
//!    free weights: the linear program of pairs of trees, its columns found as they are needed by
//!    the cheapest tree for the present prices of links.
//!
//! The program gives an upper bound with every set of prices, so that the first is left as it is
//! when some prices prove that nothing is better.

mod free;
mod mirror;

use unisono_network::{Network, to_f64};

use crate::error::PackError;
use crate::gather::{all_gather, shallow_all_gather};
use crate::mates::mates;
use crate::plain::Plain;
use crate::tree::{Packing, PairPacking};
use crate::whole::fastest;

/// Trees for all_reduce, in pairs.
///
/// # Errors
/// As for [`all_gather`].
pub fn all_reduce(network: &Network) -> Result<PairPacking, PackError> {
    let equal = equal_shares(network, all_gather)?;
    if network.ranks() == 1 {
        return Ok(equal);
    }
    let plain = Plain::new(network)?;
    let Some(mut better) = free::pairs(&plain.network, to_f64(equal.bytes_per_second())) else {
        return Ok(equal);
    };
    let mut loads = vec![0; network.edges().len()];
    for pair in &mut better {
        for tree in [&mut pair.reduce, &mut pair.distribute] {
            for path in &mut tree.paths {
                *path = plain.path(path);
                for &edge in path.iter() {
                    loads[edge as usize] += tree.weight;
                }
            }
        }
    }
    Ok(PairPacking {
        pairs: better,
        unit: fastest(network, &loads),
    })
}

/// Shallow trees for all_reduce, in pairs, with equal shares of all roots.
///
/// # Errors
/// As for [`shallow_all_gather`].
pub fn shallow_all_reduce(network: &Network) -> Result<PairPacking, PackError> {
    equal_shares(network, shallow_all_gather)
}

/// Pairs of the trees of a construction for all_gather, there and mirrored.
fn equal_shares(
    network: &Network,
    gather: impl Fn(&Network) -> Result<Packing, PackError>,
) -> Result<PairPacking, PackError> {
    let distribute = gather(network)?;
    let mates = mates(network);
    let mut reduce = match &mates {
        Some(_) => distribute.clone(),
        None => gather(&network.reversed())?,
    };
    reduce.turn(mates.as_deref());
    Ok(mirror::pairs(&reduce, &distribute))
}
