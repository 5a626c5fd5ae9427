//! The cluster file: one YAML file that says what the library cannot find out by itself.
//!
//! Everything in it is optional; [`Cluster`] and the types below it document each key and its
//! default. [`load`] reads it, layered: defaults, then the file, then `UNISONO_*` variables, then
//! values from code. [`check`] reports all that is wrong with a file, each problem with its line,
//! column and remedy. [`show`] prints what is in effect and where each value comes from. [`schema`]
//! is for editors.
//!
//! ```
//! use unisono_cluster::{Environment, LoadOptions, Overrides, Source, TimeSpan, load};
//!
//! let effective = load(&LoadOptions {
//!     path: None,
//!     env: Environment::from_iter([("UNISONO_TIMEOUTS__OP", "10s")]),
//!     code: Overrides::new().set("memory.slots", 4),
//! })?;
//! assert_eq!(effective.cluster.timeouts.op, TimeSpan::secs(10));
//! assert_eq!(effective.source("memory.slots"), Some(&Source::Code));
//! # Ok::<(), unisono_cluster::LoadError>(())
//! ```
//!
//! # Variables
//! A key's variable is its path in capitals, with two underscores for each dot:
//! `UNISONO_TIMEOUTS__OP=30s`, `UNISONO_MEMORY__SLOT=64KiB`. Lists of texts are separated by commas
//! (`plugin_path` by colons); other lists and maps are written as YAML, whole. Short names for what
//! is set often are in [`VARIABLES`]. A variable that is empty counts as not set.
//!
//! # How it works
//! The `serde-saphyr` parser gives the file as a tree with a place for each value. The shape of each
//! layer (keys, types, units) is checked against the JSON Schema that the types derive, so that an
//! editor and a load agree; only a key without a value, which counts as not given, is refused by the
//! schema in some places. The `config` crate merges the layers and keeps
//! an origin with each value; origins lead back to places. The merged values become a [`Cluster`],
//! whose meaning is checked last. What fails a check is left out of the next, so that one load finds
//! as many problems as it can.

mod find;
mod layers;
mod load;
mod model;
mod paths;
mod problem;
mod schema;
mod show;
mod source;
mod suggest;
mod tree;
mod units;
mod validate;
mod yaml;

pub use layers::{Environment, Overrides, VARIABLES};
pub use load::{Effective, LoadOptions, check, load};
pub use model::*;
pub use problem::{LoadError, Problem, ProblemKind, Warning};
pub use schema::schema;
pub use show::show;
pub use source::Source;
pub use units::{Bytes, Rate, TimeSpan, UnitError};
