//! One conformance suite that every plugin must pass, whoever wrote it.
//!
//! Each [`Check`] is one promise of `unisono_plugin.h`. It ends as [`Outcome::Pass`], as
//! [`Outcome::Fail`] or as [`Outcome::Unsupported`], where the plugin itself says that it does not
//! do this. [`Expectations`] list by name what a plugin may leave out and what is known to fail;
//! anything else is flagged, also a check that passes although it is listed.
//!
//! The checks use the plugin as the host does, through `unisono-hal`, save for the few that need
//! what the host never does ([`raw`](mod@raw)). A [`Suite`] runs each of them in processes of its
//! own, by the program `unisono-conformance`:
//!
//! ```sh
//! cargo run -p unisono-conformance -- ./libunisono_plugin_acme.so
//! ```

mod case;
mod census;
mod check;
mod ends;
mod expect;
mod flags;
mod groups;
mod outcome;
mod peer;
mod queue;
pub mod raw;
mod report;
pub mod sleep;
mod store;
mod suite;
pub mod worker;

pub use case::Case;
pub use check::{Check, all, find};
pub use ends::Ends;
pub use expect::{Expectations, Verdict};
pub use outcome::{Checked, Outcome, Stop};
pub use peer::Peer;
pub use queue::batch;
pub use report::{Report, Row};
pub use suite::Suite;
