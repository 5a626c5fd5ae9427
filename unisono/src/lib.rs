//! unisono: collective communication between accelerators of several vendors in one job.
//!
//! Each process of a job is one rank with one device. It joins, and then calls collectives together
//! with the other ranks:
//!
//! ```no_run
//! use unisono::{Init, ReduceOp};
//!
//! // Who this rank is comes from the launcher: `unisono run`, torchrun, mpirun, srun.
//! let world = Init::from_env().join()?;
//!
//! let mut gradients = vec![world.rank() as f32; 1 << 20];
//! world.all_reduce_in_place(&mut gradients, ReduceOp::Sum)?;
//!
//! // Groups of ranks, as in data and tensor parallel training.
//! for (axis, group) in world.grid(&"dp=2,tp=4".parse()?)? {
//!     println!("rank {} of {} along {axis}", group.rank(), group.size());
//! }
//! world.finalize()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! $ unisono run -n 8 -- ./train
//! ```
//!
//! - [`Init`] says how to join: the launcher's environment, the [cluster file](cluster), and what the
//!   program knows better. [`Communicator`] is what it gives.
//! - Devices and links come from plugins that are found at run time ([`hal`]); nothing here is made
//!   for one vendor. [`Communicator::graph`] shows what was found, [`Communicator::explain`] why a
//!   call runs as it does.
//! - The same library has a C API: `include/unisono.h`.
//!
//! Calls block unless their name begins with `start_`. Errors name the rank, the call and what the
//! others were doing; after one that is not [harmless](Error::is_harmless) the survivors can go on
//! with [`Communicator::shrink`].

mod capi;
mod init;

pub use init::{Init, InitError, default_plugins};
pub use unisono_bootstrap as bootstrap;
pub use unisono_bootstrap::UniqueId;
pub use unisono_cluster as cluster;
pub use unisono_collectives::*;
pub use unisono_graph as graph;
pub use unisono_hal as hal;
pub use unisono_plan as plan;

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
