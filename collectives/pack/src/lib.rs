//! Constructions that reach the bounds: what flows where, so that links are used as well as they
//! can be.

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
mod levels;
mod lp;
mod mates;
mod paths;
mod plain;
mod rings;
mod rows;
mod split;
mod strands;
mod tree;
mod whole;

pub use all_reduce::all_reduce;
pub use all_to_all::{Route, Routing, all_to_all};
pub use error::PackError;
pub use gather::{
    MOST_VERTICES, all_gather, broadcast, reduce, reduce_scatter, shallow_all_gather,
    shallow_reduce_scatter,
};
pub use levels::{Level, Levels, levels};
pub use rings::{Ring, Rings, rings};
pub use tree::{Packing, Pair, PairPacking, Tree, Way};
