//! Labels on lines, each where it is clear of boxes and of other labels.

use super::geometry::{Area, Curve, Point};
use super::paint::Paint;
use super::text;

const SIZE: f64 = 11.0;
const HEIGHT: f64 = 19.0;
/// Where along a line a label is tried, the best place first.
const PLACES: [f64; 13] = [
    0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8, 0.14, 0.86,
];

/// The same for lines of one direction, whose opposite is close: clear of its label and the arrow.
const ONE_WAY: [f64; 9] = [0.3, 0.26, 0.34, 0.22, 0.38, 0.45, 0.5, 0.18, 0.8];

/// Labels that have found their places, and what is in the way of more.
pub(super) struct Labels {
    taken: Vec<Area>,
    placed: Vec<(Area, String)>,
}

impl Labels {
    pub(super) fn new() -> Self {
        Self {
            taken: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// Keeps a box free of labels.
    pub(super) fn avoid(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// Puts a label on a line, inside `bounds`. False if there is no room.
    pub(super) fn put(&mut self, curve: &Curve, one_way: bool, label: &str, bounds: &Area) -> bool {
        let at = |middle: Point| Area {
            middle,
            width: text::width(label, SIZE) + 14.0,
            height: HEIGHT,
        };
        let free = |area: &Area| {
            area.within(bounds) && !self.taken.iter().any(|taken| taken.touches(area, 3.0))
        };
        let places: &[f64] = if one_way { &ONE_WAY } else { &PLACES };
        let Some(area) = places.iter().map(|t| at(curve.at(*t))).find(free) else {
            return false;
        };
        self.taken.push(area);
        self.placed.push((area, label.to_owned()));
        true
    }

    pub(super) fn paint(&self, paint: &mut Paint) {
        for (area, label) in &self.placed {
            paint.area(area, HEIGHT / 2.0, "label");
            paint.text(
                area.middle.x,
                area.middle.y + 3.9,
                SIZE,
                "text middle",
                label,
            );
        }
    }
}
