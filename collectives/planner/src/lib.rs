//! Ties the link graph, the bounds, the packings, the plans and the simulator together.

pub mod candidate;
pub mod counted;
mod error;
pub mod front;
mod levelled;
mod many;
pub mod names;
pub mod plan;
pub mod programs;
pub mod routes;
pub mod schedule;
pub mod steps;
pub mod svg;
pub mod sweep;
pub mod table;
pub mod timing;
pub mod trees;

pub use error::PlanError;
pub use front::Planner;
pub use plan::{Plan, Request, plan};
