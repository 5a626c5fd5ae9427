//! Why a process could not join.

/// Why a process could not join its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The cluster file, or a variable that sets one of its keys, is wrong.
    #[error(transparent)]
    Cluster(#[from] unisono_cluster::LoadError),
    /// Nobody says which rank this is, or the secret cannot be used.
    #[error(transparent)]
    Bootstrap(#[from] unisono_bootstrap::BootstrapError),
    /// Something that was given cannot be used.
    #[error("{what}: {why}")]
    Setting {
        /// What, and where it was given.
        what: String,
        /// Why not, and what would do.
        why: String,
    },
    /// Joining itself failed.
    #[error(transparent)]
    Join(#[from] unisono_collectives::Error),
}

impl InitError {
    pub(super) fn setting(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Setting {
            what: what.into(),
            why: why.into(),
        }
    }
}
