//! An event-driven simulator of flows that share links fairly.
//!
//! A [`Model`] is a set of *resources* that carry bytes at a rate (links, shared capacities, a
//! memory's bandwidth), and a directed acyclic graph of *tasks*. A task waits for the tasks that it
//! names and for the one before it in its *lane*, then for its own delay (the alpha of a message),
//! and then moves its bytes over all resources of its route at once. [`simulate`] tells when each
//! task starts and ends.
//!
//! # Fairness
//!
//! Rates are max-min fair at every moment: no flow can be made faster without making slower one
//! that is no faster than it. This is what links with fair queues do to long transfers, and what
//! is commonly assumed where nothing better is known. Progressive filling (Bertsekas and Gallager,
//! *Data Networks*, 6.5.2) computes it: the narrowest resource is shared out equally, its flows are
//! fixed, and so on with the rest.
//!
//! # Speed
//!
//! - Flows over the same route have the same rate always, so routes, not flows, are what is
//!   solved. All flows of a route progress alike: one counter of bytes served and a heap of the
//!   values at which flows end replace a rate for each flow.
//! - What starts or ends only changes rates nearby. [`rates`](max_min_rates) are solved again for
//!   the routes that may have changed, the certificate of fairness (each flow has a full resource
//!   on which no flow is faster) is checked around them, and the set grows only where it fails.
//! - Events at the same time are taken together, and the rates solved once. Where thousands of flows
//!   share links and end one by one, [`simulate_within`] takes together what nearly is simultaneous.
//!
//! # Numbers
//!
//! Bytes, capacities and delays are integers; times are `f64` picoseconds. Only the four basic
//! operations are used, which give the same bits on every host. Events within one part in 10^11
//! (and 0.001 ps) of each other are one moment, so that what is simultaneous by symmetry stays so;
//! a time is right to about that part.
//!
//! Everything here is pure and may be called from any thread.

mod engine;
mod error;
mod events;
mod fair;
pub mod fluid;
mod model;
mod outcome;

pub use engine::{Allowance, simulate, simulate_within};
pub use error::SimulateError;
pub use fair::max_min_rates;
pub use model::{LaneId, Model, ResourceId, RouteId, Task, TaskId, Turns};
pub use outcome::{Outcome, Span};
