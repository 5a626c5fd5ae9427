//! Which algorithm, for an operation, a size and a fabric, and why.
//!
//! Every rank that asks the same question gets the same answer: all arithmetic is on integers, and
//! ties go to the earlier algorithm of [`Algorithm::ALL`], slots before windows, fewer pieces
//! before more. An algorithm that the user forces and that can't run is an error that says why,
//! never a silent fallback.

mod cut;
mod overrides;
mod table;

use crate::algorithms::Algorithm;
use crate::cost::{Cost, Fabric, Picoseconds, PlanName};
use crate::ir::Op;

use cut::Message;

pub use overrides::{Override, Overrides};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The operation; a root doesn't change the answer.
    pub op: Op,
    /// Bytes of the whole message, as in [`crate::ir`].
    pub bytes: u64,
    /// Bytes of one element; 0 counts as 1.
    pub element_bytes: u32,
    /// Bytes of one slot of a channel.
    pub slot_bytes: u64,
    /// Whether the buffers of all ranks are windows that all peers have mapped.
    pub windows: bool,
    /// Whether the result must be the left fold in rank order.
    pub deterministic: bool,
}

/// A plan that was considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: Algorithm,
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

    /// What the choice goes by: the least wins.
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
        /// The algorithm.
        algorithm: Algorithm,
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
            rule.algorithm == candidate.algorithm
                && rule
                    .windowed
                    .is_none_or(|windowed| windowed == candidate.windowed)
        })
    };
    let best = (candidates.iter().enumerate())
        .filter(|(_, candidate)| asked(candidate) && candidate.why_not.is_none())
        .min_by_key(|(index, candidate)| (candidate.rank(), *index));
    if let Some((winner, _)) = best {
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
                let windowed = rule.windowed.unwrap_or(false);
                match rule.algorithm.supports(op, fabric.ranks(), windowed) {
                    Err(error) => error.to_string(),
                    Ok(()) => "it is not among the candidates".into(),
                }
            } else {
                why
            },
        },
    })
}

/// Every plan for the operation, with what it would cost and whether it may run.
fn candidates(request: &Request, fabric: &Fabric, put_bytes: Option<u64>) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for algorithm in Algorithm::ALL {
        for windowed in [false, true] {
            let supported = algorithm.supports(request.op, fabric.ranks(), windowed);
            if supported.is_ok() {
                candidates.push(candidate(algorithm, windowed, request, fabric, put_bytes));
            }
        }
    }
    candidates
}

fn candidate(
    algorithm: Algorithm,
    windowed: bool,
    request: &Request,
    fabric: &Fabric,
    put_bytes: Option<u64>,
) -> Candidate {
    let mut candidate = Candidate {
        algorithm,
        windowed,
        pieces: 1,
        put_bytes: request.slot_bytes,
        cost: Cost::default(),
        measured: None,
        behind: false,
        why_not: None,
    };
    let known = take_measured(&mut candidate, request, fabric);
    let message = Message::new(algorithm, windowed, request, fabric);
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
        let why = "the buffers are not windows of every peer";
        candidate.why_not = Some(why.into());
    }
    if request.deterministic && !algorithm.folds_in_rank_order(request.op) {
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
        algorithm: candidate.algorithm.name().to_owned(),
    };
    let largest = measured.largest(op, windowed);
    let point = measured.at(&name, request.bytes, largest);
    candidate.behind = point.is_none();
    candidate.measured = point.map(|point| point.time);
    point.map(|point| point.put_bytes)
}
