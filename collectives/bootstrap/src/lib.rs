//! How the ranks of a job find each other, learn to trust each other, and keep in touch.
//!
//! - [`RankInfo`] says which rank this process is, from the environment of its launcher.
//! - [`Bootstrap::join`] meets the others. Each rank ends with the same [`Directory`]. First contact is one small
//!   message a node to the root; all after it takes O(log n) rounds over connections that stay open.
//! - [`Control`] is what those connections become: broadcasts that survive the death of some ranks, messages from
//!   rank to rank, the news of a death, and blocking helpers such as [`Control::all_gather`] and [`shrink`].
//! - [`Prover`] and [`Directory::verify`] let any other link prove which rank stands at its far end.
//!
//! Who may take part is decided by the job's [`Secret`]; a stranger who reaches a port is dropped, logged once, and
//! costs the job nothing. Frames carry no code of authentication after the handshake: someone on the path between
//! two nodes is outside what this crate defends against.
//!
//! Nothing here is global to a rank, so the ranks of a job may be threads of one process.
//!
//! ```
//! use unisono_bootstrap::{Bootstrap, InterfaceFilter, Options, RootSpec, UniqueId};
//!
//! let id = UniqueId::create(&InterfaceFilter::loopback(), 0)?;
//! let ranks: Vec<_> = (0..2)
//!     .map(|rank| {
//!         let mut options = Options::new(rank, 2, RootSpec::UniqueId(id.clone()));
//!         options.payload = format!("devices of rank {rank}").into_bytes();
//!         std::thread::spawn(move || Bootstrap::join(options))
//!     })
//!     .collect();
//! for rank in ranks {
//!     let joined = rank.join().expect("no panic")?;
//!     assert_eq!(joined.table.get(1).expect("rank 1").payload, b"devices of rank 1");
//! }
//! # Ok::<(), unisono_bootstrap::BootstrapError>(())
//! ```

mod bootstrap;
mod control;
mod cores;
mod directory;
mod environment;
mod error;
mod hex;
mod identity;
mod interfaces;
mod launcher;
mod options;
mod rendezvous;
mod report;
mod secret;
mod unique_id;
mod wait;
mod wire;

pub use bootstrap::{Bootstrap, Joined};
pub use control::{Control, Event, Tag, shrink};
pub use cores::Cores;
pub use directory::{Directory, RankEntry};
pub use environment::{Given, Lookup, RankInfo, RankSource};
pub use error::{BootstrapError, Result};
pub use identity::{NodeId, Prover};
pub use interfaces::{Candidate, Cidr, InterfaceFilter, InterfacePattern};
pub use launcher::has_store;
pub use options::{Heartbeat, Options, RootSpec};
pub use report::{Report, StrayKind, Strays};
pub use secret::{Secret, SecretSource};
pub use unique_id::UniqueId;
pub use wait::{AbortFlag, Wait};
