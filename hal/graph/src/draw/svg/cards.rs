//! The boxes of vertices: cards for devices, smaller ones for what forwards.

use super::geometry::Area;
use super::paint::Paint;
use super::text::fit;
use crate::{LinkGraph, VertexId, VertexKind, units};

/// A device's card, and what it is in a crowd.
pub(super) const CARD: (f64, f64) = (146.0, 58.0);
pub(super) const SMALL_CARD: (f64, f64) = (92.0, 40.0);
/// The box of a switch, or of a network card that links end at.
pub(super) const HUB: (f64, f64) = (112.0, 40.0);

/// Paints the box of a vertex.
pub(super) fn paint(paint: &mut Paint, graph: &LinkGraph, id: VertexId, area: &Area) {
    paint.titled(&title(graph, id), |paint| match graph.vertex(id).device() {
        Some(_) => card(paint, graph, id, area),
        None => hub(paint, graph, id, area),
    });
}

fn card(paint: &mut Paint, graph: &LinkGraph, id: VertexId, area: &Area) {
    let vertex = graph.vertex(id);
    let Some(device) = vertex.device() else { return };
    paint.area(area, 10.0, "card");
    let side = if area.height > 50.0 { 34.0 } else { 26.0 };
    let inset = (area.height - side) / 2.0;
    let badge = Area::from_corner(area.left() + inset, area.top() + inset, side, side);
    let middle = area.middle.y;
    match device.rank {
        Some(rank) => {
            let digits = rank.to_string();
            let size = if digits.len() > 3 { 10.0 } else { side * 0.44 };
            paint.area(&badge, 8.0, "badge");
            paint.text(badge.middle.x, middle + size * 0.36, size, "badge-text middle", &digits);
        }
        None => {
            paint.area(&badge, 8.0, "spare");
            paint.text(badge.middle.x, middle + 3.6, 10.0, "muted middle", device.class.as_str());
        }
    }
    let left = badge.right() + inset.min(10.0);
    let room = area.right() - left - 6.0;
    let mut facts = device.plugin.clone();
    if device.memory_bytes > 0 {
        let separator = if facts.is_empty() { "" } else { " · " };
        facts = format!("{facts}{separator}{}", units::size(device.memory_bytes));
    }
    if facts.is_empty() || area.height < 50.0 {
        paint.text(left, middle + 4.5, 12.5, "strong", &fit(&vertex.name, 12.5, room));
    } else {
        paint.text(left, middle - 4.0, 12.5, "strong", &fit(&vertex.name, 12.5, room));
        paint.text(left, middle + 13.0, 10.5, "muted", &fit(&facts, 10.5, room));
    }
}

fn hub(paint: &mut Paint, graph: &LinkGraph, id: VertexId, area: &Area) {
    let vertex = graph.vertex(id);
    let what = match &vertex.kind {
        VertexKind::Switch(switch) if switch.reduces => "switch, reduces",
        VertexKind::Switch(_) => "switch",
        VertexKind::Nic(_) => "nic",
        VertexKind::Numa(_) => "numa",
        VertexKind::Device(_) => "device",
    };
    paint.area(area, area.height / 2.0, "hub");
    let room = area.width - 20.0;
    paint.text(area.middle.x, area.middle.y - 1.5, 12.0, "strong middle", &fit(&vertex.name, 12.0, room));
    paint.text(area.middle.x, area.middle.y + 12.0, 9.5, "muted middle", what);
}

/// Everything that is known of a vertex, for whoever points at it.
fn title(graph: &LinkGraph, id: VertexId) -> String {
    let vertex = graph.vertex(id);
    let mut lines = vec![format!("{}: {}", vertex.label(), vertex.name)];
    let mut add = |what: &str, value: String| lines.push(format!("{what}: {value}"));
    match &vertex.kind {
        VertexKind::Device(device) => {
            if !device.plugin.is_empty() {
                add("plugin", device.plugin.clone());
            }
            add("class", device.class.as_str().to_owned());
            add("id", device.id.to_string());
            if let Some(numa) = device.numa {
                add("numa", numa.to_string());
            }
            if let Some(pci) = &device.pci {
                add("pci", pci.clone());
            }
            if device.memory_bytes > 0 {
                add("memory", units::size(device.memory_bytes));
            }
        }
        VertexKind::Nic(nic) => {
            if let Some(speed) = nic.bytes_per_second {
                add("speed", units::bandwidth(speed));
            }
        }
        VertexKind::Switch(_) | VertexKind::Numa(_) => {}
    }
    lines.join("\n")
}
