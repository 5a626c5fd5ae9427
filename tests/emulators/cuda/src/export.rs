//! Descriptors of exported memory that, as the driver's, mean nothing when opened anew by `/proc`.
//!
//! The descriptor is a socket whose only message carries the memory's file. Whoever got the socket
//! itself may look at the message as often as it likes; who opens it by its name gets nothing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

const ROOM: usize = 64;

#[repr(align(8))]
struct Control([u8; ROOM]);

/// A descriptor for others.
pub fn wrap(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let (mut byte, mut control) = (0_u8, Control([0; ROOM]));
    let mut vector = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: pointers to this frame; the control message fits into its room.
    let sent = unsafe {
        let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header)
            .cast::<RawFd>()
            .write_unaligned(file.as_raw_fd());
        libc::sendmsg(near.as_raw_fd(), &raw const message, 0)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(far)
}

/// The memory's file.
pub fn unwrap(socket: RawFd) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    let (mut byte, mut control) = (0_u8, Control([0; ROOM]));
    let mut vector = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: pointers to this frame; a descriptor that came is this process's, and new.
    unsafe {
        let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = ROOM;
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        if libc::recvmsg(socket, &raw mut message, flags) < 0 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let good = !header.is_null()
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len == libc::CMSG_LEN(4) as usize;
        if !good {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = ptr::read_unaligned(libc::CMSG_DATA(header).cast::<RawFd>());
        Ok(OwnedFd::from_raw_fd(file))
    }
}
