//! all_to_all: the maximum concurrent flow, every rank to every other at one rate.
//!
//! By duality, the rate per pair is the least of `Σ capacity · length / Σ distances` over all lengths
//! of arcs. Lengths may be taken as equal for arcs that are alike: the mean over all automorphisms is
//! as good. So the program has one length for each class of arcs, and one search from each class of
//! ranks says which paths it has overlooked.
//!
//! With few classes the program is solved exactly ([`exact`]), as it is where one class is in everybody's
//! way ([`single`]); with some it is solved by floating-point numbers
//! ([`program`]), with many by evening out flows ([`balance`]); beyond that cuts must do ([`rough`]).
//! What is not exact is an interval, and both of its ends are proved ([`interval`]).

mod balance;
mod exact;

mod interval;
mod program;
mod rough;
mod single;

use crate::collapse::Collapse;
use crate::problem::Problem;
use crate::{Certificate, Limit};

/// The rate, as exactly as it can be had in short time.
pub(crate) fn all_to_all(problem: &Problem) -> (Limit, Certificate) {
    let collapse = Collapse::of(problem);
    let found = exact::solve(problem, &collapse)
        .or_else(|| single::solve(problem, &collapse))
        .or_else(|| program::solve(problem, &collapse))
        .or_else(|| balance::solve(problem, &collapse));
    match found {
        Some((limit, lengths)) => (limit, certificate(problem, &collapse, &lengths)),
        None => rough::solve(problem),
    }
}

/// What the lengths of classes say: the arcs that count.
fn certificate(problem: &Problem, collapse: &Collapse, lengths: &[u64]) -> Certificate {
    let longest = lengths.iter().max().copied().unwrap_or(0);
    // What hardly counts is no part of the reason.
    let counts = |arc: u32| lengths[collapse.arcs.of(arc) as usize] > longest >> 12;
    let arcs = (0..).zip(&problem.arcs).filter(|(arc, _)| counts(*arc));
    let (links, sum) = arcs.fold((0, 0), |(links, sum), (_, arc)| {
        (links + 1, sum + u128::from(arc.capacity))
    });
    Certificate::Links {
        links,
        bytes_per_second: sum * u128::from(problem.unit),
    }
}
