//! Somebody at the door: read up to one hello, no further and not for long.

use std::time::Instant;

use rustix::net::RecvFlags;

use super::{PROOF_TIME, Refusal};
use crate::net::Polled;
use crate::wire::{HELLO_BYTES, Hello, WireError};

/// Whoever connected and has not said a whole hello.
#[derive(Debug)]
pub(super) struct Stranger {
    pub(super) socket: Polled,
    pub(super) key: u64,
    pub(super) deadline: Instant,
    input: [u8; HELLO_BYTES],
    got: usize,
}

impl Stranger {
    pub(super) fn new(socket: Polled, key: u64) -> Self {
        Self {
            socket,
            key,
            deadline: Instant::now() + PROOF_TIME,
            input: [0; HELLO_BYTES],
            got: 0,
        }
    }

    /// The hello, once it is whole.
    pub(super) fn hear(&mut self) -> Result<Option<Hello>, Refusal> {
        let rest = &mut self.input[self.got..];
        match rustix::net::recv(self.socket.fd(), rest, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(Refusal::End),
            Ok((_, got)) => self.got += got,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(Refusal::System(error.into())),
        }
        if self.got == HELLO_BYTES {
            return Hello::decode(&self.input).map(Some).map_err(Refusal::Wire);
        }
        if !Hello::may_begin(&self.input[..self.got]) {
            return Err(Refusal::Wire(WireError::Magic));
        }
        Ok(None)
    }
}
