//! Chips: small facts of a machine, in rows at the foot of its panel.

use crate::draw::svg::geometry::Area;
use crate::draw::svg::paint::Paint;
use crate::draw::svg::text;

const SIZE: f64 = 10.5;
const HEIGHT: f64 = 22.0;
const ROW: f64 = 28.0;

/// One fact.
pub(super) struct Chip {
    pub(super) text: String,
    pub(super) faint: bool,
}

fn width(chip: &Chip, room: f64) -> f64 {
    (text::width(&chip.text, SIZE) + 20.0).min(room)
}

/// The place of each chip around (0, 0), and the height of all.
fn places(chips: &[Chip], room: f64) -> (Vec<(f64, f64)>, f64) {
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::new();
    for chip in chips {
        let width = width(chip, room);
        if x > 0.0 && x + width > room {
            (x, y) = (0.0, y + ROW);
        }
        places.push((x, y));
        x += width + 8.0;
    }
    (places, if chips.is_empty() { 0.0 } else { y + ROW + 6.0 })
}

/// How much height chips need in this width.
pub(super) fn height(chips: &[Chip], room: f64) -> f64 {
    places(chips, room).1
}

pub(super) fn paint(paint: &mut Paint, chips: &[Chip], x: f64, y: f64, room: f64) {
    for (chip, (dx, dy)) in chips.iter().zip(places(chips, room).0) {
        let area = Area::from_corner(x + dx, y + dy, width(chip, room), HEIGHT);
        paint.area(
            &area,
            11.0,
            if chip.faint { "chip virtual" } else { "chip" },
        );
        let class = if chip.faint {
            "muted middle"
        } else {
            "text middle"
        };
        paint.text(
            area.middle.x,
            area.middle.y + 3.7,
            SIZE,
            class,
            &text::fit(&chip.text, SIZE, area.width - 14.0),
        );
    }
}
