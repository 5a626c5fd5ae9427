//! The boxes of vertices: cards for devices, smaller ones for what forwards.

use super::geometry::Area;
use super::paint::Paint;
use super::text::{fit, width};
use crate::{LinkGraph, VertexId, VertexKind, units};

/// Sizes of a card's texts.
const NAME: f64 = 12.5;
const FACTS: f64 = 10.5;

/// The box of a switch, or of a network card that links end at.
pub(super) const HUB: (f64, f64) = (112.0, 40.0);

/// The size of these devices' cards: wide enough for what they say, within reason, and small where
/// they say only a name or are a crowd.
pub(super) fn size(graph: &LinkGraph, devices: &[VertexId]) -> (f64, f64) {
    let texts: Vec<(String, String)> = devices
        .iter()
        .map(|id| (name(graph, *id), facts(graph, *id)))
        .collect();
    let widest = |size: f64, text: fn(&(String, String)) -> &str| {
        texts
            .iter()
            .map(|both| width(text(both), size))
            .fold(0.0, f64::max)
    };
    let small = devices.len() > 16 || texts.iter().all(|(_, facts)| facts.is_empty());
    if small {
        return (
            ((widest(NAME, |t| &t.0) + 50.0).clamp(88.0, 120.0) / 2.0).ceil() * 2.0,
            42.0,
        );
    }
    let room = widest(NAME, |t| &t.0).max(widest(FACTS, |t| &t.1));
    (((room + 68.0).clamp(136.0, 188.0) / 2.0).ceil() * 2.0, 58.0)
}

/// What a card says first. The names of planning graphs are often their ranks, which say nothing.
fn name(graph: &LinkGraph, id: VertexId) -> String {
    let vertex = graph.vertex(id);
    match vertex.rank() {
        Some(rank) if rank.to_string() == vertex.name => vertex.label(),
        _ => vertex.name.clone(),
    }
}

/// What it says below.
fn facts(graph: &LinkGraph, id: VertexId) -> String {
    let Some(device) = graph.vertex(id).device() else {
        return String::new();
    };
    let memory = if device.memory_bytes > 0 {
        units::size(device.memory_bytes)
    } else {
        String::new()
    };
    let parts = [device.plugin.as_str(), &memory];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

/// Paints the box of a vertex.
pub(super) fn paint(paint: &mut Paint, graph: &LinkGraph, id: VertexId, area: &Area) {
    paint.titled(&title(graph, id), |paint| match graph.vertex(id).device() {
        Some(_) => card(paint, graph, id, area),
        None => hub(paint, graph, id, area),
    });
}

fn card(paint: &mut Paint, graph: &LinkGraph, id: VertexId, area: &Area) {
    let vertex = graph.vertex(id);
    let Some(device) = vertex.device() else {
        return;
    };
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
            paint.text(
                badge.middle.x,
                middle + size * 0.36,
                size,
                "badge-text middle",
                &digits,
            );
        }
        None => {
            paint.area(&badge, 8.0, "spare");
            paint.text(
                badge.middle.x,
                middle + 3.6,
                10.0,
                "muted middle",
                device.class.as_str(),
            );
        }
    }
    let left = badge.right() + inset.min(10.0);
    let room = area.right() - left - 6.0;
    let (name, facts) = (name(graph, id), facts(graph, id));
    if facts.is_empty() || area.height < 50.0 {
        paint.text(left, middle + 4.5, 12.5, "strong", &fit(&name, NAME, room));
    } else {
        paint.text(left, middle - 4.0, 12.5, "strong", &fit(&name, NAME, room));
        paint.text(
            left,
            middle + 13.0,
            10.5,
            "muted",
            &fit(&facts, FACTS, room),
        );
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
    paint.text(
        area.middle.x,
        area.middle.y - 1.5,
        12.0,
        "strong middle",
        &fit(&vertex.name, 12.0, room),
    );
    paint.text(
        area.middle.x,
        area.middle.y + 12.0,
        9.5,
        "muted middle",
        what,
    );
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
