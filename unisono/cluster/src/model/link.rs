//! Links that no plugin can see or that one gets wrong.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LinkEnd;
use crate::units::{Rate, TimeSpan};

/// A change to the link graph.
///
/// With `plugin` the link is added, or replaces what was reported between these ends; it then needs
/// `transport` and `bandwidth`. Without `plugin` the figures of links that were reported are
/// corrected. With `remove: true` they are taken away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Link {
    /// Where it begins: `NODE/DEVICE`, `rank N`, or the name of a switch.
    pub from: LinkEnd,
    /// Where it ends: `NODE/DEVICE`, `rank N`, or the name of a switch.
    pub to: LinkEnd,
    /// Its kind, as plugins name it: `nvlink`, `xgmi`, `hccs`, `shm`, `tcp`, `roce`.
    pub kind: String,
    /// The plugin that drives it, if the link is to be added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// How bytes are moved over it, if it is to be added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// What it carries each way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Rate>,
    /// How long one small message takes (default for an added link: 0 s, not modelled).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<TimeSpan>,
    /// Whether the way back is meant too (default: true).
    #[serde(default = "yes")]
    pub both_ways: bool,
    /// The name of a capacity that all links with this name share, such as one network card's. All
    /// of them must have the same `bandwidth`, and that is what they carry together; where
    /// `both_ways` holds, the ways back carry as much again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
    /// There is no such link, whatever was reported (default: false).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove: bool,
}

/// How bytes are moved over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Transport {
    /// One end maps the other's memory: ordinary copies move the bytes.
    Mapped,
    /// The link itself moves the bytes.
    Posted,
}

fn yes() -> bool {
    true
}
