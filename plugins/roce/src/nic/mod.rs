//! What there is to know of the machine's RDMA devices, and which of it a link uses.
//!
//! All of it is read from sysfs, where every kernel that has verbs shows it; so this is text in, types
//! out, and tests need no device.

mod choice;
mod filter;
mod gid;
mod port;
mod rail;

pub(crate) use choice::{Side, Wish, choose};
pub(crate) use filter::Filter;
pub(crate) use gid::{Gid, GidEntry, GidType};
pub(crate) use port::LinkLayer;
pub(crate) use rail::{Rail, Rails};
