//! Panels: one for each machine, and one for what is part of none.

mod build;
mod chips;
mod inside;

use std::collections::BTreeMap;

use super::bundle::{Bundle, Kinds};
use super::geometry::{Area, Curve, Point, point};
use super::labels::Labels;
use super::lines::{self, Pen, Widths};
use super::paint::Paint;
use super::text::{fit, fit_parts};
use super::{cards, moved};
use crate::{LinkGraph, VertexId};
use chips::Chip;

pub(super) use build::panels;

/// Room between a panel's border and what is in it.
const PAD: f64 = 22.0;
/// The height of one row of captions.
const CAPTION: f64 = 22.0;

/// A panel. Until it is placed, its `area` has the least size that it needs and no place.
pub(super) struct Panel {
    title: String,
    facts: String,
    pub(super) area: Area,
    /// Boxes around the body's middle.
    boxes: BTreeMap<VertexId, Area>,
    /// How much room the body has above and below its middle.
    body_height: f64,
    /// Titles of NUMA regions; none if devices are not told apart by them.
    regions: Vec<Vec<String>>,
    chips: Vec<Chip>,
    chips_height: f64,
    bundles: Vec<Bundle<VertexId>>,
    /// Captions: a bundle as a sample, and its text.
    captions: Vec<(Bundle<VertexId>, String)>,
    /// How much curves bend toward the middle.
    pull: f64,
}

impl Panel {
    pub(super) fn holds(&self, id: VertexId) -> bool {
        self.boxes.contains_key(&id)
    }

    /// Whether some line inside runs in one direction only.
    pub(super) fn has_one_way(&self) -> bool {
        self.bundles.iter().any(|bundle| !bundle.both)
    }

    fn head_height(&self) -> f64 {
        if self.facts.is_empty() { 44.0 } else { 60.0 }
    }

    fn foot_height(&self) -> f64 {
        self.chips_height
            + self.captions.len() as f64 * CAPTION
            + if self.captions.is_empty() { 0.0 } else { 10.0 }
    }

    /// The body: where the boxes are.
    fn body(&self) -> Area {
        let (top, bottom) = (
            self.area.top() + self.head_height(),
            self.area.bottom() - self.foot_height() - 14.0,
        );
        Area::from_corner(
            self.area.left() + PAD,
            top,
            self.area.width - 2.0 * PAD,
            bottom - top,
        )
    }

    /// The middle of the ellipse: lower than the body's where regions bear titles at the top only.
    fn middle(&self) -> Point {
        let shift = if (1..=2).contains(&self.regions.len()) {
            10.0
        } else {
            0.0
        };
        self.body().middle.plus(point(0.0, shift))
    }

    /// The panel itself, with its heading, regions and chips.
    pub(super) fn ground(&self, paint: &mut Paint) {
        paint.area(&self.area, 16.0, "panel");
        let (x, y) = (self.area.left() + PAD, self.area.top());
        let room = self.area.width - 2.0 * PAD;
        paint.text(x, y + 30.0, 15.5, "title", &fit(&self.title, 15.5, room));
        paint.text(x, y + 48.0, 11.5, "muted", &fit(&self.facts, 11.5, room));
        for (region, title) in self.region_areas().iter().zip(&self.regions) {
            paint.area(region, 12.0, "region");
            let low = region.middle.y > self.middle().y + 1.0 && self.regions.len() > 2;
            let y = if low {
                region.bottom() - 9.0
            } else {
                region.top() + 17.0
            };
            paint.text(
                region.left() + 12.0,
                y,
                10.5,
                "muted",
                &fit_parts(title, 10.5, region.width - 24.0),
            );
        }
        let chips_top = self.area.bottom() - self.foot_height() - 6.0;
        chips::paint(paint, &self.chips, x, chips_top, room);
    }

    fn region_areas(&self) -> Vec<Area> {
        let (body, middle) = (self.body(), self.middle());
        let (left, right) = (
            (body.left(), middle.x - 5.0),
            (middle.x + 5.0, body.right()),
        );
        let (top, bottom) = (
            (body.top(), middle.y - 5.0),
            (middle.y + 5.0, body.bottom()),
        );
        let all = |x: (f64, f64), y: (f64, f64)| Area::from_corner(x.0, y.0, x.1 - x.0, y.1 - y.0);
        let (wide, high) = ((body.left(), body.right()), (body.top(), body.bottom()));
        match self.regions.len() {
            1 => vec![all(wide, high)],
            2 => vec![all(left, high), all(right, high)],
            4 => vec![
                all(left, top),
                all(left, bottom),
                all(right, bottom),
                all(right, top),
            ],
            _ => Vec::new(),
        }
    }

    /// What labels must keep clear of.
    pub(super) fn obstacles(&self, labels: &mut Labels) {
        moved(&self.boxes, self.middle())
            .into_values()
            .for_each(|area| labels.avoid(area));
    }

    /// The links inside.
    pub(super) fn lines(
        &self,
        paint: &mut Paint,
        graph: &LinkGraph,
        kinds: &Kinds,
        widths: &Widths,
        labels: &mut Labels,
    ) {
        let boxes = moved(&self.boxes, self.middle());
        // Bundles between the same two boxes run side by side.
        let ends = |bundle: &Bundle<VertexId>| {
            (
                bundle.ends[0].min(bundle.ends[1]),
                bundle.ends[0].max(bundle.ends[1]),
            )
        };
        let mut beside: BTreeMap<_, (usize, usize)> = BTreeMap::new();
        for bundle in &self.bundles {
            beside.entry(ends(bundle)).or_default().1 += 1;
        }
        for bundle in &self.bundles {
            let (Some(from), Some(to)) = (boxes.get(&bundle.ends[0]), boxes.get(&bundle.ends[1]))
            else {
                continue;
            };
            let Some((index, count)) = beside.get_mut(&ends(bundle)) else {
                continue;
            };
            let mut shift = (*index as f64 - (*count as f64 - 1.0) / 2.0)
                * if bundle.both { 13.0 } else { 25.0 };
            *index += 1;
            if bundle.ends[0] > bundle.ends[1] {
                shift = -shift;
            }
            let curve = self.curve(graph, bundle, from, to).beside(shift);
            lines::bundle(
                paint,
                graph,
                kinds,
                self.pen(widths, bundle),
                &curve,
                bundle,
            );
            if !self
                .captions
                .iter()
                .any(|(sample, _)| sample.look == bundle.look && sample.both == bundle.both)
            {
                labels.put(&curve, !bundle.both, &bundle.figures(), &self.body());
            }
        }
    }

    fn pen(&self, widths: &Widths, bundle: &Bundle<VertexId>) -> Pen {
        Pen::among(widths, bundle.bytes_per_second, self.bundles.len())
    }

    fn curve(&self, graph: &LinkGraph, bundle: &Bundle<VertexId>, from: &Area, to: &Area) -> Curve {
        let devices = bundle
            .ends
            .iter()
            .all(|id| graph.vertex(*id).device().is_some());
        let pull = if devices { self.pull } else { 0.0 };
        let (middle, a, b) = (self.middle(), from.middle, to.middle);
        // Neighbours need no bend: it would take the line out of its way.
        let across = (a.minus(middle).length() + b.minus(middle).length()).max(1.0);
        let pull = pull * (a.minus(b).length() / across).clamp(0.2, 1.0);
        let bend = |near: Point, far: Point| near.toward(far, 0.33).toward(middle, pull);
        let (first, second) = (bend(a, b), bend(b, a));
        Curve([
            from.edge_toward(first),
            first,
            second,
            to.edge_toward(second),
        ])
    }

    /// Cards and hubs.
    pub(super) fn boxes(&self, paint: &mut Paint, graph: &LinkGraph) {
        for (id, area) in moved(&self.boxes, self.middle()) {
            cards::paint(paint, graph, id, &area);
        }
    }

    /// One row for each class of links that is not labelled line by line.
    pub(super) fn captions(&self, paint: &mut Paint, widths: &Widths) {
        let mut y = self.area.bottom() - 14.0 - (self.captions.len() as f64 - 1.0) * CAPTION;
        let x = self.area.left() + PAD;
        for (sample, text) in &self.captions {
            let (start, end) = (point(x, y - 4.0), point(x + 38.0, y - 4.0));
            let curve = Curve([start, start.toward(end, 0.33), start.toward(end, 0.66), end]);
            lines::strokes(
                paint,
                &curve,
                self.pen(widths, sample),
                sample.look.kind,
                sample.look.link_type,
                sample.both,
            );
            let room = self.area.width - 2.0 * PAD - 48.0;
            paint.text(x + 48.0, y, 11.5, "text", &fit(text, 11.5, room));
            y += CAPTION;
        }
    }
}
