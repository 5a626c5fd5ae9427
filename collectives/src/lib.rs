//! Collectives between accelerators of several vendors: communicators and what runs under them.
//!
//! The way data walks: a call on a [`Communicator`] is checked and given its plan (`communicator`),
//! joins its lane (`execute`), is lowered to batches of commands on a stream and on links, and is
//! driven by whoever waits for it (`progress`). Plugins do the moving and reducing.
//!
//! No vendor and no plugin is named in this crate: what a device or a link can do is read from what
//! its plugin reports.

mod arena;
mod communicator;
mod dtype;
mod early;
mod error;
mod execute;
mod float8;
mod fork;
mod ground;
mod options;
mod overlays;
mod progress;
mod reduction;
mod runtime;
mod signature;
mod stream;
mod transfer;
mod tune;
mod world;

pub use communicator::{
    AbortHandle, Bottleneck, Buffer, Busiest, Communicator, Explanation, Grid, Group, LinkEnd,
    LinkUse, MemoryPath, MemoryPaths, OnCommunicator, OnStream, ParseGridError, PeerLink, Pending,
    RawCall, Registration, Window, Work, group,
};
pub use dtype::{DataType, Element};
pub use error::{Error, Mismatch, RankStatus, Result, Timeout};
pub use float8::{F8E4M3, F8E5M2};
pub use options::{InitOptions, MemoryOptions, PluginRequest, Rules, Timeouts};
pub use reduction::{Order, ReduceOp, Reduction, ReductionKind, UserReduction};
pub use signature::{Call, CallKind};
pub use stream::{Event, Stream};
pub use tune::{
    Calibration, Choice, FabricFigures, LinkFigures, PlanFigures, TuneOptions, TuneProgress,
};
pub use unisono_plan::geometry::Sizes;
pub use unisono_plan::{Algorithm, Op};
