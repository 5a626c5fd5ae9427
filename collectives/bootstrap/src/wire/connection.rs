//! One connection: what was read and not yet understood, what is to be written, and how far the handshake is.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;

use super::handshake::Handshake;

/// The longest body of a frame in bytes.
pub(crate) const MAX_FRAME: usize = (64 << 20) + 4096;

/// How far a connection is.
pub(crate) enum Stage {
    /// The system has not connected it yet.
    Connecting(Handshake),
    /// The two sides are proving themselves.
    Shaking(Handshake),
    /// Frames flow.
    Open,
}

/// A stream socket that never blocks, TCP or Unix.
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) stage: Stage,
    /// Where it comes from or goes to, for messages.
    pub(crate) place: String,
    /// This side connected it.
    pub(crate) outgoing: bool,
    /// When the present stage began.
    pub(crate) since: Instant,
    /// Nothing is read for now.
    pub(crate) paused: bool,
    /// What the poller waits for: reading, writing.
    pub(crate) interest: (bool, bool),
    input: Vec<u8>,
    /// How much of `input` was taken.
    taken: usize,
    output: VecDeque<Arc<[u8]>>,
    /// How much of the front of `output` was written.
    written: usize,
    queued: usize,
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Nothing more for now.
    Some,
    /// The other side closed.
    Ended,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, stage: Stage, place: String, outgoing: bool) -> Connection {
        let interest = (false, false);
        let (input, output) = (Vec::new(), VecDeque::new());
        let since = Instant::now();
        Connection {
            socket,
            stage,
            place,
            outgoing,
            since,
            paused: false,
            interest,
            input,
            taken: 0,
            output,
            written: 0,
            queued: 0,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// What the poller should wait for now.
    pub(crate) fn wants(&self) -> (bool, bool) {
        match self.stage {
            Stage::Connecting(_) => (false, true),
            Stage::Shaking(_) => (true, !self.output.is_empty()),
            Stage::Open => (!self.paused, !self.output.is_empty()),
        }
    }

    /// Bytes that wait to be written.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Queues bytes; [`Connection::flush`] writes them.
    pub(crate) fn push(&mut self, bytes: Arc<[u8]>) {
        if !bytes.is_empty() {
            self.queued += bytes.len();
            self.output.push_back(bytes);
        }
    }

    /// Writes as much as the system takes.
    pub(crate) fn flush(&mut self) -> Result<(), Errno> {
        while let Some(front) = self.output.front() {
            match rustix::net::send(
                &self.socket,
                &front[self.written..],
                rustix::net::SendFlags::NOSIGNAL,
            ) {
                Ok(count) => {
                    self.written += count;
                    self.queued -= count;
                    if self.written == front.len() {
                        self.written = 0;
                        self.output.pop_front();
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads what is there, until some `limit` bytes have come.
    pub(crate) fn fill(&mut self, limit: usize) -> Result<Filled, Errno> {
        const CHUNK: usize = 16 << 10;
        const KEEP: usize = 1 << 20;
        if self.taken == self.input.len() {
            self.input.clear();
            self.input.shrink_to(KEEP);
            self.taken = 0;
        } else if self.taken > CHUNK {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        let start = self.input.len();
        while self.input.len() - start < limit {
            self.input.reserve(CHUNK);
            let spare = rustix::buffer::spare_capacity(&mut self.input);
            match rustix::net::recv(&self.socket, spare, rustix::net::RecvFlags::empty()) {
                Ok((_, 0)) => return Ok(Filled::Ended),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(Filled::Some)
    }

    /// What was read and not taken.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Takes `count` bytes off the front of [`Connection::unread`], which must hold them.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let bytes = self.input[self.taken..self.taken + count].to_vec();
        self.taken += count;
        bytes
    }

    /// Takes the next whole frame's body.
    ///
    /// # Errors
    /// The length that a frame claims, if it is beyond [`MAX_FRAME`].
    pub(crate) fn next_frame(&mut self) -> Result<Option<Vec<u8>>, usize> {
        let Some((head, rest)) = self.unread().split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_FRAME {
            return Err(length);
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.taken += 4;
        Ok(Some(self.take(length)))
    }

    /// Ends the connection for both sides, also while a forked child holds a copy of the socket.
    pub(crate) fn shut(&self) {
        // It can only fail if the connection has ended already.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A body with its length before it.
pub(crate) fn frame(body: &[u8]) -> Arc<[u8]> {
    debug_assert!(body.len() <= MAX_FRAME);
    [&(body.len() as u32).to_le_bytes(), body].concat().into()
}
