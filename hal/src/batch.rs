//! A packed run of commands, built once and handed to a queue in one call.
//!
//! Commands are written straight into the words that cross the boundary: nothing is copied or
//! converted at submission, and nothing is allocated once the batch has reached its size.

use unisono_abi as abi;
use unisono_abi::command_kind as kind;

use crate::Event;

/// A batch of commands for one queue.
///
/// A queue may take only the first of them; [`Queue::submit`](crate::Queue::submit) then drops
/// those, and the rest is handed over with the next call. [`Batch::rewind`] makes all of them
/// pending again, for a batch that is played many times.
#[derive(Debug)]
pub struct Batch {
    words: Vec<u64>,
    /// Commands in `words`.
    total: u32,
    /// Where the first pending command starts, in words.
    start: usize,
    /// Commands that are pending.
    pending: u32,
}

/// `repeat` pieces copied, each `bytes` long and a stride apart.
#[derive(Clone, Copy, Debug)]
pub struct CopyPieces {
    /// Address of the first piece's destination.
    pub dst: u64,
    /// Address of the first piece's source.
    pub src: u64,
    /// Bytes of one piece.
    pub bytes: u64,
    /// Pieces, at least 1.
    pub repeat: u64,
    /// Bytes from one destination to the next.
    pub dst_stride: u64,
    /// Bytes from one source to the next.
    pub src_stride: u64,
    /// A hint that the destination is not read again soon.
    pub streaming: bool,
}

/// `dst[i] = a[i] op b[i]`, then divided by `divisor` if that is not 0; in `repeat` pieces.
#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    /// Address of the result; may be `a` or `b`, and must not overlap them otherwise.
    pub dst: u64,
    /// Address of the first operand.
    pub a: u64,
    /// Address of the second operand.
    pub b: u64,
    /// Elements of one piece.
    pub elements: u64,
    /// Pieces, at least 1.
    pub repeat: u64,
    /// Bytes from one result to the next.
    pub dst_stride: u64,
    /// Bytes from one first operand to the next.
    pub a_stride: u64,
    /// Bytes from one second operand to the next.
    pub b_stride: u64,
    /// One of [`unisono_abi::dtype`].
    pub dtype: u16,
    /// One of [`unisono_abi::reduction`].
    pub reduction: u16,
    /// What the result is divided by; 0 for not at all.
    pub divisor: u32,
    /// A hint that the result is not read again soon.
    pub streaming: bool,
}

/// `dst[i] = src[i] * factor`, in one piece.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Address of the result; may be `src`, and must not overlap it otherwise.
    pub dst: u64,
    /// Address of the operand.
    pub src: u64,
    /// Elements.
    pub elements: u64,
    /// One element in the first bytes, zero after it.
    pub factor: [u8; 8],
    /// One of [`unisono_abi::dtype`].
    pub dtype: u16,
}

/// A call of a function of this process: `dst[i] = a[i] combined with b[i]`.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What is called; see [`unisono_abi::Combine`].
    pub function: abi::Combine,
    /// Its first argument.
    pub context: u64,
    /// Address of the result; may be `a` or `b`, and must not overlap them otherwise.
    pub dst: u64,
    /// Address of the first operand.
    pub a: u64,
    /// Address of the second operand.
    pub b: u64,
    /// Elements.
    pub elements: u64,
    /// Bytes of one element, at least 1.
    pub element_bytes: u64,
}

/// Another process's memory, read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The base of what was imported of the process; see [`MemoryKind::Process`](crate::MemoryKind).
    pub process: u64,
    /// Address of a `u64` that holds, when the command's turn comes, where that process's buffer begins.
    pub base: u64,
    /// Added to that, modulo 2^64.
    pub offset: u64,
    /// Address of the destination.
    pub dst: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// Pieces gathered, written to the peer's window, then signalled there and here.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// Address of the first piece.
    pub src: u64,
    /// Bytes of one piece; may be 0.
    pub bytes: u64,
    /// Pieces, at least 1.
    pub repeat: u64,
    /// Bytes from one piece to the next.
    pub src_stride: u64,
    /// Window that is written.
    pub dst_window: u32,
    /// Offset in that window.
    pub dst_offset: u64,
    /// Window of the flag line that is signalled, and its offset; `None` for no signal.
    pub signal: Option<(u32, u64)>,
    /// Local flag line and counter that are signalled when the source may be reused.
    pub done: Option<(u64, u64)>,
    /// The signature that goes with the signal.
    pub words: Option<[u64; 3]>,
}

impl Batch {
    /// An empty batch.
    ///
    /// # Safety
    /// Commands hold plain addresses, and a queue runs them after this call. Whoever fills the
    /// batch promises, for each command and until a queue that took it has completed it or was
    /// destroyed, that its addresses lie in memory that the queue's device may access in the way
    /// that the command does, that counters and flag lines are aligned and used as such only, that
    /// nothing else touches the memory in a way that races with the command, that its events are
    /// alive, and that its functions may be called with the context given.
    #[must_use]
    #[allow(
        unsafe_code,
        reason = "the one place where a caller answers for addresses"
    )]
    pub const unsafe fn new() -> Self {
        Self {
            words: Vec::new(),
            total: 0,
            start: 0,
            pending: 0,
        }
    }

    /// Commands that no queue has taken yet.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.pending as usize
    }

    /// Whether a queue has taken all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// The pending commands, packed.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words[self.start..]
    }

    /// Bytes of the pending commands.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.words.len() - self.start) as u64 * 8
    }

    /// Forgets all commands and keeps the room.
    pub fn clear(&mut self) {
        self.words.clear();
        self.total = 0;
        self.start = 0;
        self.pending = 0;
    }

    /// Makes every command pending again, those that were taken too.
    pub const fn rewind(&mut self) {
        self.start = 0;
        self.pending = self.total;
    }

    /// Drops the first `count` pending commands, or all if there are fewer.
    pub fn drop_front(&mut self, count: u32) {
        if count >= self.pending {
            self.start = self.words.len();
            self.pending = 0;
            return;
        }
        for _ in 0..count {
            self.start += size_of_command(self.words[self.start]);
        }
        self.pending -= count;
    }

    /// Copies `bytes` bytes.
    #[inline]
    pub fn copy(&mut self, dst: u64, src: u64, bytes: u64) {
        self.push([head::<7>(kind::COPY, 0), dst, src, bytes, 1, 0, 0]);
    }

    /// Copies pieces.
    #[inline]
    pub fn copy_strided(&mut self, c: &CopyPieces) {
        let head = head::<7>(kind::COPY, streaming(c.streaming));
        let strides = [c.dst_stride, c.src_stride];
        self.push([
            head, c.dst, c.src, c.bytes, c.repeat, strides[0], strides[1],
        ]);
    }

    /// Reduces two operands.
    #[inline]
    pub fn reduce(&mut self, r: &Reduce) {
        self.push([
            head::<10>(kind::REDUCE, streaming(r.streaming)),
            r.dst,
            r.a,
            r.b,
            r.elements,
            r.repeat,
            r.dst_stride,
            r.a_stride,
            r.b_stride,
            pack_shorts(r.dtype, r.reduction, r.divisor),
        ]);
    }

    /// Multiplies by a factor. For queues whose device supports SCALE.
    #[inline]
    pub fn scale(&mut self, s: &Scale) {
        let factor = u64::from_ne_bytes(s.factor);
        let dtype = pack_shorts(s.dtype, 0, 0);
        let head = head::<9>(kind::SCALE, 0);
        self.push([head, s.dst, s.src, s.elements, 1, 0, 0, factor, dtype]);
    }

    /// Calls a function of this process. For queues whose device supports CALL.
    #[inline]
    pub fn call(&mut self, c: &Call) {
        self.push([
            head::<8>(kind::CALL, 0),
            c.function as usize as u64,
            c.context,
            c.dst,
            c.a,
            c.b,
            c.elements,
            c.element_bytes,
        ]);
    }

    /// Reads another process's memory. For queues whose device supports READ.
    #[inline]
    pub fn read(&mut self, r: &Read) {
        let head = head::<6>(kind::READ, 0);
        self.push([head, r.process, r.base, r.offset, r.dst, r.bytes]);
    }

    /// Signals a flag line once all before it is visible: words, counter, then the bell (0: none).
    #[inline]
    pub fn signal(&mut self, flag: u64, counter: u64, bell: u64, words: Option<[u64; 3]>) {
        let (flags, w) = with_words(words);
        self.push([
            head::<7>(kind::SIGNAL, flags),
            flag,
            counter,
            bell,
            w[0],
            w[1],
            w[2],
        ]);
    }

    /// Waits for the next signal on a flag line, and compares its words if given.
    #[inline]
    pub fn wait(&mut self, flag: u64, counter: u64, words: Option<[u64; 3]>) {
        let (flags, w) = with_words(words);
        self.push([
            head::<6>(kind::WAIT, flags),
            flag,
            counter,
            w[0],
            w[1],
            w[2],
        ]);
    }

    /// Writes to the peer's window. Links only.
    #[inline]
    pub fn put(&mut self, p: &Put) {
        let (flags, w) = with_words(p.words);
        let (signal_window, signal_offset) = p.signal.unwrap_or((abi::NO_WINDOW, 0));
        let (done_flag, done_counter) = p.done.unwrap_or((0, 0));
        self.push([
            head::<13>(kind::PUT, flags),
            p.src,
            p.bytes,
            p.repeat,
            p.src_stride,
            p.dst_offset,
            signal_offset,
            pack_words(p.dst_window, signal_window),
            done_flag,
            done_counter,
            w[0],
            w[1],
            w[2],
        ]);
    }

    /// Completes an event when all before it is complete. Streams only.
    pub fn record(&mut self, event: &Event) {
        self.push([head::<2>(kind::RECORD, 0), event.address()]);
    }

    /// Waits for an event. Streams only.
    pub fn wait_event(&mut self, event: &Event) {
        self.push([head::<2>(kind::WAIT_EVENT, 0), event.address()]);
    }

    #[inline]
    fn push<const N: usize>(&mut self, command: [u64; N]) {
        self.words.extend_from_slice(&command);
        self.total += 1;
        self.pending += 1;
    }
}

/// The first word of a command of `N` words.
#[inline]
const fn head<const N: usize>(kind: u16, flags: u32) -> u64 {
    pack_shorts(kind, N as u16 * 8, flags)
}

/// Words of the command that starts with this one.
const fn size_of_command(head: u64) -> usize {
    let b = head.to_ne_bytes();
    u16::from_ne_bytes([b[2], b[3]]) as usize / 8
}

/// Two `u16` and a `u32`, as they lie next to each other in memory.
#[inline]
const fn pack_shorts(a: u16, b: u16, c: u32) -> u64 {
    let (a, b, c) = (a.to_ne_bytes(), b.to_ne_bytes(), c.to_ne_bytes());
    u64::from_ne_bytes([a[0], a[1], b[0], b[1], c[0], c[1], c[2], c[3]])
}

/// Two `u32`, as they lie next to each other in memory.
#[inline]
const fn pack_words(a: u32, b: u32) -> u64 {
    let (a, b) = (a.to_ne_bytes(), b.to_ne_bytes());
    u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
}

#[inline]
const fn streaming(yes: bool) -> u32 {
    if yes { abi::CMD_STREAMING } else { 0 }
}

#[inline]
fn with_words(words: Option<[u64; 3]>) -> (u32, [u64; 3]) {
    words.map_or((0, [0; 3]), |w| (abi::CMD_WORDS, w))
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
