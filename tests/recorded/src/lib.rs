//! What ranks really execute, recorded at the contract's door and proved right.
//!
//! `unisono-plan` proves plans. Between a plan and what devices and links are given stands the
//! executor: it turns steps into copies, reductions, signals, waits and puts, at addresses, over
//! slots that are used round and round. This crate proves what came out of it.
//!
//! 1. [`record`] runs a collective on ranks that are threads, through plugins that forward to the
//!    host's and tcp's and keep each command that these accepted, in order, for each stream and link.
//! 2. [`Program::new`] translates the log: addresses become cells of buffers and slots, flags become
//!    lines of the pair of ranks that they serve.
//! 3. [`replay`] runs the program on symbols, with nothing to rely on but what the contract
//!    promises: commands of one queue run in order, and a WAIT comes after its SIGNAL. Vector clocks
//!    show that no access depends on anything else, so one schedule speaks for all.
//!
//! [`copied`] counts what else the commands say.
//!
//! A proof that accepts everything is worth nothing: [`drops`] and [`swaps`] are the ways in which a
//! program can lose or confuse one signal, and [`replay`] must refuse each.

mod case;
mod command;
mod job;
mod log;
mod mutation;
mod past;
mod program;
mod replay;
mod tap;

pub use case::{Case, OPS};
pub use job::{Transport, record};
pub use log::Log;
pub use mutation::{Mutation, drops, swaps};
pub use past::{Copied, copied};
pub use program::{Flag, Line, Program};
pub use replay::{Fault, replay};
