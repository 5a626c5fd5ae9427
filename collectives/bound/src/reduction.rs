//! all_reduce: pairs of trees, one into a root and one out of it, packed side by side.
//!
//! Let `o` be what out-trees use of an edge and `i` what in-trees do, `o + i ≤ b`; roots have weights
//! `w` that sum to the rate `W`. The trees exist if and only if every set of vertices that holds a rank
//! is entered by `o`, and left by `i`, at the rate `W` less the weight of its own roots; switches send
//! on as much of each as they get, unless they copy and reduce themselves. That is a linear program
//! with a row for each set, and it is *not* two all_gathers one after the other: the weights are free,
//! and so is the part of an edge that each direction of the trees takes.
//!
//! Most networks are as wide one way as the other. Then it comes down to cutting the ranks into parts,
//! and is solved exactly at any size ([`orient`]). For others, and for switches that reduce, the program
//! over classes of edges is solved exactly where there are few of them ([`program`]), by floating-point
//! numbers where there are some ([`near`]), and by a game of prices where there are many ([`game`]).
//! Whatever the last two propose is proved before it counts ([`proof`]).

mod game;
mod layout;
mod near;
mod orient;
mod program;
mod proof;
mod rough;

use self::layout::Layout;
use crate::collapse::Collapse;
use crate::problem::Problem;
use crate::{Certificate, Limit};

/// The rate, as exactly as it can be had in short time.
pub(crate) fn all_reduce(problem: &Problem, in_network: bool) -> (Limit, Certificate) {
    let in_network = in_network && problem.reduces.contains(&true);
    if problem.is_symmetric() && !in_network {
        return orient::all_reduce(problem);
    }
    let collapse = Collapse::of(problem);
    let layout = Layout::new(problem, &collapse, in_network);
    let found = program::solve(problem, &layout)
        .or_else(|| near::solve(problem, &layout))
        .or_else(|| game::solve(problem, &layout));
    found.unwrap_or_else(|| rough::solve(problem, in_network))
}

#[cfg(test)]
mod tests;
