//! The plugin through its contract: everything goes through the tables that `query` answers.
#![allow(unsafe_code, reason = "calls the tables of the contract")]

mod contract;
mod events;
mod forked;
mod memory;
mod processes;
mod sleep;
mod stream;
