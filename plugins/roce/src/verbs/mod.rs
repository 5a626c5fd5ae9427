//! Verbs objects as owned handles: what is made here is destroyed here, in the right order.
//!
//! The order is held by ownership: a queue pair owns its completion queue and keeps its protection
//! domain alive, and so on up to the context. A forked child shares the kernel's objects with its
//! parent and must not destroy them: handles dropped there are left alone.
#![allow(unsafe_code, reason = "handles of a C library")]

mod context;
mod cq;
mod qp;
mod region;

use std::io;

pub(crate) use context::{AsyncEvent, Context, Pd, devices};
pub(crate) use cq::{Completion, CompletionQueue};
pub(crate) use qp::{Capacity, Opcode, POSTED_MAX, Path, QueuePair, Work};
pub(crate) use region::{Access, Region};

/// The process that made a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Maker(u32);

impl Maker {
    fn here() -> Self {
        Self(std::process::id())
    }

    /// Whether this is that process, and not a forked child of it.
    fn is_here(self) -> bool {
        self == Self::here()
    }
}

/// The answer of a function that gives 0, an errno, or -1 with errno set.
fn checked(answer: std::ffi::c_int) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        code if code > 0 => Err(io::Error::from_raw_os_error(code)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A destroying function's answer. A device that is gone answers with an error, and what it held went
/// with it: there is nothing left to do.
const fn destroyed(_answer: std::ffi::c_int) {}

fn last_error() -> io::Error {
    io::Error::last_os_error()
}
