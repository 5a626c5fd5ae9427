//! Chips: small facts of a machine, in rows at the foot of its panel.

use std::collections::BTreeSet;

use crate::draw::svg::geometry::Area;
use crate::draw::svg::paint::Paint;
use crate::draw::svg::text;
use crate::draw::words;
use crate::{LinkGraph, Nic, NicClass, NodeId, Numa, VertexId, VertexKind, units};

/// More network interfaces than this are counted, not named.
const NAMED_NICS: usize = 10;
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

/// NUMA nodes, if no region shows them, and network interfaces that no line ends at.
pub(super) fn of_node(
    graph: &LinkGraph,
    node: Option<NodeId>,
    numa: bool,
    linked: &BTreeSet<VertexId>,
) -> Vec<Chip> {
    let (mut numas, mut chips) = (Vec::new(), Vec::new());
    let mut unnamed = 0;
    for (id, vertex) in graph
        .vertex_ids()
        .filter(|(_, vertex)| node.is_some() && vertex.node == node)
    {
        match &vertex.kind {
            VertexKind::Numa(it) if numa => numas.push(Chip {
                text: numa_parts(it).join(" · "),
                faint: false,
            }),
            VertexKind::Nic(nic) if nic.class != NicClass::Loopback && !linked.contains(&id) => {
                if chips.len() < NAMED_NICS {
                    chips.push(nic_chip(&vertex.name, nic));
                } else {
                    unnamed += 1;
                }
            }
            _ => {}
        }
    }
    if unnamed > 0 {
        chips.push(Chip {
            text: format!("and {}", words::count(unnamed, "more interface")),
            faint: true,
        });
    }
    numas.extend(chips);
    numas
}

fn nic_chip(name: &str, nic: &Nic) -> Chip {
    let mut text = name.to_owned();
    if let Some(speed) = nic.bytes_per_second {
        text.push_str(&format!(" · {}", units::bandwidth(speed)));
    }
    if let Some(numa) = nic.numa {
        text.push_str(&format!(" · NUMA {numa}"));
    }
    if !nic.up {
        text.push_str(" · down");
    }
    Chip {
        text,
        faint: nic.class == NicClass::Virtual || !nic.up,
    }
}

/// What is known of a NUMA node, the most important first.
pub(super) fn numa_parts(numa: &Numa) -> Vec<String> {
    let mut parts = vec![format!("NUMA {}", numa.index)];
    parts.extend(numa.socket.map(|socket| format!("socket {socket}")));
    if numa.cores > 0 {
        parts.push(words::count(numa.cores as usize, "core"));
    }
    if numa.memory_bytes > 0 {
        parts.push(units::size(numa.memory_bytes));
    }
    parts
}
