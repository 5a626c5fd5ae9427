//! What is simulated: resources, routes, lanes, tasks.

use rustc_hash::FxHashMap;

/// A resource of a [`Model`], by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// A route of a [`Model`], by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

impl RouteId {
    /// The route of what takes no time besides its delay; every model has it.
    pub const FREE: RouteId = RouteId(0);
}

/// A lane of a [`Model`], by its number: tasks of one lane run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u32);

/// In which order the tasks of a lane run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turns {
    /// As they were added, each waiting for the one before.
    Fixed,
    /// Of those that have nothing to wait for any more, the one with the least
    /// [`Task::priority`]; of equal ones the first added. So a lane is never idle while one of its
    /// tasks could run. [`Outcome::sequence`](crate::Outcome::sequence) tells what order that was.
    Ready,
}

/// A task of a [`Model`], by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A task: a message, or work within a rank.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The tasks that must have ended before this one starts. They may be added later.
    pub after: &'a [TaskId],
    /// The lane in which it takes its turn, if it does.
    pub lane: Option<LaneId>,
    /// Which task goes first in a lane with [`Turns::Ready`]; without meaning elsewhere.
    pub priority: u64,
    /// Time between its start and its first byte, in picoseconds.
    pub delay_ps: u64,
    /// Bytes to move.
    pub bytes: u64,
    /// What they move over.
    pub route: RouteId,
}

/// Resources and the tasks that use them.
#[derive(Debug, Clone)]
pub struct Model {
    pub(crate) capacities: Vec<u64>,
    pub(crate) routes: Routes,
    known: FxHashMap<(Box<[ResourceId]>, Option<u64>), RouteId>,
    pub(crate) tasks: Tasks,
    pub(crate) lanes: Vec<Lane>,
}

/// A lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) turns: Turns,
    /// The task added last.
    last: Option<u32>,
}

/// All routes: for each its hops, each resource once with how often the route passes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    pub(crate) starts: Vec<u32>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) limits: Vec<Option<u64>>,
}

/// A resource on a route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hop {
    pub(crate) resource: u32,
    /// How often the route passes the resource.
    pub(crate) times: u32,
}

/// All tasks, a column for each field.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    pub(crate) after_starts: Vec<u32>,
    pub(crate) after: Vec<TaskId>,
    /// The task before in a lane with fixed turns, if there is one.
    pub(crate) before: Vec<Option<u32>>,
    /// The lane, if it isn't one with fixed turns.
    pub(crate) lane: Vec<Option<LaneId>>,
    pub(crate) priority: Vec<u64>,
    pub(crate) delay_ps: Vec<u64>,
    pub(crate) bytes: Vec<u64>,
    pub(crate) route: Vec<RouteId>,
}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Model {
    /// A model with nothing in it but [`RouteId::FREE`].
    #[must_use]
    pub fn new() -> Self {
        let mut model = Self {
            capacities: Vec::new(),
            routes: Routes {
                starts: vec![0],
                ..Routes::default()
            },
            known: FxHashMap::default(),
            tasks: Tasks {
                after_starts: vec![0],
                ..Tasks::default()
            },
            lanes: Vec::new(),
        };
        model.route(&[], None);
        model
    }

    /// Adds a resource that carries so many bytes a second in all.
    pub fn resource(&mut self, bytes_per_second: u64) -> ResourceId {
        let id = ResourceId(number(self.capacities.len()));
        self.capacities.push(bytes_per_second);
        id
    }

    /// The route over these resources, each flow of which moves at most `limit` bytes a second.
    ///
    /// A resource that is named twice is used twice. Equal routes are one, so asking again is
    /// cheap; flows of one route cost the simulation no more than one flow.
    pub fn route(&mut self, resources: &[ResourceId], limit: Option<u64>) -> RouteId {
        let mut sorted = resources.to_vec();
        sorted.sort_unstable();
        let key = (sorted.into_boxed_slice(), limit);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let id = RouteId(number(self.routes.limits.len()));
        for same in key.0.chunk_by(|a, b| a == b) {
            self.routes.hops.push(Hop {
                resource: same[0].0,
                times: number(same.len()),
            });
        }
        self.routes.starts.push(number(self.routes.hops.len()));
        self.routes.limits.push(limit);
        self.known.insert(key, id);
        id
    }

    /// Adds a lane.
    pub fn lane(&mut self, turns: Turns) -> LaneId {
        let id = LaneId(number(self.lanes.len()));
        self.lanes.push(Lane { turns, last: None });
        id
    }

    /// Adds a task, behind the others of its lane.
    pub fn task(&mut self, task: Task<'_>) -> TaskId {
        let id = number(self.tasks.bytes.len());
        self.tasks.after.extend_from_slice(task.after);
        let end = number(self.tasks.after.len());
        self.tasks.after_starts.push(end);
        let (mut before, mut ready) = (None, None);
        if let Some(lane) = task.lane {
            match self.lanes.get_mut(lane.0 as usize) {
                Some(known) if known.turns == Turns::Fixed => before = known.last.replace(id),
                // One that isn't there is found when the model is checked.
                _ => ready = Some(lane),
            }
        }
        self.tasks.before.push(before);
        self.tasks.lane.push(ready);
        self.tasks.priority.push(task.priority);
        self.tasks.delay_ps.push(task.delay_ps);
        self.tasks.bytes.push(task.bytes);
        self.tasks.route.push(task.route);
        TaskId(id)
    }

    /// How many resources there are.
    #[must_use]
    pub fn resources(&self) -> usize {
        self.capacities.len()
    }

    /// How many tasks there are.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks.bytes.len()
    }
}

impl Routes {
    pub(crate) fn len(&self) -> usize {
        self.limits.len()
    }

    /// Where the hops of a route are in `hops`.
    pub(crate) fn range(&self, route: u32) -> std::ops::Range<usize> {
        self.starts[route as usize] as usize..self.starts[route as usize + 1] as usize
    }

    pub(crate) fn of(&self, route: u32) -> &[Hop] {
        &self.hops[self.range(route)]
    }
}

impl Tasks {
    /// What a task waits for by name.
    pub(crate) fn after(&self, task: usize) -> &[TaskId] {
        &self.after[self.after_starts[task] as usize..self.after_starts[task + 1] as usize]
    }
}

/// A place in a list as a number; lists here stay far below 2^32.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
