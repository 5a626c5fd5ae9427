//! The legend: what colours, strokes and widths mean.

use std::collections::BTreeSet;

use super::bundle::Kinds;
use super::geometry::{Curve, point};
use super::lines::{self, Pen, Widths};
use super::paint::Paint;
use super::text;
use crate::{LinkGraph, LinkType, units};

const SIZE: f64 = 11.5;
const ROW: f64 = 26.0;
const SAMPLE: f64 = 36.0;

/// One entry: a sample of a line, and what it means.
struct Entry {
    /// Kind, type, both ways, width; a kind of `usize::MAX` has no colour of its own.
    kind: usize,
    link_type: LinkType,
    both: bool,
    width: f64,
    text: String,
    x: f64,
    y: f64,
}

pub(super) struct Legend {
    entries: Vec<Entry>,
    pub(super) height: f64,
}

impl Legend {
    pub(super) fn of(
        graph: &LinkGraph,
        kinds: &Kinds,
        widths: &Widths,
        one_way: bool,
        room: f64,
    ) -> Self {
        let looks: BTreeSet<(&str, &str, LinkType)> = graph
            .links()
            .iter()
            .map(|link| (&*link.kind, &*link.plugin, link.link_type))
            .collect();
        let mut entries = Vec::new();
        let mut add = |kind, link_type, both, width, text| {
            entries.push(Entry {
                kind,
                link_type,
                both,
                width,
                text,
                x: 0.0,
                y: 0.0,
            });
        };
        for (kind, plugin, link_type) in looks {
            let place = kinds
                .0
                .iter()
                .position(|(k, p)| k == kind && p == plugin)
                .unwrap_or(0);
            let plugin = if plugin.is_empty() || plugin == kind {
                String::new()
            } else {
                format!(" by {plugin}")
            };
            add(
                place,
                link_type,
                true,
                2.0,
                format!("{kind}{plugin}, {}", link_type.as_str()),
            );
        }
        if !graph.links().is_empty() {
            add(
                usize::MAX,
                LinkType::Mapped,
                true,
                1.6,
                "both directions alike".to_owned(),
            );
        }
        if one_way {
            add(
                usize::MAX,
                LinkType::Mapped,
                false,
                1.6,
                "one direction".to_owned(),
            );
        }
        if widths.stroke(widths.high) > widths.stroke(widths.low) {
            add(
                usize::MAX,
                LinkType::Mapped,
                true,
                widths.stroke(widths.low),
                units::bandwidth(widths.low),
            );
            add(
                usize::MAX,
                LinkType::Mapped,
                true,
                widths.stroke(widths.high),
                units::bandwidth(widths.high),
            );
        }
        let (mut x, mut y) = (0.0, 34.0);
        for entry in &mut entries {
            let width = SAMPLE + 10.0 + text::width(&entry.text, SIZE) + 26.0;
            if x > 0.0 && x + width > room {
                (x, y) = (0.0, y + ROW);
            }
            (entry.x, entry.y) = (x, y);
            x += width;
        }
        let height = if entries.is_empty() { 0.0 } else { y + 8.0 };
        Self { entries, height }
    }

    pub(super) fn paint(&self, paint: &mut Paint, left: f64, top: f64) {
        for entry in &self.entries {
            let (x, y) = (left + entry.x, top + entry.y);
            let (start, end) = (point(x, y - 4.0), point(x + SAMPLE, y - 4.0));
            let curve = Curve([start, start.toward(end, 0.33), start.toward(end, 0.66), end]);
            let pen = Pen {
                width: entry.width,
                between: 2.2,
            };
            lines::strokes(paint, &curve, pen, entry.kind, entry.link_type, entry.both);
            paint.text(x + SAMPLE + 10.0, y, SIZE, "text", &entry.text);
        }
    }
}
