//! A job of ranks that measure themselves.

#![allow(unsafe_code, reason = "the launcher ends with this process")]

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::rank::Figures;

/// When a job is given up: ranks that hang are no figure.
const LIMIT: &str = "3min";

/// What came of a job.
pub struct Job {
    /// By the clock, from the start of the launcher to its end, in seconds.
    pub wall: f64,
    /// What each rank found.
    pub ranks: Vec<Figures>,
}

/// Runs a job of so many ranks, each of them a process that `unisono run` starts. Its link graph is
/// written to `graph`.
pub fn run(ranks: u32, graph: &Path) -> Result<Job> {
    let program = std::env::current_exe().context("finding this program's file")?;
    let launcher = program.with_file_name("unisono");
    let mut command = Command::new(&launcher);
    command
        .args(["run", "--timeout", LIMIT, "-n", &ranks.to_string(), "--"])
        .arg(&program)
        .args(["rank", "--graph"])
        .arg(graph)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    // SAFETY: between fork and exec one system call is made, which is safe there.
    unsafe {
        command.pre_exec(|| {
            // The launcher ends its ranks when it is asked to end.
            set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from)
        });
    }
    let since = Instant::now();
    let output = command
        .output()
        .with_context(|| format!("starting {}; build the workspace first", launcher.display()))?;
    let wall = since.elapsed().as_secs_f64();
    ensure!(
        output.status.success(),
        "the job of {ranks} ranks ended with {}; what its ranks said is above",
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = text.lines().map(figures).collect::<Result<Vec<_>>>()?;
    ensure!(
        figures.len() == ranks as usize,
        "{} of {ranks} ranks told what they found",
        figures.len()
    );
    Ok(Job {
        wall,
        ranks: figures,
    })
}

/// What a rank found, from its line, which the launcher begins with `[RANK] `.
fn figures(line: &str) -> Result<Figures> {
    let found = line.split_once("] ").map_or(line, |(_, found)| found);
    serde_json::from_str(found).with_context(|| format!("a rank said `{line}`"))
}
