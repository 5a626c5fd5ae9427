//! How far a command that moves bytes has come, cut by a budget of bytes; and COPY.
#![allow(unsafe_code, reason = "commands carry addresses")]

use unisono_plugin::abi::{CMD_STREAMING, CommandCopy};
use unisono_plugin::{Error, Result};

use super::handed::{Handed, What};
use crate::config::Config;

/// A cut command moves at least this much at a time: whole cache lines and elements.
const LEAST: u64 = 16 << 10;

/// How far a command has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    piece: u64,
    /// Bytes done of that piece.
    offset: u64,
}

impl Progress {
    /// Calls `work` with (piece, offset, length) until all pieces are done (`true`) or the budget
    /// is spent.
    #[inline]
    pub(super) fn advance(
        &mut self,
        pieces: u64,
        bytes: u64,
        budget: &mut u64,
        mut work: impl FnMut(u64, u64, u64),
    ) -> bool {
        while self.piece < pieces {
            if *budget == 0 {
                return false;
            }
            let rest = bytes - self.offset;
            let length = if rest <= *budget {
                rest
            } else {
                rest.min((*budget).max(LEAST) & !63)
            };
            work(self.piece, self.offset, length);
            *budget = budget.saturating_sub(length.max(1));
            if length == rest {
                *self = Self {
                    piece: self.piece + 1,
                    offset: 0,
                };
            } else {
                self.offset += length;
            }
        }
        true
    }
}

/// Whether two ranges of the same length overlap without being the same.
pub(super) fn partly_overlap(a: u64, b: u64, bytes: u64) -> bool {
    a != b && a.abs_diff(b) < bytes
}

pub(super) fn overlap(what: &str, a: u64, b: u64, bytes: u64) -> Error {
    Error::invalid(format!(
        "{what}: {bytes} bytes at {a:#x} and {b:#x} overlap in part"
    ))
}

/// Refuses what would move wrong bytes.
pub(super) fn check_copy(command: &CommandCopy) -> Result<()> {
    let CommandCopy {
        dst, src, bytes, ..
    } = *command;
    if partly_overlap(dst, src, bytes) {
        return Err(overlap("COPY", dst, src, bytes));
    }
    Ok(())
}

/// Goes on with a COPY; `true` when it is complete.
///
/// # Safety
/// Source and destination are mapped, and nobody else uses the destination or writes the source.
#[inline]
pub(super) unsafe fn copy(
    command: &CommandCopy,
    progress: &mut Progress,
    budget: &mut u64,
    config: &Config,
    handed: &mut Handed,
) -> bool {
    let CommandCopy {
        dst,
        src,
        bytes,
        repeat,
        dst_stride,
        src_stride,
        ..
    } = *command;
    let streaming = wants_streaming(command.head.flags, bytes, config);
    progress.advance(repeat, bytes, budget, |piece, offset, length| {
        let to = at(dst, piece, dst_stride, offset);
        let from = at(src, piece, src_stride, offset);
        if to != from {
            handed.write(What::Copied, to as u64, length, |past| {
                // SAFETY: the caller's promise; the two do not overlap in part, as was checked.
                unsafe {
                    match streaming || past {
                        true => unisono_copy::copy_past(to, from, length as usize),
                        // It may lie in slots that a peer has just filled, or go where one reads next.
                        false => unisono_copy::copy_shared(to, from, length as usize),
                    }
                }
            });
        }
    })
}

pub(super) fn wants_streaming(flags: u32, bytes: u64, config: &Config) -> bool {
    flags & CMD_STREAMING != 0 && bytes >= config.streaming_threshold
}

pub(super) fn at(base: u64, piece: u64, stride: u64, offset: u64) -> *mut u8 {
    base.wrapping_add(piece.wrapping_mul(stride))
        .wrapping_add(offset) as usize as *mut u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(pieces: u64, bytes: u64, budget: u64) -> (Vec<(u64, u64, u64)>, u32) {
        let mut progress = Progress::default();
        let mut done = Vec::new();
        let mut polls = 0;
        loop {
            let mut left = budget;
            polls += 1;
            assert!(polls < 10_000, "no progress");
            let all = progress.advance(pieces, bytes, &mut left, |p, o, n| done.push((p, o, n)));
            if all {
                return (done, polls);
            }
        }
    }

    #[test]
    fn every_byte_is_moved_once_in_order() {
        for (pieces, bytes, budget) in [
            (1, 0, 1),
            (3, 1, 1),
            (2, 100_000, 1),
            (2, 100_000, 30_000),
            (5, 1 << 20, 3 << 20),
        ] {
            let (done, _) = cuts(pieces, bytes, budget);
            let mut expected = (0, 0);
            for (piece, offset, length) in done {
                assert_eq!((piece, offset), expected);
                let end = offset + length;
                expected = if end == bytes {
                    (piece + 1, 0)
                } else {
                    (piece, end)
                };
            }
            assert_eq!(expected, (pieces, 0), "{pieces} of {bytes} at {budget}");
        }
    }

    #[test]
    fn a_budget_cuts() {
        let (_, polls) = cuts(1, 10 << 20, 1 << 20);
        assert_eq!(polls, 10);
        let (_, polls) = cuts(1, 10 << 20, 20 << 20);
        assert_eq!(polls, 1);
    }

    #[test]
    fn overlaps_are_found() {
        assert!(!partly_overlap(100, 100, 10));
        assert!(!partly_overlap(100, 110, 10));
        assert!(partly_overlap(100, 109, 10));
        assert!(partly_overlap(109, 100, 10));
    }
}
