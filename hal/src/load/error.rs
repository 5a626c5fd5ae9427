//! A plugin that could not be found or loaded, and every place that was looked at.

use std::fmt;
use std::path::PathBuf;

use super::Origin;
use crate::Refusal;

/// A plugin could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The plugin that was asked for: a name or a path.
    pub wanted: String,
    /// What went wrong.
    pub failure: Box<Failure>,
    /// Every place that was looked at, in order.
    pub trace: Vec<Step>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No place had it.
    #[error("was not found{}", hint(.near, .there))]
    NotFound {
        /// A plugin with nearly the same name.
        near: Option<String>,
        /// All plugins that there are.
        there: Vec<String>,
    },
    /// It was found and is refused.
    #[error("is refused: {} {refusal}", .path.display())]
    Refused {
        /// Its file.
        path: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// It is linked in and is refused.
    #[error("is refused: it {0}")]
    LinkedRefused(Refusal),
    /// Two plugins claim the name.
    #[error(
        "is claimed by two plugins: {} and {}; remove one, or name the file to use in the \
         cluster file", .first.display(), .second.display()
    )]
    TwoOfOneName {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

/// One place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Why it was looked at.
    pub origin: Origin,
    /// The file or folder.
    pub path: PathBuf,
    /// What was there.
    pub found: String,
}

impl LoadError {
    pub(crate) fn new(wanted: impl Into<String>, failure: Failure, trace: Vec<Step>) -> Self {
        Self {
            wanted: wanted.into(),
            failure: Box::new(failure),
            trace,
        }
    }

    pub(crate) fn linked(refusal: Refusal) -> Self {
        Self::new("(linked in)", Failure::LinkedRefused(refusal), Vec::new())
    }

    /// Why it is refused, if it was found.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.failure {
            Failure::Refused { refusal, .. } | Failure::LinkedRefused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plugin {} {}", self.wanted, self.failure)?;
        if self.trace.is_empty() {
            return Ok(());
        }
        f.write_str("\nlooked at, in this order:")?;
        for step in &self.trace {
            write!(f, "\n  {step}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, origin) = (self.path.display(), self.origin);
        write!(f, "{path} ({origin}): {}", self.found)
    }
}

fn hint(near: &Option<String>, there: &[String]) -> String {
    match (near, there) {
        (Some(near), _) => format!("; did you mean {near}?"),
        (None, []) => "; there are no plugins in any of the places below".into(),
        (None, there) => format!("; there are: {}", there.join(", ")),
    }
}
