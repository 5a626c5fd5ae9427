//! What is wrong, where, and what to do about it.

mod render;

use std::collections::HashSet;
use std::fmt;

pub(crate) use render::SourceText;

use crate::source::Source;

/// Something that keeps a cluster from being used.
///
/// The [`Display`](fmt::Display) form is several lines: what is wrong, where, the line of the file
/// with the place marked, and what to do. It never shows a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// The key, such as `links[2].bandwidth`; empty for the whole. Where items of a list could not
    /// be read, problems found later count without them; `source` is always exact.
    pub path: String,
    /// Where it was given.
    pub source: Source,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    pub(crate) snippet: Option<render::Snippet>,
}

/// Something that can be used but is likely not what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The key, such as `algorithms[1]`; empty for the whole.
    pub path: String,
    /// Where it was given.
    pub source: Source,
    /// What is odd.
    pub message: String,
    /// What to do.
    pub help: String,
    pub(crate) snippet: Option<render::Snippet>,
}

/// Kinds of problems, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The file cannot be read.
    Unreadable,
    /// It is not YAML.
    Syntax,
    /// There is no such key.
    UnknownKey,
    /// A key is missing.
    MissingKey,
    /// A key, a name or a link is given twice.
    Duplicate,
    /// Text where a list is wanted, and the like.
    WrongType,
    /// A number without or with a wrong unit.
    WrongUnit,
    /// A text that means nothing here, or a name that nothing bears.
    UnknownValue,
    /// A figure that is too small or too large.
    OutOfRange,
    /// A link that cannot be.
    ImpossibleLink,
    /// Two things that cannot both hold.
    Contradiction,
    /// A fault of this library: please report it.
    Internal,
}

/// A place that a problem can point at: a source, and how many characters there to mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub source: Source,
    pub length: u32,
}

impl Place {
    pub fn of(source: Source) -> Place {
        Place { source, length: 1 }
    }
}

/// All that was found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub problems: Vec<(Problem, u32)>,
    pub warnings: Vec<(Warning, u32)>,
    /// Maps and lists that something was taken out of, because it was wrong: what they lack now says
    /// nothing.
    pub maimed: HashSet<Source>,
    /// Whether something was taken out of the outermost map of a layer.
    pub root_maimed: bool,
}

impl Findings {
    pub fn problem(
        &mut self,
        kind: ProblemKind,
        path: impl ToString,
        place: &Place,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let problem = Problem {
            kind,
            path: path.to_string(),
            source: place.source.clone(),
            message: message.into(),
            help: help.into(),
            snippet: None,
        };
        self.problems.push((problem, place.length));
    }

    pub fn warning(
        &mut self,
        path: impl ToString,
        place: &Place,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let warning = Warning {
            path: path.to_string(),
            source: place.source.clone(),
            message: message.into(),
            help: help.into(),
            snippet: None,
        };
        self.warnings.push((warning, place.length));
    }

    /// Adds the lines of the file, in the file's order, and gives the warnings, or the problems if
    /// there are any.
    pub fn finish(self, text: &SourceText) -> Result<Vec<Warning>, Vec<Problem>> {
        let mut problems: Vec<Problem> = self
            .problems
            .into_iter()
            .map(|(mut problem, length)| {
                let key_only = problem.kind == ProblemKind::UnknownKey;
                problem.snippet = text.snippet(&problem.source, &problem.path, length, key_only);
                problem
            })
            .collect();
        if problems.is_empty() {
            let attach = |(mut warning, length): (Warning, u32)| {
                warning.snippet = text.snippet(&warning.source, &warning.path, length, false);
                warning
            };
            return Ok(self.warnings.into_iter().map(attach).collect());
        }
        problems.sort_by_key(|problem| match problem.source {
            Source::File { line, column, .. } => (0, line, column),
            _ => (problem.source.precedence(), 0, 0),
        });
        problems.dedup();
        Err(problems)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        render::write(
            f,
            "error",
            &self.source,
            &self.message,
            &self.help,
            self.snippet.as_ref(),
        )
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        render::write(
            f,
            "warning",
            &self.source,
            &self.message,
            &self.help,
            self.snippet.as_ref(),
        )
    }
}

/// Why a cluster could not be loaded: every problem that was found, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadError {
    /// The problems; at least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}
