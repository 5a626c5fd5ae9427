//! The groups of checks, in the order in which a plugin is written.

mod abort;
mod batch;
mod batch_refused;
mod copy;
mod cpu;
mod device;
mod event;
mod flag;
mod header;
mod instance;
mod leaks;
mod link;
mod link_faults;
mod link_flow;
mod link_memory;
mod link_order;
mod link_refused;
mod link_sleep;
mod memory;
mod memory_lent;
mod params;
mod read;
mod reduce;
mod report;
mod share;
mod share_gone;
mod share_signal;
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
    memory_lent::CHECKS,
    copy::CHECKS,
    reduce::CHECKS,
    read::CHECKS,
    batch::CHECKS,
    batch_refused::CHECKS,
    flag::CHECKS,
    abort::CHECKS,
    sleep::CHECKS,
    cpu::CHECKS,
    event::CHECKS,
    threads::CHECKS,
    share::CHECKS,
    share_gone::CHECKS,
    share_signal::CHECKS,
    report::CHECKS,
    link::CHECKS,
    link_memory::CHECKS,
    link_order::CHECKS,
    link_refused::CHECKS,
    link_flow::CHECKS,
    link_faults::CHECKS,
    link_sleep::CHECKS,
    leaks::CHECKS,
];
