//! Plans in shapes that a graph gives: which ranks are neighbours, and how much each way carries.
//!
//! A flat [`Algorithm`] knows only how many ranks there are. A *template* adds data: an order of the
//! ranks, cycles, trees, groups or routes, found on the link graph by whoever plans. The data is
//! checked when it is made, so that a template in hand is one from which programs can be generated;
//! what it can't do, [`Template::supports`] says.
//!
//! Templates are immutable and shared: a clone is a reference. All ranks must hold equal ones.

mod digest;
mod error;
mod family;
mod generate;
mod hierarchical;
mod order;
mod rings;
mod routes;
mod trees;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::algorithms::Algorithm;

pub use error::TemplateError;
pub use family::Family;
pub use hierarchical::{Hierarchical, Level};
pub(crate) use hierarchical::{Members, Seen};
pub use order::Order;
pub use rings::{Ring, Rings};
pub use routes::{Route, Routes};
pub use trees::{Tree, Trees};

/// From what a program is generated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Template {
    /// An algorithm over the ranks in their own order.
    Flat(Algorithm),
    /// An algorithm over the ranks in another order. Results land where they belong all the same.
    Ordered {
        /// The algorithm.
        algorithm: Algorithm,
        /// Which rank plays which part.
        order: Arc<Order>,
    },
    /// Several cycles, each with a share of the message.
    Rings(Arc<Rings>),
    /// A packing of spanning trees, each with a share of the message.
    Trees(Arc<Trees>),
    /// Groups of ranks, groups of groups, and an algorithm for each level.
    Hierarchical(Arc<Hierarchical>),
    /// A way, or several with shares, from each rank to each other.
    Routes(Arc<Routes>),
}

impl Template {
    /// [`Algorithm::reads_peers`].
    #[must_use]
    pub fn reads_peers(&self) -> bool {
        matches!(self, Template::Flat(algorithm) if algorithm.reads_peers())
    }

    /// [`Algorithm::shows_puts`].
    #[must_use]
    pub fn shows_puts(&self) -> bool {
        match self {
            Template::Flat(algorithm) | Template::Ordered { algorithm, .. } => {
                algorithm.shows_puts()
            }
            _ => false,
        }
    }

    /// The name in configuration files and tables. That of an algorithm, in whatever order.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Template::Flat(algorithm) | Template::Ordered { algorithm, .. } => algorithm.name(),
            Template::Rings(_) => "rings",
            Template::Trees(_) => "trees",
            Template::Hierarchical(_) => "hierarchical",
            Template::Routes(_) => "routes",
        }
    }

    /// Whether it is an order of which ranks that follow each other are taken as one ([`Order::in_runs`]).
    #[must_use]
    pub fn is_in_runs(&self) -> bool {
        matches!(self, Template::Ordered { order, .. } if order.run() > 1)
    }

    /// The name with what tells templates of one name apart: `ring:ordered`, `binomial:in_runs`, `hierarchical:ring`,
    /// `hierarchical:ring:by_rate`, `trees:unequal`.
    #[must_use]
    pub fn label(&self) -> Cow<'static, str> {
        match self {
            Template::Ordered { algorithm, .. } if self.is_in_runs() => {
                format!("{algorithm}:in_runs").into()
            }
            Template::Ordered { algorithm, .. } => format!("{algorithm}:ordered").into(),
            Template::Hierarchical(levels) => {
                let shares = if levels.is_weighted() { ":by_rate" } else { "" };
                format!("hierarchical:{}{shares}", levels.algorithms()).into()
            }
            Template::Trees(trees) if !trees.roots_are_alike() => "trees:unequal".into(),
            _ => self.name().into(),
        }
    }

    /// The ranks for which the template is made; a flat one is for any number.
    #[must_use]
    pub fn ranks(&self) -> Option<u32> {
        match self {
            Template::Flat(_) => None,
            Template::Ordered { order, .. } => Some(order.len()),
            Template::Rings(rings) => Some(rings.ranks()),
            Template::Trees(trees) => Some(trees.ranks()),
            Template::Hierarchical(levels) => Some(levels.ranks()),
            Template::Routes(routes) => Some(routes.ranks()),
        }
    }
}

impl From<Algorithm> for Template {
    fn from(algorithm: Algorithm) -> Self {
        Template::Flat(algorithm)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
