//! The link graph through its public door.

mod build;
mod drawings;
mod json;
mod merged;
mod queries;
mod random;
mod reports;
mod samples;
mod system;
