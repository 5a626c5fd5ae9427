//! What can go wrong, told so that an operator knows which rank, peer, link and call to look at.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::signature::Call;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
///
/// After anything but [`Error::Invalid`] and [`Error::Unsupported`] the communicator is broken: the
/// output of pending calls is undefined and every later call gives the same error. The survivors of
/// a death can go on with [`Communicator::shrink`](crate::Communicator::shrink).
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An argument is wrong. Nothing was sent; the communicator is as it was.
    #[error("{call}: {what}")]
    Invalid {
        /// The call.
        call: &'static str,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The devices, links or plans of this communicator cannot do it. Nothing was sent.
    #[error("{call} is not supported here: {why}")]
    Unsupported {
        /// The call.
        call: &'static str,
        /// Why.
        why: String,
    },
    /// Two ranks made calls that do not match.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A rank of the communicator is dead.
    #[error("rank {rank} died ({reason}){}", during(.call))]
    RankDied {
        /// The rank, in this communicator.
        rank: u32,
        /// How it is known.
        reason: String,
        /// What this rank was doing.
        call: Option<Call>,
    },
    /// A deadline passed.
    #[error(transparent)]
    Timeout(Arc<Timeout>),
    /// Somebody aborted the communicator.
    #[error("aborted by rank {by}: {why}{}", during(.call))]
    Aborted {
        /// The rank that called abort, or that failed first.
        by: u32,
        /// What it said.
        why: String,
        /// What this rank was doing.
        call: Option<Call>,
    },
    /// A plugin failed.
    #[error("{source}{}{}", with_peer(.peer), during(.call))]
    Plugin {
        /// What the plugin said.
        source: Arc<unisono_hal::Error>,
        /// The peer at the other end, for links.
        peer: Option<u32>,
        /// What this rank was doing.
        call: Option<Call>,
    },
    /// A plugin could not be found or loaded.
    #[error(transparent)]
    Load(Arc<unisono_hal::LoadError>),
    /// The ranks could not meet.
    #[error(transparent)]
    Bootstrap(Arc<unisono_bootstrap::BootstrapError>),
    /// The links of the job make no usable graph.
    #[error("the link graph is not usable: {0}")]
    Graph(String),
    /// The call came from a forked child of the process that made the communicator.
    #[error(
        "this process was forked from the one that made the communicator; \
         make a new communicator here, or call before fork"
    )]
    ForkedProcess,
    /// The communicator was finalized.
    #[error("the communicator was finalized")]
    Finalized,
}

impl Error {
    pub(crate) fn invalid(call: &'static str, what: impl Into<String>) -> Self {
        Self::Invalid {
            call,
            what: what.into(),
        }
    }

    /// Whether the communicator can still be used.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(
            self,
            Self::Invalid { .. } | Self::Unsupported { .. } | Self::ForkedProcess
        )
    }
}

impl From<unisono_hal::Error> for Error {
    fn from(source: unisono_hal::Error) -> Self {
        Self::Plugin {
            source: Arc::new(source),
            peer: None,
            call: None,
        }
    }
}

impl From<unisono_hal::LoadError> for Error {
    fn from(source: unisono_hal::LoadError) -> Self {
        Self::Load(Arc::new(source))
    }
}

impl From<unisono_bootstrap::BootstrapError> for Error {
    fn from(source: unisono_bootstrap::BootstrapError) -> Self {
        Self::Bootstrap(Arc::new(source))
    }
}

/// Two ranks made calls that do not match.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "ranks {rank} and {peer} made different calls: rank {rank} called {ours}; rank {peer} called \
     {theirs}. {}",
    self.help()
)]
pub struct Mismatch {
    /// The rank that saw it.
    pub rank: u32,
    /// Its call.
    pub ours: Call,
    /// The other rank.
    pub peer: u32,
    /// Its call.
    pub theirs: Call,
}

impl Mismatch {
    /// What every rank must do.
    fn help(&self) -> &'static str {
        let plan = self.theirs.plan;
        if (Call { plan, ..self.ours }) != self.theirs {
            return "Every rank must make the same calls in the same order";
        }
        "The calls are alike, their plans are not: what lies in a window on one rank must lie in the same window at the \
         same offset on all, all ranks must give the same counts of all parts, and have the same cluster file and settings"
    }
}

/// A deadline passed: who waits for whom.
#[derive(Clone, Debug)]
pub struct Timeout {
    /// How long was waited.
    pub after: Duration,
    /// What each rank that answered was doing.
    pub ranks: Vec<RankStatus>,
    /// Ranks that did not answer at all.
    pub silent: Vec<u32>,
}

/// What a rank was doing when somebody's deadline passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankStatus {
    /// The rank.
    pub rank: u32,
    /// The call it is in, `None` if it has called nothing.
    pub call: Option<Call>,
    /// Collectives it has finished.
    pub finished: u64,
    /// The peer that it waits for and the step of its plan, or no step if what it waits for is an
    /// earlier call of the peer's. It waits for itself while the stream of the user's that the call
    /// is on has not come to it. Of a replay no step is known.
    pub waits_for: Option<(u32, Option<u32>)>,
}

impl fmt::Display for RankStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(call) = &self.call else {
            return write!(
                f,
                "rank {} is in no call (it has finished {})",
                self.rank, self.finished
            );
        };
        if call.recorded {
            // Which of them it is, nobody knows but the graph.
            write!(
                f,
                "rank {} runs a graph, the last call in one was {call}",
                self.rank
            )?;
            return match self.waits_for {
                Some((peer, _)) => write!(f, ", waiting for rank {peer}"),
                None => Ok(()),
            };
        }
        write!(f, "rank {} is in {call}", self.rank)?;
        match self.waits_for {
            Some((peer, _)) if peer == self.rank => {
                f.write_str(", waiting for the stream that it was called on")
            }
            Some((peer, Some(step))) => write!(f, ", waiting for rank {peer} at step {step}"),
            Some((peer, None)) => write!(f, ", waiting for an earlier call of rank {peer}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the deadline of {:?} passed", self.after)?;
        let missing: Vec<_> = self
            .ranks
            .iter()
            .filter(|r| r.call.is_none())
            .map(|r| r.rank.to_string())
            .collect();
        if !missing.is_empty() {
            write!(f, "; missing ranks: {}", missing.join(", "))?;
        }
        if !self.silent.is_empty() {
            let silent: Vec<_> = self.silent.iter().map(u32::to_string).collect();
            write!(f, "; no answer from ranks: {}", silent.join(", "))?;
        }
        for rank in &self.ranks {
            write!(f, "; {rank}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Timeout {}

fn during(call: &Option<Call>) -> String {
    call.as_ref()
        .map(|call| format!(", in {call}"))
        .unwrap_or_default()
}

fn with_peer(peer: &Option<u32>) -> String {
    peer.map(|peer| format!(" (link to rank {peer})"))
        .unwrap_or_default()
}
