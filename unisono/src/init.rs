//! How a process joins a job: what its launcher says, what the cluster file says, and what the
//! program knows better.

mod calibration;
mod effective;
mod error;
mod links;
mod rules;

use std::collections::BTreeMap;
use std::path::PathBuf;

use unisono_bootstrap::{Given, UniqueId};
use unisono_cluster::{Effective, Environment, LoadOptions, Overrides};
use unisono_collectives::{Communicator, InitOptions, PluginRequest};
use unisono_hal::Plugin;

pub use error::InitError;

/// The plugins that are used where neither the cluster file nor the program names any: the
/// processor of this machine, and TCP between machines.
#[must_use]
pub fn default_plugins() -> Vec<PluginRequest> {
    ["host", "tcp"].map(PluginRequest::named).into()
}

/// How to join a job.
///
/// What the program says here wins over `UNISONO_*` variables, those over the cluster file, and that
/// over the defaults. Who this rank is comes from the launcher unless it is given.
///
/// ```no_run
/// let world = unisono::Init::from_env()
///     .set("timeouts.op", "10s")
///     .without_link("shm")
///     .join()?;
/// # Ok::<(), unisono::InitError>(())
/// ```
///
/// # Variables
/// Besides those of the [cluster file](crate::cluster) and of [launchers](crate::bootstrap::RankInfo):
/// `UNISONO_PLUGINS` (names, separated by commas), `UNISONO_DEVICE` (`PLUGIN:NUMBER`) and
/// `UNISONO_WITHOUT_LINKS` (kinds of links, separated by commas).
#[derive(Clone, Debug, Default)]
pub struct Init {
    variables: BTreeMap<String, String>,
    given: Given,
    unique_id: Option<UniqueId>,
    job: Option<String>,
    name: Option<String>,
    cluster_file: Option<PathBuf>,
    code: Overrides,
    plugins: Vec<PluginRequest>,
    plugin_path: Vec<PathBuf>,
    device: Option<String>,
    without_links: Vec<String>,
    deterministic: bool,
}

impl Init {
    /// As the environment of this process says.
    #[must_use]
    pub fn from_env() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::from_variables(std::env::vars_os().filter_map(text))
    }

    /// As these variables say, and no others.
    #[must_use]
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            ..Self::default()
        }
    }

    /// This rank.
    #[must_use]
    pub fn rank(mut self, rank: u32) -> Self {
        self.given.rank = Some(rank);
        self
    }

    /// Ranks in the job.
    #[must_use]
    pub fn size(mut self, size: u32) -> Self {
        self.given.size = Some(size);
        self
    }

    /// Ranks of the job on this node, if they are known: they then meet a little faster.
    #[must_use]
    pub fn local_size(mut self, ranks: u32) -> Self {
        self.given.local_size = Some(ranks);
        self
    }

    /// `host:port` where the ranks meet, which rank 0 opens. Without it, and if the launcher names
    /// none, all ranks must be on one machine.
    #[must_use]
    pub fn root(mut self, address: impl Into<String>) -> Self {
        self.given.rendezvous = Some(address.into());
        self
    }

    /// The ranks meet where this id says, and it carries the job's secret: for programs that bring
    /// it to every rank by a way of their own, as with NCCL.
    #[must_use]
    pub fn unique_id(mut self, id: UniqueId) -> Self {
        self.unique_id = Some(id);
        self
    }

    /// A name that tells this job from others of this user on this machine, where neither a root
    /// nor a unique id does.
    #[must_use]
    pub fn job(mut self, name: impl Into<String>) -> Self {
        self.job = Some(name.into());
        self
    }

    /// The name of the communicator of all ranks, which is "world" without it. Rules of the cluster
    /// file select by it. The same on all ranks.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The cluster file, instead of the one that `UNISONO_CLUSTER_FILE` names or a search finds.
    #[must_use]
    pub fn cluster_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.cluster_file = Some(path.into());
        self
    }

    /// Gives a key of the cluster file another value: `.set("timeouts.op", "10s")`,
    /// `.set("memory.slots", 4)`. What is wrong with it is found when the rank joins.
    #[must_use]
    pub fn set(mut self, path: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.code = self.code.set(path, value);
        self
    }

    /// Adds a plugin, to be found by name. Once one is added, those of the environment and of the
    /// cluster file are not used, but for their parameters and paths.
    #[must_use]
    pub fn plugin(self, name: impl Into<String>) -> Self {
        self.plugin_request(PluginRequest::named(name))
    }

    /// Adds a plugin with its own path and parameters; see [`Init::plugin`].
    #[must_use]
    pub fn plugin_request(mut self, request: PluginRequest) -> Self {
        self.plugins.push(request);
        self
    }

    /// Adds a plugin that is linked into the program; see [`Init::plugin`].
    #[must_use]
    pub fn linked_plugin(self, plugin: Plugin) -> Self {
        let mut request = PluginRequest::named(plugin.name());
        request.linked = Some(plugin);
        self.plugin_request(request)
    }

    /// A folder in which plugins are looked for before all others.
    #[must_use]
    pub fn plugin_path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.plugin_path.push(folder.into());
        self
    }

    /// The device that this rank uses, as `PLUGIN:NUMBER`: `host:0`, `cuda:3`. Without it, one of
    /// the first plugin that has devices: by this rank's number on its machine, as the launcher gives
    /// it, and from the first again where there are more ranks than devices.
    #[must_use]
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// Does without links of this kind, such as `shm`.
    #[must_use]
    pub fn without_link(mut self, kind: impl Into<String>) -> Self {
        self.without_links.push(kind.into());
        self
    }

    /// Whether the same inputs give the same bits, whatever the links and algorithms.
    #[must_use]
    pub fn deterministic(mut self, on: bool) -> Self {
        self.deterministic = on;
        self
    }

    /// The cluster as it is in effect for this process, and where each value comes from.
    ///
    /// # Errors
    /// [`InitError::Cluster`] with all that is wrong.
    pub fn cluster(&self) -> Result<Effective, InitError> {
        let environment: Environment = (self.variables.iter())
            .filter(|(name, _)| {
                name.starts_with("UNISONO_") || *name == "HOME" || *name == "XDG_CONFIG_HOME"
            })
            .filter(|(name, _)| *name != "UNISONO_PLUGINS" || self.plugin_names().is_none())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let options = LoadOptions {
            path: self.cluster_file.clone(),
            env: environment,
            code: self.code.clone(),
        };
        Ok(unisono_cluster::load(&options)?)
    }

    /// Everything that a communicator is made of, without making one.
    ///
    /// # Errors
    /// If the cluster file or a variable is wrong, if nobody says which rank this is, or if the
    /// secret cannot be read.
    pub fn options(&self) -> Result<InitOptions, InitError> {
        let effective = self.cluster()?;
        for warning in &effective.warnings {
            log::warn!("{warning}");
        }
        effective::options(self, &effective)
    }

    /// Joins the job. Blocks until all ranks have, at most for `timeouts.init`.
    ///
    /// # Errors
    /// As [`Init::options`] and [`Communicator::init`].
    pub fn join(&self) -> Result<Communicator, InitError> {
        Ok(Communicator::init(self.options()?)?)
    }

    /// `UNISONO_PLUGINS` as plain names; written as a YAML list it is the cluster file's key.
    fn plugin_names(&self) -> Option<&str> {
        self.variable("UNISONO_PLUGINS")
            .filter(|text| !text.starts_with('['))
    }

    /// A variable's text; blank counts as not set.
    fn variable(&self, name: &str) -> Option<&str> {
        let text = self.variables.get(name)?.trim();
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests;
