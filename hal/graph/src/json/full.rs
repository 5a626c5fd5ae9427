//! The full format: everything that a graph holds.
//!
//! Vertices stand in four lists, each with a number (`vertex`) that links refer to; the numbers
//! need only differ. What is unknown or empty is left out.

mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FORMAT, VERSION};
use crate::{DeviceClass, DeviceId, LinkGraph, LinkType, NicClass, NodeId, Source, VertexKind};

pub(super) use read::read;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    #[serde(default)]
    nodes: Vec<FileNode>,
    #[serde(default)]
    devices: Vec<FileDevice>,
    #[serde(default)]
    nics: Vec<FileNic>,
    #[serde(default)]
    switches: Vec<FileSwitch>,
    #[serde(default)]
    numa: Vec<FileNuma>,
    /// Capacities by name, in bytes a second.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    capacity_groups: BTreeMap<String, u64>,
    #[serde(default)]
    links: Vec<FileLink>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    id: NodeId,
    name: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    memory_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDevice {
    vertex: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    plugin: String,
    id: DeviceId,
    class: DeviceClass,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numa: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pci: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    memory_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNic {
    vertex: u32,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    class: NicClass,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numa: Option<u32>,
    up: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSwitch {
    vertex: u32,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    #[serde(default)]
    reduces: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNuma {
    vertex: u32,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    socket: Option<u32>,
    cores: u32,
    threads: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    memory_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLink {
    from: u32,
    to: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    plugin: String,
    kind: String,
    #[serde(rename = "type")]
    link_type: LinkType,
    bytes_per_second: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written_bytes_per_second: Option<u64>,
    #[serde(default)]
    latency_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero_rail")]
    rail: u32,
    #[serde(default = "given", skip_serializing_if = "is_given")]
    source: Source,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_zero_rail(value: &u32) -> bool {
    *value == 0
}

fn given() -> Source {
    Source::Given
}

fn is_given(source: &Source) -> bool {
    *source == Source::Given
}

pub(super) fn write(graph: &LinkGraph) -> String {
    let mut file = File {
        format: FORMAT.to_owned(),
        version: VERSION,
        nodes: (graph.nodes().iter())
            .map(|node| FileNode {
                id: node.id,
                name: node.name.clone(),
                memory_bytes: node.memory_bytes,
            })
            .collect(),
        devices: Vec::new(),
        nics: Vec::new(),
        switches: Vec::new(),
        numa: Vec::new(),
        capacity_groups: (graph.capacity_groups().iter())
            .map(|group| (group.name.clone(), group.bytes_per_second))
            .collect(),
        links: Vec::with_capacity(graph.links().len()),
    };
    for (id, vertex) in graph.vertex_ids() {
        let (id, name, node) = (id.0, vertex.name.clone(), vertex.node);
        match &vertex.kind {
            VertexKind::Device(device) => file.devices.push(FileDevice {
                vertex: id,
                rank: device.rank,
                name,
                node,
                plugin: device.plugin.clone(),
                id: device.id,
                class: device.class,
                numa: device.numa,
                pci: device.pci.clone(),
                memory_bytes: device.memory_bytes,
            }),
            VertexKind::Nic(nic) => file.nics.push(FileNic {
                vertex: id,
                name,
                node,
                class: nic.class,
                bytes_per_second: nic.bytes_per_second,
                numa: nic.numa,
                up: nic.up,
            }),
            VertexKind::Switch(switch) => {
                file.switches.push(FileSwitch {
                    vertex: id,
                    name,
                    node,
                    reduces: switch.reduces,
                });
            }
            VertexKind::Numa(numa) => file.numa.push(FileNuma {
                vertex: id,
                name,
                node,
                index: numa.index,
                socket: numa.socket,
                cores: numa.cores,
                threads: numa.threads,
                memory_bytes: numa.memory_bytes,
            }),
        }
    }
    for link in graph.links() {
        file.links.push(FileLink {
            from: link.from.0,
            to: link.to.0,
            plugin: link.plugin.clone(),
            kind: link.kind.clone(),
            link_type: link.link_type,
            bytes_per_second: link.bytes_per_second,
            written_bytes_per_second: link.written_bytes_per_second,
            latency_ns: link.latency_ns,
            shared: link
                .shared
                .map(|group| graph.capacity_group(group).name.clone()),
            rail: link.rail,
            source: link.source.clone(),
        });
    }
    // Plain structs of numbers, texts and lists: writing them to memory has no way to fail.
    serde_json::to_string_pretty(&file).unwrap_or_default()
}
