//! What one connection brings: headers into a small buffer, bytes straight into the windows.
#![allow(unsafe_code, reason = "the kernel writes into windows by address")]

use std::io;

use super::backoff::Backoff;
use super::broken::Broken;
use super::elsewhere::{Arriving, Elsewhere, Lies};
use super::order::{Admission, Order};
use super::stream::Stream;
use super::window::Windows;
use crate::memory;
use crate::net::Piece;
use crate::wire::{FRAME_BYTES, Frame, Signal};

/// Small frames are read whole, several at once, through this buffer: of those of 16 KiB, the longest that collectives put
/// without a slot, two.
const BUFFER: usize = 40 << 10;
/// Behind a frame of at least this length only the next headers are read into the buffer: copying
/// bytes twice costs more than a call (`unisono bench all_to_all --ranks 2 -b 32K -e 64K --without-links shm`).
const LARGE: u64 = 32 << 10;
/// So many bytes, then: of signals, which come between large frames, some at once.
const HEADERS: usize = 4 * FRAME_BYTES;
/// So many signals may lie between two large frames; behind more come others.
const BETWEEN: u8 = 8;

/// Frames and bytes that the peer is not told of, if it does not wait for that: it keeps copies of them.
const UNTOLD_MAX: u32 = 16;
const UNTOLD_BYTES_MAX: u64 = 128 << 10;
/// Bytes of which the peer is told along with something else: the sooner it is, the less memory its copies go round in, and
/// the more of that its cache has (`vendor-docs/tcp.md`, *Copies that are kept*).
const UNTOLD_BYTES_ALONG: u64 = 8 << 10;

/// What the peer said last on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Goodbye {
    /// Puts it sent over the whole link.
    pub(crate) sequence: u64,
    /// Whether it gave up.
    pub(crate) aborted: bool,
}

/// A put frame whose bytes are landing.
#[derive(Clone, Copy, Debug)]
struct Landing {
    sequence: u64,
    window: u32,
    length: u64,
    offset: u64,
    landed: u64,
    total: u64,
    signal: Option<Signal>,
    acknowledge: bool,
    admitted: bool,
    lies: Lies,
    /// Turns that it has waited to be told.
    waited: u32,
}

impl Landing {
    /// What it is, and where the peer said that it shall lie.
    const fn arriving(&self) -> Arriving {
        Arriving {
            sequence: self.sequence,
            window: self.window,
            offset: self.offset,
            length: self.length,
        }
    }

    /// Where its next `bytes` bytes lie. The window must be there in any case.
    fn place(&self, windows: &Windows, bytes: u64) -> Result<*mut u8, Broken> {
        let place = windows
            .place(self.window, self.offset + self.landed, bytes)
            .ok_or_else(|| outside(self))?;
        Ok(match self.lies {
            Lies::Elsewhere(to) => (to + self.landed) as *mut u8,
            Lies::There | Lies::Unsaid => place,
        })
    }
}

/// What the peer said about the connection itself, since it was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    /// It has so many frames.
    pub(crate) acknowledged: Option<u64>,
    /// It has so many frames of the connections before this one.
    pub(crate) resumed: Option<u64>,
    /// It has lost this connection, of this generation. One at a time is heard: when that is back, it asks
    /// for the others again.
    pub(crate) lost: Option<(u16, u16)>,
}

/// The receive side of one connection.
#[derive(Debug)]
pub(crate) struct Incoming {
    buffer: Box<[u8; BUFFER]>,
    /// What of the buffer is unread.
    unread: std::ops::Range<usize>,
    landing: Option<Landing>,
    /// Signals behind which another large frame may come: none if the last frame with bytes was short.
    large: u8,
    goodbye: Option<Goodbye>,
    /// Frames of puts that have landed, over this connection and those before it.
    received: u64,
    /// How many of them the peer was not told of, and whether it waits for that.
    untold: u32,
    untold_bytes: u64,
    is_asked: bool,
    /// The peer keeps nothing, and is told nothing.
    lasting: bool,
    said: Option<Said>,
    /// Whether the peer must first say what it has.
    fresh: bool,
    backoff: Backoff,
}

/// What the receive sides of a link share.
pub(crate) struct Landed<'a> {
    pub(crate) windows: &'a Windows,
    pub(crate) order: &'a mut Order,
    pub(crate) elsewhere: &'a mut Elsewhere,
    pub(crate) bytes: &'a mut u64,
    pub(crate) puts: &'a mut u64,
}

impl Incoming {
    pub(crate) fn new(lasting: bool) -> Self {
        Self {
            buffer: Box::new([0; BUFFER]),
            unread: 0..0,
            landing: None,
            large: 0,
            goodbye: None,
            received: 0,
            untold: 0,
            untold_bytes: 0,
            is_asked: false,
            lasting,
            said: None,
            fresh: true,
            backoff: Backoff::default(),
        }
    }

    /// Another connection takes this one's place: a frame that was cut off will come again. Returns
    /// how many have landed.
    pub(crate) fn restart(&mut self, order: &mut Order, lasting: bool) -> u64 {
        self.lasting = lasting;
        if let Some(landing) = self.landing.take().filter(|l| l.admitted) {
            order.revoke(landing.sequence, landing.length);
        }
        self.unread = 0..0;
        (self.large, self.is_asked) = (0, false);
        (self.untold, self.untold_bytes) = (0, 0);
        (self.goodbye, self.said, self.fresh) = (None, None, true);
        self.backoff = Backoff::default();
        self.received
    }

    /// What the peer said about the connection itself since this was last asked, if anything.
    pub(crate) fn take_said(&mut self) -> Option<Said> {
        self.said.take()
    }

    /// How many frames have landed, if it is time to tell the peer.
    pub(crate) fn acknowledge(&mut self) -> Option<u64> {
        let is_much = self.untold >= UNTOLD_MAX || self.untold_bytes >= UNTOLD_BYTES_MAX;
        if !self.is_asked && !is_much {
            return None;
        }
        (self.is_asked, self.untold, self.untold_bytes) = (false, 0, 0);
        Some(self.received)
    }

    /// How many frames have landed, if it is worth telling the peer along with something else: a word less to send by
    /// itself.
    pub(crate) fn acknowledge_along(&mut self) -> Option<u64> {
        if self.untold < UNTOLD_MAX / 2 && self.untold_bytes < UNTOLD_BYTES_ALONG {
            return None;
        }
        (self.is_asked, self.untold, self.untold_bytes) = (false, 0, 0);
        Some(self.received)
    }

    /// The peer's last word, if it was said.
    pub(crate) const fn goodbye(&self) -> Option<Goodbye> {
        self.goodbye
    }

    /// Whether the peer has said nothing yet.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Whether the connection must wait until older puts have landed over others.
    pub(crate) fn is_held(&self) -> bool {
        self.landing
            .is_some_and(|l| !l.admitted && l.lies != Lies::Unsaid)
    }

    /// Whether it was held and need not be any more.
    pub(crate) fn is_releasable(&self, order: &Order) -> bool {
        self.landing
            .is_some_and(|l| !l.admitted && l.lies != Lies::Unsaid && order.has_room(l.sequence))
    }

    /// Whether it waits to be told where a frame shall lie, and may go on when it is polled.
    pub(crate) fn is_undecided(&self) -> bool {
        self.landing.is_some_and(|l| l.lies == Lies::Unsaid)
    }

    /// Whether to ask the socket now.
    pub(crate) fn is_due(&mut self) -> bool {
        self.backoff.is_due()
    }

    /// Ask at the next poll.
    pub(crate) fn wake(&mut self) {
        self.backoff.reset_skip();
    }

    /// Takes what has come, about `budget` bytes; returns how many were moved, and whether more may
    /// be there.
    pub(crate) fn pull(
        &mut self,
        stream: &mut Stream,
        landed: &mut Landed<'_>,
        budget: u64,
    ) -> Result<(u64, bool), Broken> {
        let mut moved = 0;
        self.decide(landed);
        loop {
            self.digest(landed)?;
            if self.is_held() || self.is_undecided() {
                return Ok((moved, false));
            }
            if moved >= budget {
                return Ok((moved, true));
            }
            let (direct, wanted) = self.prepare(landed, budget)?;
            let mut pieces = [direct, self.spare(wanted)];
            let wanted = pieces[0].length() + pieces[1].length();
            let used = match (pieces[0].length(), pieces[1].length()) {
                (0, _) => &mut pieces[1..],
                (_, 0) => &mut pieces[..1],
                _ => &mut pieces[..],
            };
            // SAFETY: `prepare` found the place where the host asked for the put, which it keeps alive until the
            // put is complete or the link has ended, which needs the same lock, or in a window that it keeps alive until it
            // is closed, which needs the same lock; the spare is the buffer's own free part.
            match unsafe { stream.receive(used) } {
                Ok(0) => return Err(Broken::End),
                Ok(got) => {
                    self.backoff.moved();
                    moved += got as u64;
                    self.note(got, direct.length());
                    if got < wanted {
                        // The socket is empty.
                        self.digest(landed)?;
                        return Ok((moved, false));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.backoff.missed();
                    return Ok((moved, false));
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(Broken::Protocol(error.to_string()));
                }
                Err(error) => return Err(Broken::System(error)),
            }
        }
    }

    /// A frame that waits to be told where it shall lie does not any more: what lies behind it is needed.
    pub(crate) fn wait_no_more(&mut self) {
        if let Some(landing) = self.landing.as_mut().filter(|l| l.lies == Lies::Unsaid) {
            landing.waited = u32::MAX;
        }
    }

    /// Once a turn, of a frame that waits: whether the host has asked for it, or it has waited long enough.
    fn decide(&mut self, landed: &mut Landed<'_>) {
        if let Some(landing) = self.landing.as_mut().filter(|l| l.lies == Lies::Unsaid) {
            landing.waited = landing.waited.saturating_add(1);
            landing.lies = landed.elsewhere.place(landing.arriving(), landing.waited);
        }
    }

    /// Where the next bytes go directly, and how many bytes to read into the buffer behind them.
    fn prepare(&mut self, landed: &Landed<'_>, budget: u64) -> Result<(Piece, usize), Broken> {
        let Some(landing) = &self.landing else {
            let wanted = if self.large > 0 { HEADERS } else { BUFFER };
            return Ok((Piece::EMPTY, wanted));
        };
        let rest = landing.length - landing.landed;
        let place = landing.place(landed.windows, rest)?;
        let now = rest.min(budget.max(LARGE));
        let behind = match now == rest {
            false => 0,
            true if self.large > 0 => HEADERS,
            true => BUFFER,
        };
        Ok((Piece::new(place, now as usize), behind))
    }

    /// Free room at the buffer's end for up to `wanted` bytes in all.
    fn spare(&mut self, wanted: usize) -> Piece {
        if wanted == 0 {
            return Piece::EMPTY;
        }
        // At most part of a header is unread here.
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        let free = &mut self.buffer[self.unread.end..wanted.max(self.unread.end)];
        Piece::new(free.as_mut_ptr(), free.len())
    }

    /// Takes note of `got` bytes, of which up to `direct` went straight to the window.
    fn note(&mut self, got: usize, direct: usize) {
        let straight = got.min(direct);
        if let Some(landing) = &mut self.landing {
            landing.landed += straight as u64;
        }
        self.unread.end += got - straight;
    }

    /// Works off the buffer: frames, their bytes, and the signals that fall due.
    fn digest(&mut self, landed: &mut Landed<'_>) -> Result<(), Broken> {
        loop {
            if let Some(landing) = &mut self.landing {
                if landing.lies == Lies::Unsaid {
                    return Ok(());
                }
                if !landing.admitted {
                    match landed.order.admit(
                        landing.sequence,
                        landing.total,
                        landing.length,
                        landing.signal,
                    ) {
                        Admission::Taken => landing.admitted = true,
                        Admission::Held => return Ok(()),
                        Admission::Refused(why) => return Err(Broken::Protocol(why.to_owned())),
                    }
                }
                let rest = landing.length - landing.landed;
                let take = rest.min(self.unread.len() as u64);
                if take > 0 {
                    let place = landing.place(landed.windows, take)?;
                    let from = &self.buffer[self.unread.start..][..take as usize];
                    // SAFETY: as in `pull`.
                    unsafe { memory::copy_in(from, place) };
                    landing.landed += take;
                    self.unread.start += take as usize;
                }
                if landing.landed < landing.length {
                    return Ok(());
                }
                landed.order.land(landing.sequence, landing.length);
                let (length, acknowledge) = (landing.length, landing.acknowledge);
                self.landing = None;
                self.count(length, acknowledge, landed);
                settle(landed)?;
            }
            let Some(header) = self.buffer[self.unread.clone()].first_chunk::<FRAME_BYTES>() else {
                return Ok(());
            };
            let frame = Frame::decode(header)?;
            self.unread.start += FRAME_BYTES;
            if !self.lands_at_once(&frame, landed) {
                self.begin(frame, landed)?;
            }
        }
    }

    /// Takes note of a frame of a put that has landed whole.
    fn count(&mut self, length: u64, acknowledge: bool, landed: &mut Landed<'_>) {
        *landed.bytes += length;
        self.received += 1;
        if !self.lasting {
            self.untold += 1;
            self.untold_bytes += length;
            self.is_asked |= acknowledge;
        }
    }

    /// A short put that is here whole, with a flag, and the next in order, lands without that anything of it is remembered:
    /// most are such. Of one without a flag it must be known that it lies in its window until a flag is raised. False of every
    /// other, also of one that is wrong: then [`begin`](Self::begin) says what is.
    fn lands_at_once(&mut self, frame: &Frame, landed: &mut Landed<'_>) -> bool {
        let Frame::Put {
            sequence,
            window,
            length,
            offset,
            total,
            signal: Some(signal),
            acknowledge,
        } = *frame
        else {
            return false;
        };
        let length = u64::from(length);
        let is_whole = length == total && length < LARGE && length <= self.unread.len() as u64;
        if !is_whole
            || self.fresh
            || self.goodbye.is_some()
            || !landed.order.is_next(sequence)
            || !landed.elsewhere.is_empty()
        {
            return false;
        }
        let Some(flag) = landed.windows.flag(signal.window, signal.offset) else {
            return false;
        };
        if length > 0 {
            let Some(place) = landed.windows.place(window, offset, length) else {
                return false;
            };
            let from = &self.buffer[self.unread.start..][..length as usize];
            // SAFETY: as in `pull`.
            unsafe { memory::copy_in(from, place) };
            self.unread.start += length as usize;
        }
        self.large = match length {
            0 => self.large.saturating_sub(1),
            _ => 0,
        };
        landed.order.pass();
        *landed.puts += 1;
        self.count(length, acknowledge, landed);
        // SAFETY: as in `settle`.
        unsafe { memory::raise(flag, signal.words) };
        true
    }

    fn said(&mut self) -> &mut Said {
        self.said.get_or_insert_default()
    }

    fn begin(&mut self, frame: Frame, landed: &mut Landed<'_>) -> Result<(), Broken> {
        let windows = landed.windows;
        if self.goodbye.is_some() {
            return Err(Broken::Protocol("a frame after the last one".to_owned()));
        }
        if self.fresh != matches!(frame, Frame::Resume { .. }) {
            let what = "a connection must begin where the one before it ended, and only then";
            return Err(Broken::Protocol(what.to_owned()));
        }
        match frame {
            Frame::Put {
                sequence,
                window,
                length,
                offset,
                total,
                signal,
                acknowledge,
            } => {
                let mut landing = Landing {
                    sequence,
                    window,
                    length: u64::from(length),
                    offset,
                    landed: 0,
                    total,
                    signal,
                    acknowledge,
                    admitted: false,
                    lies: Lies::There,
                    waited: 0,
                };
                if length > 0 && windows.place(window, offset, landing.length).is_none() {
                    return Err(outside(&landing));
                }
                if let Some(s) = signal.filter(|s| windows.flag(s.window, s.offset).is_none()) {
                    return Err(no_flag(s));
                }
                let length = landing.length;
                landing.lies = landed.elsewhere.place(landing.arriving(), 0);
                self.large = match length {
                    0 => self.large.saturating_sub(1),
                    LARGE.. => BETWEEN,
                    _ => 0,
                };
                self.landing = Some(landing);
            }
            Frame::Goodbye { sequence, aborted } => {
                self.goodbye = Some(Goodbye { sequence, aborted });
            }
            Frame::Ack { received } => self.said().acknowledged = Some(received),
            Frame::Resume { received } => {
                self.said().resumed = Some(received);
                self.fresh = false;
            }
            Frame::Lost { index, generation } => self.said().lost = Some((index, generation)),
        }
        Ok(())
    }
}

/// Raises the flags of all puts that are now complete with all before them.
fn settle(landed: &mut Landed<'_>) -> Result<(), Broken> {
    while let Some(due) = landed.order.pop() {
        *landed.puts += 1;
        if let Some(signal) = due {
            landed.elsewhere.raised(landed.order.next() - 1);
            let flag = landed
                .windows
                .flag(signal.window, signal.offset)
                .ok_or_else(|| no_flag(signal))?;
            // SAFETY: the flag is in a window that the host keeps alive until it is closed, which
            // needs the same lock.
            unsafe { memory::raise(flag, signal.words) };
        }
    }
    Ok(())
}

fn outside(landing: &Landing) -> Broken {
    Broken::Protocol(format!(
        "a put of {} bytes at {} is outside window {}",
        landing.length, landing.offset, landing.window
    ))
}

fn no_flag(signal: Signal) -> Broken {
    Broken::Protocol(format!(
        "window {} has no flag line at {}",
        signal.window, signal.offset
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_anyway_takes_the_count_along() {
        let mut incoming = Incoming::new(false);
        incoming.untold = UNTOLD_MAX / 2 - 1;
        assert_eq!(incoming.acknowledge_along(), None, "not for a few");
        (incoming.untold, incoming.received) = (UNTOLD_MAX / 2, 40);
        assert_eq!(incoming.acknowledge(), None, "not by itself yet");
        assert_eq!(incoming.acknowledge_along(), Some(40));
        incoming.untold += UNTOLD_MAX / 2;
        assert_eq!(incoming.acknowledge(), None, "it was told");
    }
}
