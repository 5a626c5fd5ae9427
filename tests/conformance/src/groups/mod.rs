//! The groups of checks, in the order in which a plugin is written.

mod abort;
mod batch;
mod copy;
mod device;
mod event;
mod flag;
mod header;
mod instance;
mod leaks;
mod link;
mod link_faults;
mod link_flow;
mod link_sleep;
mod memory;
mod params;
mod reduce;
mod report;
mod share;
mod sleep;
mod threads;

use crate::check::Check;

/// All groups.
pub const ALL: &[&[Check]] = &[
    header::CHECKS,
    params::CHECKS,
    instance::CHECKS,
    device::CHECKS,
    memory::CHECKS,
    copy::CHECKS,
    reduce::CHECKS,
    batch::CHECKS,
    flag::CHECKS,
    abort::CHECKS,
    sleep::CHECKS,
    event::CHECKS,
    threads::CHECKS,
    share::CHECKS,
    report::CHECKS,
    link::CHECKS,
    link_flow::CHECKS,
    link_faults::CHECKS,
    link_sleep::CHECKS,
    leaks::CHECKS,
];
