//! Constructions that reach the bounds: what flows where, so that links are used as well as they
//! can be.

mod capacity;
pub mod check;
mod error;
mod flow;
mod gather;
mod grow;
mod split;
mod strands;
mod strength;
mod tree;

pub use error::PackError;
pub use gather::{MOST_VERTICES, all_gather, broadcast, reduce, reduce_scatter};
pub use tree::{Packing, Pair, PairPacking, Tree, Unit, Way};
