//! One PUT: where its bytes are, where they go, and in what stripes.

use unisono_plugin::abi::{CMD_WORDS, CommandPut, NO_WINDOW};
use unisono_plugin::{Error, Result};

use super::spread::STRIPED;
use super::window::Windows;
use crate::wire::{Frame, Signal};

/// A stripe is at least this long: shorter puts go whole, over the first connection.
const STRIPE_MIN: u64 = 64 << 10;
/// And at most this, so that connections of unequal speed share fairly.
const STRIPE_MAX: u64 = 512 << 10;

/// A PUT whose windows were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub(crate) source: Source,
    pub(crate) window: u32,
    pub(crate) offset: u64,
    pub(crate) total: u64,
    pub(crate) signal: Option<Signal>,
    pub(crate) done: Option<(u64, u64)>,
}

/// Over what puts are striped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    pub(crate) count: usize,
    /// Whether they go by more than one rail.
    pub(crate) rails: bool,
}

/// Which connection asks for a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) connection: usize,
    pub(crate) lines: Lines,
    /// Where there are rails, how much of a striped put it may take; see [`share`](super::spread::share).
    pub(crate) most: u64,
}

/// Where a put's bytes are: pieces of one size, a stride apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    address: u64,
    piece: u64,
    stride: u64,
}

impl Source {
    /// Bytes in one piece.
    pub(crate) const fn one(address: u64, bytes: u64) -> Self {
        Self {
            address,
            piece: if bytes == 0 { 1 } else { bytes },
            stride: 0,
        }
    }

    /// The longest run from `position` of the bytes in order: its address and length.
    pub(crate) const fn run(&self, position: u64) -> (u64, u64) {
        let (index, within) = (position / self.piece, position % self.piece);
        (
            self.address + index * self.stride + within,
            self.piece - within,
        )
    }
}

impl Put {
    /// Checks a command against the windows.
    ///
    /// # Errors
    /// It names no window, or bytes outside of one, or wraps around the address space.
    pub(crate) fn check(put: &CommandPut, windows: &Windows) -> Result<Self> {
        let wraps = || Error::invalid("a PUT gathers more than the address space holds");
        let total = put.bytes.checked_mul(put.repeat).ok_or_else(wraps)?;
        put.src_stride
            .checked_mul(put.repeat.max(1) - 1)
            .and_then(|last| put.src.checked_add(last)?.checked_add(put.bytes))
            .ok_or_else(wraps)?;
        if total > 0 && put.src == 0 {
            return Err(Error::invalid("a PUT of bytes at address 0"));
        }
        let window = if total == 0 && put.dst_window == NO_WINDOW {
            0
        } else {
            windows.target(put.dst_window, put.dst_offset, total)?.id
        };
        let signal = match put.signal_window {
            NO_WINDOW => None,
            id => Some(Signal {
                window: windows.target_flag(id, put.signal_offset)?.id,
                offset: put.signal_offset,
                words: (put.head.flags & CMD_WORDS != 0).then_some(put.words),
            }),
        };
        let contiguous = put.repeat <= 1 || put.src_stride == put.bytes;
        Ok(Self {
            source: Source {
                address: put.src,
                piece: if contiguous { total } else { put.bytes }.max(1),
                stride: put.src_stride,
            },
            window,
            offset: put.dst_offset,
            total,
            signal,
            done: (put.done_flag != 0).then_some((put.done_flag, put.done_counter)),
        })
    }

    /// The frame of `length` bytes from `start` on.
    pub(crate) const fn frame(
        &self,
        sequence: u64,
        start: u64,
        length: u64,
        acknowledge: bool,
    ) -> Frame {
        Frame::Put {
            sequence,
            window: self.window,
            length: length as u32, // STRIPE_MAX is far below
            offset: self.offset + start,
            total: self.total,
            signal: self.signal,
            acknowledge,
        }
    }

    /// Whether several rails share it; sooner than connections over one do, since that is worth more.
    pub(crate) const fn is_shared(&self, lines: Lines) -> bool {
        lines.rails && self.total >= STRIPED
    }

    /// How long the next stripe is for one that asks; 0 if it shall take none.
    pub(crate) fn stripe(&self, place: Place) -> u64 {
        if self.is_shared(place.lines) {
            return place.most;
        }
        if place.lines.rails || self.total < 2 * STRIPE_MIN {
            return self.total;
        }
        (self.total / place.lines.count.max(1) as u64)
            .next_multiple_of(4096)
            .clamp(STRIPE_MIN, STRIPE_MAX)
    }
}
