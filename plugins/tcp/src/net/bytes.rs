//! Moving bytes between sockets and memory that others may look at meanwhile.
//!
//! Windows and sources are memory of the host process, named by address: other threads and devices
//! read and write it, so no Rust reference to it is ever made. Only the kernel touches it here.
#![allow(unsafe_code, reason = "scatter and gather to raw addresses")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Pieces that one call moves, at most.
pub(crate) const PIECES_MAX: usize = 64;

/// A run of bytes at an address.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Piece(libc::iovec);

impl Piece {
    /// `length` bytes at `address`.
    pub(crate) const fn new(address: *mut u8, length: usize) -> Self {
        Self(libc::iovec {
            iov_base: address.cast(),
            iov_len: length,
        })
    }

    /// No bytes.
    pub(crate) const EMPTY: Self = Self::new(std::ptr::null_mut(), 0);

    /// Adds `length` bytes at `address`, if they lie right behind it.
    pub(crate) fn grow(&mut self, address: *mut u8, length: usize) -> bool {
        let follows = self.address().wrapping_add(self.length()) == address;
        if follows {
            self.0.iov_len += length;
        }
        follows
    }

    /// Where it begins.
    pub(crate) const fn address(&self) -> *mut u8 {
        self.0.iov_base.cast()
    }

    /// Its length in bytes.
    pub(crate) const fn length(&self) -> usize {
        self.0.iov_len
    }
}

/// Sends what the socket takes now: never blocks, raises no signal.
///
/// # Errors
/// `WouldBlock` if it takes nothing; else the connection is gone.
///
/// # Safety
/// Each piece is readable memory of its length.
pub(crate) unsafe fn send(fd: BorrowedFd<'_>, pieces: &mut [Piece]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    retry(|| match &mut *pieces {
        // SAFETY: by the caller's promise.
        [Piece(one)] => unsafe { libc::send(fd.as_raw_fd(), one.iov_base, one.iov_len, flags) },
        // SAFETY: by the caller's promise; `message` borrows `pieces` for the call.
        many => unsafe { libc::sendmsg(fd.as_raw_fd(), &message(many), flags) },
    })
}

/// Receives what is there now, into the pieces in turn: never blocks. 0 means end of stream.
///
/// # Errors
/// `WouldBlock` if nothing is there; else the connection is gone.
///
/// # Safety
/// Each piece is writable memory of its length.
pub(crate) unsafe fn receive(fd: BorrowedFd<'_>, pieces: &mut [Piece]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT;
    retry(|| match &mut *pieces {
        // SAFETY: by the caller's promise.
        [Piece(one)] => unsafe { libc::recv(fd.as_raw_fd(), one.iov_base, one.iov_len, flags) },
        // SAFETY: by the caller's promise; `message` borrows `pieces` for the call.
        many => unsafe { libc::recvmsg(fd.as_raw_fd(), &mut message(many), flags) },
    })
}

fn message(pieces: &mut [Piece]) -> libc::msghdr {
    debug_assert!(pieces.len() <= PIECES_MAX);
    // SAFETY: all zero is a valid, empty msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr().cast();
    message.msg_iovlen = pieces.len() as _;
    message
}

/// Repeats a call that a signal interrupted: a handful of times, then it counts as "not now".
fn retry(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    for _ in 0..8 {
        match usize::try_from(call()) {
            Ok(moved) => return Ok(moved),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}
