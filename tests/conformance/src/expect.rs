//! What is expected of one plugin: which groups it may skip, and which checks are known to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::check::all;
use crate::outcome::Outcome;

/// What is expected of a plugin. Without any, nothing may be skipped and nothing may fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Groups, or checks as `group/name`, that the plugin does not support, and why.
    #[serde(default)]
    unsupported: BTreeMap<String, String>,
    /// Checks, as `group/name`, that are known to fail, and why.
    #[serde(default)]
    fails: BTreeMap<String, String>,
}

/// What an outcome means for a plugin of which something is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It passes.
    Pass,
    /// It is unsupported, as listed.
    Unsupported,
    /// It fails, as listed.
    ExpectedFailure,
    /// It fails.
    Fail,
    /// It is unsupported and nobody said that it may be.
    UnexpectedlyUnsupported,
    /// It passes and is listed as unsupported or failing: the list is out of date.
    UnexpectedPass,
}

impl Verdict {
    /// Whether the plugin is as it should be.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Pass | Self::Unsupported | Self::ExpectedFailure)
    }

    /// As a report says it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unsupported => "unsupported",
            Self::ExpectedFailure => "expected failure",
            Self::Fail => "FAIL",
            Self::UnexpectedlyUnsupported => "UNSUPPORTED, not listed",
            Self::UnexpectedPass => "UNEXPECTED PASS",
        }
    }
}

impl Expectations {
    /// Reads a file: two maps, `unsupported` and `fails`, from a name to the reason.
    ///
    /// # Errors
    /// Where and what is wrong with the file, or a name that is no group and no check.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let read: Self =
            serde_saphyr::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        read.check()
            .map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(read)
    }

    /// May skip a group, or one check as `group/name`.
    #[must_use]
    pub fn may_skip(mut self, name: &str, why: &str) -> Self {
        self.unsupported.insert(name.to_owned(), why.to_owned());
        self
    }

    /// A check, as `group/name`, is known to fail.
    #[must_use]
    pub fn fails(mut self, name: &str, why: &str) -> Self {
        self.fails.insert(name.to_owned(), why.to_owned());
        self
    }

    /// Looks for names that are no group and no check.
    ///
    /// # Errors
    /// The first of them.
    pub fn check(&self) -> Result<(), String> {
        let checks = all();
        let names: BTreeSet<_> = checks.iter().map(crate::check::Check::full_name).collect();
        let groups: BTreeSet<_> = checks.iter().map(|check| check.group).collect();
        for name in self.unsupported.keys() {
            if !names.contains(name) && !groups.contains(name.as_str()) {
                return Err(format!(
                    "unsupported: there is no group and no check `{name}`"
                ));
            }
        }
        for name in self.fails.keys() {
            if !names.contains(name) {
                return Err(format!("fails: there is no check `{name}`"));
            }
        }
        Ok(())
    }

    /// This list and another one: what either names. A plugin's list, and what one machine's driver lacks
    /// besides.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.unsupported.extend(other.unsupported);
        self.fails.extend(other.fails);
        self
    }

    /// What an outcome means. A group that is listed stands for each of its checks.
    #[must_use]
    pub fn verdict(&self, group: &str, name: &str, outcome: &Outcome) -> Verdict {
        let full_name = format!("{group}/{name}");
        let fails = self.fails.contains_key(&full_name);
        let listed = |name: &str| self.unsupported.contains_key(name);
        let skips = listed(&full_name) || listed(group);
        match outcome {
            Outcome::Pass if fails || skips => Verdict::UnexpectedPass,
            Outcome::Pass => Verdict::Pass,
            Outcome::Fail(_) if fails => Verdict::ExpectedFailure,
            Outcome::Fail(_) => Verdict::Fail,
            Outcome::Unsupported(_) if skips => Verdict::Unsupported,
            Outcome::Unsupported(_) => Verdict::UnexpectedlyUnsupported,
        }
    }
}

impl Verdict {
    /// What an outcome means where nobody said what to expect: whatever the plugin says it does not
    /// support is skipped.
    #[must_use]
    pub const fn without_a_list(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Pass => Self::Pass,
            Outcome::Fail(_) => Self::Fail,
            Outcome::Unsupported(_) => Self::Unsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Expectations {
        Expectations::default()
            .may_skip("share", "no shared memory")
            .may_skip("event/device_wait", "host waits only")
            .fails("link/large", "bug 7")
    }

    #[test]
    fn unsupported_is_told_from_failing_and_from_passing_after_all() {
        let (pass, fail) = (Outcome::Pass, Outcome::Fail(String::new()));
        let no = Outcome::Unsupported(String::new());
        let expect = some();
        let verdict = |group, name, outcome| expect.verdict(group, name, outcome);
        assert_eq!(verdict("share", "bells", &no), Verdict::Unsupported);
        assert_eq!(verdict("share", "bells", &fail), Verdict::Fail);
        assert_eq!(verdict("share", "bells", &pass), Verdict::UnexpectedPass);
        assert_eq!(
            verdict("event", "device_wait", &pass),
            Verdict::UnexpectedPass
        );
        assert_eq!(verdict("link", "large", &fail), Verdict::ExpectedFailure);
        assert_eq!(verdict("link", "large", &pass), Verdict::UnexpectedPass);
        assert_eq!(
            verdict("link", "large", &no),
            Verdict::UnexpectedlyUnsupported
        );
        assert_eq!(verdict("link", "order", &fail), Verdict::Fail);
    }

    #[test]
    fn two_lists_are_one() {
        let no = Outcome::Unsupported(String::new());
        let besides = Expectations::default().may_skip("device/flush", "an old driver");
        let both = some().and(besides);
        assert_eq!(both.verdict("device", "flush", &no), Verdict::Unsupported);
        assert_eq!(both.verdict("share", "bells", &no), Verdict::Unsupported);
        let fail = Outcome::Fail(String::new());
        assert_eq!(
            both.verdict("link", "large", &fail),
            Verdict::ExpectedFailure
        );
    }

    #[test]
    fn a_file_names_what_there_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("expect.yaml");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            Expectations::read(&path)
        };
        let good = "unsupported:\n  share: no shared memory\n  event/device_wait: host waits only\n\
                    fails:\n  link/large: bug 7\n";
        assert_eq!(read(good), Ok(some()));
        assert!(read("unsupported:\n  shares: x\n").is_err_and(|e| e.contains("shares")));
        assert!(read("fails:\n  link: x\n").is_err_and(|e| e.contains("link")));
        assert!(read("skip: {}\n").is_err());
    }
}
