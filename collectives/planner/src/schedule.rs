//! A schedule: every step of every rank, and what each waits for.
//!
//! What a plan says by a program for each rank, a schedule spells out for all of them: which bytes
//! go from where to where over which links, and what must have happened before. It is what is
//! simulated, drawn and written to a file; see [`crate::steps`] for how others read it.
//!
//! Steps of one rank are ordered by what they touch and by their lanes, not by their place in a
//! list: a step waits for the steps that made what it reads, for those that still read what it
//! overwrites, and for its turn in its lane.

mod message;
mod weave;

use unisono_network::EdgeId;
use unisono_plan::Op;

pub use message::{Cut, Message};
pub use weave::{Part, Turn, Weave};

/// A step, by its number.
pub type StepId = u32;

/// Memory of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The caller's input.
    In,
    /// The caller's output.
    Out,
    /// The library's own.
    Scratch,
    /// The slots of the channel from a rank.
    Slots {
        /// The rank that fills them.
        from: u32,
    },
}

/// Where bytes begin in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The buffer.
    pub buffer: Buffer,
    /// Bytes from its start.
    pub offset: u64,
}

impl Place {
    /// A place.
    #[must_use]
    pub const fn new(buffer: Buffer, offset: u64) -> Self {
        Self { buffer, offset }
    }
}

/// What one part of a step does with its bytes: `to = a`, or `to = a (+) b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first operand, on the step's own rank.
    pub a: Place,
    /// The second operand, on the step's own rank.
    pub b: Option<Place>,
    /// Where the result goes: on the peer for a put, on the own rank else.
    pub to: Place,
    /// How many bytes.
    pub bytes: u64,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sends bytes to the peer, perhaps reduced on the way.
    Put,
    /// Copies within the rank.
    Copy,
    /// Reduces within the rank.
    Reduce,
    /// Tells the peer something without bytes.
    Signal,
}

impl Kind {
    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Put => "put",
            Kind::Copy => "copy",
            Kind::Reduce => "reduce",
            Kind::Signal => "signal",
        }
    }
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Who does it.
    pub rank: u32,
    /// Whom it goes to; the rank itself for what stays.
    pub peer: u32,
    /// What it does.
    pub kind: Kind,
    /// Its lane: a place in [`Schedule::lanes`].
    pub lane: u32,
    /// The edges it goes over: a place in [`Schedule::paths`]. Path 0 has none.
    pub path: u32,
    /// All its bytes.
    pub bytes: u64,
    /// Which goes first where a lane takes whoever is ready.
    pub priority: u64,
    extents: (u32, u32),
    after: (u32, u32),
}

/// A sequence of steps of one rank that run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// The rank.
    pub rank: u32,
    /// Its number among the rank's lanes.
    pub number: u32,
    /// Whether it runs its steps in the order of [`Schedule::steps`]; else it takes whoever is
    /// ready, by priority.
    pub fixed: bool,
}

/// Every step of every rank for one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The operation.
    pub op: Op,
    /// How many ranks take part.
    pub ranks: u32,
    /// How the message is laid out.
    pub message: Message,
    /// The steps. What a step waits for may come later in this list.
    pub steps: Vec<Step>,
    /// Paths: edges in the order in which bytes pass them. The first is empty.
    pub paths: Vec<Vec<EdgeId>>,
    /// The lanes.
    pub lanes: Vec<Lane>,
    /// Bytes of scratch that each rank needs.
    pub scratch: Vec<u64>,
    extents: Vec<Extent>,
    after: Vec<StepId>,
}

impl Schedule {
    /// What a step does with which bytes.
    #[must_use]
    pub fn extents(&self, step: &Step) -> &[Extent] {
        &self.extents[step.extents.0 as usize..step.extents.1 as usize]
    }

    /// What a step waits for, besides its lane.
    #[must_use]
    pub fn after(&self, step: &Step) -> &[StepId] {
        &self.after[step.after.0 as usize..step.after.1 as usize]
    }

    /// The same steps in another order, in which lanes then run them. `order` lists all steps.
    #[must_use]
    pub fn in_order(mut self, order: &[StepId]) -> Self {
        let mut place = vec![0; self.steps.len()];
        for (now, &before) in (0..).zip(order) {
            place[before as usize] = now;
        }
        self.steps = order
            .iter()
            .map(|&step| self.steps[step as usize])
            .collect();
        for after in &mut self.after {
            *after = place[*after as usize];
        }
        for lane in &mut self.lanes {
            lane.fixed = true;
        }
        self
    }
}
