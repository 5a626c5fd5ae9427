//! all_to_all: the maximum concurrent flow, every rank to every other at one rate.
//!
//! By duality, the rate per pair is the least of `Σ capacity · length / Σ distances` over all lengths
//! of arcs. Lengths may be taken as equal for arcs that are alike: the mean over all automorphisms is
//! as good. So the program has one length for each class of arcs, and one search from each class of
//! ranks says which paths it has overlooked.

mod exact;

use crate::collapse::Collapse;
use crate::problem::Problem;
use crate::{Certificate, Limit};

/// The rate, as exactly as it can be had in short time.
pub(crate) fn all_to_all(problem: &Problem) -> (Limit, Certificate) {
    let collapse = Collapse::of(problem);
    match exact::solve(problem, &collapse) {
        Some(found) => found,
        None => (Limit::Unlimited, Certificate::Nothing),
    }
}
