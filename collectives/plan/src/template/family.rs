//! What a rule can ask for: a template by its name, whatever the data in it.

use std::fmt;

use crate::algorithms::Algorithm;

use super::Template;

/// All templates of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// An algorithm, in whatever order of the ranks.
    Algorithm(Algorithm),
    /// Several cycles.
    Rings,
    /// Spanning trees.
    Trees,
    /// Groups within groups.
    Hierarchical,
    /// Ways between pairs.
    Routes,
}

impl Family {
    /// The name in configuration files and tables, as [`Template::name`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Algorithm(algorithm) => algorithm.name(),
            Family::Rings => "rings",
            Family::Trees => "trees",
            Family::Hierarchical => "hierarchical",
            Family::Routes => "routes",
        }
    }
}

impl From<Algorithm> for Family {
    fn from(algorithm: Algorithm) -> Self {
        Family::Algorithm(algorithm)
    }
}

impl From<&Template> for Family {
    fn from(template: &Template) -> Self {
        match template {
            Template::Flat(algorithm) | Template::Ordered { algorithm, .. } => {
                Family::Algorithm(*algorithm)
            }
            Template::Rings(_) => Family::Rings,
            Template::Trees(_) => Family::Trees,
            Template::Hierarchical(_) => Family::Hierarchical,
            Template::Routes(_) => Family::Routes,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
