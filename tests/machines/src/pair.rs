//! Two processes of this program, joined by a socket: the second may be started on another host.

use std::env;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, set_parent_process_death_signal};

#[derive(Clone, Debug, clap::Args)]
pub struct PairArgs {
    /// Start the other process by this command, such as `ip netns exec h1`.
    #[arg(long, value_name = "COMMAND", default_value = "")]
    peer_through: String,
    /// This process is the one that the other started.
    #[arg(long, hide = true)]
    as_peer: bool,
}

/// This process's end.
pub struct Pair {
    /// 0 in the process that was started first, else 1.
    pub role: u32,
    /// To the other process.
    pub socket: UnixStream,
    child: Option<Child>,
}

impl PairArgs {
    /// In the first process: starts the other, with the same arguments.
    pub fn meet(&self) -> Result<Pair> {
        if self.as_peer {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            return Ok(Pair {
                role: 1,
                socket: UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?),
                child: None,
            });
        }
        let (here, there) = UnixStream::pair()?;
        let program = env::current_exe().context("finding this program's file")?;
        let mut words = self.peer_through.split_whitespace();
        let mut command = match words.next() {
            None => Command::new(&program),
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&program);
                command
            }
        };
        command
            .args(env::args_os().skip(1))
            .arg("--as-peer")
            .stdin(Stdio::from(OwnedFd::from(there)));
        let child = command.spawn().context("starting the other process")?;
        Ok(Pair {
            role: 0,
            socket: here,
            child: Some(child),
        })
    }
}

impl Pair {
    /// Waits until the other process has ended well.
    pub fn part(&mut self) -> Result<()> {
        if let Some(child) = &mut self.child {
            let status = child.wait()?;
            if !status.success() {
                bail!("the other process {status}");
            }
        }
        Ok(())
    }
}

impl Drop for Pair {
    /// Ends the other process if this one gives up.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
