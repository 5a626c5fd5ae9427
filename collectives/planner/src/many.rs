//! The choice among plans of many ranks: counted first, simulated where the winner is short enough.

use unisono_bound::Bound;
use unisono_network::Network;
use unisono_plan::Template;

use crate::PlanError;
use crate::candidate::{Knob, Source};
use crate::counted::{self, Counted};
use crate::plan::{How, Request, Scored};
use crate::schedule::{Schedule, Weave};
use crate::timing::{Timeline, simulate_schedule};
use crate::trees::Lanes;

/// Up to so many ranks candidates are simulated.
pub(crate) const FEW: u32 = 128;
/// The most steps of a plan of many ranks that is simulated.
const MOST_STEPS: u64 = 250_000;
/// The most that is simulated if all steps are asked for.
const MOST_SPELLED: u64 = 16_000_000;
/// How many of the best are simulated at most.
const MOST_TRIES: usize = 3;

/// The candidates, the fastest first, and what the fastest does.
pub(crate) struct Chosen {
    pub(crate) candidates: Vec<Scored>,
    pub(crate) schedule: Schedule,
    pub(crate) timeline: Timeline,
}

/// Counts all candidates, none below the bound, and simulates the best of them as far as that can be. None if there is
/// no candidate; `why` says why those that are left out are.
pub(crate) fn choose(
    network: &Network,
    request: &Request,
    sources: Vec<Source>,
    bound: Option<&Bound>,
    why: &mut Vec<String>,
) -> Result<Option<Chosen>, PlanError> {
    let least_ps = bound.map_or(0.0, |bound| bound.seconds(request.bytes) * 1e12);
    let mut found = count(network, request, sources, least_ps, why);
    let limit = match request.spelled_out {
        true => MOST_SPELLED,
        false => MOST_STEPS,
    };
    if request.spelled_out {
        let length = |(scored, _): &(Scored, Counted)| length(network, request, scored);
        let fits: Vec<_> = (found.iter()).map(|one| length(one) <= limit).collect();
        if let (false, Some(first)) = (fits.contains(&true), found.first()) {
            return Err(PlanError::TooLong {
                algorithm: first.0.source.name().into(),
                steps: length(first),
            });
        }
        let mut fits = fits.into_iter();
        found.retain(|_| fits.next().unwrap_or(false));
    }
    let mut simulated: Vec<(Scored, Schedule, Timeline)> = Vec::new();
    for _ in 0..MOST_TRIES {
        found.sort_by(|(a, _), (b, _)| a.ps.total_cmp(&b.ps));
        let Some((best, _)) = found.first_mut() else {
            return Ok(None);
        };
        if best.how == How::Simulated || length(network, request, best) > limit {
            break;
        }
        let Scored { source, knob, .. } = best;
        let schedule = source.schedule(network, request.op, request.bytes, *knob)?;
        let timeline = simulate_schedule(&schedule, network, request.speeds)?;
        best.ps = timeline.end_ps;
        best.how = How::Simulated;
        best.steps = schedule.steps.len();
        simulated.push((best.clone(), schedule, timeline));
    }
    found.sort_by(|(a, _), (b, _)| a.ps.total_cmp(&b.ps));
    if request.spelled_out
        && let Some(place) = found.iter().position(|(one, _)| one.how == How::Simulated)
    {
        found.swap(0, place);
    }
    let Some((best, counted)) = found.first() else {
        return Ok(None);
    };
    let same = |one: &Scored| one.ps == best.ps && one.source.name() == best.source.name();
    let (schedule, timeline) = match simulated.into_iter().find(|(one, ..)| same(one)) {
        Some((_, schedule, timeline)) => {
            let schedule = schedule.in_order(&timeline.sequence);
            (schedule, timeline.in_sequence())
        }
        None => unspelled(network, request, best, counted),
    };
    let candidates = found.into_iter().map(|(scored, _)| scored).collect();
    Ok(Some(Chosen {
        candidates,
        schedule,
        timeline,
    }))
}

fn length(network: &Network, request: &Request, scored: &Scored) -> u64 {
    let chunks = scored.knob.chunks.max(1);
    let counted = (scored.steps as u64).saturating_mul(chunks);
    let ranks = network.ranks();
    counted.max(scored.source.steps(request.op, ranks, scored.knob))
}

/// The lanes of a source of many ranks: those with which flows that share a link overlap.
fn lanes_of(source: &Source) -> Lanes {
    source.lanes().last().copied().unwrap_or(Lanes::Path)
}

/// All candidates that can be counted.
fn count(
    network: &Network,
    request: &Request,
    sources: Vec<Source>,
    least_ps: f64,
    why: &mut Vec<String>,
) -> Vec<(Scored, Counted)> {
    let (op, bytes) = (request.op, request.bytes);
    let mut found = Vec::new();
    let mut add = |source: Source, lanes: Lanes, counted: Counted| {
        let most = source.most_chunks(op, network.ranks(), bytes);
        let chunks = counted.best_chunks(most);
        let scored = Scored {
            ps: counted.ps(chunks).max(least_ps),
            knob: Knob { chunks, lanes },
            how: match counted.at_least {
                true => How::AtLeast,
                false => How::Counted,
            },
            steps: counted.steps as usize,
            solved: 0,
            source,
        };
        found.push((scored, counted));
    };
    let mut templates: Vec<Template> = Vec::new();
    for source in sources {
        let lanes = lanes_of(&source);
        let counted = match &source {
            Source::Programs(template) => {
                templates.push(template.clone());
                continue;
            }
            Source::Trees(packing) => counted::trees(network, op, packing, bytes, lanes),
            Source::Pairs(packing) => counted::pairs(network, packing, bytes, lanes),
            Source::Routes(routes) => counted::routes(network, op, routes, bytes, lanes),
        };
        add(source, lanes, counted);
    }
    let all = counted::templates(network, op, bytes, request.speeds, &templates);
    for (template, counted) in templates.into_iter().zip(all) {
        let name = template.name();
        match counted {
            Ok(Some(counted)) => {
                let source = Source::Programs(template);
                let lanes = lanes_of(&source);
                add(source, lanes, counted);
            }
            Ok(None) => why.push(format!("{name}: its programs are too long to be counted")),
            Err(error) => why.push(format!("{name}: {error}")),
        }
    }
    found
}

/// A plan whose steps are too many to be spelled out: the use of links alone.
fn unspelled(
    network: &Network,
    request: &Request,
    best: &Scored,
    counted: &Counted,
) -> (Schedule, Timeline) {
    let schedule = Weave::new(request.op, network.ranks(), request.bytes).finish();
    let edges = network.edges().iter().zip(&counted.edge_bytes);
    let busy = edges.map(|(edge, &bytes)| bytes as f64 / edge.bytes_per_second as f64 * 1e12);
    let timeline = Timeline {
        steps: Vec::new(),
        sequence: Vec::new(),
        edge_busy_ps: busy.collect(),
        edge_bytes: counted.edge_bytes.clone(),
        end_ps: best.ps,
        solved: 0,
    };
    (schedule, timeline)
}
