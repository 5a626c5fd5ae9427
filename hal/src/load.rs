//! Finding and loading plugins.

mod error;
mod file;
mod library;
mod loader;
mod manifest;
mod search;
mod trust;

pub use error::{Failure, LoadError, Step};
pub use loader::{Found, Loader};
pub use manifest::Manifest;
pub use search::{Origin, SearchPath};
