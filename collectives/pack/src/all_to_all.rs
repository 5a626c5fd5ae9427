//! Routes for all_to_all.
//!
//! Every rank sends as much to every other. How fast that can go is a maximum concurrent flow: one
//! linear program, too large to solve as such. But flows from one source need no telling apart, and
//! one set of lengths of links proves an upper bound: what all links can carry, weighed by length,
//! over the distances that all pairs need. So flows are improved against lengths that grow with
//! load (Frank and Wolfe's method on a smooth maximum, one source after the other), until the bound
//! says that there is nothing left to gain.
//!
//! Ranks may forward for others: on a torus or a chain, where most pairs have no link, they must.

mod exact;
mod flows;
mod routes;

use unisono_network::{EdgeId, Network, Rational};

use crate::error::PackError;
use crate::plain::Plain;

/// The most vertices times edges for which routes are searched.
const MOST_WORK: usize = 1 << 20;

/// One way from a rank to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The ranks that the bytes visit, from the source to the destination; those between store and
    /// forward.
    pub ranks: Vec<u32>,
    /// The edges, in order.
    pub edges: Vec<EdgeId>,
    /// Its share of what the pair exchanges: this weight over [`Routing::weight`].
    pub weight: u64,
}

/// Routes for all ordered pairs of ranks. All flow at once, each at its weight times
/// [`unit`](Self::unit), and no link carries more than it can.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    /// The routes of all pairs, by source, then destination, then the heaviest first.
    pub routes: Vec<Route>,
    /// The sum of weights of each pair.
    pub weight: u64,
    /// The rate of weight 1, in bytes a second.
    pub unit: Rational,
    /// What each pair could exchange at most, in bytes a second, as the lengths of links prove.
    pub bound: f64,
}

impl Routing {
    /// What each pair exchanges, in bytes a second. The algorithm bandwidth is this times the
    /// number of ranks.
    pub fn bytes_per_second(&self) -> Rational {
        self.unit * i128::from(self.weight)
    }
}

/// Routes for all_to_all.
///
/// # Errors
/// If some rank cannot reach another, or the network is too large.
pub fn all_to_all(network: &Network) -> Result<Routing, PackError> {
    let work = network.edges().len() * network.ranks() as usize;
    if work > MOST_WORK {
        return Err(PackError::TooLarge {
            vertices: network.vertices().len(),
            max: MOST_WORK / network.edges().len(),
        });
    }
    let plain = Plain::new(network)?;
    let flows = flows::balanced(&plain.network)?;
    Ok(routes::routes(network, &plain, &flows))
}
