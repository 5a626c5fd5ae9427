//! Few classes: the program solved exactly, rows added as they are broken.
//!
//! Values may be taken as equal on edges and ranks that are alike: the mean over all automorphisms is
//! as good. Where the network is as wide one way as the other, `i` may further be taken as `o` turned
//! around, which leaves half of the variables and of the rows.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use unisono_network::Rational;
use unisono_network::flow::Flow;

use crate::collapse::Collapse;
use crate::linear::{Best, Program};
use crate::problem::Problem;
use crate::{Certificate, Limit};

/// The most variables of a program that is solved exactly.
const VARIABLES: usize = 60;
/// How often rows are added before it is given up.
const ROUNDS: usize = 60;

pub(super) fn solve(
    problem: &Problem,
    collapse: &Collapse,
    in_network: bool,
    symmetric: bool,
) -> Option<(Limit, Certificate)> {
    let layout = Layout::new(problem, collapse, symmetric);
    if layout.variables() > VARIABLES {
        return None;
    }
    let mut sets = first_sets(problem, collapse, &layout);
    for _ in 0..ROUNDS {
        let best = layout.program(in_network, &sets).maximise(20_000)?;
        let broken = layout.broken(&best)?;
        if broken.is_empty() {
            let rate = Rational::new(best.value.to_i128()?, best.denominator.to_i128()?);
            let certificate = layout.certificate(&best, &sets);
            return Some((Limit::Exact(problem.bytes(rate)), certificate));
        }
        for set in broken {
            if sets.contains(&set) {
                // It cannot be broken and kept; better no answer than an endless one.
                return None;
            }
            sets.push(set);
        }
    }
    None
}

/// A set of vertices, as a row sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set {
    /// Whether the row is that of trees into the root, which leave the set.
    inward: bool,
    /// How many arcs of each class cross the right way.
    arcs: Vec<u32>,
    /// How many ranks of each class are inside.
    ranks: Vec<u32>,
    /// The ranks inside.
    inside: Vec<u32>,
}

/// Which variable is what: `W`, the weight of a rank of each class, `o` and perhaps `i` of each class
/// of arcs.
struct Layout<'a> {
    problem: &'a Problem,
    collapse: &'a Collapse,
    /// One rank of each class and how many there are.
    ranks: Vec<(u32, u32)>,
    /// For each class of vertices, its place in `ranks`.
    place: Vec<Option<usize>>,
    /// For each class of arcs, that of the arcs back, if `i` is `o` turned around.
    mirror: Option<Vec<usize>>,
}

impl<'a> Layout<'a> {
    fn new(problem: &'a Problem, collapse: &'a Collapse, symmetric: bool) -> Self {
        let ranks = collapse.ranks(problem);
        let mut place = vec![None; collapse.vertices.sizes().len()];
        for (at, (rank, _)) in ranks.iter().enumerate() {
            place[collapse.vertices.of(*rank) as usize] = Some(at);
        }
        let back = |arc: &u32| {
            let arc = problem.arcs[*arc as usize];
            let found = problem
                .arcs
                .binary_search_by_key(&(arc.to, arc.from), |arc| (arc.from, arc.to));
            found.map_or(0, |arc| collapse.arcs.of(arc as u32) as usize)
        };
        let mirror = symmetric.then(|| collapse.arcs.representatives().iter().map(back).collect());
        Self {
            problem,
            collapse,
            ranks,
            place,
            mirror,
        }
    }

    fn classes(&self) -> usize {
        self.collapse.arcs.sizes().len()
    }

    fn variables(&self) -> usize {
        let kinds = if self.mirror.is_some() { 1 } else { 2 };
        1 + self.ranks.len() + kinds * self.classes()
    }

    fn weight(&self, class: usize) -> usize {
        1 + class
    }

    /// The variable of what trees of a direction use of a class of arcs.
    fn used(&self, class: usize, inward: bool) -> usize {
        let first = 1 + self.ranks.len();
        match (&self.mirror, inward) {
            (_, false) => first + class,
            (Some(mirror), true) => first + mirror[class],
            (None, true) => first + self.classes() + class,
        }
    }

    fn directions(&self) -> &'static [bool] {
        if self.mirror.is_some() {
            &[false]
        } else {
            &[false, true]
        }
    }

    fn program(&self, in_network: bool, sets: &[Set]) -> Program {
        let mut program =
            Program::new((0..self.variables()).map(|variable| i128::from(variable == 0)));
        for (class, &arc) in self.collapse.arcs.representatives().iter().enumerate() {
            let capacity = self.problem.arcs[arc as usize].capacity;
            program.row(
                [(self.used(class, false), 1), (self.used(class, true), 1)],
                capacity.into(),
            );
        }
        // Weights sum to no more than the rate; that of all vertices says to no less.
        let weights = self.ranks.iter().enumerate();
        let weights = weights.map(|(class, (_, size))| (self.weight(class), i128::from(*size)));
        program.row(weights.chain([(0, -1)]), 0);
        for set in sets {
            let arcs = set.arcs.iter().enumerate().filter(|(_, count)| **count > 0);
            let arcs =
                arcs.map(|(class, count)| (self.used(class, set.inward), -i128::from(*count)));
            let ranks = set
                .ranks
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0);
            let ranks = ranks.map(|(class, count)| (self.weight(class), -i128::from(*count)));
            program.row(arcs.chain(ranks).chain([(0, 1)]), 0);
        }
        for &switch in self.collapse.vertices.representatives() {
            let passes = switch >= self.problem.ranks
                && !(in_network && self.problem.reduces[switch as usize]);
            if passes {
                self.balance(&mut program, switch);
            }
        }
        program
    }

    /// As much leaves a switch as enters it, by trees of each direction.
    fn balance(&self, program: &mut Program, switch: u32) {
        for &inward in self.directions() {
            for sign in [1, -1] {
                let arcs = (0u32..).zip(&self.problem.arcs).filter_map(|(id, arc)| {
                    let class = self.collapse.arcs.of(id) as usize;
                    let sign = match switch {
                        _ if arc.from == switch => sign,
                        _ if arc.to == switch => -sign,
                        _ => return None,
                    };
                    Some((self.used(class, inward), sign))
                });
                program.row(arcs, 0);
            }
        }
    }

    /// The set of all vertices inside, as a row.
    fn set(&self, inward: bool, inside: impl Fn(u32) -> bool) -> Set {
        let mut set = Set {
            inward,
            arcs: vec![0; self.classes()],
            ranks: vec![0; self.ranks.len()],
            inside: (0..self.problem.ranks)
                .filter(|rank| inside(*rank))
                .collect(),
        };
        for (id, arc) in (0..).zip(&self.problem.arcs) {
            let (from, to) = if inward {
                (arc.to, arc.from)
            } else {
                (arc.from, arc.to)
            };
            if !inside(from) && inside(to) {
                set.arcs[self.collapse.arcs.of(id) as usize] += 1;
            }
        }
        for &rank in &set.inside {
            if let Some(place) = self.place[self.collapse.vertices.of(rank) as usize] {
                set.ranks[place] += 1;
            }
        }
        set
    }

    /// Sets whose rows a solution breaks; `None` if its numbers are too large for a flow.
    fn broken(&self, best: &Best) -> Option<Vec<Set>> {
        let whole: Option<Vec<u128>> = best.variables.iter().map(BigInt::to_u128).collect();
        let whole = whole?;
        let most = whole.iter().max().copied().unwrap_or(0);
        most.checked_mul(self.problem.arcs.len() as u128 + u128::from(self.problem.ranks))?;
        let mut broken = Vec::new();
        for &inward in self.directions() {
            for &(rank, _) in &self.ranks {
                let arcs = (0..).zip(&self.problem.arcs).map(|(id, arc)| {
                    let used = whole[self.used(self.collapse.arcs.of(id) as usize, inward)];
                    if inward {
                        (arc.to, arc.from, used)
                    } else {
                        (arc.from, arc.to, used)
                    }
                });
                let mut flow: Flow<u128> = Flow::new(self.problem.vertices, arcs);
                for other in 0..self.problem.ranks {
                    let place = self.place[self.collapse.vertices.of(other) as usize]?;
                    flow.set_supply(other, whole[self.weight(place)]);
                }
                if flow.send(rank, whole[0]) < whole[0] {
                    let set = self.set(inward, |vertex| flow.reaches(vertex));
                    if !broken.contains(&set) {
                        broken.push(set);
                    }
                }
            }
        }
        Some(broken)
    }

    /// The rows that have a price.
    fn certificate(&self, best: &Best, sets: &[Set]) -> Certificate {
        let prices = &best.prices[self.classes() + 1..];
        let priced = sets
            .iter()
            .zip(prices)
            .filter(|(_, price)| price.sign() != num_bigint::Sign::NoSign);
        let arcs = self.collapse.arcs.sizes().iter().zip(&best.prices);
        let links = arcs.filter(|(_, price)| price.sign() != num_bigint::Sign::NoSign);
        Certificate::Sets {
            sets: priced.map(|(set, _)| set.inside.clone()).collect(),
            links: links.map(|(size, _)| *size as usize).sum(),
        }
    }
}

/// Sets to begin with: all vertices, each rank alone, and all but it.
fn first_sets(problem: &Problem, collapse: &Collapse, layout: &Layout<'_>) -> Vec<Set> {
    let mut sets = Vec::new();
    for &inward in layout.directions() {
        sets.push(layout.set(inward, |_| true));
        for (rank, _) in collapse.ranks(problem) {
            for set in [
                layout.set(inward, |vertex| vertex == rank),
                layout.set(inward, |vertex| vertex != rank),
            ] {
                if !sets.contains(&set) {
                    sets.push(set);
                }
            }
        }
    }
    sets
}
