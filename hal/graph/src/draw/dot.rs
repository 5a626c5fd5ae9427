//! DOT, for Graphviz and other graph tools. Both directions of links that are alike are one edge.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Link, LinkGraph, LinkType, NodeId, Vertex, VertexId, VertexKind, units};

use super::words;

/// The graph in the DOT language.
pub fn dot(graph: &LinkGraph) -> String {
    let mut out = String::from("digraph link_graph {\n");
    let title = format!(
        "Link graph {}: {}",
        words::short_hash(graph),
        words::summary(graph)
    );
    let _ = writeln!(
        out,
        "  graph [label={}, labelloc=t, fontname=\"sans-serif\", nodesep=0.5];",
        quoted(&title)
    );
    out.push_str("  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n");
    out.push_str("  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (place, node) in graph.nodes().iter().enumerate() {
        let machine = words::machine(graph, node);
        let label = if machine.is_empty() {
            node.name.clone()
        } else {
            format!("{}\n{machine}", node.name)
        };
        let _ = writeln!(
            out,
            "  subgraph cluster_{place} {{\n    label={}; style=rounded;",
            quoted(&label)
        );
        vertices(&mut out, graph, Some(node.id), "    ");
        out.push_str("  }\n");
    }
    vertices(&mut out, graph, None, "  ");
    edges(&mut out, graph);
    out.push_str("}\n");
    out
}

fn vertices(out: &mut String, graph: &LinkGraph, node: Option<NodeId>, indent: &str) {
    for (id, vertex) in graph.vertex_ids().filter(|(_, vertex)| vertex.node == node) {
        let label = quoted(&label(vertex));
        let shape = match &vertex.kind {
            VertexKind::Device(_) => "",
            VertexKind::Nic(_) => ", shape=component",
            VertexKind::Switch(_) => ", shape=hexagon",
            VertexKind::Numa(_) => ", shape=box3d, style=dashed",
        };
        let _ = writeln!(out, "{indent}v{} [label={label}{shape}];", id.index());
    }
}

fn label(vertex: &Vertex) -> String {
    match &vertex.kind {
        VertexKind::Device(device) => {
            let head = device
                .rank
                .map(|rank| format!("rank {rank}\n"))
                .unwrap_or_default();
            let plugin = if device.plugin.is_empty() {
                String::new()
            } else {
                format!("\n{}", device.plugin)
            };
            format!("{head}{}{plugin}", vertex.name)
        }
        VertexKind::Nic(nic) => {
            let speed = nic
                .bytes_per_second
                .map(|speed| format!("\n{}", units::bandwidth(speed)));
            format!("{}{}", vertex.name, speed.unwrap_or_default())
        }
        VertexKind::Switch(switch) => {
            format!(
                "{}{}",
                vertex.name,
                if switch.reduces { "\nreduces" } else { "" }
            )
        }
        VertexKind::Numa(numa) => format!(
            "{}\n{}",
            vertex.name,
            words::count(numa.cores as usize, "core")
        ),
    }
}

/// What an edge says; edges that say the same in both directions are one.
type Look<'a> = (&'a str, LinkType, u64, u64, u32, u32);

fn look(link: &Link) -> Look<'_> {
    (
        &link.kind,
        link.link_type,
        link.bytes_per_second,
        link.latency_ns,
        link.rail,
        link.index,
    )
}

fn edges(out: &mut String, graph: &LinkGraph) {
    let mut edges: BTreeMap<(VertexId, VertexId, Look<'_>), (bool, bool)> = BTreeMap::new();
    for link in graph.links() {
        let key = (link.from.min(link.to), link.from.max(link.to), look(link));
        let (there, back) = edges.entry(key).or_default();
        if link.from < link.to {
            *there = true
        } else {
            *back = true
        }
    }
    for ((low, high, (kind, link_type, bytes_per_second, latency_ns, ..)), (there, back)) in edges {
        let (from, to) = if there { (low, high) } else { (high, low) };
        let direction = if there && back { ", dir=both" } else { "" };
        let style = if link_type == LinkType::Posted {
            ", style=dashed"
        } else {
            ""
        };
        let mut label = format!("{kind} {}", units::bandwidth(bytes_per_second));
        if latency_ns > 0 {
            let _ = write!(label, "\n{}", units::latency(latency_ns));
        }
        let (from, to, label) = (from.index(), to.index(), quoted(&label));
        let _ = writeln!(out, "  v{from} -> v{to} [label={label}{direction}{style}];");
    }
}

/// A DOT string: only quotes and backslashes need care, and a line's end is written `\n`.
fn quoted(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}
