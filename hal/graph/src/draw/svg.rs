//! SVG, for the eye: machines as panels, devices as cards on an ellipse, links as lines whose width
//! tells the bandwidth (on a logarithmic scale) and whose colour tells the kind.
//!
//! Made for 2 to 16 ranks on 1 to 4 machines, where nothing overlaps; larger graphs come out larger.
//! Positions and widths are the only floating-point numbers of this crate; nothing decides on them.

mod bundle;
mod cards;
mod geometry;
mod labels;
mod legend;
mod lines;
mod outside;
mod paint;
mod panel;
mod radial;
mod style;
mod text;

use std::collections::BTreeMap;

use super::words;
use crate::{LinkGraph, VertexId, VertexKind};
use bundle::{Kinds, bundles};
use geometry::Area;
use labels::Labels;
use lines::Widths;
use outside::Site;
use paint::Paint;
use panel::Panel;

/// The margin around everything.
const MARGIN: f64 = 28.0;
/// The height of the title.
const HEAD: f64 = 74.0;

/// The graph as an SVG document, for light and dark screens.
pub fn svg(graph: &LinkGraph) -> String {
    let kinds = Kinds::of(graph);
    let widths = Widths::of(graph);
    let mut panels = panel::panels(graph, &kinds);
    let site = |id| site(graph, &panels, id);
    let trunks = bundles(graph, &kinds, site);
    let outside = outside::arrange(graph, &mut panels, trunks);
    let one_way = outside.has_one_way() || panels.iter().any(Panel::has_one_way);
    let legend = legend::Legend::of(graph, &kinds, &widths, one_way, outside.width);
    let (width, height) = (
        outside.width + 2.0 * MARGIN,
        HEAD + outside.height + legend.height + MARGIN,
    );

    let mut paint = Paint::new();
    head(&mut paint, graph, width);
    panels.iter().for_each(|panel| panel.ground(&mut paint));
    // Lines below, boxes above them, labels on top: clear of the boxes and of each other.
    let mut labels = Labels::new();
    outside.obstacles(&mut labels);
    outside.lines(&mut paint, graph, &kinds, &widths, &mut labels);
    for panel in &panels {
        panel.obstacles(&mut labels);
        panel.lines(&mut paint, graph, &kinds, &widths, &mut labels);
        panel.boxes(&mut paint, graph);
    }
    outside.switches(&mut paint, graph);
    panels
        .iter()
        .for_each(|panel| panel.captions(&mut paint, &widths));
    labels.paint(&mut paint);
    legend.paint(&mut paint, MARGIN, HEAD + outside.height);

    let title = format!("Link graph {}", words::short_hash(graph));
    paint.document(width, height, &title, &describe(graph), &style::css())
}

fn head(paint: &mut Paint, graph: &LinkGraph, width: f64) {
    paint.text(MARGIN, 38.0, 21.0, "title", "Link graph");
    let summary = text::fit(&words::summary(graph), 13.0, width - 2.0 * MARGIN);
    paint.text(MARGIN, 59.0, 13.0, "muted", &summary);
    paint.text(
        width - MARGIN,
        38.0,
        11.0,
        "muted end",
        &words::short_hash(graph),
    );
}

/// Where a vertex is, seen from outside the panels.
fn site(graph: &LinkGraph, panels: &[Panel], id: VertexId) -> Option<Site> {
    if let Some(place) = panels.iter().position(|panel| panel.holds(id)) {
        return Some(Site::Panel(place));
    }
    matches!(graph.vertex(id).kind, VertexKind::Switch(_)).then_some(Site::Switch(id))
}

/// What the drawing shows, for those who do not see it.
fn describe(graph: &LinkGraph) -> String {
    let mut text = words::summary(graph) + ".";
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for link in graph.links() {
        *counts.entry(&link.kind).or_default() += 1;
    }
    for (kind, count) in counts {
        text.push_str(&format!(" {kind}: {}.", words::count(count, "link")));
    }
    for node in graph.nodes() {
        let ranks: Vec<u32> = words::of_node(graph, node.id)
            .filter_map(|vertex| vertex.rank())
            .collect();
        if !ranks.is_empty() {
            text.push_str(&format!(
                " Node {}: ranks {}.",
                node.name,
                words::ranges(ranks)
            ));
        }
    }
    text
}

/// Boxes of a panel, moved to where the panel is.
fn moved(areas: &BTreeMap<VertexId, Area>, middle: geometry::Point) -> BTreeMap<VertexId, Area> {
    areas
        .iter()
        .map(|(id, area)| (*id, area.moved(middle)))
        .collect()
}
