//! Starting the ranks of a job on this machine, and leaving nothing of them behind.
//!
//! One thread starts, watches and ends the ranks; it takes signals by waiting for them, so there
//! are no handlers. Each rank leads a process group of its own, which is ended with it, and is
//! killed by the system if this process dies.

mod identity;
mod lines;
mod ranks;
mod signals;
mod tunables;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::output;
use identity::Identity;
use lines::Printer;
use ranks::{Ended, Ranks};
use signals::{Received, Signals};

/// The exit code of a job whose time was up, as with `timeout(1)`.
const TIME_UP: u8 = 124;

/// Whose the ranks' output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Each line is printed with its rank before it.
    Prefixed,
    /// The ranks write where this process writes.
    Shared,
}

/// A job to be started on this machine.
#[derive(Debug)]
pub struct Launch {
    ranks: u32,
    program: OsString,
    args: Vec<OsString>,
    /// What becomes of the ranks' output.
    pub output: Output,
    /// The cluster file of the ranks, where it is not found by itself.
    pub cluster: Option<PathBuf>,
    /// When everything is ended.
    pub timeout: Option<Duration>,
    /// How long ranks that were asked to end may take before they are killed.
    pub grace: Duration,
}

impl Launch {
    /// `ranks` times this program.
    pub fn new(ranks: u32, program: OsString, args: Vec<OsString>) -> Self {
        Self {
            ranks,
            program,
            args,
            output: Output::Prefixed,
            cluster: None,
            timeout: None,
            grace: Duration::from_secs(5),
        }
    }

    /// Starts the ranks, waits until all have ended, and gives the code to exit with.
    ///
    /// To be called from the main thread: the ranks die with the thread that started them.
    pub fn run(&self) -> Result<ExitCode> {
        let signals = Signals::block()?;
        let identity = Identity::fresh()?;
        let printer = Printer::new(self.ranks);
        let mut ranks = Ranks::start(self, &identity, signals.before(), &printer)?;
        let code = self.watch(&mut ranks, &signals, &printer);
        drop(ranks);
        printer.finish();
        Ok(ExitCode::from(code))
    }

    fn watch(&self, ranks: &mut Ranks, signals: &Signals, printer: &Printer) -> u8 {
        let deadline = self.timeout.map(|limit| Instant::now() + limit);
        let mut first_failure = None;
        // Once set: when the ranks that are left are killed.
        let mut kill_at: Option<Instant> = None;
        let mut interrupts = 0;
        while !ranks.all_ended() {
            let now = Instant::now();
            if kill_at.is_some_and(|at| now >= at) {
                ranks.signal(libc::SIGKILL);
                kill_at = Some(now + self.grace);
            }
            if first_failure.is_none() && deadline.is_some_and(|at| now >= at) {
                output::line("the time is up; ending the ranks");
                first_failure = Some(TIME_UP);
                kill_at = Some(self.end(ranks, now));
            }
            if printer.nobody_reads() && kill_at.is_none() {
                // As for any program in a pipe whose reader has gone.
                first_failure.get_or_insert(128 + libc::SIGPIPE as u8);
                kill_at = Some(self.end(ranks, now));
            }
            let next = [kill_at, deadline.filter(|_| first_failure.is_none())];
            let wait = next.into_iter().flatten().min().map(|at| at - now.min(at));
            match signals.wait(wait) {
                Received::Forward(signal) => {
                    interrupts += 1;
                    // Whoever asks again wants it to end now.
                    ranks.signal(if interrupts > 2 {
                        libc::SIGKILL
                    } else {
                        signal
                    });
                    if signals::ends(signal) {
                        kill_at.get_or_insert(Instant::now() + self.grace);
                    }
                }
                Received::ChildOrNothing => {}
            }
            for Ended { rank, code, how } in ranks.reap() {
                if code == 0 || first_failure.is_some() {
                    continue;
                }
                first_failure = Some(code);
                if !ranks.all_ended() && interrupts == 0 {
                    output::line(&format!("rank {rank} {how}; ending the others"));
                } else if interrupts == 0 {
                    output::line(&format!("rank {rank} {how}"));
                }
                kill_at.get_or_insert(self.end(ranks, Instant::now()));
            }
        }
        first_failure.unwrap_or(0)
    }

    /// Asks the ranks to end; gives the time when they are killed.
    fn end(&self, ranks: &mut Ranks, now: Instant) -> Instant {
        ranks.signal(libc::SIGTERM);
        now + self.grace
    }
}
