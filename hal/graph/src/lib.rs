//! The link graph: which devices a job has, and what joins them.
//!
//! Every choice that the library makes (which algorithm, over which links, in which order) is made
//! on one frozen [`LinkGraph`] that all ranks hold alike. Its numbers are integers (bytes a second,
//! nanoseconds) and its order is canonical, so that hosts of different architectures decide alike
//! and can prove it by comparing [`LinkGraph::hash`].
//!
//! A graph is made in one of three ways, all of which end in [`Builder::build`], where everything
//! is checked once:
//! - [`merge`] joins what each rank's process reported ([`NodeReport`]: its plugins' devices and
//!   links, and what [`system::discover`] found on its machine);
//! - [`LinkGraph::from_json`] reads a file: the full format, or the short planning format;
//! - a [`Builder`] filled by hand.
//!
//! [`LinkGraph::overlay`] then gives a new graph with the links that no plugin can see, or that one
//! gets wrong. [`draw`] shows a graph as a table, as DOT and as SVG.
//!
//! Kinds of links and names of plugins are strings given by plugins: nothing here knows a vendor.
//! The crate does no I/O but the reads of [`system::discover`], starts no thread and keeps no
//! global state; every type is `Send + Sync`.

mod builder;
pub mod draw;
mod error;
mod graph;
mod hash;
mod id;
mod json;
mod link;
mod merge;
mod overlay;
mod query;
mod report;
mod subset;
pub mod system;
pub mod units;
mod vertex;

pub use builder::{Builder, NewLink};
pub use error::{GraphError, JsonError, ReportError};
pub use graph::LinkGraph;
pub use hash::GraphHash;
pub use id::{DeviceId, NodeId, ParseIdError};
pub use link::{CapacityGroup, GroupId, Link, LinkId, LinkType, Source};
pub use merge::merge;
pub use overlay::{Endpoint, Overlay, OverlayAction};
pub use query::{Island, Route, Symmetry, Way, islands};
pub use report::{DeviceReport, LinkReport, NodeReport, PluginReport, Scope};
pub use vertex::{
    Device, DeviceClass, Nic, NicClass, Node, Numa, Switch, Vertex, VertexId, VertexKind,
};
