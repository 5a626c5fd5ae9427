//! Which algorithm, for an operation, a size and a fabric, and why.
//!
//! Every rank that asks the same question gets the same answer: all arithmetic is on integers, and
//! ties go to the earlier algorithm of [`Algorithm::ALL`](crate::Algorithm::ALL), algorithms before
//! templates, slots before windows, fewer pieces before more. An algorithm that the user forces and
//! that can't run is an error that says why, never a silent fallback.

mod cut;
mod front;
mod overrides;
mod plan;
mod table;

use std::borrow::Cow;

use crate::algorithms::Algorithm;
use crate::cost::{Cost, Fabric, Picoseconds, PlanName};
use crate::ir::Op;
use crate::template::{Family, Template};

use cut::Message;

pub use front::{Front, Segment};
pub use overrides::{Override, Overrides};
pub use plan::Plan;

/// What was measured as slower by so many per cent is as good: so much do figures of one plan differ
/// from one tuning to the next.
const AS_GOOD: u128 = 3;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The operation. Its root changes the answer only where a template has trees at some roots.
    pub op: Op,
    /// Bytes of the whole message, as in [`crate::ir`].
    pub bytes: u64,
    /// Bytes of one element; 0 counts as 1.
    pub element_bytes: u32,
    /// Bytes of one slot of a channel.
    pub slot_bytes: u64,
    /// Whether the buffers of all ranks are windows that all peers have mapped.
    pub windows: bool,
    /// Whether peers may read the buffers by the addresses that they are told: not where blocks differ in size, where the
    /// input is scaled, nor where they are windows.
    pub readable: bool,
    /// Whether the result must be the left fold in rank order.
    pub deterministic: bool,
}

/// A plan that was considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name on this fabric.
    pub plan: Plan,
    /// What its programs are generated from.
    pub template: Template,
    /// [`Template::label`].
    pub label: Cow<'static, str>,
    /// Whether over windows.
    pub windowed: bool,
    /// Pieces of the message.
    pub pieces: u64,
    /// Bytes of the largest put: what to cut the message by, in place of the size of a slot.
    pub put_bytes: u64,
    /// The predicted time.
    pub cost: Cost,
    /// The time that was measured here, where the cluster was tuned.
    pub measured: Option<Picoseconds>,
    /// The time that was measured just now, for an explanation; nothing goes by it.
    pub now: Option<Picoseconds>,
    /// Whether other plans of the operation were measured at this size, and this one fell behind
    /// too far before.
    pub behind: bool,
    /// Why it may not run here; absent if it may.
    pub why_not: Option<String>,
}

impl Candidate {
    /// The predicted time.
    #[must_use]
    pub fn predicted(&self) -> Picoseconds {
        self.cost.total()
    }

    /// The measured time where there is one, else the predicted one.
    #[must_use]
    pub fn expected(&self) -> Picoseconds {
        self.measured.unwrap_or_else(|| self.predicted())
    }

    /// Whether both were measured, and this one was hardly slower.
    fn is_as_good_as(&self, other: &Self) -> bool {
        match (self.measured, other.measured) {
            (Some(own), Some(other)) => own.0 * 100 <= other.0 * (100 + AS_GOOD),
            _ => false,
        }
    }

    /// What the choice goes by: the least wins, but see [`AS_GOOD`].
    fn rank(&self) -> (bool, Picoseconds) {
        (self.behind, self.expected())
    }
}

/// The answer. Its `Display` is a table of the candidates and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// What was asked.
    pub request: Request,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Every plan for the operation, in the order that breaks ties.
    pub candidates: Vec<Candidate>,
    /// The index of the winner in `candidates`.
    pub winner: usize,
    /// Whether an override decided.
    pub forced: bool,
}

impl Selection {
    /// The plan to run.
    #[must_use]
    pub fn winner(&self) -> &Candidate {
        &self.candidates[self.winner]
    }
}

/// No plan can run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The algorithm that an override demands can't run.
    #[error(
        "{algorithm}{} is forced for {op} of {bytes} bytes, but {why}; change the override",
        match windowed { Some(true) => " over windows", Some(false) => " over slots", None => "" }
    )]
    Forced {
        /// The algorithm or template.
        algorithm: Family,
        /// Over windows or slots, if the override says.
        windowed: Option<bool>,
        /// The operation.
        op: Op,
        /// Bytes of the whole message.
        bytes: u64,
        /// Why it can't.
        why: String,
    },
    /// Nothing can run.
    #[error("no algorithm can run {op} of {bytes} bytes: {why}")]
    Nothing {
        /// The operation.
        op: Op,
        /// Bytes of the whole message.
        bytes: u64,
        /// Why each of them can't.
        why: String,
    },
}

/// Chooses the plan with the lowest predicted time, or the one that an override forces.
pub fn select(
    request: &Request,
    fabric: &Fabric,
    overrides: &Overrides,
) -> Result<Selection, SelectError> {
    let rule = overrides.find(request.op, request.bytes);
    let candidates = candidates(request, fabric, rule.and_then(|rule| rule.put_bytes));
    let asked = |candidate: &Candidate| {
        rule.is_none_or(|rule| {
            rule.algorithm == Family::from(&candidate.template)
                && rule
                    .windowed
                    .is_none_or(|windowed| windowed == candidate.windowed)
        })
    };
    let able = |candidate: &Candidate| asked(candidate) && candidate.why_not.is_none();
    if let Some(winner) = best(&candidates, able) {
        return Ok(Selection {
            request: *request,
            ranks: fabric.ranks(),
            winner,
            forced: rule.is_some(),
            candidates,
        });
    }
    let (op, bytes) = (request.op, request.bytes);
    let reasons: Vec<String> = (candidates.iter())
        .filter(|candidate| asked(candidate))
        .filter_map(|candidate| {
            let why = candidate.why_not.as_deref()?;
            Some(format!("{}: {why}", table::title(candidate)))
        })
        .collect();
    let why = reasons.join("; ");
    Err(match rule {
        None => SelectError::Nothing { op, bytes, why },
        Some(rule) => SelectError::Forced {
            algorithm: rule.algorithm,
            windowed: rule.windowed,
            op,
            bytes,
            why: if why.is_empty() {
                why_absent(rule, op, fabric)
            } else {
                why
            },
        },
    })
}

/// The best of the candidates that are able: the fastest, or the first of those that were measured as
/// about as fast.
fn best(candidates: &[Candidate], able: impl Fn(&Candidate) -> bool) -> Option<usize> {
    let able = |(_, candidate): &(usize, &Candidate)| able(candidate);
    let all = || candidates.iter().enumerate().filter(able);
    let (fastest, least) = all().min_by_key(|(index, candidate)| (candidate.rank(), *index))?;
    let first = all().find(|(_, candidate)| candidate.is_as_good_as(least));
    Some(first.map_or(fastest, |(index, _)| index))
}

/// Why a rule's plan is not even a candidate.
fn why_absent(rule: &Override, op: Op, fabric: &Fabric) -> String {
    let windowed = rule.windowed.unwrap_or(false);
    let mut plans = Plan::all(fabric).map(|(_, template)| template);
    match plans.find(|template| Family::from(template) == rule.algorithm) {
        Some(template) => match template.supports(op, fabric.ranks(), windowed) {
            Err(error) => error.to_string(),
            Ok(()) => "it is not among the candidates".into(),
        },
        None => {
            let why = fabric.why_missing(rule.algorithm);
            why.unwrap_or("no such template was made for this communicator")
                .into()
        }
    }
}

/// One plan, cut in a certain way, whatever others there are: for measuring it.
///
/// # Errors
/// If it can't run.
pub fn exactly(
    request: &Request,
    fabric: &Fabric,
    plan: Plan,
    windowed: bool,
    put_bytes: u64,
) -> Result<Candidate, SelectError> {
    let (op, bytes) = (request.op, request.bytes);
    let nothing = |why: String| SelectError::Nothing { op, bytes, why };
    let Some(template) = plan.template(fabric) else {
        return Err(nothing("there is no such template".into()));
    };
    let supported = template.supports(op, fabric.ranks(), windowed);
    supported.map_err(|error| nothing(error.to_string()))?;
    let mut candidate = candidate(plan, template, windowed, request, fabric, Some(put_bytes));
    match candidate.why_not.take() {
        Some(why) => Err(nothing(why)),
        None => Ok(candidate),
    }
}

/// Every plan for the operation, with what it would cost and whether it may run.
fn candidates(request: &Request, fabric: &Fabric, put_bytes: Option<u64>) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for (plan, template) in Plan::all(fabric) {
        for windowed in [false, true] {
            let supported = template.supports(request.op, fabric.ranks(), windowed);
            // Memory that all have mapped has no order.
            let ordered = windowed && matches!(template, Template::Ordered { .. });
            if supported.is_ok() && !ordered {
                let template = template.clone();
                let new = candidate(plan, template, windowed, request, fabric, put_bytes);
                if !is_same(&candidates, &new) {
                    candidates.push(new);
                }
            }
        }
    }
    candidates
}

/// Whether a plan is an algorithm in an order in which it costs what it costs without.
fn is_same(candidates: &[Candidate], new: &Candidate) -> bool {
    let Template::Ordered { algorithm, .. } = new.template else {
        return false;
    };
    let flat = candidates
        .iter()
        .find(|c| c.plan == Plan::Flat(algorithm) && !c.windowed);
    flat.is_some_and(|flat| {
        (flat.cost, &flat.why_not, flat.pieces) == (new.cost, &new.why_not, new.pieces)
    })
}

fn candidate(
    plan: Plan,
    template: Template,
    windowed: bool,
    request: &Request,
    fabric: &Fabric,
    put_bytes: Option<u64>,
) -> Candidate {
    let folds = template.folds_in_rank_order(request.op);
    let mut candidate = Candidate {
        plan,
        label: template.label(),
        template,
        windowed,
        pieces: 1,
        put_bytes: request.slot_bytes,
        cost: Cost::default(),
        measured: None,
        now: None,
        behind: false,
        why_not: None,
    };
    let known = take_measured(&mut candidate, request, fabric);
    let message = Message::new(plan, windowed, request, fabric);
    let cut = message.and_then(|message| match put_bytes.or(known) {
        Some(put_bytes) => message.cut(put_bytes.min(request.slot_bytes)),
        None => message.cheapest_cut(request.slot_bytes),
    });
    match cut {
        Ok(cut) => {
            candidate.pieces = cut.pieces;
            candidate.put_bytes = cut.put_bytes;
            candidate.cost = cut.cost;
        }
        Err(why) => candidate.why_not = Some(why),
    }
    if windowed && !request.windows {
        let why = match request.op {
            Op::AllToAll => "the buffers are not windows of every peer, or the call is in place",
            _ => "the buffers are not windows of every peer",
        };
        candidate.why_not = Some(why.into());
    }
    if plan == Plan::Flat(Algorithm::MeshRead) && !request.readable {
        let why = "the buffers are windows, blocks differ in size, or the input is scaled";
        candidate.why_not = Some(why.into());
    }
    if request.deterministic && !folds {
        let why = "deterministic mode needs the left fold in rank order";
        candidate.why_not = Some(why.into());
    }
    candidate
}

/// Takes over what was measured of this plan; gives the puts that it was measured with.
fn take_measured(candidate: &mut Candidate, request: &Request, fabric: &Fabric) -> Option<u64> {
    let measured = fabric.measurements()?;
    let (op, windowed) = (request.op.kind(), candidate.windowed);
    if !measured.covers(op, windowed) {
        return None;
    }
    let name = PlanName {
        op,
        windowed,
        algorithm: candidate.label.clone().into_owned(),
    };
    let largest = measured.largest(op, windowed);
    let point = measured.at(&name, request.bytes, largest);
    candidate.behind = point.is_none();
    candidate.measured = point.map(|point| point.time);
    point.map(|point| point.put_bytes)
}
