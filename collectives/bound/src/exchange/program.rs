//! Some classes: the flows of all sources as one program, on floating-point numbers.
//!
//! The solver's prices become lengths, and its flows a routing; both ends of the interval are then
//! proved by themselves, so nothing hangs on how well it solved.

use super::interval::Interval;
use crate::Limit;
use crate::collapse::Collapse;
use crate::linear::{Nearly, Program};
use crate::paths::Paths;
use crate::problem::Problem;

/// The largest program that is solved like this, in flows: one for each source and arc.
const FLOWS: usize = 30_000;
/// How often flows are followed around circles.
const SWEEPS: usize = 60;

/// The rate, between two proved ones that are hardly apart, and the lengths that prove the upper one.
/// `None` if the program is too large or the solver gives up.
pub(super) fn solve(problem: &Problem, collapse: &Collapse) -> Option<(Limit, Vec<u64>)> {
    let sources = collapse.ranks(problem);
    if problem.arcs.len().saturating_mul(sources.len()) > FLOWS {
        return None;
    }
    let near = program(problem, collapse, &sources).nearly()?;
    let classes = collapse.arcs.sizes().len();
    let prices = &near.prices[..classes];
    let highest = prices.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let lengths: Vec<u64> = prices
        .iter()
        .map(|price| (price / highest * (1u64 << 44) as f64) as u64)
        .collect();
    let mut paths = Paths::new(problem);
    let mut best = Interval::default();
    best.see_congestion(congestion(
        problem, collapse, &sources, &near, &mut paths, &lengths,
    ));
    best.see_lengths(problem, collapse, &mut paths, lengths);
    best.limit(problem)
}

/// The flow of a source over an arc, as a variable; the rate is variable 0.
fn variable(problem: &Problem, source: usize, arc: usize) -> usize {
    1 + source * problem.arcs.len() + arc
}

/// Capacities of classes first, then for each source and vertex: what leaves it, and what it keeps, has
/// come in.
fn program(problem: &Problem, collapse: &Collapse, sources: &[(u32, u32)]) -> Program {
    let arcs = problem.arcs.len();
    let mut program =
        Program::new((0..=sources.len() * arcs).map(|variable| i128::from(variable == 0)));
    let mut classes = vec![Vec::new(); collapse.arcs.sizes().len()];
    for arc in 0..arcs {
        classes[collapse.arcs.of(arc as u32) as usize].push(arc);
    }
    for (members, capacity) in classes.iter().zip(collapse.capacities(problem)) {
        let all = sources.iter().enumerate().flat_map(|(source, (_, times))| {
            members
                .iter()
                .map(move |arc| (variable(problem, source, *arc), i128::from(*times)))
        });
        program.row(all, capacity);
    }
    for (source, &(rank, _)) in sources.iter().enumerate() {
        let mut rows = vec![Vec::new(); problem.vertices as usize];
        for (id, arc) in problem.arcs.iter().enumerate() {
            rows[arc.from as usize].push((variable(problem, source, id), 1));
            rows[arc.to as usize].push((variable(problem, source, id), -1));
        }
        for (vertex, row) in (0..).zip(rows) {
            if vertex != rank {
                let keeps = (vertex < problem.ranks).then_some((0, 1));
                program.row(row.into_iter().chain(keeps), 0);
            }
        }
    }
    program
}

/// How full the fullest class is if each source sends one unit to each other rank, splitting at each
/// vertex as the solver's flows into it are split.
fn congestion(
    problem: &Problem,
    collapse: &Collapse,
    sources: &[(u32, u32)],
    near: &Nearly,
    paths: &mut Paths,
    lengths: &[u64],
) -> f64 {
    let capacities = collapse.capacities(problem);
    let mut loads = vec![0.0; capacities.len()];
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); problem.vertices as usize];
    for (id, arc) in (0..).zip(&problem.arcs) {
        into[arc.to as usize].push(id);
    }
    for (source, &(rank, times)) in sources.iter().enumerate() {
        paths.from(rank, |arc| lengths[collapse.arcs.of(arc) as usize] + 1);
        let order = paths.order()[1..].to_vec();
        let flow = |arc: &u32| near.variables[variable(problem, source, *arc as usize)];
        let sums: Vec<f64> = into
            .iter()
            .map(|arcs| arcs.iter().map(flow).sum())
            .collect();
        let mut needs: Vec<f64> = vec![0.0; problem.vertices as usize];
        for &vertex in order.iter().filter(|vertex| **vertex < problem.ranks) {
            needs[vertex as usize] = 1.0;
        }
        // Where flows go in circles, so does what is needed, and less of it each time.
        for _ in 0..SWEEPS {
            for &vertex in order.iter().rev() {
                let need = std::mem::take(&mut needs[vertex as usize]);
                if need == 0.0 {
                    continue;
                }
                let sum = sums[vertex as usize];
                for arc in &into[vertex as usize] {
                    let part = need * flow(arc) / sum;
                    needs[problem.arcs[*arc as usize].from as usize] += part;
                    loads[collapse.arcs.of(*arc) as usize] += part * f64::from(times);
                }
            }
        }
        // What is still on its way goes by shortest paths, and no arc sees more than all of it.
        let left: f64 = order.iter().map(|vertex| needs[*vertex as usize]).sum();
        loads
            .iter_mut()
            .for_each(|load| *load += left * f64::from(times));
    }
    let full = loads
        .iter()
        .zip(&capacities)
        .map(|(load, capacity)| load / *capacity as f64);
    full.fold(f64::MIN_POSITIVE, f64::max)
}
