//! unisono's side of a benchmark against other collective libraries.
//!
//! A driver keeps one group of ranks of each library alive, blocked between commands, and visits
//! them in turns, so that a machine that drifts moves all alike. This program is such a group:
//!
//! ```text
//! unisono-peers RANKS TRANSPORT      starts the ranks; TRANSPORT is shm, or tcp for sockets only;
//!                                    with limit, threads do what the machine can at best
//! ```
//!
//! The folder `PEERS_CTL` holds named pipes: each rank reads commands from `c.RANK`, and writes to
//! `r` a line of JSON to say hello, and rank 0 one for every command. The commands are
//! `run OP BYTES WARMUP ITERS CAP_US VERIFY` and `quit`; see [`command`]. A rank that waits for a
//! command uses no CPU.
//!
//! The environment: `PEERS_MAXBYTES` (the largest buffer), `PEERS_BIND=core` (rank r to core r
//! modulo cores), `PEERS_DIRTY=1` (the input is rewritten before each call, the time that takes is
//! taken off), `PEERS_THP=1` (huge pages), `PEERS_OFFSET=16` (buffers begin so many bytes behind a page),
//! `PEERS_WINDOWS=1` (the library's own memory).

mod call;
mod command;
mod limit;
mod memory;
mod rank;
mod trial;

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

/// Set in the processes that are ranks.
const RANK_MARK: &str = "PEERS_AS_RANK";

fn main() -> Result<ExitCode> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [ranks, transport] = args.as_slice() else {
        bail!(
            "give the number of ranks and the transport (shm, tcp or limit), as `unisono-peers 2 shm`"
        );
    };
    if env::var_os(RANK_MARK).is_some() {
        rank::serve(transport)?;
        return Ok(ExitCode::SUCCESS);
    }
    if transport == "limit" {
        limit::serve(ranks.parse().context("the number of ranks")?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let program = env::current_exe().context("finding this program's file")?;
    let launcher = program.with_file_name("unisono");
    let status = Command::new(&launcher)
        .args(["run", "-n", ranks, "--"])
        .arg(&program)
        .args(&args)
        .env(RANK_MARK, "1")
        .status()
        .with_context(|| format!("starting {}; build the workspace first", launcher.display()))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
