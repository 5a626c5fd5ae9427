//! libibverbs as a table of our own, opened at run time.
//!
//! A plugin that links against the library cannot even be listed on a machine without it. The table
//! holds the two dozen functions that are used; what `verbs.h` does inline (posting, polling, asking
//! for notice) goes through the operations of a context, as it does there.
#![allow(unsafe_code, reason = "calls a C library by its symbols")]

pub mod abi;
mod library;

pub use library::{Functions, Library, LoadError};
