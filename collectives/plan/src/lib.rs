//! Plans: what one rank does to carry one collective operation, as data.
//!
//! A [`Program`] is a chunk-level program for *one* rank, generated from an [`Algorithm`] and a
//! [`Shape`]. There is never a global table, so that planning for a rank among ten thousand costs
//! that rank a loop over its own steps and nothing else. This crate does no I/O and holds no
//! `unsafe`: it can plan for machines that aren't there.
//!
//! - [`ir`]: the steps, and what they mean. Read this first.
//! - [`geometry`]: which elements a block and a piece of a message are.
//! - [`algorithms`]: one file for each algorithm, and [`generate`], which picks the file.
//! - [`template`]: plans in shapes that a graph gives: orders, rings, trees, levels, routes.
//! - [`verify`]: runs the programs of all ranks symbolically and proves them right.
//! - [`cost`]: predicted time in integer picoseconds, the same on every host.
//! - [`traffic`]: how much goes from rank to rank.
//! - [`select`]: which algorithm, for this operation, size and fabric, and why.
//!
//! Every function here is pure and may be called from any thread.

pub mod algorithms;
mod builder;
pub mod cost;
pub mod geometry;
pub mod ir;
mod op;
pub mod select;
pub mod template;
pub mod traffic;
pub mod verify;

pub use algorithms::{Algorithm, Layout, Shape, Unsupported, generate, generate_reduce_alone};
pub use geometry::{Geometry, GeometryError};
pub use ir::{Action, Blocks, Buffer, Op, OpKind, Place, Program, Shares, Step, Value};
pub use template::Template;
