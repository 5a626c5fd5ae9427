//! PMI-1: lines of text over a socket that the launcher leaves open, as MPICH's process manager speaks it.
//!
//! A line is `cmd=NAME key=value …`; each is answered by one line. Where a launcher has only an address for its ranks
//! (`PMI_PORT`), it is not asked: nothing would tell it from somebody else's.

#![allow(
    unsafe_code,
    reason = "the launcher passes its socket as a descriptor's number"
)]

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SendFlags;

use super::{Store, failed, late};
use crate::environment::Lookup;
use crate::error::{BootstrapError, Result};
use crate::wait::Wait;

const NAME: &str = "PMI";
/// The longest line that is taken.
const LINE: usize = 8192;

/// The connection to the launcher.
pub(super) struct Pmi {
    fd: RawFd,
    /// What came after the last line.
    rest: Vec<u8>,
    /// The name of this job's keys.
    space: String,
    longest: usize,
}

/// Whether the launcher left a socket.
pub(super) fn is_named(environment: Lookup<'_>) -> bool {
    descriptor(environment).is_some()
}

/// The socket that it left.
pub(super) fn descriptor(environment: Lookup<'_>) -> Option<RawFd> {
    let fd: RawFd = environment("PMI_FD")?.trim().parse().ok()?;
    (fd >= 0).then_some(fd)
}

impl Pmi {
    /// Introduces this process to its launcher.
    pub(super) fn connect(fd: RawFd, wait: &Wait) -> Result<Pmi> {
        let mut pmi = Pmi {
            fd,
            rest: Vec::new(),
            space: String::new(),
            longest: 0,
        };
        let hello = "cmd=init pmi_version=1 pmi_subversion=1";
        pmi.ask(hello, "response_to_init", wait)?;
        leave_at_exit(fd);
        let most = pmi.ask("cmd=get_maxes", "maxes", wait)?;
        pmi.longest = number(&most, "vallen_max")?;
        let mine = pmi.ask("cmd=get_my_kvsname", "my_kvsname", wait)?;
        pmi.space = value(&mine, "kvsname")?.to_owned();
        Ok(pmi)
    }

    /// Sends a line and takes the answer, which must be of this kind and say no error.
    fn ask(&mut self, line: &str, answer: &str, wait: &Wait) -> Result<String> {
        send(self.fd, line).map_err(|e| failed(NAME, format!("sending `{line}`: {e}")))?;
        let got = self.line(wait)?;
        let shown = || format!("`{line}` was answered by `{got}`");
        if find(&got, "cmd") != Some(answer) || find(&got, "rc").is_some_and(|rc| rc != "0") {
            return Err(failed(NAME, shown()));
        }
        Ok(got)
    }

    fn line(&mut self, wait: &Wait) -> Result<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
            if self.rest.len() > LINE {
                return Err(failed(NAME, format!("a line of more than {LINE} bytes")));
            }
            if !self.wait_readable(wait)? {
                continue;
            }
            let mut bytes = [0; 1024];
            match rustix::io::read(borrow(self.fd), &mut bytes) {
                Ok(0) => return Err(failed(NAME, "the launcher has closed the connection")),
                Ok(count) => self.rest.extend_from_slice(&bytes[..count]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(failed(NAME, format!("reading: {error}"))),
            }
        }
    }

    /// Waits for a slice of the time that there is; whether something came.
    fn wait_readable(&self, wait: &Wait) -> Result<bool> {
        let what = || "an answer of the launcher's (PMI)".to_owned();
        if wait.abort.is_raised() {
            return Err(BootstrapError::Cancelled { what: what() });
        }
        if wait.is_over() {
            return Err(late(NAME));
        }
        let mut polled = [PollFd::from_borrowed_fd(borrow(self.fd), PollFlags::IN)];
        let slice = Timespec::try_from(wait.slice()).ok();
        Ok(rustix::event::poll(&mut polled, slice.as_ref()).unwrap_or(0) > 0)
    }
}

impl Store for Pmi {
    fn put(&mut self, key: &str, value: &str, wait: &Wait) -> Result<()> {
        if value.len() >= self.longest {
            let why = format!("its values have less than {} bytes", self.longest);
            return Err(failed(NAME, why));
        }
        let line = format!("cmd=put kvsname={} key={key} value={value}", self.space);
        // The answer is not shown: what was put is a secret.
        self.ask(&line, "put_result", wait)
            .map(|_| ())
            .map_err(|_| failed(NAME, "it does not take a value"))
    }

    fn fence(&mut self, wait: &Wait) -> Result<()> {
        self.ask("cmd=barrier_in", "barrier_out", wait).map(|_| ())
    }

    fn get(&mut self, key: &str, wait: &Wait) -> Result<String> {
        let line = format!("cmd=get kvsname={} key={key}", self.space);
        let got = self.ask(&line, "get_result", wait)?;
        value(&got, "value").map(str::to_owned)
    }
}

/// The text of `key=` in a line of such pairs.
fn find<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_ascii_whitespace()
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}

fn value<'a>(line: &'a str, key: &str) -> Result<&'a str> {
    find(line, key).ok_or_else(|| failed(NAME, format!("an answer without `{key}`")))
}

fn number(line: &str, key: &str) -> Result<usize> {
    let text = value(line, key)?;
    let number = text.parse();
    number.map_err(|_| failed(NAME, format!("`{key}={text}` is no number")))
}

fn send(fd: RawFd, line: &str) -> rustix::io::Result<()> {
    let line = format!("{line}\n");
    let mut left = line.as_bytes();
    while !left.is_empty() {
        match rustix::net::send(borrow(fd), left, SendFlags::NOSIGNAL) {
            Ok(sent) => left = &left[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the launcher opened the descriptor for this process's whole life and says so in `PMI_FD`; nothing here
    // closes it. If somebody else did, calls on it fail, or meet another socket, as with any client of PMI.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// The launcher takes a process that has said `init` and goes without `finalize` for dead, and ends the job; and it
/// takes one for dead that is gone before it was answered.
fn leave_at_exit(fd: RawFd) {
    static SOCKET: AtomicI32 = AtomicI32::new(-1);
    static OWNER: AtomicU32 = AtomicU32::new(0);
    extern "C" fn finalize() {
        // A forked child's end is not the rank's.
        if OWNER.load(Ordering::Relaxed) == std::process::id() {
            leave(SOCKET.load(Ordering::Relaxed));
        }
    }
    OWNER.store(std::process::id(), Ordering::Relaxed);
    if SOCKET.swap(fd, Ordering::Relaxed) < 0 {
        // SAFETY: the function may run at any time before the end, and does not unwind.
        unsafe { libc::atexit(finalize) };
    }
}

/// Says goodbye, and hears so, for at most a second.
fn leave(fd: RawFd) {
    if send(fd, "cmd=finalize").is_err() {
        return;
    }
    let mut polled = [PollFd::from_borrowed_fd(borrow(fd), PollFlags::IN)];
    let limit = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    if rustix::event::poll(&mut polled, Some(&limit)).unwrap_or(0) > 0 {
        let _ = rustix::io::read(borrow(fd), &mut [0; 64]);
    }
}

#[cfg(test)]
mod tests;
