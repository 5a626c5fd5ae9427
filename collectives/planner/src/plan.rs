//! The choice: candidates, each cut in several ways, compared by their simulated times.

use std::sync::Arc;
use std::time::Instant;

use unisono_bound::{Bound, bound};
use unisono_network::Network;
use unisono_pack::{self as pack, Route};
use unisono_plan::template::{Order, Ring, Rings};
use unisono_plan::{Algorithm, Op, Template};

use crate::candidate::{Knob, Source, shape};
use crate::schedule::Schedule;
use crate::timing::{Speeds, Timeline, least_time, simulate_schedule};
use crate::trees::Lanes;
use crate::{PlanError, levelled, many, routes};

/// Times up to this much over the least are as good: then fewer steps are better.
const AS_GOOD: f64 = 1.001;
/// Cutting finer is given up when the time is this much over the least...
const MUCH_WORSE: f64 = 1.1;
/// ... as often in a row: a few large chunks may take longer than one, where many take less.
const GIVEN_UP: u32 = 2;
/// What is no more than this over the least may still become better when it is cut finer.
const FAR: f64 = 1.5;
/// Schedules of more steps take seconds to simulate where flows share links...
const LONG: usize = 20_000;
/// ... and are simulated only if the time could become this much less...
const WORTH_LONG: f64 = 1.015;
/// ... or this much where there are switches: more flows then share links, and each step takes longer to simulate.
const WORTH_LONG_SWITCHED: f64 = 1.03;
/// What is cut finer is what should become this much faster than the best so far.
const WORTH_FINER: f64 = 1.012;
/// It has no more steps than so many, as more take seconds to simulate...
const FINER: u64 = 100_000;
/// ... unless it pays as above, and no more than so many rates are solved to simulate it: that takes seconds.
const MOST_SOLVED: u64 = 6_500_000;
/// The most ranks for which trees and rings are packed: packings hold something for each pair.
const MOST_PACKED: u32 = 2048;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// The size as nccl-tests counts it: of the larger buffer.
    pub bytes: u64,
    /// Only the candidates of this name.
    pub algorithm: Option<String>,
    /// What ranks can do besides sending.
    pub speeds: Speeds,
    /// The most steps of a schedule that is simulated only to compare.
    pub most_steps: u64,
    /// The most steps of a candidate that cuts as little as can be.
    pub most_uncut_steps: u64,
    /// The most steps of the plan, if cutting finer helps.
    pub most_final_steps: u64,
    /// Whether the steps are needed. Else a plan of many ranks may come without.
    pub spelled_out: bool,
}

impl Request {
    /// A request for whatever is fastest.
    #[must_use]
    pub fn new(op: Op, bytes: u64) -> Self {
        Self {
            op,
            bytes,
            algorithm: None,
            speeds: Speeds::default(),
            most_steps: 60_000,
            most_uncut_steps: 6_000_000,
            most_final_steps: 2_400_000,
            spelled_out: false,
        }
    }
}

/// How a time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// All steps were simulated.
    Simulated,
    /// It is the least that it could be: more than what others take, or hardly less where it would take
    /// seconds to know.
    AtLeast,
    /// Messages and bytes were counted: see [`crate::counted`].
    Counted,
}

/// What a candidate is predicted to take, cut as is best for it.
#[derive(Debug, Clone)]
pub struct Scored {
    /// The candidate.
    pub source: Source,
    /// How it is cut.
    pub knob: Knob,
    /// The predicted time in picoseconds.
    pub ps: f64,
    /// How that is known.
    pub how: How,
    /// How many steps all ranks have.
    pub steps: usize,
    /// How many rates its simulation solved; 0 where nothing was simulated.
    pub solved: u64,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The name of the winner.
    pub algorithm: String,
    /// How it is cut.
    pub knob: Knob,
    /// Its steps, lanes in order. None where ranks are so many that the plan was counted only, and
    /// [`Request::spelled_out`] didn't ask for them.
    pub schedule: Schedule,
    /// When each runs.
    pub timeline: Timeline,
    /// How fast it could be at best.
    pub bound: Option<Bound>,
    /// All candidates that can run it, the fastest first.
    pub candidates: Vec<Scored>,
    /// How long planning took, in seconds.
    pub seconds: f64,
    /// Where the winner's steps come from.
    source: Source,
}

impl Plan {
    /// How the time was predicted.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.candidates.first().map(|best| best.how) {
            Some(How::Counted) => "counting messages and bytes",
            _ => "simulating every step",
        }
    }

    /// Bytes by predicted time, in GB/s; 0 where nothing takes time.
    #[must_use]
    pub fn algbw_gigabytes(&self) -> f64 {
        match self.timeline.end_ps {
            0.0 => 0.0,
            ps => self.schedule.message.bytes as f64 * 1e3 / ps,
        }
    }

    /// The highest algbw that any plan can reach at this size, latencies counted, in GB/s. None if
    /// nothing has to move.
    #[must_use]
    pub fn bound_algbw_gigabytes(&self) -> Option<f64> {
        let bytes = self.schedule.message.bytes;
        let seconds = self.bound.as_ref()?.seconds(bytes);
        (seconds > 0.0).then(|| bytes as f64 / seconds / 1e9)
    }

    /// The least time that any plan needs over the predicted one; 1 if nothing has to move.
    #[must_use]
    pub fn share_of_bound(&self) -> f64 {
        let bytes = self.schedule.message.bytes;
        let least = self.bound.as_ref().map(|bound| bound.seconds(bytes) * 1e12);
        match least {
            Some(least) if self.timeline.end_ps > 0.0 => least / self.timeline.end_ps,
            _ => 1.0,
        }
    }

    /// Whether the bound is known exactly, and not only as an interval.
    #[must_use]
    pub fn bound_is_exact(&self) -> bool {
        self.bound
            .as_ref()
            .is_none_or(|bound| bound.limit.is_exact())
    }

    /// The memory that one rank's program takes, in bytes: the most of some ranks at the ends and in
    /// the middle. None where the steps come from a packing of all ranks and not from programs.
    #[must_use]
    pub fn program_bytes(&self) -> Option<usize> {
        let Source::Programs(template) = &self.source else {
            return None;
        };
        let ranks = self.schedule.ranks;
        let of = |rank: u32| {
            let program = template.generate(&shape(self.schedule.op, ranks, rank));
            Some(program.ok()?.memory_bytes())
        };
        [0, 1.min(ranks - 1), ranks / 2, ranks - 1]
            .into_iter()
            .filter_map(of)
            .max()
    }

    /// The predicted time in microseconds.
    #[must_use]
    pub fn predicted_us(&self) -> f64 {
        self.timeline.end_ps / 1e6
    }
}

/// Plans an operation.
///
/// # Errors
/// If the request can't be met: no such rank or algorithm, or ranks that can't reach each other.
pub fn plan(network: &Network, request: &Request) -> Result<Plan, PlanError> {
    let begin = Instant::now();
    let bound = bound_of(network, request.op)?;
    let (sources, why) = sources(network, request.op, bound.as_ref());
    let plan = plan_among(network, request, bound, sources, why)?;
    Ok(Plan {
        seconds: begin.elapsed().as_secs_f64(),
        ..plan
    })
}

/// Plans with a bound and candidates that are known already, and why others can't run.
pub(crate) fn plan_among(
    network: &Network,
    request: &Request,
    bound: Option<Bound>,
    sources: Vec<Source>,
    mut why: Vec<String>,
) -> Result<Plan, PlanError> {
    let begin = Instant::now();
    let wanted = |source: &Source| match &request.algorithm {
        Some(name) => source.name() == name.replace('-', "_"),
        None => true,
    };
    let there: Vec<String> = sources
        .iter()
        .map(|source| source.name().to_owned())
        .collect();
    let mut candidates = Vec::new();
    let sources = sources.into_iter().filter(wanted);
    if network.ranks() > many::FEW && request.op.is_collective() {
        let sources = sources.collect();
        let chosen = many::choose(network, request, sources, bound.as_ref(), &mut why)?;
        let Some(chosen) = chosen.filter(|chosen| !chosen.candidates.is_empty()) else {
            return Err(nothing(request, there, why));
        };
        let best = &chosen.candidates[0];
        return Ok(Plan {
            algorithm: best.source.name().to_owned(),
            knob: best.knob,
            schedule: chosen.schedule,
            timeline: chosen.timeline,
            bound,
            source: best.source.clone(),
            candidates: chosen.candidates,
            seconds: begin.elapsed().as_secs_f64(),
        });
    }
    for source in sources {
        match at_best(network, request, &source) {
            Ok(scored) => candidates.push(scored),
            Err(error) => why.push(format!("{}: {error}", source.name())),
        }
    }
    // Who may be the fastest at best is simulated first; who can't be any more isn't.
    candidates.sort_by(|a, b| a.ps.total_cmp(&b.ps));
    let mut least = f64::INFINITY;
    let worth_long = worth_long(network);
    let mut hopeful = Vec::new();
    for (index, scored) in candidates.iter_mut().enumerate() {
        let at_best = scored.ps;
        let worth = if scored.steps > LONG { worth_long } else { 1.0 };
        if at_best * worth >= least {
            continue;
        }
        *scored = best_cut(network, request, scored.source.clone())?;
        least = least.min(scored.ps);
        hopeful.push((index, at_best));
    }
    // So is who should gain most by being cut finer.
    hopeful.sort_by(|&a, &b| {
        let hoped = |(index, at_best): (usize, f64)| {
            when_finer(&candidates[index], at_best, request.most_final_steps)
        };
        hoped(a).total_cmp(&hoped(b))
    });
    for (index, at_best) in hopeful {
        let most_steps = match at_best * worth_long < least {
            true => request.most_final_steps,
            false => request.most_final_steps.min(FINER),
        };
        let scored = &mut candidates[index];
        if when_finer(scored, at_best, most_steps) * WORTH_FINER < least {
            let enough = at_best * worth_long;
            *scored = finer(network, request, scored.clone(), most_steps, least, enough)?;
            least = least.min(scored.ps);
        }
    }
    // Who was not simulated may take longer than it says.
    let order = |one: &Scored| match one.how {
        How::AtLeast => one.ps.max(least),
        _ => one.ps,
    };
    candidates.sort_by(|a, b| {
        let later = |one: &Scored| one.how == How::AtLeast;
        (order(a).total_cmp(&order(b))).then(later(a).cmp(&later(b)))
    });
    let Some(best) = simplest(&candidates) else {
        return Err(nothing(request, there, why));
    };
    let best = best.clone();
    let (op, bytes) = (request.op, request.bytes);
    let schedule = best.source.schedule(network, op, bytes, best.knob)?;
    let timeline = simulate_schedule(&schedule, network, request.speeds)?;
    let schedule = schedule.in_order(&timeline.sequence);
    let timeline = timeline.in_sequence();
    Ok(Plan {
        algorithm: best.source.name().to_owned(),
        knob: best.knob,
        schedule,
        timeline,
        bound,
        candidates,
        source: best.source,
        seconds: begin.elapsed().as_secs_f64(),
    })
}

/// Why there is no plan: `there` are the candidates, `why` says what keeps others from running.
fn nothing(request: &Request, there: Vec<String>, why: Vec<String>) -> PlanError {
    match &request.algorithm {
        Some(name) if !there.contains(name) => PlanError::NoSuchAlgorithm {
            name: name.clone(),
            there,
        },
        _ => PlanError::NoCandidate {
            op: request.op.name(),
            why,
        },
    }
}

/// The bound of an operation; none for a barrier, which moves nothing.
pub fn bound_of(network: &Network, op: Op) -> Result<Option<Bound>, PlanError> {
    let in_network = network
        .vertices()
        .iter()
        .any(|vertex| matches!(vertex, unisono_network::Vertex::Switch { reduces: true }));
    let asked = match op {
        Op::AllReduce => unisono_bound::Op::AllReduce { in_network },
        Op::ReduceScatter => unisono_bound::Op::ReduceScatter,
        Op::AllGather => unisono_bound::Op::AllGather,
        Op::Broadcast { root } => unisono_bound::Op::Broadcast { root },
        Op::Reduce { root } => unisono_bound::Op::Reduce { root },
        Op::Gather { root } => unisono_bound::Op::Gather { root },
        Op::Scatter { root } => unisono_bound::Op::Scatter { root },
        Op::AllToAll => unisono_bound::Op::AllToAll,
        Op::Send { .. } | Op::Recv { .. } => unisono_bound::Op::SendRecv {
            from: 0,
            to: network.ranks() - 1,
        },
        Op::Barrier => return Ok(None),
    };
    Ok(Some(bound(network, asked)?))
}

/// All that may run the operation, and why others can't.
pub fn sources(network: &Network, op: Op, bound: Option<&Bound>) -> (Vec<Source>, Vec<String>) {
    let mut why = Vec::new();
    let mut sources = Vec::new();
    for template in templates(network, op) {
        match template.supports(op, network.ranks(), false) {
            Ok(()) => sources.push(Source::Programs(template)),
            Err(error) => why.push(error.to_string()),
        }
    }
    if network.ranks() == 1 {
        return (sources, why);
    }
    if network.ranks() > MOST_PACKED && op.is_collective() {
        why.push(format!(
            "trees: {} ranks are too many to pack",
            network.ranks()
        ));
        return (sources, why);
    }
    let trees = |packing: Result<_, _>| packing.map(|p| Source::Trees(Arc::new(p)));
    let routes = |routes: Option<Vec<Route>>| Some(Ok(Source::Routes(routes?.into())));
    let speed = bound.and_then(|bound| bound.limit.low());
    let found = match op {
        Op::AllGather => Some(trees(pack::all_gather(network))),
        Op::ReduceScatter => Some(trees(pack::reduce_scatter(network))),
        Op::Broadcast { root } => Some(trees(pack::broadcast(network, root))),
        Op::Reduce { root } => Some(trees(pack::reduce(network, root))),
        Op::AllReduce => Some(pack::all_reduce(network).map(|p| Source::Pairs(Arc::new(p)))),
        Op::AllToAll => {
            Some(pack::all_to_all(network).map(|found| Source::Routes(found.routes.into())))
        }
        Op::Scatter { root } => {
            speed.and_then(|speed| routes(routes::scatter(network, root, speed)))
        }
        Op::Gather { root } => speed.and_then(|speed| routes(routes::gather(network, root, speed))),
        Op::Send { .. } | Op::Recv { .. } => {
            let last = network.ranks() - 1;
            speed.and_then(|speed| routes(routes::send(network, 0, last, speed)))
        }
        Op::Barrier => None,
    };
    match found {
        Some(Ok(source)) => sources.push(source),
        Some(Err(error)) => why.push(error.to_string()),
        None => {}
    }
    (sources, why)
}

/// Templates that suit the network: the algorithms in natural order, and in the order in which
/// islands lie beside each other if that is another one; rings; levels of islands.
fn templates(network: &Network, op: Op) -> Vec<Template> {
    let mut templates: Vec<Template> = Algorithm::OVER_LINKS
        .into_iter()
        .map(Template::from)
        .collect();
    let pairs = network.ranks() == 1 || !op.is_collective();
    if pairs || op == Op::Barrier {
        return templates;
    }
    let levels = pack::levels(network);
    let natural = levels.order().iter().copied().eq(0..network.ranks());
    if !natural && let Ok(order) = Order::new(levels.order().to_vec()) {
        let order = Arc::new(order);
        templates.extend(
            Algorithm::OVER_LINKS
                .into_iter()
                .map(|algorithm| Template::Ordered {
                    algorithm,
                    order: order.clone(),
                }),
        );
    }
    if network.ranks() <= MOST_PACKED {
        templates.extend(rings(network).map(|rings| Template::Rings(Arc::new(rings))));
    }
    templates.extend(levelled::levelled(network, &levels));
    templates
}

/// The rings that fit a network; none if one ring in natural order is all.
fn rings(network: &Network) -> Option<Rings> {
    let found = pack::rings(network).ok()?;
    let rings: Result<Vec<Ring>, _> = (found.rings.into_iter())
        .map(|ring| Ring::new(ring.order, ring.weight))
        .collect();
    Rings::new(rings.ok()?).ok()
}

/// How much less the time must become for it to be worth while to simulate long schedules.
fn worth_long(network: &Network) -> f64 {
    match network.vertices().len() > network.ranks() as usize {
        true => WORTH_LONG_SWITCHED,
        false => WORTH_LONG,
    }
}

/// The candidate with the fewest steps of those that are as good as the fastest.
fn simplest(candidates: &[Scored]) -> Option<&Scored> {
    let simulated = || candidates.iter().filter(|one| one.how == How::Simulated);
    let least = simulated().map(|one| one.ps).min_by(f64::total_cmp)?;
    simulated()
        .filter(|one| one.ps <= least * AS_GOOD)
        .min_by_key(|one| one.steps)
}

/// The time that a candidate needs at best, however it is cut: that of its fullest link, and that
/// of its latencies one after the other.
pub(crate) fn at_best(
    network: &Network,
    request: &Request,
    source: &Source,
) -> Result<Scored, PlanError> {
    let lanes = source.lanes().first().copied().unwrap_or(Lanes::Path);
    let knob = Knob { chunks: 1, lanes };
    let steps = source.steps(request.op, network.ranks(), knob);
    if steps > request.most_uncut_steps {
        return Err(PlanError::TooLong {
            algorithm: source.name().into(),
            steps,
        });
    }
    let schedule = source.schedule(network, request.op, request.bytes, knob)?;
    Ok(Scored {
        source: source.clone(),
        knob,
        ps: least_time(&schedule, network)?,
        how: How::AtLeast,
        steps: schedule.steps.len(),
        solved: 0,
    })
}

pub(crate) fn score(
    network: &Network,
    request: &Request,
    source: &Source,
    knob: Knob,
) -> Result<Scored, PlanError> {
    let schedule = source.schedule(network, request.op, request.bytes, knob)?;
    let timeline = simulate_schedule(&schedule, network, request.speeds)?;
    let scored = Scored {
        source: source.clone(),
        knob,
        ps: timeline.end_ps,
        how: How::Simulated,
        steps: schedule.steps.len(),
        solved: timeline.solved,
    };
    Ok(scored)
}

/// The best way to cut a message for a candidate: more and more chunks, as long as that helps,
/// then what lies between.
fn best_cut(network: &Network, request: &Request, source: Source) -> Result<Scored, PlanError> {
    let source = &source;
    let most = source.most_chunks(request.op, network.ranks(), request.bytes);
    let mut tried: Vec<Scored> = Vec::new();
    for lanes in source.lanes() {
        let fits = |chunks: u64| {
            let steps = source.steps(request.op, network.ranks(), Knob { chunks, lanes });
            (2..=most).contains(&chunks) && steps <= request.most_steps
        };
        let mut try_chunks = |chunks: u64| {
            match score(network, request, source, Knob { chunks, lanes }) {
                Ok(scored) => {
                    let ps = scored.ps;
                    tried.push(scored);
                    Ok(ps)
                }
                // Unequal parts get too small before the others do.
                Err(PlanError::TooFine { .. }) => Ok(f64::INFINITY),
                Err(error) => Err(error),
            }
        };
        let (mut least, mut at) = (try_chunks(1)?, 1);
        let mut chunks = 4;
        let mut much_worse = 0;
        while fits(chunks) && much_worse < GIVEN_UP {
            let ps = try_chunks(chunks)?;
            much_worse = match ps > MUCH_WORSE * least {
                true => much_worse + 1,
                false => 0,
            };
            if ps < least {
                (least, at) = (ps, chunks);
            }
            chunks *= 4;
        }
        for between in [at / 2, at * 2] {
            if fits(between) {
                try_chunks(between)?;
            }
        }
    }
    tried.sort_by(|a, b| a.ps.total_cmp(&b.ps));
    simplest(&tried).cloned().ok_or_else(|| PlanError::Unfit {
        algorithm: source.name().into(),
        op: request.op.name(),
    })
}

/// What a candidate should take when it is cut into so many steps: what it takes beyond its best time
/// is the time until pipelines are full, of which there is as much less as chunks are smaller.
fn when_finer(scored: &Scored, at_best: f64, steps: u64) -> f64 {
    let part = scored.steps as f64 / steps as f64;
    at_best + (scored.ps - at_best).max(0.0) * part.min(1.0)
}

/// A candidate cut finer still: as long as it could become faster than the `least` time so far, has no
/// more than so many steps, and takes longer than what is `enough`; all times in picoseconds.
fn finer(
    network: &Network,
    request: &Request,
    best: Scored,
    most_steps: u64,
    least: f64,
    enough: f64,
) -> Result<Scored, PlanError> {
    let source = &best.source;
    let most = source.most_chunks(request.op, network.ranks(), request.bytes);
    let mut all = vec![best.clone()];
    for lanes in source.lanes() {
        let mut chunks = best.knob.chunks;
        let mut before: Option<(f64, u64)> = None;
        loop {
            chunks *= 2;
            let knob = Knob { chunks, lanes };
            let steps = source.steps(request.op, network.ranks(), knob);
            let solves = before.map_or(best.solved, |(_, solved)| solved) * 2;
            let done = all.iter().any(|one| one.ps <= enough);
            if done || chunks > most || steps > most_steps || solves > MOST_SOLVED {
                break;
            }
            let scored = match score(network, request, source, knob) {
                Err(PlanError::TooFine { .. }) => break,
                scored => scored?,
            };
            let (ps, solved) = (scored.ps, scored.solved);
            let least = all.iter().map(|one| one.ps).fold(least, f64::min);
            // Where paths share no links, all lanes are alike.
            let alike = (all.iter()).any(|one| one.knob.chunks == chunks && one.ps == ps);
            all.push(scored);
            let hopeful = match before {
                // Each time half as much is gained, so in all as much as this time.
                Some((before, _)) => ps * AS_GOOD < before && 2.0 * ps - before < least,
                // Other lanes than the best so far may need some more chunks to come near.
                None => ps < best.ps * FAR,
            };
            if alike || !hopeful {
                break;
            }
            before = Some((ps, solved));
        }
    }
    all.sort_by(|a, b| a.ps.total_cmp(&b.ps));
    Ok(simplest(&all).cloned().unwrap_or(best))
}
