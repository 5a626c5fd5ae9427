//! Constructions that reach the bounds of collectives: what flows where, so that links are used as
//! well as they can be.
//!
//! `unisono-bound` says how fast an operation can be on a [`Network`](unisono_network::Network).
//! Here is what reaches that, in the model of flows, where latencies do not count and messages are
//! as long as one likes:
//!
//! - [`all_gather`], [`reduce_scatter`], [`broadcast`], [`reduce`]: spanning trees that share the
//!   links, each with a weight ([`Packing`]);
//! - [`all_reduce`]: pairs of an in-tree and an out-tree ([`PairPacking`]);
//! - [`all_to_all`]: routes for each pair of ranks ([`Routing`]);
//! - [`rings`]: cyclic orders that flow at once ([`Rings`]);
//! - [`levels`]: islands within islands, what a hierarchical plan is made of ([`Levels`]).
//!
//! All results carry whole weights and an exact rate, at which some link is full; [`check`] proves
//! without knowing how they were made that they are whole and fit.
//!
//! Trees of at most [`MOST_VERTICES`] vertices always reach the bound of all_gather and broadcast
//! up to rounding of long capacities (0.2 %), where as much can enter each switch as leave it. For
//! larger networks there are the simple constructions of [`shallow_all_gather`], which reach it on
//! regular ones; where they do, they are taken on small networks too, since shallow trees are
//! faster for short messages. A broadcast or reduce reaches it on larger networks too where there are
//! no switches; where there are, shallow trees are hung up at the root and evened out.
//!
//! ```
//! use unisono_network::{Builder, Rational};
//!
//! // A chain of four: the inner ranks forward.
//! let mut builder = Builder::new(4);
//! for rank in 1..4 {
//!     builder.duplex(rank - 1, rank, 10_000_000_000, 0);
//! }
//! let network = builder.build()?;
//! let packing = unisono_pack::all_gather(&network)?;
//! assert_eq!(packing.bytes_per_second(), Rational::new(40_000_000_000, 3));
//! unisono_pack::check::packing(&network, &packing)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything is decided by the network alone, in the same order each time: every host that has the
//! same network finds the same result. (Linear programs and flows use floating point; their results
//! are rounded to whole weights. Let one host decide and tell the others where processors differ.)

mod all_reduce;
mod all_to_all;
mod arborescence;
mod capacity;
pub mod check;
mod closure;
mod error;
mod flow;
mod gather;
mod grow;
mod lp;
mod mates;
mod nearest;
mod paths;
mod plain;
mod rings;
mod rows;
mod split;
mod strands;
mod tree;
mod whole;

pub use all_reduce::{all_reduce, shallow_all_reduce};
pub use all_to_all::{Route, Routing, all_to_all};
pub use error::PackError;
pub use gather::{
    MOST_VERTICES, all_gather, broadcast, reduce, reduce_scatter, shallow_all_gather,
    shallow_reduce_scatter,
};
pub use rings::{Ring, Rings, rings};
pub use tree::{Packing, Pair, PairPacking, Tree, Way};
pub use unisono_network::levels::{Level, Levels, levels};
