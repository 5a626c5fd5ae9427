//! Questions that need a search: ways, routes, islands.

mod fan;
mod island;
mod route;
mod way;

pub use island::{Island, Symmetry, islands};
pub use route::Route;
pub use way::Way;
