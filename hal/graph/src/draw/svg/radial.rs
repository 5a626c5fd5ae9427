//! The inside of a panel: devices on an ellipse, what forwards between them further in.
//!
//! On an ellipse no straight line between two devices runs through a third, so a full mesh can be
//! seen as what it is. Devices stand counterclockwise from the top: neighbours in rank are
//! neighbours in the drawing, and the first half is on the left. A switch stands in the direction
//! of what it is linked to, or, where that is all around, in the middle.

use std::collections::BTreeMap;
use std::f64::consts::{PI, TAU};

use super::geometry::{Area, Point, point};
use crate::{LinkGraph, VertexId};

/// The room between boxes.
const GAP: f64 = 22.0;
/// The room between a box and the border of its NUMA region.
const REGION_GAP: f64 = 14.0;
/// Neighbours whose mean lies closer to the middle than this are all around.
const AROUND: f64 = 0.3;
/// The most that stand above each other in the middle.
const COLUMN: usize = 8;

/// What stands where, around (0, 0).
pub(super) struct Radial {
    pub(super) areas: BTreeMap<VertexId, Area>,
    /// Half the size of everything.
    pub(super) reach: Point,
}

/// What to place.
pub(super) struct Plan {
    /// Devices by NUMA region: one, two (left and right) or four (quarters) regions.
    pub(super) regions: Vec<Vec<VertexId>>,
    /// What forwards: those next to devices first, then those next to them.
    pub(super) rings: Vec<Vec<VertexId>>,
    pub(super) card: (f64, f64),
    pub(super) hub: (f64, f64),
}

/// A place before the size of the ellipse is known.
enum Spot {
    /// On the ellipse.
    Device { angle: f64 },
    /// On a smaller one, by its share.
    Hub { angle: f64, share: f64 },
    /// In the middle, whatever the size.
    Middle(Point),
}

type Spots = BTreeMap<VertexId, Spot>;

pub(super) fn place(graph: &LinkGraph, plan: &Plan) -> Radial {
    let spots = spots(graph, plan);
    let devices: usize = plan.regions.iter().map(Vec::len).sum();
    let least_x = plan.card.0 / 2.0;
    let (mut x, mut y) = match devices {
        0 | 1 => (0.0, 0.0),
        2 => (least_x + 85.0, 0.0),
        3 | 4 => (least_x + 132.0, 84.0),
        _ => (least_x + 118.0, 112.0),
    };
    let mut areas = areas(&spots, plan, x, y);
    // Each round makes the ellipse 4% larger: 150 rounds are a factor of 350.
    for _ in 0..150 {
        if !crowded(&areas, plan) {
            break;
        }
        (x, y) = (x.max(20.0) * 1.04, y.max(20.0) * 1.04);
        areas = self::areas(&spots, plan, x, y);
    }
    let far = |f: fn(&Area) -> f64| areas.values().map(f).fold(0.0, f64::max);
    let reach = point(
        far(|a| a.right().max(-a.left())),
        far(|a| a.bottom().max(-a.top())),
    );
    Radial { areas, reach }
}

fn spots(graph: &LinkGraph, plan: &Plan) -> Spots {
    let mut spots = Spots::new();
    let parts = plan.regions.len().max(1) as f64;
    for (region, devices) in plan.regions.iter().enumerate() {
        for (index, device) in devices.iter().enumerate() {
            let turn = (region as f64 + (index as f64 + 0.5) / devices.len() as f64) / parts;
            spots.insert(
                *device,
                Spot::Device {
                    angle: -PI / 2.0 - turn * TAU,
                },
            );
        }
    }
    let mut middle = Vec::new();
    for (level, ring) in plan.rings.iter().enumerate() {
        let share = 0.55 * (plan.rings.len() - level) as f64 / plan.rings.len() as f64;
        let mut aside = Vec::new();
        for hub in ring {
            match direction(graph, *hub, &spots) {
                Some(angle) => aside.push((angle, *hub)),
                None => middle.push(*hub),
            }
        }
        for (angle, hub) in spread(aside) {
            spots.insert(hub, Spot::Hub { angle, share });
        }
    }
    let columns = middle.len().div_ceil(COLUMN).max(1);
    let rows = middle.len().div_ceil(columns).max(1);
    let centred = |place: usize, count: usize, size: f64| {
        (place as f64 - (count as f64 - 1.0) / 2.0) * (size + GAP + 2.0)
    };
    for (place, hub) in middle.into_iter().enumerate() {
        let spot = point(
            centred(place / rows, columns, plan.hub.0),
            centred(place % rows, rows, plan.hub.1),
        );
        spots.insert(hub, Spot::Middle(spot));
    }
    spots
}

/// Where a hub's neighbours lie, from 0 to a full turn; none if they lie all around.
fn direction(graph: &LinkGraph, hub: VertexId, spots: &Spots) -> Option<f64> {
    let angles = graph
        .links_from(hub)
        .filter_map(|(_, link)| match spots.get(&link.to)? {
            Spot::Device { angle } | Spot::Hub { angle, .. } => Some(*angle),
            Spot::Middle(_) => None,
        });
    let (sin, cos, count) = angles.fold((0.0, 0.0, 0.0), |(s, c, n), angle| {
        (s + angle.sin(), c + angle.cos(), n + 1.0)
    });
    let strength = f64::hypot(sin, cos) / f64::max(count, 1.0);
    // Rounded, so that what is meant to be equal is, and does not fall to either side of zero.
    let angle = (f64::atan2(sin, cos).rem_euclid(TAU) * 1e6).round() / 1e6;
    (strength > AROUND).then_some(angle)
}

/// The same directions, or, where some are too close to each other, even ones in the same order.
fn spread(mut hubs: Vec<(f64, VertexId)>) -> Vec<(f64, VertexId)> {
    hubs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let step = TAU / hubs.len().max(1) as f64;
    let apart =
        |(a, b): (&(f64, VertexId), &(f64, VertexId))| (b.0 - a.0).rem_euclid(TAU) > step / 3.0;
    if hubs.len() < 2 || hubs.iter().zip(hubs.iter().cycle().skip(1)).all(apart) {
        return hubs;
    }
    let lean = hubs
        .iter()
        .enumerate()
        .map(|(index, (angle, _))| angle - index as f64 * step);
    let (sin, cos) = lean.fold((0.0, 0.0), |(s, c), angle| {
        (s + angle.sin(), c + angle.cos())
    });
    let start = f64::atan2(sin, cos);
    hubs.into_iter()
        .enumerate()
        .map(|(index, (_, hub))| (start + index as f64 * step, hub))
        .collect()
}

fn areas(spots: &Spots, plan: &Plan, x: f64, y: f64) -> BTreeMap<VertexId, Area> {
    let on = |angle: f64, share: f64| point(x * share * angle.cos(), y * share * angle.sin());
    let area = |spot: &Spot| {
        let (middle, (width, height)) = match spot {
            Spot::Device { angle } => (on(*angle, 1.0), plan.card),
            Spot::Hub { angle, share } => (on(*angle, *share), plan.hub),
            Spot::Middle(middle) => (*middle, plan.hub),
        };
        Area {
            middle,
            width,
            height,
        }
    };
    spots
        .iter()
        .map(|(vertex, spot)| (*vertex, area(spot)))
        .collect()
}

fn crowded(areas: &BTreeMap<VertexId, Area>, plan: &Plan) -> bool {
    let all: Vec<&Area> = areas.values().collect();
    let overlap = (0..all.len()).any(|a| all[a + 1..].iter().any(|b| all[a].touches(b, GAP)));
    // A device must stand clear of the borders between regions.
    let astray = |device: &VertexId| {
        let Some(area) = areas.get(device) else {
            return false;
        };
        let near = |middle: f64, size: f64| middle.abs() < size / 2.0 + REGION_GAP;
        let sideways = plan.regions.len() > 1 && near(area.middle.x, area.width);
        sideways || (plan.regions.len() > 2 && near(area.middle.y, area.height))
    };
    overlap || plan.regions.iter().flatten().any(astray)
}
