//! The processes of the ranks.

#![allow(unsafe_code, reason = "process groups and the parent-death signal")]

use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use super::identity::Identity;
use super::lines::{Printer, Stream};
use super::signals::Mask;
use super::{Launch, Output, tunables};

/// The processes that run. Dropped, those that are left are killed with all that they started.
pub struct Ranks {
    running: Vec<(u32, Child)>,
}

/// How a rank ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub rank: u32,
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub code: u8,
    /// The same in words.
    pub how: String,
}

impl Ranks {
    pub fn start(
        launch: &Launch,
        identity: &Identity,
        mask: Mask,
        printer: &Printer,
    ) -> Result<Self> {
        let mut ranks = Self {
            running: Vec::with_capacity(launch.ranks as usize),
        };
        for rank in 0..launch.ranks {
            let mut child = command(launch, identity, mask, rank)
                .spawn()
                .with_context(|| {
                    format!("starting rank {rank}: {}", launch.program.to_string_lossy())
                })?;
            if let Some(out) = child.stdout.take() {
                printer.follow(rank, out, Stream::Out);
            }
            if let Some(err) = child.stderr.take() {
                printer.follow(rank, err, Stream::Err);
            }
            ranks.running.push((rank, child));
        }
        Ok(ranks)
    }

    pub fn all_ended(&self) -> bool {
        self.running.is_empty()
    }

    /// Sends a signal to every rank that runs and to what it started.
    pub fn signal(&mut self, signal: libc::c_int) {
        for (_, child) in &self.running {
            signal_group(child, signal);
        }
    }

    /// Takes up those that have ended.
    pub fn reap(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        self.running.retain_mut(|(rank, child)| {
            if !has_ended(child) {
                return true;
            }
            // What it started goes with it. It is not reaped yet, so the group's number is its own.
            signal_group(child, libc::SIGKILL);
            match child.wait() {
                Ok(status) => ended.push(Ended::new(*rank, status)),
                // Somebody else took its exit code: there is none to tell.
                Err(error) => ended.push(Ended {
                    rank: *rank,
                    code: 1,
                    how: format!("ended, and its exit code cannot be had: {error}"),
                }),
            }
            false
        });
        ended
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            signal_group(child, libc::SIGKILL);
            // It was killed, so this does not take long; an error leaves nothing to do.
            let _ = child.wait();
        }
    }
}

impl Ended {
    fn new(rank: u32, status: ExitStatus) -> Self {
        let (code, how) = match (status.code(), status.signal()) {
            (Some(code), _) => (code as u8, format!("ended with exit code {code}")),
            (None, Some(signal)) => {
                let core = if status.core_dumped() {
                    ", core dumped"
                } else {
                    ""
                };
                (
                    128_u8.wrapping_add(signal as u8),
                    format!("was ended by signal {signal}{core}"),
                )
            }
            (None, None) => (1, format!("ended: {status}")),
        };
        Self { rank, code, how }
    }
}

fn command(launch: &Launch, identity: &Identity, mask: Mask, rank: u32) -> Command {
    let mut command = Command::new(&launch.program);
    let size = launch.ranks.to_string();
    command
        .args(&launch.args)
        .env("UNISONO_RANK", rank.to_string())
        .env("UNISONO_WORLD_SIZE", &size)
        .env("UNISONO_LOCAL_RANK", rank.to_string())
        .env("UNISONO_LOCAL_SIZE", &size)
        .env("UNISONO_JOB", &identity.job)
        .env_remove("UNISONO_ROOT")
        .process_group(0);
    for variable in ["UNISONO_SECURITY__SECRET", "UNISONO_SECURITY__SECRET_FILE"] {
        command.env_remove(variable);
    }
    if let Some(file) = &launch.cluster {
        command.env("UNISONO_CLUSTER_FILE", file);
    }
    command.env("UNISONO_SECRET_FILE", identity.secret_path());
    // All ranks are here: nothing needs to listen where others can reach it.
    if std::env::var_os("UNISONO_INTERFACES").is_none() {
        command.env("UNISONO_INTERFACES", "lo");
    }
    let cores = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    let given = std::env::var_os(tunables::VARIABLE);
    if let Some(wanted) = tunables::wanted(launch.ranks, cores, given.as_deref()) {
        command.env(tunables::VARIABLE, wanted);
    }
    // Ranks are in the background of a terminal, where reading from it would stop them.
    if rank > 0 || std::io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    if launch.output == Output::Prefixed {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made that are safe there.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid().cast_unsigned() != parent {
                // The parent died before the signal was set.
                libc::_exit(1);
            }
            mask.apply();
            Ok(())
        });
    }
    command
}

fn signal_group(child: &Child, signal: libc::c_int) {
    // SAFETY: a plain system call; the child leads the group and is not reaped yet.
    unsafe { libc::kill(-child.id().cast_signed(), signal) };
}

/// Whether the process has ended. It is not reaped.
fn has_ended(child: &Child) -> bool {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a plain C struct, valid when zero, and a system call that writes to it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let answer = libc::waitid(libc::P_PID, child.id(), &raw mut info, flags);
        // Without such a child there is nothing to wait for.
        answer < 0 || info.si_pid() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells() {
        let code = |raw| Ended::new(0, ExitStatus::from_raw(raw)).code;
        assert_eq!(code(3 << 8), 3);
        assert_eq!(code(libc::SIGKILL), 137);
        assert_eq!(code(0), 0);
    }
}
