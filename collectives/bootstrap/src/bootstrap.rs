//! The way in.

use crate::control::Control;
use crate::directory::Directory;
use crate::error::{BootstrapError, Result};
use crate::identity::Prover;
use crate::options::Options;
use crate::report::Report;

/// The door to a job.
#[derive(Debug)]
pub struct Bootstrap;

/// A rank that met all others.
#[derive(Debug)]
pub struct Joined {
    /// Who and where all ranks are.
    pub table: Directory,
    /// What keeps them in touch. Some thread must call [`Control::turn`] from now on.
    pub control: Control,
    /// This rank's own key.
    pub prover: Prover,
    /// How it went.
    pub report: Report,
}

impl Bootstrap {
    /// Meets all other ranks of the job; returns once this rank has the whole table. Blocks the calling thread, at
    /// most until the deadline of `options.wait`.
    ///
    /// # Errors
    /// If ranks are missing at the deadline, if two claim one rank, or if they disagree about the job's size or
    /// version, every rank that is present gets an error that names them.
    pub fn join(options: Options) -> Result<Joined> {
        options.check()?;
        Err(BootstrapError::Cancelled {
            what: "join (not built yet)".to_owned(),
        })
    }
}
