//! Another process by its entry in `/proc`.

use std::fs;
use std::io;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};

/// When a process started, in clock ticks since boot.
pub(crate) fn start_time(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; start time is the 20th field after it.
    stat.rsplit_once(") ")
        .and_then(|(_, fields)| fields.split(' ').nth(19))
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unexpected /proc/PID/stat"))
}

/// Opens what another process has open: a memory file or a pipe, never blocking.
pub(crate) fn open_fd(pid: u32, fd: i32) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(openat(
        CWD,
        format!("/proc/{pid}/fd/{fd}"),
        flags,
        Mode::empty(),
    )?)
}
