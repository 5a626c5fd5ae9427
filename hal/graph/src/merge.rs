//! One graph from the reports of all ranks.
//!
//! The result depends on what is reported, not on the order in which reports arrive, so that every
//! rank can merge for itself and get the same hash. Where reports of one node differ, the rule is
//! fixed: of a device, a machine or a host name, the lowest rank's description counts; of a link,
//! the lower bandwidth and the higher latency.

mod found;
mod links;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Builder, Device, DeviceId, DeviceReport, GraphError, LinkGraph, Nic, Node, NodeId, NodeReport,
    Numa, PluginReport, Vertex, VertexId, VertexKind,
};

/// Joins the reports of a job's ranks and freezes the result.
///
/// A device that ranks use is one vertex for each of them; one that no rank uses is one vertex. A
/// link that reaches a whole network is modelled as a switch that its ranks are linked to, so that
/// a graph grows with the number of ranks and not with its square.
///
/// # Errors
/// If two reports are of one rank, a report names a device that it does not list, or the result is
/// no valid graph.
pub fn merge(reports: &[NodeReport]) -> Result<LinkGraph, GraphError> {
    let mut reports: Vec<&NodeReport> = reports.iter().collect();
    reports.sort_by_key(|report| report.rank);
    if let Some(pair) = reports.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
        return Err(GraphError::DuplicateReport { rank: pair[0].rank });
    }
    let mut builder = Builder::new();
    machines(&mut builder, &reports);
    let places = devices(&mut builder, &reports)?;
    links::add(&mut builder, &reports, &places)?;
    builder.build()
}

/// A device vertex of the builder, and the report that speaks for it.
struct Place<'a> {
    vertex: VertexId,
    report: &'a NodeReport,
    plugin: &'a str,
    device: DeviceId,
    ranked: bool,
}

impl Place<'_> {
    /// The plugin's own report on this place's node, if it has one.
    fn plugin_report(&self, plugin: &str) -> Option<&PluginReport> {
        self.report
            .plugins
            .iter()
            .find(|report| report.plugin == plugin)
    }
}

/// Nodes, with their NUMA nodes and network cards.
fn machines(builder: &mut Builder, reports: &[&NodeReport]) {
    let mut seen = BTreeSet::new();
    for first in reports {
        if !seen.insert(first.node) {
            continue;
        }
        let of_node = || reports.iter().filter(|report| report.node == first.node);
        let host = of_node()
            .map(|report| &report.host)
            .find(|host| !host.is_empty());
        let system = of_node().find_map(|report| report.system.as_ref());
        builder.node(Node {
            id: first.node,
            name: host.cloned().unwrap_or_else(|| first.node.short()),
            memory_bytes: system.map_or(0, |system| system.memory_bytes),
        });
        let Some(system) = system else { continue };
        for numa in &system.numa {
            builder.vertex(Vertex {
                name: format!("numa{}", numa.index),
                node: Some(first.node),
                kind: VertexKind::Numa(Numa {
                    index: numa.index,
                    socket: numa.socket,
                    cores: numa.cores,
                    threads: numa.threads,
                    memory_bytes: numa.memory_bytes,
                }),
            });
        }
        for nic in &system.nics {
            builder.vertex(Vertex {
                name: nic.name.clone(),
                node: Some(first.node),
                kind: VertexKind::Nic(Nic {
                    class: nic.class,
                    bytes_per_second: nic.bytes_per_second,
                    numa: nic.numa,
                    up: nic.up,
                }),
            });
        }
    }
}

/// Devices by what they are known by.
type Known<'a> = BTreeMap<(NodeId, &'a str, DeviceId), (&'a DeviceReport, &'a NodeReport)>;

fn devices<'a>(
    builder: &mut Builder,
    reports: &[&'a NodeReport],
) -> Result<Vec<Place<'a>>, GraphError> {
    let mut known: Known<'a> = BTreeMap::new();
    for report in reports {
        for plugin in &report.plugins {
            for device in &plugin.devices {
                known
                    .entry((report.node, &plugin.plugin, device.id))
                    .or_insert((device, report));
            }
        }
    }
    let mut places = Vec::new();
    let mut used = BTreeSet::new();
    for report in reports {
        let Some((plugin, id)) = &report.uses else {
            continue;
        };
        let Some((&key, &(device, _))) = known.get_key_value(&(report.node, plugin.as_str(), *id))
        else {
            return Err(GraphError::UnknownDevice {
                rank: report.rank,
                field: "uses",
                plugin: plugin.clone(),
                device: id.to_string(),
            });
        };
        used.insert(key);
        places.push(place(builder, key, device, report, Some(report.rank)));
    }
    for (&key, &(device, report)) in known.iter().filter(|(key, _)| !used.contains(*key)) {
        places.push(place(builder, key, device, report, None));
    }
    Ok(places)
}

fn place<'a>(
    builder: &mut Builder,
    (node, plugin, id): (NodeId, &'a str, DeviceId),
    device: &DeviceReport,
    report: &'a NodeReport,
    rank: Option<u32>,
) -> Place<'a> {
    let name = if device.name.is_empty() {
        device.class.as_str()
    } else {
        &device.name
    };
    let vertex = builder.vertex(Vertex {
        name: name.to_owned(),
        node: Some(node),
        kind: VertexKind::Device(Device {
            id,
            plugin: plugin.to_owned(),
            class: device.class,
            rank,
            numa: device.numa,
            pci: Some(device.pci.clone()).filter(|pci| !pci.is_empty()),
            memory_bytes: device.memory_bytes,
        }),
    });
    Place {
        vertex,
        report,
        plugin,
        device: id,
        ranked: rank.is_some(),
    }
}
