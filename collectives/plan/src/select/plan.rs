//! The name of a plan on one fabric, cheap to copy and to compare.

use crate::algorithms::Algorithm;
use crate::cost::Fabric;
use crate::template::Template;

/// A plan that selection knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// An algorithm over the ranks in their own order.
    Flat(Algorithm),
    /// The template of this number in [`Fabric::templates`].
    Shaped(u32),
}

impl Plan {
    /// What programs are generated from; none if the fabric has no such template.
    #[must_use]
    pub fn template(self, fabric: &Fabric) -> Option<Template> {
        match self {
            Plan::Flat(algorithm) => Some(Template::Flat(algorithm)),
            Plan::Shaped(number) => {
                let shaped = fabric.templates().get(number as usize)?;
                Some(shaped.template().clone())
            }
        }
    }

    /// Every plan on a fabric, in the order that breaks ties.
    pub(super) fn all(fabric: &Fabric) -> impl Iterator<Item = (Plan, Template)> + '_ {
        let can_read = fabric.reads().is_some();
        let flat = Algorithm::ALL.into_iter();
        let flat = flat.filter(move |algorithm| can_read || !algorithm.reads_peers());
        let shares = fabric.shares_memory();
        let flat = flat.filter(move |algorithm| shares || !algorithm.shows_puts());
        let flat = flat.map(|algorithm| (Plan::Flat(algorithm), algorithm.into()));
        let shaped = (0..).zip(fabric.templates());
        let shaped =
            shaped.map(|(number, shaped)| (Plan::Shaped(number), shaped.template().clone()));
        flat.chain(shaped)
    }
}
