//! One accepted command, and one step of it.
#![allow(
    unsafe_code,
    reason = "packed commands of several kinds, and the addresses they carry"
)]

use unisono_plugin::abi::{
    CommandCall, CommandCopy, CommandRead, CommandReduce, CommandScale, CommandSignal, CommandWait,
    command_kind,
};
use unisono_plugin::{Command, Error};

use super::combine;
use super::flag::{self, Waited};
use super::handed::Handed;
use super::read;
use super::ring::{Ring, kind};
use super::transfer::{self, Progress};
use crate::config::Config;
use crate::event::HostEvent;

/// A command that a stream took. Whoever submitted it promised, by the contract, that its addresses
/// are good until it is complete.
pub(super) enum Work<'a> {
    Copy(&'a CommandCopy),
    Reduce(&'a CommandReduce),
    Signal(&'a CommandSignal),
    Wait(&'a CommandWait),
    Scale(&'a CommandScale),
    Call(&'a CommandCall),
    Read(&'a CommandRead),
    Record { event: &'a HostEvent, number: u32 },
    WaitEvent { event: &'a HostEvent, number: u32 },
}

/// RECORD or WAIT_EVENT as it lies in the ring: a stream's own reference to the event, and the
/// number to complete or to wait for, in place of the handle and the flags.
#[repr(C)]
struct OwnedEvent {
    kind: u16,
    size: u16,
    number: u32,
    event: HostEvent,
}

/// What one step did.
pub(super) enum Step {
    /// The command is complete.
    Done,
    /// The budget is spent.
    Cut {
        /// Some bytes were moved.
        moved: bool,
    },
    /// It waits.
    Waits,
    /// A flag carries these words instead of the expected ones.
    Mismatch([u64; 3]),
    /// It cannot be done.
    Failed(Error),
}

/// Takes references to the events of the commands that were just pushed.
pub(super) fn own_events<'a>(
    ring: &mut Ring,
    count: u32,
    commands: impl Iterator<Item = Command<'a, HostEvent>>,
) {
    let mut commands = commands;
    ring.for_last(count, |words| {
        let (event, number) = match commands.next() {
            Some(Command::Record(event)) => (event, event.record()),
            Some(Command::WaitEvent(event)) => (event, event.taken()),
            _ => return,
        };
        let owned = words.as_mut_ptr().cast::<OwnedEvent>();
        // SAFETY: a checked RECORD or WAIT_EVENT is at least as large as `OwnedEvent`, and `u64`
        // aligns it. What is overwritten are plain integers.
        unsafe {
            (&raw mut (*owned).number).write(number);
            (&raw mut (*owned).event).write(event.clone());
        }
    });
}

/// Drops the first command, and its event if it has one.
#[inline]
pub(super) fn pop(ring: &mut Ring) {
    if let Some(words) = ring.front()
        && matches!(
            kind(words[0]),
            command_kind::RECORD | command_kind::WAIT_EVENT
        )
    {
        let owned = words.as_ptr().cast::<OwnedEvent>();
        // SAFETY: `own_events` wrote it, and the command is popped below, so it is read out once.
        drop(unsafe { (&raw const (*owned).event).read() });
    }
    ring.pop();
}

impl<'a> Work<'a> {
    /// The first command of a ring, whose events are owned.
    #[inline]
    pub(super) fn first(ring: &'a Ring) -> Option<Self> {
        let words = ring.front()?;
        let at = words.as_ptr();
        // SAFETY: the commands came from a checked batch: each is at least as large as the struct of
        // its kind, whose fields are plain integers; `u64` aligns it. Events: see `own_events`.
        Some(unsafe {
            match kind(words[0]) {
                command_kind::COPY => Self::Copy(&*at.cast()),
                command_kind::REDUCE => Self::Reduce(&*at.cast()),
                command_kind::SIGNAL => Self::Signal(&*at.cast()),
                command_kind::WAIT => Self::Wait(&*at.cast()),
                command_kind::SCALE => Self::Scale(&*at.cast()),
                command_kind::CALL => Self::Call(&*at.cast()),
                command_kind::READ => Self::Read(&*at.cast()),
                command_kind::RECORD => {
                    let OwnedEvent { number, event, .. } = &*at.cast();
                    Self::Record {
                        event,
                        number: *number,
                    }
                }
                _ => {
                    let OwnedEvent { number, event, .. } = &*at.cast();
                    Self::WaitEvent {
                        event,
                        number: *number,
                    }
                }
            }
        })
    }

    /// Does what can be done now. `begun` says of a wait that it was looked at before.
    #[inline]
    pub(super) fn step(
        &self,
        begun: bool,
        progress: &mut Progress,
        budget: &mut u64,
        config: &Config,
        handed: &mut Handed,
    ) -> Step {
        let left = *budget;
        let done = match *self {
            // SAFETY: the submitter's promise about addresses; see `Work`.
            Self::Copy(command) => unsafe {
                transfer::copy(command, progress, budget, config, handed)
            },
            Self::Reduce(command) => match config.kernel(command.dtype, command.reduction) {
                // SAFETY: as above.
                Some(kernel) => unsafe {
                    combine::reduce(command, kernel, progress, budget, config, Some(handed))
                },
                None => true,
            },
            // SAFETY: as above.
            Self::Scale(command) => unsafe { combine::scale(command, progress, budget, config) },
            // SAFETY: as above; the function is the submitter's own.
            Self::Call(command) => unsafe { combine::call(command, progress, budget) },
            // SAFETY: as above; the process is one that was imported, and not freed.
            Self::Read(command) => match unsafe { read::read(command, progress, budget) } {
                Ok(done) => done,
                Err(error) => return Step::Failed(error),
            },
            Self::Signal(command) => {
                // SAFETY: as above.
                unsafe { flag::signal(command) };
                true
            }
            Self::Wait(command) => {
                // SAFETY: as above.
                let waited = unsafe {
                    if !begun {
                        flag::begin(command);
                    }
                    flag::wait(command, config.spin)
                };
                return match waited {
                    Waited::Done => Step::Done,
                    Waited::Pending => Step::Waits,
                    Waited::Mismatch(found) => Step::Mismatch(found),
                };
            }
            Self::Record { event, number } => {
                event.complete(number);
                true
            }
            Self::WaitEvent { event, number } => {
                return if event.is_complete(number) {
                    Step::Done
                } else {
                    Step::Waits
                };
            }
        };
        if done {
            Step::Done
        } else {
            Step::Cut {
                moved: *budget != left,
            }
        }
    }

    /// Whether a wait that has begun could end now.
    pub(super) fn can_go_on(&self) -> bool {
        match *self {
            // SAFETY: the submitter's promise about addresses; see `Work`.
            Self::Wait(command) => unsafe { flag::is_raised(command) },
            Self::WaitEvent { event, number } => event.is_complete(number),
            _ => true,
        }
    }
}
