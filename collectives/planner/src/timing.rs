//! When each step of a schedule runs on a network.

use unisono_network::{EdgeId, Network};
use unisono_simulate::{
    Allowance, LaneId, Model, Outcome, ResourceId, RouteId, SimulateError, Task, TaskId, Turns,
    simulate, simulate_within,
};

use crate::schedule::{Kind, Schedule, StepId};

/// Up to half a million rates, which take about a tenth of a second, times are exact. Beyond that
/// they may be wrong by some thousandths: replays are promised to be within a hundredth.
const ALLOWANCE: Allowance = Allowance {
    share: 0.004,
    after: 500_000,
};

/// What ranks can do besides sending, in bytes a second; none if it isn't known, and then it takes
/// no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speeds {
    /// Reducing, in bytes of result.
    pub reduce: Option<u64>,
    /// Copying within a rank.
    pub copy: Option<u64>,
}

/// When steps run.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// For each step its start and its end in picoseconds.
    pub steps: Vec<unisono_simulate::Span>,
    /// The steps in the order in which they started.
    pub sequence: Vec<StepId>,
    /// For each edge the bytes that passed.
    pub edge_bytes: Vec<u64>,
    /// For each edge for how long it was used, in picoseconds.
    pub edge_busy_ps: Vec<f64>,
    /// When the last step ended, in picoseconds.
    pub end_ps: f64,
    /// How many rates the simulation solved, which its own time follows.
    pub solved: u64,
}

impl Timeline {
    /// The same, of a schedule that was put [in this order](Schedule::in_order), its own sequence.
    #[must_use]
    pub(crate) fn in_sequence(mut self) -> Self {
        let spans = self.sequence.iter().map(|&step| self.steps[step as usize]);
        self.steps = spans.collect();
        self.sequence = (0..).take(self.steps.len()).collect();
        self
    }
}

/// Simulates a schedule.
///
/// A put waits for the latencies of all edges of its path, then its bytes flow over all of them at
/// once, at the rate that is max-min fair among all that flows at that moment. A signal takes the
/// latencies alone.
///
/// # Errors
/// If steps wait for each other in a circle.
pub fn simulate_schedule(
    schedule: &Schedule,
    network: &Network,
    speeds: Speeds,
) -> Result<Timeline, SimulateError> {
    let mut model = Model::new();
    let edges = network.edges();
    for edge in edges {
        model.resource(edge.bytes_per_second);
    }
    let groups: Vec<ResourceId> = (network.groups().iter())
        .map(|group| model.resource(group.bytes_per_second))
        .collect();
    let mut routes = Vec::with_capacity(schedule.paths.len());
    let mut delays = Vec::with_capacity(schedule.paths.len());
    for path in &schedule.paths {
        let mut resources = Vec::new();
        for &edge in path {
            resources.push(ResourceId(edge));
            resources.extend(network.edge(edge).group.map(|group| groups[group as usize]));
        }
        routes.push(model.route(&resources, None));
        delays.push(network.path_facts(path).latency_ns.saturating_mul(1000));
    }
    let mut lane = |fixed| model.lane(if fixed { Turns::Fixed } else { Turns::Ready });
    let lanes: Vec<LaneId> = schedule.lanes.iter().map(|l| lane(l.fixed)).collect();
    let mut local = |speed: Option<u64>| match speed {
        Some(_) => model.route(&[], speed),
        None => RouteId::FREE,
    };
    let (copy, reduce) = (local(speeds.copy), local(speeds.reduce));
    let mut after = Vec::new();
    for step in &schedule.steps {
        after.clear();
        after.extend(schedule.after(step).iter().map(|&id| TaskId(id)));
        let (route, delay_ps) = match step.kind {
            Kind::Put | Kind::Signal => (routes[step.path as usize], delays[step.path as usize]),
            Kind::Copy => (copy, 0),
            Kind::Reduce => (reduce, 0),
        };
        model.task(Task {
            after: &after,
            lane: Some(lanes[step.lane as usize]),
            priority: step.priority,
            delay_ps,
            bytes: step.bytes,
            route,
        });
    }
    let Outcome {
        tasks,
        sequence,
        mut bytes,
        mut busy_ps,
        makespan_ps,
        solved,
    } = simulate_within(&model, ALLOWANCE)?;
    bytes.truncate(edges.len());
    busy_ps.truncate(edges.len());
    Ok(Timeline {
        steps: tasks,
        sequence: sequence.into_iter().map(|task| task.0).collect(),
        edge_bytes: bytes,
        edge_busy_ps: busy_ps,
        end_ps: makespan_ps,
        solved,
    })
}

/// The least time that a schedule can take however it is cut, in picoseconds: that of the link that
/// carries most, and that of the longest chain of latencies.
///
/// # Errors
/// If steps wait for each other in a circle.
pub fn least_time(schedule: &Schedule, network: &Network) -> Result<f64, SimulateError> {
    let mut bytes = vec![0u64; schedule.paths.len()];
    for step in &schedule.steps {
        bytes[step.path as usize] += step.bytes;
    }
    let mut loads = vec![0u64; network.edges().len()];
    for (path, bytes) in schedule.paths.iter().zip(bytes) {
        path.iter().for_each(|&edge| loads[edge as usize] += bytes);
    }
    let load = |edges: &mut dyn Iterator<Item = EdgeId>| -> f64 {
        edges.map(|edge| loads[edge as usize] as f64).sum()
    };
    let edges = (0..).zip(network.edges());
    let edges = edges.map(|(id, edge)| (load(&mut [id].into_iter()), edge.bytes_per_second));
    let groups = network.groups().iter();
    let groups = groups.map(|group| {
        (
            load(&mut group.edges.iter().copied()),
            group.bytes_per_second,
        )
    });
    let fullest = edges
        .chain(groups)
        .map(|(bytes, capacity)| bytes / capacity as f64 * 1e12)
        .fold(0.0, f64::max);
    Ok(fullest.max(latencies(schedule, network)?))
}

/// The longest chain of steps, each taking its latencies alone.
fn latencies(schedule: &Schedule, network: &Network) -> Result<f64, SimulateError> {
    let delays: Vec<u64> = (schedule.paths.iter())
        .map(|path| network.path_facts(path).latency_ns.saturating_mul(1000))
        .collect();
    if delays.iter().all(|&delay| delay == 0) {
        return Ok(0.0);
    }
    // Bytes take no time here, so resources don't matter.
    let mut model = Model::new();
    let mut after = Vec::new();
    for step in &schedule.steps {
        after.clear();
        after.extend(schedule.after(step).iter().map(|&id| TaskId(id)));
        model.task(Task {
            after: &after,
            lane: None,
            priority: 0,
            delay_ps: delays[step.path as usize],
            bytes: 0,
            route: RouteId::FREE,
        });
    }
    Ok(simulate(&model)?.makespan_ps)
}
