//! What a graph joins: devices, network cards, switches and NUMA nodes.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, NodeId};

/// A vertex of one graph, by its place in [`LinkGraph::vertices`](crate::LinkGraph::vertices).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub(crate) u32);

impl VertexId {
    /// Its place.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A machine of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its identity.
    pub id: NodeId,
    /// Its host name, for people; two nodes may bear the same.
    pub name: String,
    /// Main memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
}

/// A vertex: something that links begin and end at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// What people call it: a device's model, an interface's name.
    pub name: String,
    /// The node it is part of; none for a switch between nodes and in planning graphs.
    pub node: Option<NodeId>,
    /// What it is.
    pub kind: VertexKind,
}

impl Vertex {
    /// The device, if it is one.
    pub fn device(&self) -> Option<&Device> {
        match &self.kind {
            VertexKind::Device(device) => Some(device),
            _ => None,
        }
    }

    /// The rank that uses it, if it is a device that a rank uses.
    pub fn rank(&self) -> Option<u32> {
        self.device().and_then(|device| device.rank)
    }

    /// What it is called where a text must name one vertex: `rank 3`, `switch leaf0`.
    pub fn label(&self) -> String {
        match &self.kind {
            VertexKind::Device(Device {
                rank: Some(rank), ..
            }) => format!("rank {rank}"),
            VertexKind::Device(device) => format!("device {} ({})", self.name, device.id.short()),
            VertexKind::Nic(_) => format!("nic {}", self.name),
            VertexKind::Switch(_) => format!("switch {}", self.name),
            VertexKind::Numa(numa) => format!("numa {}", numa.index),
        }
    }
}

/// The kinds of vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VertexKind {
    /// Something that holds buffers and runs streams, as one rank uses it.
    Device(Device),
    /// A network interface.
    Nic(Nic),
    /// Something that forwards.
    Switch(Switch),
    /// A NUMA node: cores and the memory close to them.
    Numa(Numa),
}

/// A device as one rank uses it. A device that several ranks share is one vertex for each of them,
/// because links, buffers and plans are between ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its identity on its node.
    pub id: DeviceId,
    /// The plugin that drives it.
    pub plugin: String,
    /// Its class.
    pub class: DeviceClass,
    /// The rank that uses it, if one does. No two vertices bear the same.
    pub rank: Option<u32>,
    /// Its NUMA node, if known.
    pub numa: Option<u32>,
    /// Its PCI address, if it has one: an attribute, never an identity.
    pub pci: Option<String>,
    /// Its memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
}

/// Classes of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceClass {
    /// Processor cores and main memory.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// A neural processor.
    Npu,
    /// Anything else.
    Other,
}

impl DeviceClass {
    /// Its name in files and drawings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Npu => "npu",
            Self::Other => "other",
        }
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its class.
    pub class: NicClass,
    /// Its speed in bytes a second, if the system knows it.
    pub bytes_per_second: Option<u64>,
    /// Its NUMA node, if known.
    pub numa: Option<u32>,
    /// Whether it was up when it was looked at.
    pub up: bool,
}

/// Classes of network interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NicClass {
    /// Hardware, as far as this machine can tell.
    Physical,
    /// A bridge, a tunnel, one end of a pair: no hardware of its own.
    Virtual,
    /// Reaches this machine only.
    Loopback,
}

impl NicClass {
    /// Its name in files and drawings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Physical => "physical",
            Self::Virtual => "virtual",
            Self::Loopback => "loopback",
        }
    }
}

/// Something that forwards, and holds no buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Whether it can reduce what passes through it.
    pub reduces: bool,
}

/// A NUMA node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numa {
    /// Its number on its machine.
    pub index: u32,
    /// The processor socket it is on, if known.
    pub socket: Option<u32>,
    /// Physical cores.
    pub cores: u32,
    /// Hardware threads.
    pub threads: u32,
    /// Its memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
}
