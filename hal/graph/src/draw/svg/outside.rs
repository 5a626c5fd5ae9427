//! Outside the panels: where panels stand, the switches between them, and the trunks.
//!
//! Panels stand in one row, or in two with a band between. All trunks run in that band (below the
//! row, if there is one only), so that none passes behind a panel.

mod lead;

use std::collections::BTreeMap;

use super::bundle::{Bundle, Kinds};
use super::geometry::{Area, Curve, Point, point};
use super::labels::Labels;
use super::lines::{self, Pen, Widths};
use super::paint::Paint;
use super::panel::Panel;
use super::{HEAD, MARGIN, cards};
use crate::{LinkGraph, VertexId, VertexKind};

/// Room between panels.
const GAP: f64 = 30.0;
/// The least height that trunks have between a panel and what they lead to.
const RUN: f64 = 84.0;
/// More height for each trunk that leads from panel to panel in one row.
const LANE: f64 = 30.0;
/// Up to this many panels stand in one row.
const ONE_ROW: usize = 3;
/// The box of a switch.
const SWITCH: (f64, f64) = (150.0, 46.0);

/// Where a line ends, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Site {
    Panel(usize),
    Switch(VertexId),
}

/// A trunk, and where it runs.
struct Trunk {
    bundle: Bundle<Site>,
    curve: Curve,
    label: String,
}

pub(super) struct Outside {
    pub(super) width: f64,
    pub(super) height: f64,
    band: Area,
    switches: BTreeMap<VertexId, Area>,
    trunks: Vec<Trunk>,
}

/// Places panels and switches, and leads trunks between them.
pub(super) fn arrange(
    graph: &LinkGraph,
    panels: &mut [Panel],
    bundles: Vec<Bundle<Site>>,
) -> Outside {
    let columns = if panels.len() <= ONE_ROW {
        panels.len()
    } else {
        panels.len().div_ceil(2)
    };
    let rows = panels.len().div_ceil(columns.max(1));
    let ids: Vec<VertexId> = free_switches(graph, panels);
    let band_height = band_height(panels, &bundles, ids.len(), rows, columns);

    let least = (ids.len() as f64 * (SWITCH.0 + GAP)).max(460.0);
    let widths: Vec<f64> = (0..columns)
        .map(|column| {
            panels
                .iter()
                .skip(column)
                .step_by(columns)
                .map(|p| p.area.width)
                .fold(0.0, f64::max)
        })
        .collect();
    let natural = widths.iter().sum::<f64>() + GAP * (columns.max(1) - 1) as f64;
    let more = ((least - natural) / columns.max(1) as f64).max(0.0);
    let width = natural + more * columns.max(1) as f64;

    let mut y = HEAD;
    let mut band_top = HEAD;
    for row in 0..rows {
        let places = row * columns..((row + 1) * columns).min(panels.len());
        let height = panels[places.clone()]
            .iter()
            .map(|panel| panel.area.height)
            .fold(0.0, f64::max);
        let mut x = MARGIN;
        for place in places {
            let width = widths[place % columns] + more;
            panels[place].area = Area::from_corner(x, y, width, height);
            x += width + GAP;
        }
        y += height;
        if row == 0 {
            band_top = y;
            y += band_height;
        }
    }
    let band = Area::from_corner(MARGIN, band_top, width, band_height);
    let mut outside = Outside {
        width,
        height: y - HEAD,
        band,
        switches: BTreeMap::new(),
        trunks: Vec::new(),
    };
    outside.place_switches(panels, &bundles, &ids, rows);
    outside.lead(graph, panels, bundles, columns);
    outside
}

/// Switches that no panel holds.
fn free_switches(graph: &LinkGraph, panels: &[Panel]) -> Vec<VertexId> {
    let free = |id: &VertexId| !panels.iter().any(|panel| panel.holds(*id));
    let switches = graph
        .vertex_ids()
        .filter(|(_, vertex)| matches!(vertex.kind, VertexKind::Switch(_)));
    switches.map(|(id, _)| id).filter(free).collect()
}

/// Trunks that lead from a panel to one in the same row.
fn in_one_row(bundle: &Bundle<Site>, columns: usize) -> bool {
    matches!(bundle.ends, [Site::Panel(a), Site::Panel(b)] if a / columns == b / columns)
}

fn band_height(
    panels: &[Panel],
    bundles: &[Bundle<Site>],
    switches: usize,
    rows: usize,
    columns: usize,
) -> f64 {
    if bundles.is_empty() && switches == 0 {
        return if rows > 1 { GAP } else { 0.0 };
    }
    // Many trunks from one panel need height for their labels.
    let most = (0..panels.len())
        .map(|place| {
            bundles
                .iter()
                .filter(|bundle| bundle.ends.contains(&Site::Panel(place)))
                .count()
        })
        .max()
        .unwrap_or(0);
    let run = RUN + 24.0 * most.saturating_sub(2) as f64;
    let lanes = bundles
        .iter()
        .filter(|bundle| in_one_row(bundle, columns))
        .count() as f64
        * LANE;
    let switches = if switches > 0 { SWITCH.1 } else { 0.0 };
    match (rows > 1, switches > 0.0) {
        (true, _) => 2.0 * run + lanes + switches,
        (false, true) => run + lanes + switches + 16.0,
        (false, false) => 34.0 + lanes + 18.0,
    }
}

impl Outside {
    fn place_switches(
        &mut self,
        panels: &[Panel],
        bundles: &[Bundle<Site>],
        ids: &[VertexId],
        rows: usize,
    ) {
        let y = if rows > 1 {
            self.band.middle.y
        } else {
            self.band.bottom() - 16.0 - SWITCH.1 / 2.0
        };
        // In the order of what they are linked to, spread evenly.
        let mean = |id: &VertexId| {
            let others = bundles.iter().filter_map(|bundle| match bundle.ends {
                [Site::Panel(panel), Site::Switch(switch)]
                | [Site::Switch(switch), Site::Panel(panel)]
                    if switch == *id =>
                {
                    Some(panels[panel].area.middle.x)
                }
                _ => None,
            });
            let (sum, count) = others.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
            if count > 0.0 {
                sum / count
            } else {
                self.band.middle.x
            }
        };
        let mut order: Vec<(f64, VertexId)> =
            ids.iter().map(|id| (mean(id).round(), *id)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (index, (_, id)) in order.iter().enumerate() {
            let x = self.band.left() + self.width * (index as f64 + 0.5) / order.len() as f64;
            self.switches.insert(
                *id,
                Area {
                    middle: point(x, y),
                    width: SWITCH.0,
                    height: SWITCH.1,
                },
            );
        }
    }

    fn middle(&self, panels: &[Panel], site: Site) -> Point {
        match site {
            Site::Panel(place) => panels[place].area.middle,
            Site::Switch(id) => self
                .switches
                .get(&id)
                .map_or(self.band.middle, |area| area.middle),
        }
    }

    /// What labels must keep clear of.
    pub(super) fn obstacles(&self, labels: &mut Labels) {
        self.switches.values().for_each(|area| labels.avoid(*area));
    }

    /// Whether some trunk runs in one direction only.
    pub(super) fn has_one_way(&self) -> bool {
        self.trunks.iter().any(|trunk| !trunk.bundle.both)
    }

    pub(super) fn lines(
        &self,
        paint: &mut Paint,
        graph: &LinkGraph,
        kinds: &Kinds,
        widths: &Widths,
        labels: &mut Labels,
    ) {
        for trunk in &self.trunks {
            let pen = Pen::among(widths, trunk.bundle.bytes_per_second, 1);
            lines::bundle(paint, graph, kinds, pen, &trunk.curve, &trunk.bundle);
            let class = format!("port f{}", super::style::colour(trunk.bundle.look.kind));
            for (site, end) in trunk
                .bundle
                .ends
                .iter()
                .zip([trunk.curve.0[0], trunk.curve.0[3]])
            {
                if matches!(site, Site::Panel(_)) {
                    paint.dot(end, 5.0, &class);
                }
            }
        }
        for trunk in &self.trunks {
            labels.put(&trunk.curve, !trunk.bundle.both, &trunk.label, &self.band);
        }
    }

    pub(super) fn switches(&self, paint: &mut Paint, graph: &LinkGraph) {
        for (id, area) in &self.switches {
            cards::paint(paint, graph, *id, area);
        }
    }
}
