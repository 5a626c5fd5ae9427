//! What is run on links between machines: real ones, virtual ones, network namespaces.
//!
//! ```text
//! unisono run -n 2 -- unisono-machines collectives --plugin roce --param devices=mlx5_0+mlx5_1
//! ```
//!
//! Each rank is a process of this program, started by any launcher; all but `speed` join as any
//! program does. Shared memory is left out, so that the plugin's links carry everything. Of a
//! parameter's values between plus signs each rank takes the one at its place: that is how ranks of one
//! machine get different network cards, which a cable joins.

mod bulk;
mod cable;
mod collectives;
mod join;
mod pair;
mod repeat;
mod shared;
mod socket;
mod speed;
mod weigh;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "unisono-machines")]
struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// Every collective, type and reduction, in place and out; every element is compared.
    Collectives(collectives::Args),
    /// One all_reduce after the other in the same buffer, each checked: for links that are cut.
    Repeat(repeat::Args),
    /// A cable between two network namespaces that can be cut, slow, and out of order.
    Cable(cable::Args),
    /// Bandwidth and latency of one link, below the collectives.
    Speed(speed::Args),
    /// Latency of a plain TCP socket.
    Socket(socket::Args),
    /// Bandwidth of a plain TCP socket, with and without copies.
    Bulk(bulk::Args),
    /// Time of an all_reduce, and the bytes that leave a host beside those of the plan.
    Weigh(weigh::Args),
}

/// Says warnings on standard error: what links lose and find again is among them.
struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}: {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

fn main() -> Result<ExitCode> {
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
    match Cli::parse().suite {
        Suite::Collectives(args) => collectives::run(&args),
        Suite::Repeat(args) => repeat::run(&args),
        Suite::Cable(args) => cable::run(&args),
        Suite::Speed(args) => speed::run(&args),
        Suite::Socket(args) => socket::run(&args),
        Suite::Bulk(args) => bulk::run(&args),
        Suite::Weigh(args) => weigh::run(&args),
    }
}
