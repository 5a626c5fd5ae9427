//! The inside of a panel: devices on an ellipse, what forwards between them on smaller ones.
//!
//! On an ellipse no straight line between two devices runs through a third, so a full mesh can be
//! seen as what it is. Devices stand counterclockwise from the top: neighbours in rank are
//! neighbours in the drawing, and the first half is on the left.

use std::collections::BTreeMap;
use std::f64::consts::{PI, TAU};

use super::geometry::{Area, Point, point};
use crate::{LinkGraph, VertexId};

/// The room between boxes.
const GAP: f64 = 22.0;
/// The room between a box and the border of its NUMA region.
const REGION_GAP: f64 = 14.0;

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

pub(super) fn place(graph: &LinkGraph, plan: &Plan) -> Radial {
    let angles = angles(graph, plan);
    let devices: usize = plan.regions.iter().map(Vec::len).sum();
    let (mut x, mut y) = match devices {
        0 | 1 => (0.0, 0.0),
        2 => (plan.card.0 / 2.0 + 85.0, 0.0),
        3 | 4 => (plan.card.0 * 1.25, plan.card.1 * 1.3),
        _ => (plan.card.0 * 1.3, plan.card.1 * 1.9),
    };
    if devices < 3 && !plan.rings.is_empty() {
        y = plan.card.1;
        x = x.max(plan.card.0);
    }
    let mut areas = areas(&angles, plan, x, y);
    // Each round makes everything 4% larger: 150 rounds are a factor of 350.
    for _ in 0..150 {
        if !crowded(&areas, plan) {
            break;
        }
        (x, y) = (x.max(20.0) * 1.04, y.max(20.0) * 1.04);
        areas = self::areas(&angles, plan, x, y);
    }
    let far = |f: fn(&Area) -> f64| areas.values().map(f).fold(0.0, f64::max);
    let reach = point(far(|a| a.right().max(-a.left())), far(|a| a.bottom().max(-a.top())));
    Radial { areas, reach }
}

/// For each vertex its angle and which share of the outer ellipse its own is.
fn angles(graph: &LinkGraph, plan: &Plan) -> BTreeMap<VertexId, (f64, f64, bool)> {
    let mut angles = BTreeMap::new();
    let parts = plan.regions.len().max(1) as f64;
    for (region, devices) in plan.regions.iter().enumerate() {
        for (index, device) in devices.iter().enumerate() {
            let turn = (region as f64 + (index as f64 + 0.5) / devices.len() as f64) / parts;
            angles.insert(*device, (-PI / 2.0 - turn * TAU, 1.0, true));
        }
    }
    let depth = plan.rings.len() as f64;
    for (level, ring) in plan.rings.iter().enumerate() {
        let last = level + 1 == plan.rings.len();
        let share = if last && ring.len() == 1 { 0.0 } else { 0.55 * (depth - level as f64) / depth };
        let mut order: Vec<(f64, VertexId)> =
            ring.iter().map(|hub| (mean_angle(graph, *hub, &angles), *hub)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let step = TAU / order.len().max(1) as f64;
        let lean = order.iter().enumerate().map(|(index, (angle, _))| angle - index as f64 * step);
        let (sin, cos) = lean.fold((0.0, 0.0), |(s, c), angle| (s + angle.sin(), c + angle.cos()));
        let start = f64::atan2(sin, cos);
        for (index, (_, hub)) in order.into_iter().enumerate() {
            angles.insert(hub, (start + index as f64 * step, share, false));
        }
    }
    angles
}

/// The middle of the directions in which a vertex's neighbours lie, from 0 to a full turn.
fn mean_angle(graph: &LinkGraph, hub: VertexId, angles: &BTreeMap<VertexId, (f64, f64, bool)>) -> f64 {
    let neighbours = graph.links_from(hub).filter_map(|(_, link)| angles.get(&link.to));
    let (sin, cos) = neighbours.fold((0.0, 0.0), |(s, c), (angle, ..)| (s + angle.sin(), c + angle.cos()));
    let angle = if f64::hypot(sin, cos) < 1e-6 { 0.0 } else { f64::atan2(sin, cos) };
    // Rounded, so that what is meant to be equal is, and does not fall to either side of zero.
    ((angle.rem_euclid(TAU)) * 1e6).round() / 1e6
}

fn areas(
    angles: &BTreeMap<VertexId, (f64, f64, bool)>,
    plan: &Plan,
    x: f64,
    y: f64,
) -> BTreeMap<VertexId, Area> {
    let area = |&(angle, share, device): &(f64, f64, bool)| {
        let (width, height) = if device { plan.card } else { plan.hub };
        Area { middle: point(x * share * angle.cos(), y * share * angle.sin()), width, height }
    };
    angles.iter().map(|(vertex, place)| (*vertex, area(place))).collect()
}

fn crowded(areas: &BTreeMap<VertexId, Area>, plan: &Plan) -> bool {
    let all: Vec<&Area> = areas.values().collect();
    let overlap = (0..all.len()).any(|a| all[a + 1..].iter().any(|b| all[a].touches(b, GAP)));
    // A device must stand clear of the borders between regions.
    let astray = |device: &VertexId| {
        let Some(area) = areas.get(device) else { return false };
        let near = |middle: f64, size: f64| middle.abs() < size / 2.0 + REGION_GAP;
        let sideways = plan.regions.len() > 1 && near(area.middle.x, area.width);
        sideways || (plan.regions.len() > 2 && near(area.middle.y, area.height))
    };
    overlap || plan.regions.iter().flatten().any(astray)
}
