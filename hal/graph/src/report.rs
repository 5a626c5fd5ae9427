//! What one process knows about its machine: its plugins' devices and links, and the system.
//!
//! A report travels to the other ranks in the bootstrap's payload, as compact bytes. Its types are
//! plain, because a report is only believed once [`merge`](crate::merge) has made a graph of it.

use serde::{Deserialize, Serialize};

use crate::{DeviceClass, DeviceId, LinkType, NodeId, ReportError, system::SystemReport};

/// The first byte of a report; another means another layout.
const LAYOUT: u8 = 2;
/// A report larger than this is refused unread.
const MAX_BYTES: usize = 16 << 20;

/// What the process of one rank found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// The rank that reports.
    pub rank: u32,
    /// The node it runs on.
    pub node: NodeId,
    /// That node's host name.
    pub host: String,
    /// The device that this rank uses, as (plugin, device); none when only looking.
    pub uses: Option<(String, DeviceId)>,
    /// One entry for each plugin that was loaded.
    pub plugins: Vec<PluginReport>,
    /// The machine. One rank of each node is enough; the lowest that has it counts.
    pub system: Option<SystemReport>,
}

impl NodeReport {
    /// As bytes for the other ranks.
    ///
    /// # Errors
    /// If the report is larger than 16 MiB.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ReportError> {
        let bytes =
            postcard::to_extend(self, vec![LAYOUT]).map_err(|e| ReportError(e.to_string()))?;
        if bytes.len() > MAX_BYTES {
            return Err(too_large(bytes.len()));
        }
        Ok(bytes)
    }

    /// From the bytes of another rank.
    ///
    /// # Errors
    /// If the bytes are not one whole report of this layout.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReportError> {
        if bytes.len() > MAX_BYTES {
            return Err(too_large(bytes.len()));
        }
        let (&layout, body) = bytes
            .split_first()
            .ok_or_else(|| ReportError("no bytes".into()))?;
        if layout != LAYOUT {
            return Err(ReportError(format!(
                "layout {layout}, this library knows {LAYOUT}"
            )));
        }
        match postcard::take_from_bytes(body) {
            Ok((report, [])) => Ok(report),
            Ok((_, rest)) => Err(ReportError(format!("{} bytes too many", rest.len()))),
            Err(error) => Err(ReportError(error.to_string())),
        }
    }
}

fn too_large(len: usize) -> ReportError {
    ReportError(format!("{len} bytes, at most {MAX_BYTES} are taken"))
}

/// What one plugin reports in one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginReport {
    /// The plugin.
    pub plugin: String,
    /// Its devices on this node.
    pub devices: Vec<DeviceReport>,
    /// Its links.
    pub links: Vec<LinkReport>,
}

/// A device, as its plugin reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Its identity on its node.
    pub id: DeviceId,
    /// Its class.
    pub class: DeviceClass,
    /// Its model or name.
    pub name: String,
    /// Its PCI address, empty if it has none.
    pub pci: String,
    /// Its NUMA node, if known.
    pub numa: Option<u32>,
    /// Its memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
}

/// A link, as its plugin reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its kind: "shm", "tcp".
    pub kind: String,
    /// How bytes are moved over it.
    pub link_type: LinkType,
    /// Which pairs it joins.
    pub scope: Scope,
    /// The device bytes leave; zero for any of this plugin's (or, of a plugin that has none, for
    /// the device of any rank). Ignored unless it is listed or the scope is [`Scope::Pair`].
    pub from: DeviceId,
    /// The device bytes reach, in the same way.
    pub to: DeviceId,
    /// Bandwidth from `from` to `to` in bytes a second; of a mapped link as `from` writes.
    pub bytes_per_second: u64,
    /// The same as `to` reads, where that is faster; else 0.
    pub read_bytes_per_second: u64,
    /// Latency in nanoseconds.
    pub latency_ns: u64,
    /// Links of one plugin and node with the same number, not 0, share one capacity.
    pub shared: u32,
    /// The rail, 0 if there are none.
    pub rail: u32,
}

/// Which pairs a reported link joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Any two processes of this node.
    Node,
    /// Any two nodes whose ranks both report it; within a node, only ranks that nothing else joins.
    Network,
    /// The two devices named, of this node.
    Pair,
}
