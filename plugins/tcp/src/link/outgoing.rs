//! What one connection has to send.
#![allow(
    unsafe_code,
    reason = "the kernel reads the sources of puts by address"
)]

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use super::backoff::Backoff;
use super::broken::Broken;
use super::keep::Keep;
use super::outbox::{OutFrame, Outbox};
use super::pace::Pace;
use super::put::Place;
use super::stream::Stream;
use super::together::Together;
use crate::net::{PIECES_MAX, Piece};
use crate::wire::{FRAME_BYTES, Frame};

/// Frames that a connection takes in advance, at most: more than the short ones that hosts hand over together.
const FRAMES_MAX: usize = 128;
/// Bytes that it takes in advance: enough for one call to be worth it.
const BYTES_AHEAD: u64 = 256 << 10;
/// Bytes of one call, so that an abort is heard soon.
const CALL_BYTES: u64 = 4 << 20;

/// Frames in order: those that the kernel has and the peer has not acknowledged, then those to send.
/// Between two frames of puts there is room for words about the connection itself.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    frames: VecDeque<OutFrame>,
    /// Frames at the front that the kernel has whole.
    passed: usize,
    /// Bytes of the first one after those, header included, that the kernel has.
    sent: u64,
    /// Frames of puts that the peer has.
    acknowledged: u64,
    /// Words to say, and how much of the first the kernel has.
    words: VecDeque<Word>,
    word_sent: usize,
    /// Whether the stream has bytes that the kernel has not.
    owes: bool,
    /// Until the peer has said on a new connection what it has, only words are sent.
    held: bool,
    /// Nothing is sent again: what the kernel has is as good as with the peer.
    lasting: bool,
    keep: Keep,
    together: Together,
    pace: Pace,
    backoff: Backoff,
}

#[derive(Debug)]
struct Word {
    header: [u8; FRAME_BYTES],
    acknowledges: bool,
}

impl Outgoing {
    /// Of a connection that is the first in its place.
    pub(crate) fn new(lasting: bool) -> Self {
        let mut new = Self::default();
        new.restart(0, lasting);
        new
    }

    /// Whether bytes wait for the kernel to take them.
    pub(crate) fn is_blocked(&self) -> bool {
        self.owes || !self.words.is_empty() || (!self.held && self.passed < self.frames.len())
    }

    /// Whether it could take a put's next frame.
    pub(crate) fn is_free(&self) -> bool {
        !self.held && !self.is_blocked()
    }

    /// Whether it waits for the next frame of a put; the kernel may not.
    pub(crate) fn is_hungry(&self) -> bool {
        !self.held && self.passed == self.frames.len()
    }

    /// What is under way where there are rails, and how fast.
    pub(crate) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Whether both ends have said where to go on.
    pub(crate) const fn is_going(&self) -> bool {
        !self.held
    }

    /// Whether there is something to say about the connection.
    pub(crate) fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether the peer has not yet said that it has all.
    pub(crate) fn awaits_peer(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Frames that a new connection would send again.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.frames.len()
    }

    /// Says something about the connection, between two frames.
    pub(crate) fn say(&mut self, frame: &Frame) {
        let acknowledges = matches!(frame, Frame::Ack { .. });
        let header = frame.encode();
        // The newest count is enough, unless the kernel has part of an older one.
        let first = usize::from(self.word_sent > 0);
        let older = self.words.iter_mut().skip(first);
        match older.into_iter().find(|word| word.acknowledges) {
            Some(older) if acknowledges => older.header = header,
            _ => self.words.push_back(Word {
                header,
                acknowledges,
            }),
        }
    }

    /// The peer has so many frames of this connection and of those before it in its place.
    pub(crate) fn acknowledge(&mut self, received: u64, outbox: &mut Outbox) -> Result<(), Broken> {
        let count = received.checked_sub(self.acknowledged);
        let Some(count) = count.filter(|count| *count <= self.passed as u64) else {
            return Err(Broken::Protocol(format!(
                "it acknowledges {received} frames: {} were, and {} more are under way",
                self.acknowledged, self.passed
            )));
        };
        self.let_go(count as usize, outbox);
        self.passed -= count as usize;
        self.acknowledged = received;
        Ok(())
    }

    /// The kernel has the next frame whole.
    fn pass(&mut self, outbox: &mut Outbox) {
        if self.lasting {
            return self.let_go(1, outbox);
        }
        if let Some(frame) = self.frames.get_mut(self.passed)
            && frame.kept.is_some()
        {
            outbox.settle(frame);
        }
        self.passed += 1;
    }

    /// The first frames are not needed any more.
    fn let_go(&mut self, count: usize, outbox: &mut Outbox) {
        let mut landed = 0;
        for mut frame in self.frames.drain(..count) {
            landed += frame.told_of();
            self.keep.give_back(frame.kept.unwrap_or(0));
            outbox.settle(&mut frame);
        }
        if landed > 0 && self.pace.under_way() > 0 {
            self.pace.landed(landed, Instant::now());
        }
    }

    /// Another connection takes this one's place: `received` is what this end has.
    pub(crate) fn restart(&mut self, received: u64, lasting: bool) {
        self.lasting = lasting;
        self.sent = 0;
        self.words.clear();
        (self.word_sent, self.owes) = (0, false);
        self.held = true;
        self.backoff = Backoff::default();
        self.pace.restart();
        self.say(&Frame::Resume { received });
    }

    /// The peer has said what it has: the rest goes out again. Returns how many frames.
    pub(crate) fn resume(&mut self, received: u64, outbox: &mut Outbox) -> Result<usize, Broken> {
        if !self.held {
            return Err(Broken::Protocol("it resumes what goes on".to_owned()));
        }
        self.acknowledge(received, outbox)?;
        self.held = false;
        self.pace.resume(Instant::now());
        Ok(std::mem::take(&mut self.passed))
    }

    /// Sends what the kernel takes, about `budget` bytes; returns how many.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn flush(
        &mut self,
        stream: &mut Stream,
        place: Place,
        outbox: &mut Outbox,
        budget: u64,
    ) -> io::Result<u64> {
        let mut moved = 0;
        if self.is_blocked() && !self.backoff.is_due() {
            return Ok(0);
        }
        while moved < budget {
            self.fill(place, outbox);
            if !self.is_blocked() {
                break;
            }
            let mut pieces = [Piece::EMPTY; PIECES_MAX];
            let (count, wanted) = self.gather(&mut pieces, stream.encrypts());
            // SAFETY: the host keeps a put's source alive until it is complete; the headers live
            // in `self.frames`, copies in `self.together`, which nothing touches until the call
            // returns. The next call begins where `advance` left it.
            let sent = unsafe { stream.send(&mut pieces[..count]) };
            self.owes = stream.owes();
            match sent {
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

    /// Sends the few short puts that are all that the outbox has, if nothing is to be sent before them and nothing of them is
    /// kept: most are such, and complete with the one call. Returns how many bytes; 0 if they go the way of all others.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn send_short(
        &mut self,
        stream: &mut Stream,
        place: Place,
        outbox: &mut Outbox,
    ) -> io::Result<u64> {
        let is_idle = !self.held && !self.has_words() && !self.awaits_peer();
        if !self.lasting || !is_idle || stream.encrypts() || !outbox.is_short() {
            return Ok(0);
        }
        self.together.clear();
        let (mut first, mut wanted) = (None, 0);
        for (header, source, bytes) in outbox.short() {
            // SAFETY: a local.
            let start = unsafe {
                self.together
                    .copy(header.as_ptr() as u64, FRAME_BYTES as u64)
            };
            first.get_or_insert(start);
            let mut copied = 0;
            while copied < bytes {
                let (address, run) = source.run(copied);
                let run = run.min(bytes - copied);
                // SAFETY: the host keeps a put's source alive until it is complete.
                unsafe { self.together.copy(address, run) };
                copied += run;
            }
            wanted += FRAME_BYTES + bytes as usize;
        }
        let start = first.unwrap_or(0) as *mut u8;
        // SAFETY: there is room for all of them, one behind the other, which nothing touches until the call returns.
        match unsafe { stream.send(&mut [Piece::new(start, wanted)]) } {
            Ok(sent) if sent == wanted => {
                outbox.complete_short();
                Ok(sent as u64)
            }
            Ok(sent) => {
                self.went_in_part(sent as u64, place, outbox);
                Ok(sent as u64)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The kernel has so many bytes of what was short: the rest goes the way of all others.
    fn went_in_part(&mut self, sent: u64, place: Place, outbox: &mut Outbox) {
        outbox.begin_short();
        self.fill(place, outbox);
        self.advance(sent, outbox);
    }

    /// Tries at the next poll.
    pub(crate) fn wake(&mut self) {
        self.backoff.reset_skip();
    }

    /// A last word, if the connection stands between two frames: nothing is sent after it.
    pub(crate) fn say_goodbye(&mut self, stream: &mut Stream, sequence: u64, aborted: bool) {
        if self.sent != 0 || self.held || stream.owes() {
            return; // within a frame: the peer learns from the connection's end
        }
        let words = self.words.iter().flat_map(|word| word.header);
        let mut last: Vec<u8> = words.skip(self.word_sent).collect();
        last.extend(Frame::Goodbye { sequence, aborted }.encode());
        let mut pieces = [Piece::new(last.as_mut_ptr(), last.len())];
        // SAFETY: the bytes live through the call. A goodbye that is not taken is not missed.
        let _ = unsafe { stream.send(&mut pieces) };
    }

    fn fill(&mut self, place: Place, outbox: &mut Outbox) {
        if self.held {
            return;
        }
        let waiting = self.frames.range(self.passed..);
        let (mut count, mut ahead) = waiting.fold((0, 0), |(n, sum), f| (n + 1, sum + f.length));
        // Of several rails each takes one stripe at a time, else the first would take them all.
        let most = if place.lines.rails { 1 } else { BYTES_AHEAD };
        while count < FRAMES_MAX && ahead < most {
            let keep = (!self.lasting).then_some(&mut self.keep);
            let Some(frame) = outbox.claim(place, keep) else {
                return;
            };
            if place.lines.rails && frame.told_of() > 0 {
                self.pace.sent(frame.length, Instant::now());
            }
            ahead += frame.length;
            count += 1;
            self.frames.push_back(frame);
        }
    }

    /// The next bytes to send as pieces: how many pieces, and how many bytes. The rest of a frame that
    /// was begun, then words, then frames.
    fn gather(&mut self, pieces: &mut [Piece; PIECES_MAX], encrypts: bool) -> (usize, u64) {
        self.together.clear();
        let mut gathered = Gathered {
            pieces,
            count: 0,
            bytes: 0,
            // What is kept lies in one piece already, and what is encrypted is copied anyway.
            together: (self.lasting && !encrypts).then_some(&mut self.together),
        };
        let mut frames = self.frames.range(self.passed..);
        if self.sent > 0
            && let Some(begun) = frames.next()
            && !gathered.frame(begun, self.sent)
        {
            return (gathered.count, gathered.bytes);
        }
        let mut skip = self.word_sent;
        for word in &self.words {
            gathered.run(
                word.header[skip..].as_ptr() as u64,
                (FRAME_BYTES - skip) as u64,
            );
            skip = 0;
        }
        if !self.held {
            for frame in frames {
                if !gathered.frame(frame, 0) {
                    break;
                }
            }
        }
        (gathered.count, gathered.bytes)
    }

    /// Takes note of what the kernel took, in the order of [`gather`](Self::gather).
    fn advance(&mut self, mut taken: u64, outbox: &mut Outbox) {
        while taken > 0 {
            let of_frame = self.sent > 0 || self.words.is_empty();
            let rest = match self.frames.get(self.passed) {
                Some(frame) if of_frame => FRAME_BYTES as u64 + frame.length - self.sent,
                _ => (FRAME_BYTES - self.word_sent) as u64,
            };
            let now = taken.min(rest);
            taken -= now;
            match (of_frame, now == rest) {
                (true, true) => {
                    self.sent = 0;
                    self.pass(outbox);
                }
                (true, false) => self.sent += now,
                (false, true) => {
                    self.words.pop_front();
                    self.word_sent = 0;
                }
                (false, false) => self.word_sent += now as usize,
            }
        }
    }
}

/// Pieces of one call.
struct Gathered<'a> {
    pieces: &'a mut [Piece; PIECES_MAX],
    count: usize,
    bytes: u64,
    together: Option<&'a mut Together>,
}

impl Gathered<'_> {
    /// Adds a run of bytes, to the piece before it if it lies behind that; false if the call is full.
    fn run(&mut self, mut address: u64, bytes: u64) -> bool {
        let is_full = self.count == PIECES_MAX || self.bytes >= CALL_BYTES;
        if let Some(together) = &mut self.together
            && !is_full
        {
            // SAFETY: as in `flush`.
            address = unsafe { together.copy(address, bytes) };
        }
        if self.bytes < CALL_BYTES
            && let Some(last) = self.count.checked_sub(1)
            && self.pieces[last].grow(address as *mut u8, bytes as usize)
        {
            self.bytes += bytes;
            return true;
        }
        if is_full {
            return false;
        }
        self.pieces[self.count] = Piece::new(address as *mut u8, bytes as usize);
        self.count += 1;
        self.bytes += bytes;
        true
    }

    /// Adds what is left of a frame; false if the call is full.
    fn frame(&mut self, frame: &OutFrame, sent: u64) -> bool {
        let of_header = sent.min(FRAME_BYTES as u64);
        let header = FRAME_BYTES as u64 - of_header;
        if header > 0 && !self.run(frame.header_address() + of_header, header) {
            return false;
        }
        let mut position = frame.start + (sent - of_header);
        let end = frame.start + frame.length;
        while position < end {
            let (address, run) = frame.source.run(position);
            let run = run.min(end - position);
            if !self.run(address, run) {
                return false;
            }
            position += run;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::put::{Lines, Put, Source};
    use super::*;
    use crate::memory;

    /// What a call is made of, by the runs that it shall hold.
    fn pieces_of(runs: &[&[u8]], together: Option<&mut Together>) -> (usize, u64) {
        let mut gathered = Gathered {
            pieces: &mut [Piece::EMPTY; PIECES_MAX],
            count: 0,
            bytes: 0,
            together,
        };
        for run in runs {
            if !gathered.run(run.as_ptr() as u64, run.len() as u64) {
                break;
            }
        }
        (gathered.count, gathered.bytes)
    }

    #[test]
    fn short_runs_are_one_piece_where_they_are_copied() {
        let bytes = vec![0; 64 << 10];
        let (short, long) = (&bytes[..24], &bytes[30..40_000]);
        let runs = [short, &bytes[100..104], long, short, short];
        let all = runs.iter().map(|run| run.len() as u64).sum();
        assert_eq!(pieces_of(&runs, None), (5, all));
        assert_eq!(pieces_of(&runs, Some(&mut Together::default())), (3, all));
    }

    /// Whatever part of two short puts the kernel takes, what is sent behind it is the rest.
    #[test]
    fn of_what_went_in_part_the_rest_follows() {
        let bytes: Vec<u8> = (0..=255).collect();
        let puts = [(0, 20), (20, 7)].map(|(start, total)| Put {
            source: Source::one(bytes[start..].as_ptr() as u64, total),
            window: 3,
            offset: 128,
            total,
            signal: None,
            done: None,
        });
        let whole: Vec<u8> = (Outbox::of(puts).short())
            .zip([&bytes[..20], &bytes[20..27]])
            .flat_map(|((header, _, _), bytes)| [&header, bytes].concat())
            .collect();
        let place = Place {
            connection: 0,
            lines: Lines {
                count: 1,
                rails: false,
            },
            most: 0,
        };
        for sent in 1..whole.len() {
            let mut outbox = Outbox::of(puts);
            let mut outgoing = Outgoing::new(true);
            (outgoing.held, outgoing.words) = (false, VecDeque::new());
            outgoing.went_in_part(sent as u64, place, &mut outbox);
            let mut pieces = [Piece::EMPTY; PIECES_MAX];
            let (count, rest) = outgoing.gather(&mut pieces, false);
            assert_eq!(rest as usize, whole.len() - sent);
            let mut found = Vec::new();
            for piece in &pieces[..count] {
                // SAFETY: the pieces are of `outgoing` and of `bytes`.
                unsafe { memory::copy_out(piece.address(), piece.length(), &mut found) };
            }
            assert_eq!(found, whole[sent..], "{sent}");
            outgoing.advance(rest, &mut outbox);
            outbox.advance().expect("no wait");
            assert!(outbox.is_empty() && !outgoing.is_blocked());
            assert_eq!((outbox.completed(), outbox.sequence()), (2, 2));
        }
    }

    #[test]
    fn a_call_that_is_full_takes_no_copies_either() {
        let bytes = vec![0; 64 << 10];
        let (short, long) = (&bytes[..24], &bytes[30..2_000]);
        let mut runs = [short, long].repeat(PIECES_MAX / 2);
        let all = runs.iter().map(|run| run.len() as u64).sum();
        runs.extend([short, short]);
        let mut together = Together::default();
        assert_eq!(pieces_of(&runs, Some(&mut together)), (PIECES_MAX, all));
        let copies = PIECES_MAX / 2 * short.len();
        assert!(format!("{together:?}").contains(&copies.to_string()));
    }
}
