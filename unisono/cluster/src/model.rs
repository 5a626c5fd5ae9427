//! What a cluster file says, as types. Every key is optional; what is left out has the default that
//! its type documents.

mod algorithm;
mod endpoint;
mod interfaces;
mod limits;
mod link;
mod node;
mod plugin;
mod security;
mod used;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use algorithm::glob;
pub use algorithm::{AlgorithmRule, AlgorithmUse, Collective, RankRange};
pub use endpoint::{LinkEnd, LinkEndError};
pub use interfaces::{InterfacePattern, InterfacePatternError, Interfaces};
pub use limits::{Log, LogLevel, Memory, Progress, Timeouts};
pub use link::{Link, Transport};
pub use node::{Device, Node};
pub use plugin::{Plugin, Scalar};
pub use security::{Secret, Security, SecurityMode};
pub use used::{UsedDevice, UsedDeviceError};

/// A cluster: everything that the library cannot find out by itself, or that its user knows better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Cluster {
    /// The cluster's name, for people who read the file.
    pub name: Option<String>,
    /// How the ranks of a job recognise each other.
    pub security: Security,
    /// Plugins to load, in this order, and their parameters. Empty: those found in the search path. A
    /// machine without the driver of one does without it.
    pub plugins: Vec<Plugin>,
    /// Folders in which plugins are looked for before the user's and the system's. Relative ones are
    /// relative to the cluster file.
    pub plugin_path: Vec<PathBuf>,
    /// The devices of a machine's ranks, the first rank's first: `[cuda:0, cuda:1, host:0]`. A rank that has
    /// none here uses the first plugin that has devices: of these, the one of its number on the machine.
    /// `unisono run` starts as many ranks as there are.
    pub ranks: Vec<UsedDevice>,
    /// The machines, where something has to be said about them.
    pub nodes: Vec<Node>,
    /// Switches between nodes, by name, at which `links` may begin and end.
    pub switches: Vec<String>,
    /// Links that no plugin can see or that one gets wrong.
    pub links: Vec<Link>,
    /// Network interfaces that may be used, on every node that does not say otherwise.
    pub interfaces: Interfaces,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// What a communicator may hold.
    pub memory: Memory,
    /// Which algorithm to use for which calls; the first rule that matches a call decides. Calls that
    /// none matches use what the cost model finds best.
    pub algorithms: Vec<AlgorithmRule>,
    /// What `unisono tune` measured on this cluster, and where it writes it. Without it, the user's
    /// `unisono/calibration.json` beside the user's other settings, if there is one; `none` for
    /// predictions alone.
    pub calibration: Option<PathBuf>,
    /// How waits are waited.
    pub progress: Progress,
    /// What is logged.
    pub log: Log,
}

impl Cluster {
    /// What is said about the machine of this host name, with or without its domain.
    pub fn node(&self, host: &str) -> Option<&Node> {
        let short = host.split('.').next().unwrap_or_default();
        let named = |name: &str| self.nodes.iter().find(|node| node.name == name);
        named(host).or_else(|| named(short))
    }

    /// The devices of the ranks on the machine of this host name, the first rank's first.
    pub fn ranks_on(&self, host: &str) -> &[UsedDevice] {
        let own = self.node(host).map(|node| node.ranks.as_slice());
        own.filter(|ranks| !ranks.is_empty()).unwrap_or(&self.ranks)
    }
}
