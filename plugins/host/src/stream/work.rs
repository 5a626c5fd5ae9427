//! One accepted command, and one step of it.
#![allow(
    unsafe_code,
    reason = "commands carry addresses, which their submitter vouches for"
)]

use unisono_plugin::Command;
use unisono_plugin::abi::{CommandCopy, CommandReduce, CommandSignal, CommandWait};

use super::flag::{self, Waited};
use super::transfer::{self, Progress};
use crate::config::Config;
use crate::event::HostEvent;

/// A command that a stream took. Whoever submitted it promised, by the contract, that its addresses
/// are good until it is complete.
pub(super) enum Work {
    Copy(CommandCopy),
    Reduce(CommandReduce),
    Signal(CommandSignal),
    Wait {
        command: CommandWait,
        begun: bool,
    },
    Record {
        event: HostEvent,
        number: u32,
    },
    WaitEvent {
        event: HostEvent,
        number: u32,
        begun: bool,
    },
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
}

impl Work {
    /// Takes a command; `None` for one that streams do not know, which no checked batch holds.
    pub(super) fn new(command: Command<'_, HostEvent>) -> Option<Self> {
        Some(match command {
            Command::Copy(command) => Self::Copy(*command),
            Command::Reduce(command) => Self::Reduce(*command),
            Command::Signal(command) => Self::Signal(*command),
            Command::Wait(command) => Self::Wait {
                command: *command,
                begun: false,
            },
            Command::Record(event) => Self::Record {
                event: event.clone(),
                number: event.record(),
            },
            Command::WaitEvent(event) => Self::WaitEvent {
                event: event.clone(),
                number: event.taken(),
                begun: false,
            },
            Command::Put(_) => return None,
        })
    }

    /// Does what can be done now.
    #[inline]
    pub(super) fn step(
        &mut self,
        progress: &mut Progress,
        budget: &mut u64,
        config: &Config,
    ) -> Step {
        let left = *budget;
        // SAFETY (all blocks): the submitter's promise about addresses; see `Work`.
        let done = match self {
            // SAFETY: see above.
            Self::Copy(command) => unsafe { transfer::copy(command, progress, budget, config) },
            Self::Reduce(command) => match config.kernel(command.dtype, command.reduction) {
                // SAFETY: see above.
                Some(kernel) => unsafe {
                    transfer::reduce(command, kernel, progress, budget, config)
                },
                None => true,
            },
            Self::Signal(command) => {
                // SAFETY: see above.
                unsafe { flag::signal(command) };
                true
            }
            Self::Wait { command, begun } => {
                // SAFETY: see above.
                unsafe {
                    if !*begun {
                        flag::begin(command);
                        *begun = true;
                    }
                    return match flag::wait(command, config.spin) {
                        Waited::Done => Step::Done,
                        Waited::Pending => Step::Waits,
                        Waited::Mismatch(found) => Step::Mismatch(found),
                    };
                }
            }
            Self::Record { event, number } => {
                event.complete(*number);
                true
            }
            Self::WaitEvent {
                event,
                number,
                begun,
            } => {
                *begun = true;
                return if event.is_complete(*number) {
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

    /// Whether it is a wait that a poll has found unsatisfied.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(
            self,
            Self::Wait { begun: true, .. } | Self::WaitEvent { begun: true, .. }
        )
    }

    /// Whether a wait could end now.
    pub(super) fn can_go_on(&self) -> bool {
        match self {
            // SAFETY: the submitter's promise about addresses; see `Work`.
            Self::Wait { command, .. } => unsafe { flag::is_raised(command) },
            Self::WaitEvent { event, number, .. } => event.is_complete(*number),
            _ => true,
        }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Copy(_) => "COPY",
            Self::Reduce(_) => "REDUCE",
            Self::Signal(_) => "SIGNAL",
            Self::Wait { .. } => "WAIT",
            Self::Record { .. } => "RECORD",
            Self::WaitEvent { .. } => "WAIT_EVENT",
        })
    }
}
