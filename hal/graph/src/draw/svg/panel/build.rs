//! What stands in which panel, and how large the panel must be.

use std::collections::{BTreeMap, BTreeSet};

use super::chips::{self, Chip};
use super::{PAD, Panel};
use crate::draw::svg::bundle::{Bundle, Kinds, bundles};
use crate::draw::svg::geometry::Area;
use crate::draw::svg::radial::{self, Plan};
use crate::draw::svg::{cards, text};
use crate::draw::words;
use crate::{LinkGraph, Nic, NicClass, NodeId, Numa, VertexId, VertexKind, units};

/// Up to this many links of one look are labelled line by line; more get a caption.
const LABELLED: usize = 3;
/// No panel is narrower.
const LEAST_WIDTH: f64 = 330.0;
/// More network interfaces than this are counted, not named.
const NAMED_NICS: usize = 10;

/// The panels of a graph: one for each node, and one for devices of none.
pub(in crate::draw::svg) fn panels(graph: &LinkGraph, kinds: &Kinds) -> Vec<Panel> {
    let mut panels = Vec::new();
    for node in graph.nodes() {
        let facts = words::machine(graph, node);
        panels.push(panel(graph, kinds, Some(node.id), &node.name, facts));
    }
    let homeless = graph
        .vertices()
        .iter()
        .any(|vertex| vertex.node.is_none() && vertex.device().is_some());
    if homeless || panels.is_empty() {
        let title = match (homeless, panels.is_empty()) {
            (false, _) => "No devices",
            (true, true) => "Planning graph",
            (true, false) => "Other devices",
        };
        panels.push(panel(graph, kinds, None, title, String::new()));
    }
    panels
}

fn panel(
    graph: &LinkGraph,
    kinds: &Kinds,
    node: Option<NodeId>,
    title: &str,
    facts: String,
) -> Panel {
    let members = || graph.vertex_ids().filter(|(_, vertex)| vertex.node == node);
    let devices: Vec<VertexId> = members()
        .filter(|(_, v)| v.device().is_some())
        .map(|(id, _)| id)
        .collect();
    // Switches between nodes stand outside, unless there is nothing but this panel.
    let linked: BTreeSet<VertexId> = graph
        .links()
        .iter()
        .flat_map(|link| [link.from, link.to])
        .collect();
    let hubs: Vec<VertexId> = members()
        .filter(|(id, vertex)| match vertex.kind {
            VertexKind::Device(_) => false,
            VertexKind::Switch(_) => node.is_some() || graph.nodes().is_empty(),
            VertexKind::Nic(_) | VertexKind::Numa(_) => linked.contains(id),
        })
        .map(|(id, _)| id)
        .collect();
    let (regions, region_titles) = regions(graph, node, &devices);
    let plan = Plan {
        rings: rings(graph, &devices, hubs),
        card: cards::size(graph, &devices),
        hub: cards::HUB,
        regions,
    };
    let inside = radial::place(graph, &plan);
    let bundles = bundles(graph, kinds, |id| {
        inside.areas.contains_key(&id).then_some(id)
    });
    let captions = captions(graph, kinds, &bundles);
    let chips = chips(graph, node, region_titles.is_empty(), &linked);
    // Room for the titles of regions: above, and in quarters below as well.
    let body_height = 2.0 * inside.reach.y + if region_titles.is_empty() { 40.0 } else { 72.0 };
    let width = (2.0 * inside.reach.x + 36.0)
        .max(text::width(title, 15.5))
        .max(text::width(&facts, 11.5))
        .max(
            captions
                .iter()
                .map(|(_, text)| text::width(text, 11.5) + 48.0)
                .fold(0.0, f64::max)
                .min(560.0),
        )
        .max(LEAST_WIDTH);
    let mut panel = Panel {
        title: title.to_owned(),
        facts,
        area: Area::from_corner(0.0, 0.0, width + 2.0 * PAD, 0.0),
        boxes: inside.areas,
        body_height,
        regions: region_titles,
        chips_height: chips::height(&chips, width),
        chips,
        pull: match devices.len() {
            0..=4 => 0.12,
            5..=8 => 0.2,
            _ => 0.3,
        },
        bundles,
        captions,
    };
    panel.area.height = panel.head_height() + panel.body_height + panel.foot_height() + 14.0;
    panel
}

/// Devices by NUMA node, if one, two or four of them have devices; otherwise all together.
fn regions(
    graph: &LinkGraph,
    node: Option<NodeId>,
    devices: &[VertexId],
) -> (Vec<Vec<VertexId>>, Vec<Vec<String>>) {
    let numa_of = |id: &VertexId| graph.vertex(*id).device().and_then(|device| device.numa);
    let mut by_numa: BTreeMap<Option<u32>, Vec<VertexId>> = BTreeMap::new();
    for device in devices {
        by_numa.entry(numa_of(device)).or_default().push(*device);
    }
    let known = !by_numa.contains_key(&None) && matches!(by_numa.len(), 1 | 2 | 4);
    if !known {
        return (vec![devices.to_vec()], Vec::new());
    }
    let title = |index: &Option<u32>| {
        let index = index.unwrap_or_default();
        let of_node = graph.vertices().iter().filter(|vertex| vertex.node == node);
        let numa = of_node.filter_map(|vertex| match &vertex.kind {
            VertexKind::Numa(numa) if numa.index == index => Some(numa),
            _ => None,
        });
        numa.map(numa_parts)
            .next()
            .unwrap_or_else(|| vec![format!("NUMA {index}")])
    };
    let titles = by_numa.keys().map(title).collect();
    (by_numa.into_values().collect(), titles)
}

fn numa_parts(numa: &Numa) -> Vec<String> {
    let mut parts = vec![format!("NUMA {}", numa.index)];
    parts.extend(numa.socket.map(|socket| format!("socket {socket}")));
    if numa.cores > 0 {
        parts.push(words::count(numa.cores as usize, "core"));
    }
    if numa.memory_bytes > 0 {
        parts.push(units::size(numa.memory_bytes));
    }
    parts
}

/// What forwards, by how many links it is from a device.
fn rings(graph: &LinkGraph, devices: &[VertexId], hubs: Vec<VertexId>) -> Vec<Vec<VertexId>> {
    let mut left: BTreeSet<VertexId> = hubs.into_iter().collect();
    let mut near: BTreeSet<VertexId> = devices.iter().copied().collect();
    let mut rings = Vec::new();
    while !left.is_empty() {
        let joined = |link: &&crate::Link| near.contains(&link.from) || near.contains(&link.to);
        let reached: BTreeSet<VertexId> = graph
            .links()
            .iter()
            .filter(joined)
            .flat_map(|link| [link.from, link.to])
            .collect();
        let mut ring: Vec<VertexId> = left
            .iter()
            .copied()
            .filter(|hub| reached.contains(hub))
            .collect();
        if ring.is_empty() {
            // Nothing leads there: it stands with the innermost.
            ring = left.iter().copied().collect();
        }
        left.retain(|hub| !ring.contains(hub));
        near.extend(&ring);
        rings.push(ring);
    }
    rings
}

/// Captions for the looks that too many lines have to label each.
fn captions(
    graph: &LinkGraph,
    kinds: &Kinds,
    bundles: &[Bundle<VertexId>],
) -> Vec<(Bundle<VertexId>, String)> {
    let mut looks: BTreeMap<_, Vec<&Bundle<VertexId>>> = BTreeMap::new();
    for bundle in bundles {
        looks
            .entry((&bundle.look, bundle.both))
            .or_default()
            .push(bundle);
    }
    let many = looks.into_values().filter(|alike| alike.len() > LABELLED);
    many.filter_map(|alike| {
        let sample = *alike.first()?;
        let vertices: BTreeSet<VertexId> = alike.iter().flat_map(|bundle| bundle.ends).collect();
        let all = alike.len() == vertices.len() * (vertices.len() - 1) / 2;
        let what = match (all && sample.both, sample.both) {
            (true, _) => "each to each".to_owned(),
            (false, true) => words::count(alike.len(), "pair"),
            (false, false) => words::count(alike.len(), "one-way link"),
        };
        let whole = vertices.len()
            == bundles
                .iter()
                .flat_map(|bundle| bundle.ends)
                .collect::<BTreeSet<_>>()
                .len();
        let whose = if whole {
            String::new()
        } else {
            format!(" · {}", words::vertices(graph, &vertices))
        };
        let kind = kinds.name(sample.look.kind);
        Some((
            sample.clone(),
            format!("{kind} · {} · {what}{whose}", sample.figures()),
        ))
    })
    .collect()
}

/// NUMA nodes, if no region shows them, and network interfaces that no line ends at.
fn chips(
    graph: &LinkGraph,
    node: Option<NodeId>,
    numa: bool,
    linked: &BTreeSet<VertexId>,
) -> Vec<Chip> {
    let (mut numas, mut chips) = (Vec::new(), Vec::new());
    let mut unnamed = 0;
    for (id, vertex) in graph
        .vertex_ids()
        .filter(|(_, vertex)| node.is_some() && vertex.node == node)
    {
        match &vertex.kind {
            VertexKind::Numa(it) if numa => numas.push(Chip {
                text: numa_parts(it).join(" · "),
                faint: false,
            }),
            VertexKind::Nic(nic) if nic.class != NicClass::Loopback && !linked.contains(&id) => {
                if chips.len() < NAMED_NICS {
                    chips.push(nic_chip(&vertex.name, nic));
                } else {
                    unnamed += 1;
                }
            }
            _ => {}
        }
    }
    if unnamed > 0 {
        chips.push(Chip {
            text: format!("and {}", words::count(unnamed, "more interface")),
            faint: true,
        });
    }
    numas.extend(chips);
    numas
}

fn nic_chip(name: &str, nic: &Nic) -> Chip {
    let mut text = name.to_owned();
    if let Some(speed) = nic.bytes_per_second {
        text.push_str(&format!(" · {}", units::bandwidth(speed)));
    }
    if let Some(numa) = nic.numa {
        text.push_str(&format!(" · NUMA {numa}"));
    }
    if !nic.up {
        text.push_str(" · down");
    }
    Chip {
        text,
        faint: nic.class == NicClass::Virtual || !nic.up,
    }
}
