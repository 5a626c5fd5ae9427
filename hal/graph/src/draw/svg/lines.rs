//! Lines: one or two strokes, as wide as the bandwidth says.

use super::bundle::{Bundle, Kinds};
use super::geometry::{Curve, Point};
use super::paint::Paint;
use super::style;
use crate::draw::words;
use crate::{LinkGraph, LinkType};

/// The narrowest and the widest stroke.
const NARROW: f64 = 1.3;
const WIDE: f64 = 4.0;
/// The room between the strokes of a double line.
const BETWEEN: f64 = 2.2;

/// How bandwidths become widths in one drawing.
pub(super) struct Widths {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// How a line is drawn: the width of a stroke, and the room between two.
#[derive(Clone, Copy)]
pub(super) struct Pen {
    pub(super) width: f64,
    pub(super) between: f64,
}

impl Pen {
    /// For a bandwidth, among so many lines: in a crowd all are thinner.
    pub(super) fn among(widths: &Widths, bytes_per_second: u64, lines: usize) -> Self {
        let scale = (14.0 / lines.max(1) as f64).sqrt().clamp(0.3, 1.0);
        Self {
            width: widths.stroke(bytes_per_second) * scale,
            between: (BETWEEN * scale).max(1.0),
        }
    }
}

impl Widths {
    pub(super) fn of(graph: &LinkGraph) -> Self {
        let all = || graph.links().iter().map(|link| link.bytes_per_second);
        Self {
            low: all().min().unwrap_or(1),
            high: all().max().unwrap_or(1),
        }
    }

    /// The width of one stroke.
    pub(super) fn stroke(&self, bytes_per_second: u64) -> f64 {
        let log = |bytes: u64| (bytes.max(1) as f64).log10();
        let span = log(self.high) - log(self.low);
        if span < 0.01 {
            return 1.9;
        }
        let share = (log(bytes_per_second) - log(self.low)) / span;
        NARROW + (WIDE - NARROW) * share.clamp(0.0, 1.0)
    }
}

/// One line as a sample or a link: double if it runs both ways, with an arrow if it does not.
pub(super) fn strokes(
    paint: &mut Paint,
    curve: &Curve,
    pen: Pen,
    kind: usize,
    link_type: LinkType,
    both: bool,
) {
    let colour = style::colour(kind);
    let posted = if link_type == LinkType::Posted {
        " posted"
    } else {
        ""
    };
    let class = format!("k{colour}{posted}");
    if both {
        for side in [-1.0, 1.0] {
            paint.curve(
                &curve.beside(side * (pen.width + pen.between) / 2.0),
                pen.width,
                &class,
            );
        }
        return;
    }
    paint.curve(curve, pen.width, &class);
    let along = curve.direction(0.66);
    if along.length() > 0.0 {
        let ahead = along.times(1.0 / along.length());
        let size = 4.0 + 1.3 * pen.width;
        let at = curve.at(0.66);
        let back = at.minus(ahead.times(size * 0.8));
        let aside = |way: f64| back.plus(ahead.normal().times(way * size * 0.62));
        let tip: Point = at.plus(ahead.times(size * 0.8));
        paint.triangle([tip, aside(1.0), aside(-1.0)], &format!("f{colour}"));
    }
}

/// The line of a bundle, with a title that says everything.
pub(super) fn bundle<S>(
    paint: &mut Paint,
    graph: &LinkGraph,
    kinds: &Kinds,
    pen: Pen,
    curve: &Curve,
    bundle: &Bundle<S>,
) {
    let [from, to] = &bundle.vertices;
    let arrow = if bundle.both { "↔" } else { "→" };
    let title = format!(
        "{} {}: {} {arrow} {}",
        kinds.name(bundle.look.kind),
        bundle.figures(),
        words::vertices(graph, from),
        words::vertices(graph, to)
    );
    paint.titled(&title, |paint| {
        strokes(
            paint,
            curve,
            pen,
            bundle.look.kind,
            bundle.look.link_type,
            bundle.both,
        );
    });
}
