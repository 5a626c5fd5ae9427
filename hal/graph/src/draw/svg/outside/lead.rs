//! Where trunks run: each leaves its sites in the order in which the other ends stand, so that few
//! cross.

use std::collections::BTreeMap;

use super::{LANE, Outside, Site, Trunk};
use crate::LinkGraph;
use crate::draw::svg::bundle::Bundle;
use crate::draw::svg::geometry::{Curve, Point, point};
use crate::draw::svg::panel::Panel;
use crate::draw::words;

impl Outside {
    /// Leads the trunks of these bundles.
    pub(super) fn lead(
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
