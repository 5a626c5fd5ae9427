//! Drawings of a graph, for people: a table for terminals, DOT for graph tools, SVG for the eye.
//!
//! The same graph gives the same drawing, byte for byte. Nothing reads a drawing back:
//! [`LinkGraph::to_json`](crate::LinkGraph::to_json) is for that.

mod dot;
mod svg;
mod table;
mod words;

pub use dot::dot;
pub use svg::svg;
pub use table::table;
