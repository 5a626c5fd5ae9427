//! How a check ends.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The plugin keeps this part of the contract.
    Pass,
    /// It does not, and how.
    Fail(String),
    /// The plugin says that it does not do this, and how it said so.
    Unsupported(String),
}

/// What ends a check early.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The plugin breaks the contract.
    Failed(String),
    /// The plugin says that it does not do this.
    Unsupported(String),
}

/// The result of a check, or of a part of one.
pub type Checked<T = ()> = Result<T, Stop>;

impl Stop {
    /// The plugin breaks the contract.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }

    /// The plugin says that it does not do this.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }

    /// The same, with where it happened before it.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Failed(what) => Self::Failed(format!("{place}: {what}")),
            Self::Unsupported(what) => Self::Unsupported(format!("{place}: {what}")),
        }
    }
}

/// An error that a plugin gives where it was asked for something that it may lack.
impl From<unisono_hal::Error> for Stop {
    fn from(error: unisono_hal::Error) -> Self {
        match error.status {
            unisono_hal::Status::Unsupported => Self::Unsupported(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Checked> for Outcome {
    fn from(checked: Checked) -> Self {
        match checked {
            Ok(()) => Self::Pass,
            Err(Stop::Failed(what)) => Self::Fail(what),
            Err(Stop::Unsupported(what)) => Self::Unsupported(what),
        }
    }
}

impl Outcome {
    /// The worse of two: what a check is whose two processes ended so. A failure may be but what the
    /// other's end led to, so both are told.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fail(what), Self::Fail(other)) => {
                Self::Fail(format!("{what}; the other process: {other}"))
            }
            (Self::Fail(what), Self::Unsupported(other))
            | (Self::Unsupported(other), Self::Fail(what)) => Self::Fail(format!(
                "{what}; one of the processes ended as unsupported: {other}"
            )),
            (Self::Pass, other) => other,
            (ours, _) => ours,
        }
    }
}

/// Fails the check unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::outcome::Stop::failed(format!($($text)+)));
        }
    };
}
pub(crate) use ensure;

/// A call that must be refused: gives the error, after a look at its message.
pub(crate) fn refused<T>(
    what: &str,
    answer: unisono_hal::Result<T>,
    allowed: &[unisono_hal::Status],
) -> Checked<unisono_hal::Error> {
    let Err(error) = answer else {
        return Err(Stop::failed(format!("{what} was not refused")));
    };
    ensure!(
        allowed.is_empty() || allowed.contains(&error.status),
        "{what} was refused as {}, not as {}: {error}",
        error.status,
        allowed
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" or ")
    );
    ensure!(
        !error.message.trim().is_empty(),
        "{what} was refused ({}) without a message",
        error.status
    );
    Ok(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_on_either_side_is_a_failure() {
        let fail = Outcome::Fail("f".into());
        let no = Outcome::Unsupported("u".into());
        assert_eq!(Outcome::Pass.worse(fail.clone()), fail);
        let Outcome::Fail(both) = fail.clone().worse(no.clone()) else {
            panic!("a failure is one, whatever the other process says");
        };
        assert!(both.contains("ended as unsupported"), "{both}");
        assert_eq!(fail.clone().worse(Outcome::Pass), fail);
        assert_eq!(no.clone().worse(Outcome::Pass), no);
        assert_eq!(Outcome::Pass.worse(Outcome::Pass), Outcome::Pass);
    }
}
