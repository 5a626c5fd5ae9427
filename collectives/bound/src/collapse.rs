//! A problem by classes: one of each class of ranks, one number for each class of arcs.

use unisono_network::{Classes, Symmetry};

use crate::problem::Problem;

/// Classes of what is alike in a problem.
#[derive(Clone, Debug)]
pub(crate) struct Collapse {
    /// Classes of vertices.
    pub(crate) vertices: Classes,
    /// Classes of arcs.
    pub(crate) arcs: Classes,
}

impl Collapse {
    pub(crate) fn of(problem: &Problem) -> Self {
        let colour = |vertex: u32| match (vertex < problem.ranks, problem.reduces[vertex as usize])
        {
            (true, _) => 0,
            (false, reduces) => 1 + u64::from(reduces),
        };
        let colours: Vec<u64> = (0..problem.vertices).map(colour).collect();
        let arcs: Vec<_> = problem
            .arcs
            .iter()
            .map(|arc| (arc.from, arc.to, arc.capacity))
            .collect();
        let symmetry = Symmetry::of_arcs(&colours, &arcs);
        Self {
            vertices: symmetry.vertices().clone(),
            arcs: symmetry.arcs().clone(),
        }
    }

    /// One rank of each class, and how many are like it.
    pub(crate) fn ranks(&self, problem: &Problem) -> Vec<(u32, u32)> {
        let classes = self
            .vertices
            .representatives()
            .iter()
            .zip(self.vertices.sizes());
        let ranks = classes.filter(|(rank, _)| **rank < problem.ranks);
        ranks.map(|(rank, size)| (*rank, *size)).collect()
    }

    /// What all arcs of each class carry together, in units.
    pub(crate) fn capacities(&self, problem: &Problem) -> Vec<u128> {
        let classes = self.arcs.representatives().iter().zip(self.arcs.sizes());
        classes
            .map(|(arc, size)| u128::from(problem.arcs[*arc as usize].capacity) * u128::from(*size))
            .collect()
    }
}
