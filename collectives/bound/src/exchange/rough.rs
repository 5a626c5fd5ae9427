//! Too many flows to keep: what cuts say, and what gathering everything everywhere would reach.

use unisono_network::Rational;

use crate::cuts;
use crate::problem::{Problem, ratio};
use crate::{Certificate, Limit};

/// The rate between the narrowest of some cuts and the all_gather that carries every block to
/// everybody.
pub(super) fn solve(problem: &Problem) -> (Limit, Certificate) {
    let ranks = u128::from(problem.ranks);
    let (gathered, certificate) = cuts::all_gather(problem);
    let gathered = gathered.high().unwrap_or(Rational::from_integer(0));
    let mut best = by_cut(&certificate, ranks).unwrap_or((gathered, certificate));
    for (turned, leaving) in [(problem.clone(), false), (problem.reversed(), true)] {
        for (rank, entering) in (0..problem.ranks).zip(turned.arriving()) {
            let cut = Certificate::Cut {
                ranks: vec![rank],
                bytes_per_second: entering * u128::from(problem.unit),
                leaving,
            };
            if let Some((rate, cut)) = by_cut(&cut, ranks).filter(|(rate, _)| *rate < best.0) {
                best = (rate, cut);
            }
        }
    }
    // A switch that gets more than it may send on, or less, could not keep up with such a gathering.
    let low = if problem.is_balanced() {
        gathered / ratio(ranks - 1, 1)
    } else {
        Rational::from_integer(0)
    };
    (Limit::between(low.min(best.0), best.0), best.1)
}

/// What all ranks get if each pair across a cut has an equal share of it.
fn by_cut(certificate: &Certificate, ranks: u128) -> Option<(Rational, Certificate)> {
    let Certificate::Cut {
        ranks: side,
        bytes_per_second,
        ..
    } = certificate
    else {
        return None;
    };
    let pairs = side.len() as u128 * (ranks - side.len() as u128);
    (pairs > 0).then(|| (ratio(bytes_per_second * ranks, pairs), certificate.clone()))
}
