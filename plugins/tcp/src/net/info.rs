//! What the kernel knows of a connection.
#![allow(unsafe_code, reason = "TCP_INFO is a struct that the kernel fills")]

use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `None` if the system does not say all of it up to the path's shortest time.
pub(super) fn tcp_info(socket: BorrowedFd<'_>) -> Option<libc::tcp_info> {
    // SAFETY: all zero is a valid tcp_info.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
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
    let enough = mem::offset_of!(libc::tcp_info, tcpi_min_rtt) + size_of::<u32>();
    (answer == 0 && length as usize >= enough).then_some(info)
}
