//! A check, and all of them.

use crate::case::Case;
use crate::groups;
use crate::outcome::Checked;

/// One thing that every plugin must do, or say that it does not.
#[derive(Clone, Copy)]
pub struct Check {
    /// What it belongs to: the part of a name before the slash.
    pub group: &'static str,
    /// The part of a name after the slash.
    pub name: &'static str,
    /// What is promised, in one sentence.
    pub promise: &'static str,
    /// Processes that run it: 1 or 2.
    pub processes: u32,
    /// Runs it in each of them.
    pub run: fn(&Case) -> Checked,
}

impl Check {
    /// In one process.
    #[must_use]
    pub const fn one(
        group: &'static str,
        name: &'static str,
        promise: &'static str,
        run: fn(&Case) -> Checked,
    ) -> Self {
        Self {
            group,
            name,
            promise,
            processes: 1,
            run,
        }
    }

    /// In two processes.
    #[must_use]
    pub const fn two(
        group: &'static str,
        name: &'static str,
        promise: &'static str,
        run: fn(&Case) -> Checked,
    ) -> Self {
        Self {
            processes: 2,
            ..Self::one(group, name, promise, run)
        }
    }

    /// `group/name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }
}

/// Every check, in the order in which a plugin is written.
#[must_use]
pub fn all() -> Vec<Check> {
    groups::ALL
        .iter()
        .flat_map(|group| group.iter().copied())
        .collect()
}

/// The check of this full name.
#[must_use]
pub fn find(full_name: &str) -> Option<Check> {
    all()
        .into_iter()
        .find(|check| check.full_name() == full_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_say_what_is_promised() {
        let mut seen = BTreeSet::new();
        for check in all() {
            let name = check.full_name();
            assert!(find(&name).is_some());
            assert!(check.promise.ends_with('.'), "{name}: {}", check.promise);
            assert!(seen.insert(name.clone()), "{name} is there twice");
        }
        assert!(seen.len() > 80);
    }
}
