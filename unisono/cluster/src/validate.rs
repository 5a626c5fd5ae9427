//! Checks: first the shape of each layer, then the meaning of the whole.

mod algorithms;
mod figures;
mod format;
mod links;
mod meaning;
mod names;
mod places;
mod shape;

pub(crate) use meaning::check as meaning;
pub(crate) use places::Places;
pub(crate) use shape::check as shape;
