//! The machine behind the emulators of vendors' runtimes: devices, their memory, their queues, over
//! host memory.
//!
//! The libraries beside this crate give it the vendors' C symbols, so that the
//! plugins that users get run end to end where there is no such hardware. It is strict, not kind:
//!
//! - a device address means nothing to the CPU: it is reserved and never readable ([`space`]); the
//!   bytes lie elsewhere;
//! - streams run on threads of their own, with delays, on a few hardware queues that block in order
//!   ([`queue`]); what is delayed, for how long, and in which order copies and kernels go about their bytes,
//!   a seed says for each operation of each stream;
//! - new memory holds garbage, freed memory is gone, and a device that touches what it may not is
//!   broken from then on, as on silicon;
//! - what synchronises on the real runtime blocks here behind all pending work.
//!
//! What the machine is comes from a file ([`BoxFile`]), named by the variable
//! [`BOX`]. Bytes are counted by where they went ([`Traffic`]).

mod accesses;
mod backing;
mod box_file;
mod capture;
mod copies;
mod device;
mod event;
mod graph;
mod kernel;
mod machine;
mod op;
pub mod queue;
mod random;
pub mod space;
mod stream;
mod traffic;

pub use backing::Backing;
pub use box_file::{BoxFile, Capability, Delays, End, Fabric, Fault, FaultKind, Lane, Pcie, Peers};
pub use capture::{Capturing, Node, Refused};
pub use device::{Broken, Device};
pub use event::Event;
pub use graph::Graph;
pub use kernel::Kernel;
pub use machine::{Machine, machine, refuse_child};
pub use op::{Compare, Fold, HostCall, Internal, Launch, Op};
pub use random::{Random, User};
pub use stream::Stream;
pub use traffic::{Mover, Place, Traffic};

/// Names the file that describes the machine. With `_ACL` and the like behind it, for one library alone;
/// so for [`KERNELS`].
pub const BOX: &str = "UNISONO_EMULATOR_BOX";
/// The seed of what disturbs operations: each is delayed, and cut, by this seed, its device, its stream's
/// number and its own. What runs beside what is still the system's to say. Without it each process draws its
/// own, and says it when something breaks.
pub const SEED: &str = "UNISONO_EMULATOR_SEED";
/// The file that counts bytes, shared by all processes that name it.
pub const TRAFFIC: &str = "UNISONO_EMULATOR_TRAFFIC";
/// The library with the kernels, compiled for the host.
pub const KERNELS: &str = "UNISONO_EMULATOR_KERNELS";
