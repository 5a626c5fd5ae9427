//! Where a value comes from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a value comes from. Later ones win: defaults, file, environment, code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Nobody gave it: it is the documented default.
    Default,
    /// The cluster file.
    File {
        /// The file.
        path: Arc<Path>,
        /// The line, from 1.
        line: u32,
        /// The column in characters, from 1.
        column: u32,
    },
    /// A variable of the environment.
    Env {
        /// Its name.
        variable: String,
    },
    /// The program.
    Code,
}

impl Source {
    /// Which of two sources wins: the one with the higher number.
    pub(crate) fn precedence(&self) -> u8 {
        match self {
            Source::Default => 0,
            Source::File { .. } => 1,
            Source::Env { .. } => 2,
            Source::Code => 3,
        }
    }

    /// The folder that relative paths of this source are relative to; none if they may not be given.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let Source::File { path, .. } = self else {
            return None;
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        std::path::absolute(if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        })
        .ok()
    }
}

impl fmt::Display for Source {
    /// `defaults`, `cluster.yaml:12:5`, `env UNISONO_LOG` or `code`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("defaults"),
            Source::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Source::Env { variable } => write!(f, "env {variable}"),
            Source::Code => f.write_str("code"),
        }
    }
}
