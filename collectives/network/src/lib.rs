//! The planner's view of a link graph: numbers in arrays, and nothing that has a name in it.
//!
//! A [`unisono_graph::LinkGraph`] says what there is and who said so. Bounds, packings, routes and
//! simulations ask other things of it, thousands of times: who is next to whom, how wide, how
//! far. A [`Network`] holds just that, by plain numbers from 0, so that an algorithm keeps what it
//! knows of vertices and edges in arrays.
//!
//! The model is the usual one of flows: edges are directed, each with a capacity in whole bytes a
//! second and a latency in whole nanoseconds. *Ranks* compute, and forward what they are told to;
//! *switches* forward, and some of them reduce what passes. What is neither (a network card, a NUMA
//! node) counts as a switch. Devices that no rank of the network uses are not there at all: a
//! device outside does not forward for others.
//!
//! All numbers are integers, so every host decides alike; nothing here does I/O or keeps state.

mod builder;
mod error;
pub mod flow;
mod graph;
pub mod levels;
mod network;
mod rational;
mod restrict;
mod route;
mod symmetry;

pub use builder::Builder;
pub use error::NetworkError;
pub use network::{Edge, EdgeId, Group, Network, Vertex, VertexId};
pub use rational::{Rational, to_f64};
pub use route::{PathFacts, Router};
pub use symmetry::{Classes, Symmetry};
