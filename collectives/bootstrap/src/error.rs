//! What can go wrong while a job comes together: what, where, and what to do about it.

use std::fmt;
use std::io;
use std::time::Duration;

/// The result of this crate's calls.
pub type Result<T, E = BootstrapError> = std::result::Result<T, E>;

/// An error of the bootstrap or of the control channel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// A variable of the environment holds what it must not.
    #[error(
        "environment variable {name}={text:?}: {why}; correct it, or unset it and pass the value to the program"
    )]
    BadVariable {
        /// The variable.
        name: String,
        /// Its text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Neither options nor environment say which rank this is.
    #[error(
        "cannot tell which rank this process is: looked for {tried}; start it with `unisono run`, torchrun, mpirun or \
         srun, or set UNISONO_RANK, UNISONO_WORLD_SIZE and UNISONO_ROOT"
    )]
    NoLauncher {
        /// The variables that were looked for.
        tried: String,
    },
    /// No address of a root is known and not all ranks are on this node.
    #[error(
        "{present} of {size} ranks met on this node and no root is known to reach the others (missing: {}); set \
         UNISONO_ROOT=host:port to an address of rank 0's machine",
        Ranks(missing)
    )]
    NoRoot {
        /// How many ranks met.
        present: u32,
        /// The job's size.
        size: u32,
        /// The ranks that did not come.
        missing: Vec<u32>,
    },
    /// Nothing authenticates this job over a network.
    #[error(
        "no secret for a job that crosses a network ({why}); start from a unique id, or put at least 32 random bytes in \
         a file that only you can read and set UNISONO_SECRET_FILE to it on every node (head -c 32 /dev/urandom > \
         FILE), or name that file in the cluster file (security.secret_file), or use a launcher that keeps a key-value \
         store by PMI or PMIx (mpiexec, mpirun, srun --mpi=pmix), or say `security: none` in the cluster file if every \
         machine that can reach these is trusted"
    )]
    NoSecret {
        /// Why one is needed.
        why: String,
    },
    /// A secret was given and cannot be used.
    #[error("secret from {place}: {why}")]
    BadSecret {
        /// Where it came from.
        place: String,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// The launcher's key-value store does not give the job's secret.
    #[error(
        "the launcher's store ({store}), which was to give the job's secret: {why}; set UNISONO_SECRET_FILE to a file \
         with a secret on every node to do without it"
    )]
    Launcher {
        /// Which store.
        store: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Text or bytes that are no unique id.
    #[error(
        "not a unique id: {why}; pass the 128 bytes (256 hex digits) that UniqueId::create gave, unchanged"
    )]
    BadUniqueId {
        /// What is wrong with it.
        why: String,
    },
    /// An option that cannot be honoured.
    #[error("option {option}: {why}")]
    BadOption {
        /// Which.
        option: &'static str,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// The deadline passed and ranks are missing.
    #[error(
        "{} of {size} ranks did not come within {waited:.1?}: missing {}; see whether they were started, can reach \
         {root}, and have the same secret; raise the deadline if they are only slow", ranks.len(), Ranks(ranks)
    )]
    Missing {
        /// The ranks that did not come, ascending.
        ranks: Vec<u32>,
        /// The job's size.
        size: u32,
        /// How long was waited.
        waited: Duration,
        /// Where they were awaited.
        root: String,
    },
    /// The root, which rank 0 serves, was not reached.
    #[error(
        "rank 0 did not answer at {root} within {waited:.1?} ({last}); missing at least: {}; see that rank 0 runs, \
         that its address is right and reachable from here, and that both have the same secret",
        Ranks(missing)
    )]
    RootUnreachable {
        /// Its address as given.
        root: String,
        /// How long was tried.
        waited: Duration,
        /// What the last attempt met.
        last: String,
        /// The ranks known to be missing: rank 0, and on one node all that did not meet there.
        missing: Vec<u32>,
    },
    /// Two processes claim one rank.
    #[error("rank {rank} came twice: {first} and {second}; give each process its own rank")]
    DuplicateRank {
        /// The rank.
        rank: u32,
        /// The first to come: process, node, address.
        first: String,
        /// The second.
        second: String,
    },
    /// Ranks disagree about the job's size.
    #[error(
        "rank {rank_a} was started for a job of {size_a} ranks and rank {rank_b} for one of {size_b}; start all of \
         them with one size"
    )]
    SizeMismatch {
        /// One rank.
        rank_a: u32,
        /// Its size.
        size_a: u32,
        /// The other.
        rank_b: u32,
        /// Its size.
        size_b: u32,
    },
    /// Ranks run different versions.
    #[error(
        "rank {rank_a} runs {version_a:?} and rank {rank_b} runs {version_b:?}; install one version of the library on \
         every node"
    )]
    VersionMismatch {
        /// One rank.
        rank_a: u32,
        /// What it runs.
        version_a: String,
        /// The other.
        rank_b: u32,
        /// What it runs.
        version_b: String,
    },
    /// The root or this node's leader refused, for a reason that has no variant of its own.
    #[error("the job cannot start: {why}")]
    Refused {
        /// Its words.
        why: String,
    },
    /// None of a rank's addresses works from here.
    #[error(
        "rank {rank} could not be reached by {waited:.1?}: {tried}; name the interfaces that connect the nodes \
         (interfaces in the cluster file), or open the ports between them"
    )]
    Unreachable {
        /// The rank.
        rank: u32,
        /// How long was tried.
        waited: Duration,
        /// What each of its addresses met.
        tried: String,
    },
    /// A rank died.
    #[error("rank {rank} died, as rank {by} saw: {reason}; the others can shrink to the survivors")]
    Died {
        /// The dead rank.
        rank: u32,
        /// Who saw it.
        by: u32,
        /// How.
        reason: String,
    },
    /// A rank left in good order while it was still awaited.
    #[error(
        "rank {rank} has left the job while {what} still awaited it; call collectives in one order on all ranks"
    )]
    Departed {
        /// The rank.
        rank: u32,
        /// What awaited it.
        what: String,
    },
    /// Another rank aborted the communicator.
    #[error("rank {origin} aborted communicator {communicator:#x} with code {code}: {text}")]
    Aborted {
        /// The rank that aborted.
        origin: u32,
        /// The communicator; 0 is all of them.
        communicator: u64,
        /// Its code.
        code: i32,
        /// Its words.
        text: String,
    },
    /// A wait passed its deadline.
    #[error(
        "{what} passed its deadline after {waited:.1?}, still waiting for rank(s) {}",
        Ranks(waiting_for)
    )]
    Deadline {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
        /// The ranks that had not delivered.
        waiting_for: Vec<u32>,
    },
    /// The caller's own abort flag was raised.
    #[error("{what} was ended by the abort flag of this rank")]
    Cancelled {
        /// What was under way.
        what: String,
    },
    /// A call in a process that was forked from a rank.
    #[error(
        "this process was forked from rank {rank} (process {parent}) and is not part of the job; exec, or form a \
         communicator of its own"
    )]
    ForkedProcess {
        /// The rank that forked.
        rank: u32,
        /// Its process.
        parent: u32,
    },
    /// More bytes wait for a rank than may.
    #[error(
        "{queued} bytes already wait for rank {rank}, the limit is {limit}; it does not read, or sends come too fast"
    )]
    QueueFull {
        /// The rank.
        rank: u32,
        /// Bytes that wait.
        queued: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A message larger than the channel carries.
    #[error(
        "a control message of {bytes} bytes exceeds the limit of {limit}; send bulk data by a collective"
    )]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The others took this rank for dead.
    #[error(
        "the other ranks took rank {rank} (this one) for dead, as rank {by} saw: {reason}; end this process"
    )]
    Expelled {
        /// This rank.
        rank: u32,
        /// Who said so.
        by: u32,
        /// Why.
        reason: String,
    },
    /// A rank outside the job.
    #[error("there is no rank {rank} in a job of {size}")]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// The job's size.
        size: u32,
    },
    /// A peer that is authenticated sent what the protocol has no meaning for.
    #[error(
        "rank {rank} sent {what}, which this version cannot read; run one version on every node"
    )]
    Protocol {
        /// The rank, or `u32::MAX` for the root.
        rank: u32,
        /// What it sent.
        what: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, and where.
        what: String,
        /// The system's own error.
        source: io::Error,
    },
}

impl BootstrapError {
    /// Wraps a system error with what was attempted.
    pub(crate) fn io(what: impl Into<String>, source: impl Into<io::Error>) -> BootstrapError {
        BootstrapError::Io {
            what: what.into(),
            source: source.into(),
        }
    }
}

/// Prints a list of ranks with runs shortened: `1, 3-5, 9`.
pub(crate) struct Ranks<'a>(pub &'a [u32]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut first = true;
        while let Some(&start) = rest.first() {
            let expected = u64::from(start)..;
            let run = rest
                .iter()
                .zip(expected)
                .take_while(|&(&have, want)| u64::from(have) == want)
                .count();
            if !first {
                f.write_str(", ")?;
            }
            first = false;
            match run {
                1 => write!(f, "{start}")?,
                2 => write!(f, "{start}, {}", start + 1)?,
                _ => write!(f, "{start}-{}", rest[run - 1])?,
            }
            rest = &rest[run..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Ranks;

    #[test]
    fn runs_of_ranks_are_shortened() {
        assert_eq!(Ranks(&[]).to_string(), "");
        assert_eq!(Ranks(&[4]).to_string(), "4");
        assert_eq!(Ranks(&[0, 1, 3, 4, 5, 9]).to_string(), "0, 1, 3-5, 9");
        assert_eq!(
            Ranks(&[u32::MAX - 1, u32::MAX]).to_string(),
            format!("{}, {}", u32::MAX - 1, u32::MAX)
        );
    }
}
