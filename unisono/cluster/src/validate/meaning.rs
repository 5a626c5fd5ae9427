//! Whether what the layers say together can be meant.

use super::{Places, algorithms, figures, links, names};
use crate::model::Cluster;
use crate::problem::{Findings, ProblemKind};

/// What a check of the meaning sees and says.
pub(super) struct Context<'a> {
    pub cluster: &'a Cluster,
    pub places: &'a Places,
    pub found: &'a mut Findings,
}

impl Context<'_> {
    pub fn problem(
        &mut self,
        kind: ProblemKind,
        path: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.found
            .problem(kind, path, &self.places.at(path), message, help);
    }

    pub fn warning(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.found
            .warning(path, &self.places.at(path), message, help);
    }

    /// Whether nothing was taken out of this map or list because it was wrong. What one that is not
    /// whole lacks was told already.
    pub fn is_whole(&self, path: &str) -> bool {
        match self.places.exact(path) {
            Some(place) => !self.found.maimed.contains(&place.source),
            None => !self.found.root_maimed,
        }
    }

    /// Where this was given, for messages about another place.
    pub fn place(&self, path: &str) -> String {
        self.places.at(path).source.to_string()
    }
}

/// Looks at everything once.
pub(crate) fn check(cluster: &Cluster, places: &Places, found: &mut Findings) {
    let mut context = Context {
        cluster,
        places,
        found,
    };
    names::check(&mut context);
    links::check(&mut context);
    algorithms::check(&mut context);
    figures::check(&mut context);
}
