//! A socket as the TLS library reads and writes one: never blocks, raises no signal.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

/// A borrowed socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Socket<'a>(pub(super) BorrowedFd<'a>);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (_, count) = rustix::net::recv(self.0, into, RecvFlags::DONTWAIT).map_err(later)?;
        Ok(count)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let mut nothing = SendAncillaryBuffer::default();
        rustix::net::sendmsg(self.0, pieces, &mut nothing, flags).map_err(later)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A call that a signal interrupted counts as "not now".
fn later(error: Errno) -> io::Error {
    match error {
        Errno::INTR => io::ErrorKind::WouldBlock.into(),
        other => other.into(),
    }
}
