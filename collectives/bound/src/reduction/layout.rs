//! What a program on trees is about: which variable is what, and what a set of vertices asks of them.
//!
//! Values may be taken as equal on edges and ranks that are alike: the mean over all automorphisms is
//! as good. Where the network is as wide one way as the other, `i` may further be taken as `o` turned
//! around, which leaves half of the variables and of the rows.

use unisono_network::flow::Flow;

use crate::collapse::Collapse;
use crate::linear::Program;
use crate::problem::Problem;

/// A set of vertices, as a row sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// Whether the row is that of trees into the root, which leave the set.
    pub(super) inward: bool,
    /// How many arcs of each class cross the right way, where any do.
    pub(super) arcs: Vec<(u32, u32)>,
    /// How many ranks of each class are inside.
    pub(super) ranks: Vec<u32>,
    /// The ranks inside.
    pub(super) inside: Vec<u32>,
}

/// Which variable is what: `W`, the weight of a rank of each class, `o` and perhaps `i` of each class
/// of arcs.
pub(super) struct Layout<'a> {
    pub(super) problem: &'a Problem,
    pub(super) collapse: &'a Collapse,
    /// One rank of each class and how many there are.
    pub(super) ranks: Vec<(u32, u32)>,
    /// For each class of vertices, its place in `ranks`.
    place: Vec<Option<usize>>,
    /// Whether switches that reduce do.
    in_network: bool,
    /// For each class of arcs, that of the arcs back, if `i` is `o` turned around.
    pub(super) mirror: Option<Vec<usize>>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(problem: &'a Problem, collapse: &'a Collapse, in_network: bool) -> Self {
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
        let mirror = problem
            .is_symmetric()
            .then(|| collapse.arcs.representatives().iter().map(back).collect());
        Self {
            problem,
            collapse,
            ranks,
            place,
            in_network,
            mirror,
        }
    }

    /// The class of a rank, as a place in `ranks`.
    pub(super) fn class_of(&self, rank: u32) -> Option<usize> {
        self.place[self.collapse.vertices.of(rank) as usize]
    }

    pub(super) fn classes(&self) -> usize {
        self.collapse.arcs.sizes().len()
    }

    /// What one arc of a class carries, in units.
    pub(super) fn capacity(&self, class: usize) -> f64 {
        self.problem.arcs[self.collapse.arcs.representatives()[class] as usize].capacity as f64
    }

    pub(super) fn variables(&self) -> usize {
        let kinds = if self.mirror.is_some() { 1 } else { 2 };
        1 + self.ranks.len() + kinds * self.classes()
    }

    pub(super) fn weight(&self, class: usize) -> usize {
        1 + class
    }

    /// The variable of what trees of a direction use of a class of arcs.
    pub(super) fn used(&self, class: usize, inward: bool) -> usize {
        let first = 1 + self.ranks.len();
        match (&self.mirror, inward) {
            (_, false) => first + class,
            (Some(mirror), true) => first + mirror[class],
            (None, true) => first + self.classes() + class,
        }
    }

    pub(super) fn directions(&self) -> &'static [bool] {
        if self.mirror.is_some() {
            &[false]
        } else {
            &[false, true]
        }
    }

    /// The program. Its rows are: one for each class of arcs, one for weights, one for each set, and two
    /// for each balanced switch and direction.
    pub(super) fn program(&self, sets: &[Set]) -> Program {
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
            let arcs = set
                .arcs
                .iter()
                .map(|&(class, count)| (self.used(class as usize, set.inward), -i128::from(count)));
            // As weights sum to the rate, what is needed is the weight outside: of the two ways to say
            // it, the shorter one. That of all vertices is what keeps weights from being less.
            let outside = self
                .ranks
                .iter()
                .zip(&set.ranks)
                .map(|((_, size), count)| size - count);
            let outside: Vec<u32> = outside.collect();
            let few = outside.iter().any(|count| *count > 0)
                && outside.iter().sum::<u32>() < set.ranks.iter().sum::<u32>();
            let (counts, sign) = if few { (&outside, 1) } else { (&set.ranks, -1) };
            let ranks = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            let ranks = ranks.map(|(class, count)| (self.weight(class), sign * i128::from(*count)));
            let rate = (!few).then_some((0, 1));
            program.row(arcs.chain(ranks).chain(rate), 0);
        }
        for switch in self.balanced() {
            for &inward in self.directions() {
                let surplus = self.surplus(switch, inward);
                program.row(surplus.iter().copied(), 0);
                program.row(surplus.iter().map(|(variable, sign)| (*variable, -sign)), 0);
            }
        }
        program
    }

    /// Whether a vertex is a switch that sends on as much as it gets.
    pub(super) fn passes(&self, vertex: u32) -> bool {
        let copies = self.in_network && self.problem.reduces[vertex as usize];
        vertex >= self.problem.ranks && !copies
    }

    /// The switches, one of each class, that send on as much as they get.
    pub(super) fn balanced(&self) -> Vec<u32> {
        let switches = self.collapse.vertices.representatives().iter();
        switches
            .copied()
            .filter(|vertex| self.passes(*vertex))
            .collect()
    }

    /// What leaves a switch less what enters it, by trees of a direction: variables and signs.
    pub(super) fn surplus(&self, switch: u32, inward: bool) -> Vec<(usize, i128)> {
        let arcs = (0u32..).zip(&self.problem.arcs).filter_map(|(id, arc)| {
            let sign = match switch {
                _ if arc.from == switch => 1,
                _ if arc.to == switch => -1,
                _ => return None,
            };
            Some((self.used(self.collapse.arcs.of(id) as usize, inward), sign))
        });
        arcs.collect()
    }

    /// The set of all vertices inside, as a row.
    pub(super) fn set(&self, inward: bool, inside: impl Fn(u32) -> bool) -> Set {
        let mut crossing: Vec<u32> = Vec::new();
        for (id, arc) in (0..).zip(&self.problem.arcs) {
            let (from, to) = if inward {
                (arc.to, arc.from)
            } else {
                (arc.from, arc.to)
            };
            if !inside(from) && inside(to) {
                crossing.push(self.collapse.arcs.of(id));
            }
        }
        crossing.sort_unstable();
        let runs = crossing.chunk_by(|one, other| one == other);
        let mut set = Set {
            inward,
            arcs: runs.map(|run| (run[0], run.len() as u32)).collect(),
            ranks: vec![0; self.ranks.len()],
            inside: (0..self.problem.ranks)
                .filter(|rank| inside(*rank))
                .collect(),
        };
        for &rank in &set.inside {
            if let Some(place) = self.place[self.collapse.vertices.of(rank) as usize] {
                set.ranks[place] += 1;
            }
        }
        set
    }

    /// Sets whose rows a solution breaks; `None` if its numbers are too large for a flow.
    pub(super) fn broken(&self, whole: &[u128]) -> Option<Vec<Set>> {
        let most = whole.iter().max().copied().unwrap_or(0);
        most.checked_mul(self.problem.arcs.len() as u128 + u128::from(self.problem.ranks))?;
        let mut broken = Vec::new();
        for &inward in self.directions() {
            let arcs = (0..).zip(&self.problem.arcs).map(|(id, arc)| {
                let used = whole[self.used(self.collapse.arcs.of(id) as usize, inward)];
                let (from, to) = if inward {
                    (arc.to, arc.from)
                } else {
                    (arc.from, arc.to)
                };
                (from, to, used)
            });
            let mut flow: Flow<u128> = Flow::new(self.problem.vertices, arcs);
            for &(rank, _) in &self.ranks {
                flow.clear();
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

    /// Sets to begin with: all vertices, each rank alone, and all but it.
    pub(super) fn first_sets(&self) -> Vec<Set> {
        let mut sets = Vec::new();
        for &inward in self.directions() {
            sets.push(self.set(inward, |_| true));
            for &(rank, _) in &self.ranks {
                let alone = self.set(inward, |vertex| vertex == rank);
                let others = self.set(inward, |vertex| vertex != rank);
                for set in [alone, others] {
                    if !sets.contains(&set) {
                        sets.push(set);
                    }
                }
            }
        }
        sets
    }
}
