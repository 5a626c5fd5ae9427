//! What can be wrong with a program.

use std::fmt;

use crate::program::{Flag, Line};

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something, at a step of a queue.
    At {
        /// The rank.
        rank: u32,
        /// The other end, if the queue is a link.
        peer: Option<u32>,
        /// The number of the step.
        step: usize,
        /// What.
        fault: Box<Fault>,
    },
    /// It waits for a signal that never comes.
    Deadlock,
    /// It touches memory while another may still write or read it.
    Race {
        /// Which memory.
        place: String,
        /// The rank of the other.
        other: u32,
    },
    /// It reads memory that holds nothing.
    Undefined {
        /// Which memory.
        place: String,
    },
    /// It writes a slot that it has said to be filled.
    Full {
        /// Which memory.
        place: String,
    },
    /// It is not the turn of what is said about a slot.
    Slot {
        /// By which flag.
        flag: Flag,
        /// The number of the slot among all; behind those, of the place in which something is shown to a rank.
        slot: u32,
    },
    /// It gives back what was never put.
    Unput {
        /// By which flag.
        flag: Flag,
    },
    /// It adds what does not belong together.
    Sum {
        /// The first operand.
        left: String,
        /// The second.
        right: String,
    },
    /// A counter is not in step with its flag.
    Counter {
        /// Which flag.
        flag: Flag,
    },
    /// Two raise a flag, and nothing says who comes first.
    Writers {
        /// Which flag.
        flag: Flag,
    },
    /// A wait compares words, and finds others or none.
    Words {
        /// Which flag.
        flag: Flag,
    },
    /// A call ends before it can know that another rank has entered it.
    Unheard {
        /// The other rank.
        other: u32,
        /// Which call.
        call: u32,
    },
    /// An output is wrong.
    Output {
        /// Which memory.
        place: String,
        /// What it holds.
        got: String,
    },
    /// Not every signal was waited for once, or not every slot given back.
    Unbalanced {
        /// Which flag.
        flag: Flag,
        /// Signals.
        signals: u64,
        /// Waits.
        waits: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At {
                rank,
                peer,
                step,
                fault,
            } => match peer {
                None => write!(f, "rank {rank}, command {step}: {fault}"),
                Some(peer) => write!(f, "rank {rank}'s link to {peer}, command {step}: {fault}"),
            },
            Self::Deadlock => f.write_str("it waits for a signal that never comes"),
            Self::Race { place, other } => {
                write!(f, "{place} may be in use by rank {other} at that time")
            }
            Self::Undefined { place } => write!(f, "{place} holds nothing"),
            Self::Full { place } => write!(f, "{place} is written, but was said to be filled"),
            Self::Slot { flag, slot } => {
                write!(
                    f,
                    "{flag} is said or heard of slot {slot} of all when it is not so"
                )
            }
            Self::Unput { flag } => write!(f, "{flag} comes before there was such a put"),
            Self::Sum { left, right } => write!(f, "{left} is added to {right}"),
            Self::Counter { flag } => write!(f, "the counter of {flag} is out of step"),
            Self::Writers { flag } => write!(f, "two may raise {flag} at once"),
            Self::Words { flag } => write!(f, "other words came with {flag}"),
            Self::Unheard { other, call } => {
                write!(
                    f,
                    "call {call} ends, and rank {other} may not have entered it"
                )
            }
            Self::Output { place, got } => write!(f, "{place} is {got}"),
            Self::Unbalanced {
                flag,
                signals,
                waits,
            } => write!(
                f,
                "{flag} was raised {signals} times and waited for {waits} times"
            ),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, peer, line } = self;
        match line {
            Line::Data(slot) => write!(f, "\"rank {peer} filled slot {slot} of rank {owner}\""),
            Line::Shown(group) => write!(f, "\"rank {owner} has shown\" with its flag {group}"),
            Line::Credit => write!(f, "\"rank {peer} gave a slot back to rank {owner}\""),
            Line::Doorbell => write!(f, "rank {owner}'s doorbell to its link to {peer}"),
            Line::Bell => write!(f, "the flag with which rank {owner} rings bells"),
            Line::Done => write!(f, "\"rank {owner}'s link to {peer} has read\""),
        }
    }
}
