//! Finding and loading plugins.

mod error;
mod file;
mod found;
mod library;
mod loader;
mod manifest;
mod search;
mod trust;

pub use error::{Failure, LoadError, Step};
pub use found::Found;
pub use loader::Loader;
pub use manifest::Manifest;
pub use search::{Origin, SearchPath};
