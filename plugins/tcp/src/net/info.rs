//! What the kernel knows of a connection.
#![allow(unsafe_code, reason = "TCP_INFO is a struct that the kernel fills")]

use std::os::fd::{AsRawFd, BorrowedFd};

/// `None` if the system does not say. What an older kernel does not know is 0.
pub(super) fn tcp_info(socket: BorrowedFd<'_>) -> Option<libc::tcp_info> {
    // SAFETY: all zero is a valid tcp_info.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    (answer == 0).then_some(info)
}

/// Bytes that the kernel has not sent yet, of a connection that stands.
pub(crate) fn unsent(socket: BorrowedFd<'_>) -> u32 {
    tcp_info(socket).map_or(0, |info| info.tcpi_notsent_bytes)
}
