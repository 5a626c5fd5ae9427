//! What a run found.

use std::fmt::Write;

use serde::Serialize;

use crate::expect::Verdict;
use crate::outcome::Outcome;

/// One check's result.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its group.
    pub group: &'static str,
    /// Its name in the group.
    pub name: &'static str,
    /// What is promised.
    pub promise: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What that means.
    pub verdict: Verdict,
    /// How long it took.
    pub seconds: f64,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The checks, in order.
    pub rows: Vec<Row>,
}

impl Row {
    /// One line of a table; what is wrong stands on a second.
    #[must_use]
    pub fn line(&self) -> String {
        let name = format!("{}/{}", self.group, self.name);
        let mut out = format!(
            "{name:<42} {:>7.2} s  {}",
            self.seconds,
            self.verdict.text()
        );
        let why = match &self.outcome {
            Outcome::Pass => None,
            Outcome::Fail(why) | Outcome::Unsupported(why) => Some(why),
        };
        if let Some(why) = why {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n    {why}");
        }
        if !self.verdict.is_good() {
            let _ = write!(out, "\n    promised: {}", self.promise);
        }
        out
    }
}

impl Report {
    /// Whether the plugin is as it should be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.rows.iter().all(|row| row.verdict.is_good())
    }

    /// How many rows have this verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows
            .iter()
            .filter(|row| row.verdict == verdict)
            .count()
    }

    /// The counts.
    #[must_use]
    pub fn summary(&self) -> String {
        let verdicts = [
            Verdict::Pass,
            Verdict::Unsupported,
            Verdict::ExpectedFailure,
            Verdict::Fail,
            Verdict::UnexpectedlyUnsupported,
            Verdict::UnexpectedPass,
        ];
        let counts = verdicts.map(|v| (self.count(v), v.text()));
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = counts
            .map(|(count, text)| format!("{count} {text}"))
            .collect();
        parts.join(", ")
    }
}
