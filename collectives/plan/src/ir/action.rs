//! Steps: what a rank does with one piece.

use std::fmt;

use super::{Blocks, Place, Value};

/// One thing that a rank does with one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// `dst = src`. Both name the same blocks; in all_to_all blocks of the same sizes.
    Copy {
        /// A local or a peer's place.
        dst: Place,
        /// Any place.
        src: Place,
    },
    /// `dst = a (+) b`, in this order, rounded to the element type.
    Reduce {
        /// A local or a peer's place. It may be exactly `a` or `b`.
        dst: Place,
        /// The left operand.
        a: Place,
        /// The right operand.
        b: Place,
        /// The result is the operation's complete value: what `avg` divides.
        last: bool,
    },
    /// Waits for a free slot of the channel to `to`, writes the value into it, signals.
    Put {
        /// The receiving rank.
        to: u32,
        /// What the slot will hold.
        value: Value,
    },
    /// Waits for the next put from a rank and makes it that rank's current slot.
    Wait {
        /// The rank that puts.
        from: u32,
        /// What the put holds: exactly the blocks of its value, none for a bare signal. In
        /// all_to_all the two sides may know them by different numbers.
        blocks: Blocks,
    },
    /// Gives the current slot of a rank back to it.
    Release {
        /// The rank that put it.
        from: u32,
    },
}

impl Action {
    /// In an all_to_all over `ranks` ranks, the block that the action is about: what decides in
    /// how many pieces it runs, where blocks have sizes of their own.
    #[must_use]
    pub fn subject(self, ranks: u32) -> u32 {
        match self {
            Action::Put { to, .. } => to,
            Action::Wait { from, .. } | Action::Release { from } => ranks.saturating_add(from),
            Action::Copy { dst, src } => match src {
                Place::Slot { from, .. } => ranks.saturating_add(from),
                _ => dst.blocks().first,
            },
            Action::Reduce { dst, .. } => dst.blocks().first,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |last: bool| if last { " (last)" } else { "" };
        match *self {
            Action::Copy { dst, src } => write!(f, "{dst} = {src}"),
            Action::Reduce { dst, a, b, last } => write!(f, "{dst} = {a} + {b}{}", mark(last)),
            Action::Put { to, value } => match value {
                Value::Empty => write!(f, "put {to}: signal"),
                Value::Copy(place) => write!(f, "put {to}: {place}"),
                Value::Reduce { a, b, last } => write!(f, "put {to}: {a} + {b}{}", mark(last)),
            },
            Action::Wait { from, blocks } => write!(f, "wait {from}: {blocks}"),
            Action::Release { from } => write!(f, "release {from}"),
        }
    }
}

/// An action, the pipeline stage in which it runs, and what changes where it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// How many rounds behind the newest piece.
    pub skew: u16,
    /// Whether a leg begins with it: what comes before is done on all pieces first.
    pub begins: bool,
    /// What changes from one iteration of the loop around it to the next.
    pub drift: Drift,
}

impl Step {
    /// A step outside any loop.
    #[must_use]
    pub const fn new(action: Action, skew: u16) -> Self {
        Self {
            action,
            skew,
            begins: false,
            drift: Drift::NONE,
        }
    }
}

/// How far the ranks and blocks that a step names go on with each iteration of its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Drift {
    /// Added to the rank to which the step puts, modulo the ranks of the communicator.
    pub to: u32,
    /// Added to the ranks for which it waits, and from which it reads, modulo the same.
    pub from: u32,
    /// Added to every block, modulo the section.
    pub block: u32,
}

impl Drift {
    /// Every iteration is the same.
    pub const NONE: Drift = Drift {
        to: 0,
        from: 0,
        block: 0,
    };
}

impl Action {
    /// The action with other receivers, other sources, and other blocks.
    #[must_use]
    pub fn map(
        self,
        receiver: impl Fn(u32) -> u32,
        rank: impl Fn(u32) -> u32,
        blocks: impl Fn(Blocks) -> Blocks,
    ) -> Self {
        let place = |place: Place| place.map(&rank, &blocks);
        match self {
            Action::Copy { dst, src } => Action::Copy {
                dst: place(dst),
                src: place(src),
            },
            Action::Reduce { dst, a, b, last } => Action::Reduce {
                dst: place(dst),
                a: place(a),
                b: place(b),
                last,
            },
            Action::Put { to, value } => Action::Put {
                to: receiver(to),
                value: match value {
                    Value::Empty => Value::Empty,
                    Value::Copy(src) => Value::Copy(place(src)),
                    Value::Reduce { a, b, last } => Value::Reduce {
                        a: place(a),
                        b: place(b),
                        last,
                    },
                },
            },
            Action::Wait { from, blocks: held } => Action::Wait {
                from: rank(from),
                blocks: blocks(held),
            },
            Action::Release { from } => Action::Release { from: rank(from) },
        }
    }
}
