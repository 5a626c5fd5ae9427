//! Batches of commands, checked whole before any command is taken.
#![allow(unsafe_code, reason = "a packed run of C structs of several kinds")]

mod check;

use std::fmt;
use std::marker::PhantomData;

use unisono_abi::{
    CommandCall, CommandCopy, CommandEvent, CommandPut, CommandRead, CommandReduce, CommandScale,
    CommandSignal, CommandWait, command_kind as kind,
};

use check::{check, head};

use crate::raw::EventHandle;
use crate::{Error, Event, Result};

/// Which commands a queue takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// What every stream takes.
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

    /// These, and SCALE, which a stream need not take.
    #[must_use]
    pub const fn with_scale(self) -> Self {
        Self(self.0 | 1 << kind::SCALE)
    }

    /// These, and CALL, which a stream need not take.
    #[must_use]
    pub const fn with_call(self) -> Self {
        Self(self.0 | 1 << kind::CALL)
    }

    /// These, and READ, which a stream need not take.
    #[must_use]
    pub const fn with_read(self) -> Self {
        Self(self.0 | 1 << kind::READ)
    }

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
    /// Multiply by a factor; only where [`Kinds::with_scale`] says so.
    Scale(&'a CommandScale),
    /// Call a function of the host's; only where [`Kinds::with_call`] says so.
    Call(&'a CommandCall),
    /// Read another process's memory; only where [`Kinds::with_read`] says so.
    Read(&'a CommandRead),
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
                kind::SCALE => Command::Scale(&*at.cast()),
                kind::CALL => Command::Call(&*at.cast()),
                kind::READ => Command::Read(&*at.cast()),
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
