//! Everything that could be chosen, simulated: what the choice is measured against.
//!
//! [`crate::plan()`] looks at few ways to cut each candidate and leaves out what can't win any more.
//! Here every candidate runs with every number of chunks and every way to share lanes.

use unisono_network::Network;

use crate::PlanError;
use crate::candidate::{Knob, Source};
use crate::plan::{Request, Scored, at_best, bound_of, score, sources};
use crate::trees::Lanes;

/// All candidates in all cuts of at most [`Request::most_final_steps`] steps, the fastest first.
///
/// Left out is only what can't win: a candidate whose fullest link or whose chain of latencies
/// alone takes longer than another candidate does, and cuts of more steps than that.
///
/// # Errors
/// If there is no bound: some rank can't reach another.
pub fn sweep(network: &Network, request: &Request) -> Result<Vec<Scored>, PlanError> {
    let bound = bound_of(network, request.op)?;
    let (sources, _) = sources(network, request.op, bound.as_ref());
    let mut starts: Vec<Scored> = (sources.iter())
        .filter(|source| length(network, request, source, 1) <= request.most_final_steps)
        .filter_map(|source| at_best(network, request, source).ok())
        .collect();
    starts.sort_by(|a, b| a.ps.total_cmp(&b.ps));
    let mut least = f64::INFINITY;
    let mut all = Vec::new();
    for start in starts.into_iter() {
        if start.ps >= least {
            break;
        }
        let found = cuts(network, request, &start.source)?;
        let best = found.iter().map(|scored| scored.ps).fold(least, f64::min);
        least = best;
        all.extend(found);
    }
    all.sort_by(|a, b| a.ps.total_cmp(&b.ps));
    Ok(all)
}

/// A candidate of this name in all its cuts, the fastest first; none if there is no such candidate.
///
/// # Errors
/// As for [`sweep`].
pub fn named(network: &Network, request: &Request, name: &str) -> Result<Vec<Scored>, PlanError> {
    let bound = bound_of(network, request.op)?;
    let (sources, _) = sources(network, request.op, bound.as_ref());
    let mut all = Vec::new();
    // The first of a name is the algorithm in the natural order of ranks.
    if let Some(source) = sources.iter().find(|source| source.name() == name) {
        all = cuts(network, request, source)?;
    }
    all.sort_by(|a, b| a.ps.total_cmp(&b.ps));
    Ok(all)
}

/// About how many steps a candidate has in so many chunks.
fn length(network: &Network, request: &Request, source: &Source, chunks: u64) -> u64 {
    let lanes = Lanes::Path;
    source.steps(request.op, network.ranks(), Knob { chunks, lanes })
}

/// A candidate in 1, 2, 4, ... chunks, for each way to share lanes.
fn cuts(network: &Network, request: &Request, source: &Source) -> Result<Vec<Scored>, PlanError> {
    let most = source.most_chunks(request.op, network.ranks(), request.bytes);
    let mut found = Vec::new();
    for lanes in source.lanes() {
        let mut chunks = 1;
        while chunks <= most && length(network, request, source, chunks) <= request.most_final_steps
        {
            match score(network, request, source, Knob { chunks, lanes }) {
                Ok(scored) => found.push(scored),
                // Unequal parts get too small before the others do.
                Err(PlanError::TooFine { .. }) => break,
                Err(error) => return Err(error),
            }
            chunks *= 2;
        }
    }
    Ok(found)
}
