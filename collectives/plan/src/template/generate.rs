//! Programs from templates.

mod flow;
mod hierarchical;
mod ordered;
mod rings;
mod routes;
mod trees;
mod weave;
mod woven;

use std::sync::Arc;

use crate::algorithms::{self, Algorithm, Layout, Shape, Unsupported, alone, check_ranks};
use crate::builder::Builder;
use crate::ir::{Op, Program};

use super::Template;
use woven::Woven;

impl Template {
    /// Whether there is a program for this operation, at this number of ranks.
    ///
    /// # Errors
    /// If not: why. Only flat algorithms can use windows, see [`crate::Algorithm::supports`].
    pub fn supports(&self, op: Op, ranks: u32, windowed: bool) -> Result<(), Unsupported> {
        let no = |reason| {
            Err(Unsupported::NoPlan {
                algorithm: self.name(),
                op: op.name(),
                windowed,
                reason,
            })
        };
        if self.ranks().is_some_and(|made_for| made_for != ranks) {
            return no("it is made for another number of ranks");
        }
        let fits = match self {
            Template::Flat(algorithm) => return algorithm.supports(op, ranks, windowed),
            Template::Ordered { algorithm, .. } => {
                algorithm.supports(op, ranks, windowed)?;
                let is_tree_of_runs =
                    *algorithm == Algorithm::Binomial && matches!(op, Op::Reduce { .. });
                match op.is_collective() {
                    _ if self.is_in_runs() && !is_tree_of_runs => {
                        Err("only a binomial reduce takes the ranks of a run as one")
                    }
                    true => Ok(()),
                    false => Err("a send or receive has no order"),
                }
            }
            _ if windowed => Err("it has no plan over windows"),
            Template::Rings(rings) => rings::supports(rings, op),
            Template::Hierarchical(levels) => hierarchical::supports(levels, op),
            Template::Trees(trees) => trees::supports(trees, op),
            Template::Routes(routes) => routes::supports(routes, op),
        };
        fits.or_else(no)
    }

    /// What the programs of all ranks have in common, over slots and over windows alike.
    ///
    /// # Errors
    /// If there are none of either kind.
    pub fn layout(&self, op: Op, ranks: u32) -> Result<Layout, Unsupported> {
        let over_slots = self.supports(op, ranks, false);
        over_slots.or_else(|why| self.supports(op, ranks, true).map_err(|_| why))?;
        Ok(match self {
            Template::Flat(algorithm) | Template::Ordered { algorithm, .. } => {
                Layout::of(*algorithm, op, ranks)
            }
            Template::Rings(rings) => rings::layout(rings, op),
            Template::Hierarchical(levels) => hierarchical::layout(levels),
            Template::Trees(trees) => trees::layout(trees, op),
            Template::Routes(routes) => routes::layout(routes, op),
        })
    }

    /// Generates the program of one rank.
    ///
    /// From trees and routes this is as much work as the programs of all ranks together; if more
    /// than one is wanted, take [`Template::programs`].
    ///
    /// # Errors
    /// As [`Template::supports`]; or there is no such rank, root or peer.
    pub fn generate(&self, shape: &Shape) -> Result<Program, Unsupported> {
        let Shape {
            op,
            ranks,
            windowed,
            ..
        } = *shape;
        self.supports(op, ranks, windowed)?;
        check_ranks(shape)?;
        match self {
            Template::Flat(algorithm) => return algorithms::generate(*algorithm, shape),
            Template::Ordered { algorithm, order } => {
                return ordered::generate(*algorithm, order, shape);
            }
            _ => {}
        }
        self.build(shape, self.woven(op, ranks).as_ref())
    }

    /// Generates a program of what has a layout; `woven` is what [`Template::woven`] gives.
    fn build(&self, shape: &Shape, woven: Option<&Woven>) -> Result<Program, Unsupported> {
        let mut b = Builder::new(shape, self.layout(shape.op, shape.ranks)?);
        match self {
            Template::Trees(trees) => trees::cut(&mut b, trees),
            _ if shape.ranks == 1 => {}
            Template::Rings(rings) => rings::build(&mut b, rings),
            Template::Hierarchical(levels) => hierarchical::build(&mut b, levels),
            Template::Routes(routes) => {
                routes::cut(&mut b, routes);
                routes::keep_own(&mut b);
            }
            Template::Flat(_) | Template::Ordered { .. } => {}
        }
        if shape.ranks == 1 {
            alone(&mut b);
        } else if let Some(woven) = woven {
            woven.build(&mut b);
        }
        Ok(b.finish())
    }

    /// What the programs of all ranks are made from, where that is much work: the moments at which
    /// ranks act on trees.
    fn woven(&self, op: Op, ranks: u32) -> Option<Woven> {
        match self {
            Template::Trees(trees) if ranks > 1 => Some(trees::woven(trees, op)),
            Template::Routes(routes) if ranks > 1 => Some(routes::woven(routes, op)),
            _ => None,
        }
    }

    /// Generates the programs of all ranks that take part. A send is from rank `to - 1`, a receive
    /// at rank `from + 1`, around the communicator.
    ///
    /// # Errors
    /// As [`Template::generate`].
    pub fn programs(
        &self,
        op: Op,
        ranks: u32,
        windowed: bool,
    ) -> Result<Vec<Program>, Unsupported> {
        let around = ranks.max(1);
        let shape = |op: Op, rank: u32| Shape {
            op,
            ranks,
            rank,
            windowed,
            turns: false,
        };
        if let Template::Trees(_) | Template::Routes(_) = self {
            self.supports(op, ranks, windowed)?;
            check_ranks(&shape(op, 0))?;
            let woven = self.woven(op, ranks);
            let build = |rank| self.build(&shape(op, rank), woven.as_ref());
            return (0..ranks).map(build).collect();
        }
        let generate = |op: Op, rank: u32| self.generate(&shape(op, rank));
        let pair = |from: u32, to: u32| {
            let sends = generate(Op::Send { to }, from)?;
            Ok(vec![sends, generate(Op::Recv { from }, to)?])
        };
        match op {
            Op::Send { to } => pair(to.wrapping_add(around - 1) % around, to),
            Op::Recv { from } => pair(from, from.wrapping_add(1) % around),
            _ => (0..around).map(|rank| generate(op, rank)).collect(),
        }
    }

    /// Whether parts of the message may have different sizes; see [`crate::Algorithm::allows_unequal`].
    #[must_use]
    pub fn allows_unequal(&self, op: Op) -> bool {
        match self {
            Template::Flat(algorithm) => algorithm.allows_unequal(op),
            Template::Ordered { algorithm, .. } if op != Op::AllToAll => {
                algorithm.allows_unequal(op)
            }
            _ => op.has_block_per_rank() && op != Op::AllToAll,
        }
    }

    /// Whether each element is the left fold in rank order; see
    /// [`crate::Algorithm::folds_in_rank_order`].
    #[must_use]
    pub fn folds_in_rank_order(&self, op: Op) -> bool {
        match self {
            Template::Flat(algorithm) => algorithm.folds_in_rank_order(op),
            _ => !op.reduces(),
        }
    }
}

/// The names of blocks, each rank's in a row, in a message where each rank has `each`.
fn names_in_order(order: &[u32], each: u32) -> Arc<[u32]> {
    let of = |&rank: &u32| (0..each).map(move |block| rank * each + block);
    order.iter().flat_map(of).collect()
}
