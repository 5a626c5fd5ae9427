//! Outside the panels: where panels stand, the switches between them, and the trunks.
//!
//! Panels stand in one row, or in two with a band between. All trunks run in that band (below the
//! row, if there is one only), so that none passes behind a panel.

use std::collections::BTreeMap;

use super::bundle::{Bundle, Kinds};
use super::geometry::{Area, Curve, Point, point};
use super::labels::Labels;
use super::lines::{self, Pen, Widths};
use super::paint::Paint;
use super::panel::Panel;
use super::{HEAD, MARGIN, cards};
use crate::draw::words;
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
    /// Its two sites are on the same side of the band.
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

    fn lead(
        &mut self,
        graph: &LinkGraph,
        panels: &[Panel],
        bundles: Vec<Bundle<Site>>,
        columns: usize,
    ) {
        // At each site the trunks leave in the order in which their other ends stand.
        let mut leaving: BTreeMap<Site, Vec<(f64, usize, usize)>> = BTreeMap::new();
        for (index, bundle) in bundles.iter().enumerate() {
            for side in [0, 1] {
                let other = self.middle(panels, bundle.ends[1 - side]).x;
                leaving
                    .entry(bundle.ends[side])
                    .or_default()
                    .push((other, index, side));
            }
        }
        let mut ports = vec![[Point::default(); 2]; bundles.len()];
        for (site, mut trunks) in leaving {
            trunks.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            let count = trunks.len() as f64;
            for (place, (other, index, side)) in trunks.into_iter().enumerate() {
                let share = (place as f64 + 1.0) / (count + 1.0);
                ports[index][side] = match site {
                    Site::Panel(panel) => {
                        let area = &panels[panel].area;
                        let edge = if panel < columns {
                            area.bottom()
                        } else {
                            area.top()
                        };
                        // One trunk alone leaves where the way is short.
                        let x = if count == 1.0 {
                            other.clamp(
                                area.left() + area.width * 0.3,
                                area.right() - area.width * 0.3,
                            )
                        } else {
                            area.left() + area.width * share
                        };
                        point(x, edge)
                    }
                    Site::Switch(id) => {
                        let area = self.switches.get(&id).copied().unwrap_or(self.band);
                        let above = match bundles[index].ends[1 - side] {
                            Site::Panel(panel) => panel < columns,
                            Site::Switch(_) => false,
                        };
                        point(
                            area.left() + area.width * share,
                            if above { area.top() } else { area.bottom() },
                        )
                    }
                };
            }
        }
        let mut lane = 0.0;
        for (bundle, [from, to]) in bundles.into_iter().zip(ports) {
            // Curves leave and arrive upright. Those that turn back do so at a depth of their own.
            let away = |site: Site, port: Point| match site {
                Site::Panel(panel) => {
                    if panel < columns {
                        1.0
                    } else {
                        -1.0
                    }
                }
                Site::Switch(id) => {
                    let middle = self
                        .switches
                        .get(&id)
                        .map_or(self.band.middle, |area| area.middle);
                    if port.y < middle.y { -1.0 } else { 1.0 }
                }
            };
            let (first, last) = (away(bundle.ends[0], from), away(bundle.ends[1], to));
            let depth = if first == last {
                lane += 1.0;
                16.0 + LANE * lane
            } else {
                ((from.y - to.y).abs() * 0.5).max(20.0)
            };
            let curve = Curve([
                from,
                from.plus(point(0.0, first * depth)),
                to.plus(point(0.0, last * depth)),
                to,
            ]);
            let label = label(graph, panels, &bundle);
            self.trunks.push(Trunk {
                bundle,
                curve,
                label,
            });
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

/// A trunk's figures, with whose links they are if not a whole panel's.
fn label(graph: &LinkGraph, panels: &[Panel], bundle: &Bundle<Site>) -> String {
    let partial =
        bundle
            .ends
            .iter()
            .zip(&bundle.vertices)
            .filter_map(|(site, vertices)| match site {
                Site::Panel(place) => {
                    let ranks = graph.vertex_ids().filter(|(id, vertex)| {
                        vertex.device().is_some() && panels[*place].holds(*id)
                    });
                    (ranks.count() != vertices.len()).then(|| words::vertices(graph, vertices))
                }
                Site::Switch(_) => None,
            });
    let partial: Vec<String> = partial.collect();
    if partial.is_empty() {
        return bundle.figures();
    }
    let arrow = if bundle.both { " ↔ " } else { " → " };
    format!("{} · {}", partial.join(arrow), bundle.figures())
}
