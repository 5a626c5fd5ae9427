//! What stands in which panel, and how large the panel must be.

use std::collections::{BTreeMap, BTreeSet};

use super::{PAD, Panel, chips, inside};
use crate::draw::svg::bundle::{Bundle, Kinds, bundles};
use crate::draw::svg::geometry::Area;
use crate::draw::svg::radial::{self, Plan};
use crate::draw::svg::{cards, text};
use crate::draw::words;
use crate::{LinkGraph, NodeId, VertexId, VertexKind};

/// Up to this many links of one look are labelled line by line; more get a caption.
const LABELLED: usize = 3;
/// No panel is narrower.
const LEAST_WIDTH: f64 = 330.0;
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
    let (regions, region_titles) = inside::regions(graph, node, &devices);
    let plan = Plan {
        rings: inside::rings(graph, &devices, hubs),
        card: cards::size(graph, &devices),
        hub: cards::HUB,
        regions,
    };
    let placed = radial::place(graph, &plan);
    let bundles = bundles(graph, kinds, |id| {
        placed.areas.contains_key(&id).then_some(id)
    });
    let captions = captions(graph, kinds, &bundles);
    let chips = chips::of_node(graph, node, region_titles.is_empty(), &linked);
    // Room for the titles of regions: above, and in quarters below as well.
    let body_height = 2.0 * placed.reach.y + if region_titles.is_empty() { 40.0 } else { 72.0 };
    let width = (2.0 * placed.reach.x + 36.0)
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
        boxes: placed.areas,
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
