//! How fast a collective can be on a network, whatever the algorithm.
//!
//! [`bound`] gives, for an op on a [`Network`](unisono_network::Network), the highest *algbw* that
//! any plan can reach once messages are long, and the time that even the shortest message needs.
//! A plan is judged by what share of this it reaches.
//!
//! The model is that of flows: an edge carries at most its capacity, ranks may split, merge, copy
//! and reduce data as they like, switches only forward. A switch that reduces may also copy and
//! reduce, which only [`Op::AllReduce`] with `in_network` makes use of.
//!
//! Sizes are those of nccl-tests, the larger of the two buffers: the whole array for all_gather,
//! reduce_scatter, scatter and gather, the send buffer for all_to_all. algbw is that size by time.
//!
//! Every bound comes with what proves it ([`Certificate`]), and is either exact, as a fraction, or
//! an interval whose two ends are both proved.

mod bound;
mod certificate;
mod collapse;
mod connected;
mod cuts;
mod error;
mod exchange;
mod latency;
mod linear;
mod op;
mod paths;
mod problem;
mod reduction;
mod shared;

pub use bound::{Bound, Limit, bound};
pub use certificate::Certificate;
pub use error::BoundError;
pub use op::Op;
