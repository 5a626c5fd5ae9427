//! Ties the link graph, the bounds, the packings, the plans and the simulator together.

pub mod schedule;
pub mod timing;
pub mod trees;
