//! What asking a plugin gave.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What became of a plugin that was asked in a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The plugin's file.
    pub path: PathBuf,
    /// What became of it.
    pub verdict: Verdict,
    /// What the plugin printed, at most 64 KiB; bytes that are not UTF-8 are replaced.
    pub output: String,
    /// How long it took.
    pub elapsed: Duration,
}

/// What became of a plugin that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be used.
    Sound(Box<Summary>),
    /// It is refused, or its start failed.
    Refused {
        /// In which stage.
        stage: Stage,
        /// Why.
        reason: String,
    },
    /// It died by a signal.
    Crashed {
        /// In which stage.
        stage: Stage,
        /// The signal's number.
        signal: i32,
    },
    /// It did not answer in time.
    Hung {
        /// In which stage.
        stage: Stage,
        /// How long it was given.
        limit: Duration,
    },
    /// It ended the process.
    Exited {
        /// In which stage.
        stage: Stage,
        /// With this code.
        code: i32,
    },
    /// The helper could not be started, or answered something else than a helper does.
    NoHelper(String),
}

/// How far a plugin got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The helper starts.
    Start,
    /// The file is checked and loaded, and the query asked.
    Load,
    /// An instance is made, with default parameters.
    Create,
    /// The devices are listed.
    Devices,
    /// The links are listed.
    Links,
    /// The instance ends.
    Destroy,
    /// The process ends.
    End,
}

/// A plugin that can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Who makes it.
    pub vendor: String,
    /// Which build it is.
    pub build_id: String,
    /// The contract's version, (major, minor).
    pub abi: (u16, u16),
    /// The functions that it leaves out, as `table.function`.
    pub unsupported: Vec<String>,
    /// Its parameters' names.
    pub params: Vec<String>,
    /// Why no instance could be made for want of a driver; then there are no devices or links.
    pub no_driver: Option<String>,
    /// What it told when an instance was made, at level info or above: what library of its vendor it opened,
    /// and of what version.
    pub told: Vec<String>,
    /// Its devices.
    pub devices: Vec<DeviceSummary>,
    /// The kinds of its links.
    pub links: Vec<String>,
}

/// A device of a plugin that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// Its PCI address, empty if it has none.
    pub pci: String,
    /// Its memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
}

/// One line from the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    Stage(Stage),
    Refused(String),
    Sound(Box<Summary>),
}

impl Verdict {
    /// Whether the plugin can be used.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        matches!(self, Self::Sound(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sound(summary) => {
                let (name, version, abi) = (&summary.name, &summary.version, summary.abi);
                write!(
                    f,
                    "{name} {version} is sound (contract {}.{})",
                    abi.0, abi.1
                )
            }
            Self::Refused { stage, reason } => write!(f, "failed while {stage}: {reason}"),
            Self::Crashed { stage, signal } => {
                write!(f, "crashed with {} while {stage}", signal_name(*signal))
            }
            Self::Hung { stage, limit } => {
                write!(f, "did not come back within {limit:?} while {stage}")
            }
            Self::Exited { stage, code } => {
                write!(f, "ended the process with code {code} while {stage}")
            }
            Self::NoHelper(what) => write!(f, "could not be asked: {what}"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.verdict)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "the helper started",
            Self::Load => "it was loaded and asked",
            Self::Create => "an instance was made",
            Self::Devices => "its devices were listed",
            Self::Links => "its links were listed",
            Self::Destroy => "the instance ended",
            Self::End => "the process ended",
        })
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV (a bad address)",
        libc::SIGBUS => "SIGBUS (a bad address)",
        libc::SIGABRT => "SIGABRT (it aborted, as a panic does that may not leave it)",
        libc::SIGILL => "SIGILL (a bad instruction)",
        libc::SIGFPE => "SIGFPE (bad arithmetic)",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGSYS => "SIGSYS (a forbidden system call)",
        _ => return format!("signal {signal}"),
    };
    name.into()
}
