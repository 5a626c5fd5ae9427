//! What one connection has to send.
#![allow(
    unsafe_code,
    reason = "the kernel reads the sources of puts by address"
)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use super::backoff::Backoff;
use super::outbox::{OutFrame, Outbox};
use crate::net::{PIECES_MAX, Piece, send};
use crate::wire::{FRAME_BYTES, Frame};

/// Frames that a connection takes in advance, at most.
const FRAMES_MAX: usize = 24;
/// Bytes that it takes in advance: enough for one call to be worth it.
const BYTES_AHEAD: u64 = 1 << 20;
/// Bytes of one call, so that an abort is heard soon.
const CALL_BYTES: u64 = 4 << 20;

/// Frames in order, and how much of the first is sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    frames: VecDeque<OutFrame>,
    /// Bytes of the first frame, header included, that the kernel has.
    sent: u64,
    backoff: Backoff,
}

impl Outgoing {
    /// Whether bytes wait for the kernel to take them.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Sends what the kernel takes, about `budget` bytes; returns how many.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn flush(
        &mut self,
        fd: BorrowedFd<'_>,
        (connection, connections): (usize, usize),
        outbox: &mut Outbox,
        budget: u64,
    ) -> io::Result<u64> {
        let mut moved = 0;
        if self.is_blocked() && !self.backoff.is_due() {
            return Ok(0);
        }
        while moved < budget {
            self.fill(connection, connections, outbox);
            if self.frames.is_empty() {
                break;
            }
            let mut pieces = [Piece::EMPTY; PIECES_MAX];
            let (count, wanted) = self.gather(&mut pieces);
            // SAFETY: the host keeps a put's source alive until it is complete; the headers live
            // in `self.frames`, which nothing touches until the call returns.
            match unsafe { send(fd, &mut pieces[..count]) } {
                Ok(sent) => {
                    self.advance(sent as u64, outbox);
                    self.backoff.moved();
                    moved += sent as u64;
                    if (sent as u64) < wanted {
                        break; // it is full
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.backoff.missed();
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }

    /// Tries at the next poll.
    pub(crate) fn wake(&mut self) {
        self.backoff.reset_skip();
    }

    /// A last word, if the connection stands between two frames: nothing is sent after it.
    pub(crate) fn say_goodbye(&mut self, fd: BorrowedFd<'_>, sequence: u64, aborted: bool) {
        if self.sent != 0 {
            return; // within a frame: the peer learns from the connection's end
        }
        let mut header = Frame::Goodbye { sequence, aborted }.encode();
        let mut pieces = [Piece::new(header.as_mut_ptr(), FRAME_BYTES)];
        // SAFETY: the header lives through the call. A goodbye that is not taken is not missed.
        let _ = unsafe { send(fd, &mut pieces) };
    }

    fn fill(&mut self, connection: usize, connections: usize, outbox: &mut Outbox) {
        let mut ahead: u64 = self.frames.iter().map(|f| f.length).sum();
        while self.frames.len() < FRAMES_MAX && ahead < BYTES_AHEAD {
            let Some(frame) = outbox.claim(connection, connections) else {
                return;
            };
            ahead += frame.length;
            self.frames.push_back(frame);
        }
    }

    /// The next bytes to send as pieces: how many pieces, and how many bytes.
    fn gather(&self, pieces: &mut [Piece; PIECES_MAX]) -> (usize, u64) {
        let (mut count, mut bytes) = (0, 0);
        let mut skip = self.sent;
        'all: for frame in &self.frames {
            if skip < FRAME_BYTES as u64 {
                if count == PIECES_MAX {
                    break;
                }
                let rest = &frame.header[skip as usize..];
                pieces[count] = Piece::new(rest.as_ptr().cast_mut(), rest.len());
                count += 1;
                bytes += rest.len() as u64;
                skip = FRAME_BYTES as u64;
            }
            let mut position = frame.start + (skip - FRAME_BYTES as u64);
            skip = 0;
            let end = frame.start + frame.length;
            while position < end {
                if count == PIECES_MAX || bytes >= CALL_BYTES {
                    break 'all;
                }
                let (address, run) = frame.source.run(position);
                let run = run.min(end - position);
                pieces[count] = Piece::new(address as *mut u8, run as usize);
                count += 1;
                bytes += run;
                position += run;
            }
        }
        (count, bytes)
    }

    fn advance(&mut self, sent: u64, outbox: &mut Outbox) {
        self.sent += sent;
        while let Some(frame) = self.frames.front() {
            let whole = FRAME_BYTES as u64 + frame.length;
            if self.sent < whole {
                break;
            }
            self.sent -= whole;
            outbox.settle(frame);
            self.frames.pop_front();
        }
    }
}
