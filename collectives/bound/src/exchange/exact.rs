//! Few classes: the program solved exactly, paths added as they are missed.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};
use unisono_network::Rational;

use crate::Limit;
use crate::collapse::Collapse;
use crate::linear::{Best, Program};
use crate::paths::Paths;
use crate::problem::{Problem, ratio};

/// The largest program that is solved exactly, in rows.
const ROWS: usize = 48;
/// How often paths are added before it is given up.
const ROUNDS: usize = 200;

/// One way in which a rank of a class reaches all others, and what that uses of each class of arcs.
struct Column {
    source: usize,
    uses: Vec<u64>,
}

pub(super) fn solve(problem: &Problem, collapse: &Collapse) -> Option<(Limit, Vec<u64>)> {
    let capacities = collapse.capacities(problem);
    let sources = collapse.ranks(problem);
    if capacities.len() + sources.len() > ROWS {
        return None;
    }
    let mut paths = Paths::new(problem);
    let mut columns: Vec<Column> = Vec::new();
    // First guesses: fewest hops, and wide before narrow.
    let widest = problem
        .arcs
        .iter()
        .map(|arc| arc.capacity)
        .max()
        .unwrap_or(1);
    let narrow = |class: usize| {
        let arc = collapse.arcs.representatives()[class] as usize;
        1 + (widest / problem.arcs[arc].capacity).min(1 << 20)
    };
    for lengths in [
        vec![1; capacities.len()],
        (0..capacities.len()).map(narrow).collect(),
    ] {
        add(&mut columns, &mut paths, collapse, &sources, &lengths, None);
    }
    for _ in 0..ROUNDS {
        let best = program(&capacities, &sources, &columns).maximise(20_000)?;
        let lengths = lengths(&best, capacities.len(), problem.vertices)?;
        let wanted: Vec<BigInt> = (0..sources.len())
            .map(|source| best.prices[capacities.len() + source].clone())
            .collect();
        if !add(
            &mut columns,
            &mut paths,
            collapse,
            &sources,
            &lengths.whole,
            Some((&wanted, &lengths)),
        ) {
            let per_pair = Rational::new(best.value.to_i128()?, best.denominator.to_i128()?);
            let rate = per_pair * ratio(u128::from(problem.ranks), 1);
            return Some((Limit::Exact(problem.bytes(rate)), lengths.whole));
        }
    }
    None
}

/// The rate `f`, then how much of it goes by each column: what is used of each class of arcs fits,
/// and each rank sends all it should.
fn program(capacities: &[u128], sources: &[(u32, u32)], columns: &[Column]) -> Program {
    let mut program = Program::new((0..=columns.len()).map(|variable| i128::from(variable == 0)));
    for (class, capacity) in capacities.iter().enumerate() {
        let uses = columns.iter().zip(1..).map(|(column, variable)| {
            let times = i128::from(sources[column.source].1);
            (variable, i128::from(column.uses[class]) * times)
        });
        program.row(uses, *capacity);
    }
    for source in 0..sources.len() {
        let own = columns
            .iter()
            .zip(1..)
            .filter(|(column, _)| column.source == source);
        program.row(own.map(|(_, variable)| (variable, -1)).chain([(0, 1)]), 0);
    }
    program
}

/// Prices of arcs, as whole numbers.
struct Lengths {
    whole: Vec<u64>,
    /// What prices were divided by.
    divisor: BigInt,
}

/// `None` if they are too large for sums along paths.
fn lengths(best: &Best, classes: usize, vertices: u32) -> Option<Lengths> {
    let prices = &best.prices[..classes];
    let divisor = prices
        .iter()
        .fold(BigInt::zero(), |divisor, price| divisor.gcd(price));
    let divisor = if divisor.is_zero() { 1.into() } else { divisor };
    let whole: Option<Vec<u64>> = prices
        .iter()
        .map(|price| (price / &divisor).to_u64())
        .collect();
    let whole = whole?;
    let longest = whole.iter().max().copied().unwrap_or(0);
    longest.checked_mul(u64::from(vertices))?;
    Some(Lengths { whole, divisor })
}

/// Adds, for each source, its shortest paths, where they are shorter than what the program counts on.
/// False if none are.
fn add(
    columns: &mut Vec<Column>,
    paths: &mut Paths,
    collapse: &Collapse,
    sources: &[(u32, u32)],
    lengths: &[u64],
    wanted: Option<(&[BigInt], &Lengths)>,
) -> bool {
    let mut added = false;
    for (source, &(rank, times)) in sources.iter().enumerate() {
        let sum = paths.from(rank, |arc| lengths[collapse.arcs.of(arc) as usize]);
        if let Some((wanted, lengths)) = wanted {
            let have = BigInt::from(sum) * times * &lengths.divisor;
            if (&wanted[source] - have).is_negative()
                || wanted[source] == BigInt::from(sum) * times * &lengths.divisor
            {
                continue;
            }
        }
        let mut uses = vec![0; lengths.len()];
        paths.uses(|arc, ranks| uses[collapse.arcs.of(arc) as usize] += u64::from(ranks));
        columns.push(Column { source, uses });
        added = true;
    }
    added
}
