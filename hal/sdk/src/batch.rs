//! Batches of commands, checked whole before any command is taken.
#![allow(unsafe_code, reason = "a packed run of C structs of several kinds")]

use std::fmt;
use std::marker::PhantomData;

use unisono_abi::{
    CMD_STREAMING, CMD_WORDS, Command as Head, CommandCopy, CommandEvent, CommandPut,
    CommandReduce, CommandSignal, CommandWait, command_kind as kind, dtype, reduction,
};

use crate::raw::EventHandle;
use crate::{Error, Event, Result};

/// Which commands a queue takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// What streams take.
    pub const STREAM: Self = Self(
        1 << kind::COPY
            | 1 << kind::REDUCE
            | 1 << kind::SIGNAL
            | 1 << kind::WAIT
            | 1 << kind::RECORD
            | 1 << kind::WAIT_EVENT,
    );
    /// What links take.
    pub const LINK: Self = Self(1 << kind::PUT | 1 << kind::WAIT);

    const fn has(self, kind: u16) -> bool {
        kind < 16 && self.0 & 1 << kind != 0
    }
}

/// One command of a batch.
#[derive(Debug)]
pub enum Command<'a, E> {
    /// Move bytes.
    Copy(&'a CommandCopy),
    /// Combine two operands.
    Reduce(&'a CommandReduce),
    /// Raise a flag.
    Signal(&'a CommandSignal),
    /// Wait for a flag.
    Wait(&'a CommandWait),
    /// Write at the peer; links only.
    Put(&'a CommandPut),
    /// Complete an event when all before it is complete.
    Record(&'a E),
    /// Wait for an event.
    WaitEvent(&'a E),
}

/// A batch: all of its commands are of known kinds, sizes and flags, and sane in themselves.
///
/// What was checked: that commands tile the batch; kinds, flags, data types and reductions are
/// known; `repeat` is at least 1 and no extent wraps; flags and counters are there and aligned;
/// events are not NULL. Not checked, as only the device can know: what lies at the addresses.
pub struct Batch<'a, E: Event> {
    bytes: &'a [u64],
    count: u32,
    events: PhantomData<&'a E>,
}

impl<E: Event> Clone for Batch<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Event> Copy for Batch<'_, E> {}

impl<'a, E: Event> Batch<'a, E> {
    /// Checks a packed batch.
    ///
    /// # Errors
    /// Unsupported if a kind or flag is unknown, or not in `kinds`; invalid if it breaks the
    /// contract. The message names the command by its place.
    ///
    /// # Safety
    /// Each RECORD and WAIT_EVENT that it holds names NULL or a living event handle that this
    /// crate made for an `E`.
    pub unsafe fn parse(bytes: &'a [u64], count: u32, kinds: Kinds) -> Result<Self> {
        let kinds = if E::PRESENT {
            kinds
        } else {
            Kinds(kinds.0 & !(1 << kind::RECORD | 1 << kind::WAIT_EVENT))
        };
        let mut rest = bytes;
        for index in 0..count {
            match check(rest, kinds) {
                Ok(words) => rest = &rest[words..],
                Err(problem) => return Err(problem.at(index, count)),
            }
        }
        if !rest.is_empty() {
            return Err(Error::invalid(format!(
                "{} bytes are left after the {count} commands of the batch",
                rest.len() * 8
            )));
        }
        Ok(Self {
            bytes,
            count,
            events: PhantomData,
        })
    }

    /// Commands in it.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The packed form: to copy, and to [`parse`](Self::parse) again later.
    #[must_use]
    pub fn as_words(&self) -> &'a [u64] {
        self.bytes
    }

    /// The commands in order.
    #[must_use]
    pub fn iter(&self) -> Commands<'a, E> {
        Commands {
            rest: self.bytes,
            events: PhantomData,
        }
    }
}

impl<'a, E: Event> IntoIterator for &Batch<'a, E> {
    type Item = Command<'a, E>;
    type IntoIter = Commands<'a, E>;

    fn into_iter(self) -> Commands<'a, E> {
        self.iter()
    }
}

impl<E: Event> fmt::Debug for Batch<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// The commands of a batch in order.
#[derive(Debug)]
pub struct Commands<'a, E> {
    rest: &'a [u64],
    events: PhantomData<&'a E>,
}

impl<'a, E: Event> Iterator for Commands<'a, E> {
    type Item = Command<'a, E>;

    #[inline]
    fn next(&mut self) -> Option<Command<'a, E>> {
        let first = *self.rest.first()?;
        let (words, rest) = self.rest.split_at((head(first).size / 8) as usize);
        self.rest = rest;
        let at = words.as_ptr();
        // SAFETY: `Batch::parse` checked that a command of this kind fills at least its struct,
        // whose fields are plain integers valid for any bits; `u64` gives its alignment. Events:
        // `parse` refused NULL, and its caller promised that others are handles of `E`.
        unsafe {
            Some(match head(first).kind {
                kind::COPY => Command::Copy(&*at.cast()),
                kind::REDUCE => Command::Reduce(&*at.cast()),
                kind::SIGNAL => Command::Signal(&*at.cast()),
                kind::WAIT => Command::Wait(&*at.cast()),
                kind::PUT => Command::Put(&*at.cast()),
                kind::RECORD => Command::Record(event(at)),
                _ => Command::WaitEvent(event(at)),
            })
        }
    }
}

/// # Safety
/// `at` is a CommandEvent whose handle is a living `EventHandle<E>`.
unsafe fn event<'a, E: Event>(at: *const u64) -> &'a E {
    // SAFETY: the caller's promise.
    unsafe {
        &(*(*at.cast::<CommandEvent>())
            .event
            .0
            .cast::<EventHandle<E>>())
        .event
    }
}

/// The head of a command from its first word.
const fn head(first: u64) -> Head {
    let b = first.to_ne_bytes();
    Head {
        kind: u16::from_ne_bytes([b[0], b[1]]),
        size: u16::from_ne_bytes([b[2], b[3]]),
        flags: u32::from_ne_bytes([b[4], b[5], b[6], b[7]]),
    }
}

/// Why a command is refused; made into words only when it is.
enum Problem {
    Unsupported(&'static str, u64),
    Invalid(&'static str, u64),
}

impl Problem {
    #[cold]
    fn at(&self, index: u32, count: u32) -> Error {
        match self {
            Self::Unsupported(what, value) => Error::unsupported(format!(
                "command {index} of {count}: this queue knows no {what} {value:#x}"
            )),
            Self::Invalid(what, value) => {
                Error::invalid(format!("command {index} of {count}: {what} ({value:#x})"))
            }
        }
    }
}

/// Checks the first command of `rest`; its length in words.
#[inline]
fn check(rest: &[u64], kinds: Kinds) -> Result<usize, Problem> {
    let Some(&first) = rest.first() else {
        return Err(Problem::Invalid("the batch ends before it", 0));
    };
    let head = head(first);
    if !kinds.has(head.kind) {
        return Err(Problem::Unsupported("command kind", head.kind.into()));
    }
    let (least, flags) = match head.kind {
        kind::COPY => (size_of::<CommandCopy>(), CMD_STREAMING),
        kind::REDUCE => (size_of::<CommandReduce>(), CMD_STREAMING),
        kind::SIGNAL => (size_of::<CommandSignal>(), CMD_WORDS),
        kind::WAIT => (size_of::<CommandWait>(), CMD_WORDS),
        kind::PUT => (size_of::<CommandPut>(), CMD_WORDS),
        _ => (size_of::<CommandEvent>(), 0),
    };
    let size = usize::from(head.size);
    if size < least || !size.is_multiple_of(8) || size / 8 > rest.len() {
        return Err(Problem::Invalid("its size is wrong", size as u64));
    }
    if head.flags & !flags != 0 {
        return Err(Problem::Unsupported("command flags", head.flags.into()));
    }
    let at = rest.as_ptr();
    // SAFETY: `rest` holds `size` bytes, at least the struct of this kind, aligned as u64; the
    // structs are plain integers (and a pointer that is not followed), valid for any bits.
    unsafe {
        match head.kind {
            kind::COPY => check_copy(&*at.cast()),
            kind::REDUCE => check_reduce(&*at.cast()),
            kind::SIGNAL => {
                let c: &CommandSignal = &*at.cast();
                check_flag(c.flag).and_then(|()| check_counter(c.counter))
            }
            kind::WAIT => {
                let c: &CommandWait = &*at.cast();
                check_flag(c.flag).and_then(|()| check_counter(c.counter))
            }
            kind::PUT => check_put(&*at.cast()),
            _ if (*at.cast::<CommandEvent>()).event.0.is_null() => {
                Err(Problem::Invalid("its event is NULL", 0))
            }
            _ => Ok(()),
        }?;
    }
    Ok(size / 8)
}

fn check_copy(c: &CommandCopy) -> Result<(), Problem> {
    check_extent(c.dst, c.bytes, c.repeat, c.dst_stride)?;
    check_extent(c.src, c.bytes, c.repeat, c.src_stride)
}

fn check_reduce(c: &CommandReduce) -> Result<(), Problem> {
    let width = match c.dtype {
        dtype::I8 | dtype::U8 | dtype::F8E4M3FN | dtype::F8E5M2 => 1,
        dtype::I16 | dtype::U16 | dtype::F16 | dtype::BF16 => 2,
        dtype::I32 | dtype::U32 | dtype::F32 => 4,
        dtype::I64 | dtype::U64 | dtype::F64 => 8,
        other => return Err(Problem::Unsupported("data type", other.into())),
    };
    let float = c.dtype >= dtype::F16;
    match c.reduction {
        reduction::SUM | reduction::PROD | reduction::MIN | reduction::MAX => {}
        reduction::AND | reduction::OR | reduction::XOR if !float => {}
        other => return Err(Problem::Unsupported("reduction of this type", other.into())),
    }
    let bytes = c
        .elements
        .checked_mul(width)
        .ok_or(Problem::Invalid("its extent wraps", c.elements))?;
    check_extent(c.dst, bytes, c.repeat, c.dst_stride)?;
    check_extent(c.a, bytes, c.repeat, c.a_stride)?;
    check_extent(c.b, bytes, c.repeat, c.b_stride)
}

fn check_put(c: &CommandPut) -> Result<(), Problem> {
    check_extent(c.src, c.bytes, c.repeat, c.src_stride)?;
    if c.bytes
        .checked_mul(c.repeat)
        .and_then(|all| c.dst_offset.checked_add(all))
        .is_none()
    {
        return Err(Problem::Invalid(
            "its extent at the peer wraps",
            c.dst_offset,
        ));
    }
    if (c.done_flag == 0) != (c.done_counter == 0) {
        return Err(Problem::Invalid(
            "it has one of done_flag and done_counter",
            c.done_flag,
        ));
    }
    if c.done_flag != 0 {
        check_flag(c.done_flag)?;
        check_counter(c.done_counter)?;
    }
    Ok(())
}

fn check_extent(base: u64, bytes: u64, repeat: u64, stride: u64) -> Result<(), Problem> {
    if repeat == 0 {
        return Err(Problem::Invalid("repeat is 0", 0));
    }
    (repeat - 1)
        .checked_mul(stride)
        .and_then(|last| last.checked_add(bytes))
        .and_then(|len| base.checked_add(len))
        .map(|_| ())
        .ok_or(Problem::Invalid("its extent wraps", base))
}

fn check_flag(flag: u64) -> Result<(), Problem> {
    if flag == 0 || !flag.is_multiple_of(64) {
        return Err(Problem::Invalid(
            "its flag line is NULL or not aligned to 64",
            flag,
        ));
    }
    Ok(())
}

fn check_counter(counter: u64) -> Result<(), Problem> {
    if counter == 0 || !counter.is_multiple_of(8) {
        return Err(Problem::Invalid(
            "its counter is NULL or not aligned to 8",
            counter,
        ));
    }
    Ok(())
}
