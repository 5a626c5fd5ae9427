//! Puts a schedule together.

use rustc_hash::FxHashMap;

use unisono_network::EdgeId;
use unisono_plan::Op;

use super::{Buffer, Extent, Kind, Lane, Message, Place, Schedule, Step, StepId};

/// A step to be added.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Who does it.
    pub rank: u32,
    /// Whom it goes to; the rank itself for what stays.
    pub peer: u32,
    /// What it does.
    pub kind: Kind,
    /// The edges it goes over.
    pub path: &'a [EdgeId],
    /// With which bytes.
    pub extents: &'a [Extent],
    /// What it waits for.
    pub after: &'a [StepId],
    /// Which goes first.
    pub priority: u64,
    /// Which puts take turns.
    pub turn: Turn,
}

/// Which puts of a rank share a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turn {
    /// All to one peer, in the order in which they are added: a first-in first-out channel.
    Channel,
    /// All to one peer over one path that bear the same number; whoever is ready goes.
    Path(u32),
}

/// What tells lanes of a rank apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LaneKey {
    Local,
    Signals { to: u32 },
    Channel { to: u32 },
    Path { to: u32, path: u32, number: u32 },
}

/// A schedule in the making.
#[derive(Debug)]
pub struct Weave {
    schedule: Schedule,
    paths: FxHashMap<Vec<EdgeId>, u32>,
    lanes: FxHashMap<(u32, LaneKey), u32>,
    lanes_of: Vec<u32>,
}

impl Weave {
    /// Nothing yet.
    #[must_use]
    pub fn new(op: Op, ranks: u32, bytes: u64) -> Self {
        let count = ranks as usize;
        Self {
            schedule: Schedule {
                op,
                ranks,
                message: Message::new(op, ranks, bytes),
                steps: Vec::new(),
                paths: vec![Vec::new()],
                lanes: Vec::new(),
                scratch: vec![0; count],
                extents: Vec::new(),
                after: Vec::new(),
            },
            paths: FxHashMap::from_iter([(Vec::new(), 0)]),
            lanes: FxHashMap::default(),
            lanes_of: vec![0; count],
        }
    }

    /// The operation.
    #[must_use]
    pub fn op(&self) -> Op {
        self.schedule.op
    }

    /// How the message is laid out.
    #[must_use]
    pub fn message(&self) -> Message {
        self.schedule.message
    }

    /// Room in a rank's scratch.
    pub fn scratch(&mut self, rank: u32, bytes: u64) -> Place {
        let used = &mut self.schedule.scratch[rank as usize];
        let place = Place::new(Buffer::Scratch, *used);
        *used += bytes.next_multiple_of(16);
        place
    }

    /// Adds a step.
    pub fn step(&mut self, part: Part<'_>) -> StepId {
        let path = self.path(part.path);
        let key = match part.kind {
            Kind::Copy | Kind::Reduce => LaneKey::Local,
            Kind::Signal => LaneKey::Signals { to: part.peer },
            Kind::Put => match part.turn {
                Turn::Channel => LaneKey::Channel { to: part.peer },
                Turn::Path(number) => LaneKey::Path {
                    to: part.peer,
                    path,
                    number,
                },
            },
        };
        let lane = self.lane(part.rank, key);
        let schedule = &mut self.schedule;
        let id = schedule.steps.len() as StepId;
        let first = schedule.extents.len() as u32;
        let filled = part.extents.iter().filter(|extent| extent.bytes > 0);
        schedule.extents.extend(filled.copied());
        let after = schedule.after.len() as u32;
        schedule.after.extend_from_slice(part.after);
        schedule.steps.push(Step {
            rank: part.rank,
            peer: part.peer,
            kind: part.kind,
            lane,
            path,
            bytes: part.extents.iter().map(|extent| extent.bytes).sum(),
            priority: part.priority,
            extents: (first, schedule.extents.len() as u32),
            after: (after, schedule.after.len() as u32),
        });
        id
    }

    /// The schedule.
    #[must_use]
    pub fn finish(self) -> Schedule {
        self.schedule
    }

    fn path(&mut self, path: &[EdgeId]) -> u32 {
        if let Some(&known) = self.paths.get(path) {
            return known;
        }
        let id = self.schedule.paths.len() as u32;
        self.schedule.paths.push(path.to_vec());
        self.paths.insert(path.to_vec(), id);
        id
    }

    fn lane(&mut self, rank: u32, key: LaneKey) -> u32 {
        *self.lanes.entry((rank, key)).or_insert_with(|| {
            let next = &mut self.lanes_of[rank as usize];
            let number = *next;
            *next += 1;
            let lanes = &mut self.schedule.lanes;
            lanes.push(Lane {
                rank,
                number,
                fixed: matches!(key, LaneKey::Channel { .. }),
            });
            lanes.len() as u32 - 1
        })
    }
}
